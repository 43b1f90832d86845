//! Drop-in replacements for `std::thread`.
//!
//! Inside a model a thread is a coroutine on the OS thread that explores the model. Outside a model
//! these functions are std's.
//!
//! | std | here |
//! |---|---|
//! | `spawn`, `Builder`, `JoinHandle`, `scope`, `Scope`, `ScopedJoinHandle` | modelled |
//! | `current`, `Thread`, `ThreadId`, `park*`, `panicking` | modelled |
//! | `yield_now`, `sleep` | a spin hint, see [`crate::hint::spin_loop`] |
//! | `LocalKey`, `AccessError` | modelled, see [`crate::thread_local!`] |
//! | `available_parallelism`, `Result` | std's own |
//! | `JoinHandleExt` of `std::os` | refused: a modelled thread has no handle of the system |

mod handle;
mod job;
mod local;
mod room;
mod scoped;
mod spawn;

use std::time::Duration;

use crate::rt::{self, Answer, OpKind};

pub use handle::{JoinHandle, Thread, ThreadId};
#[doc(hidden)]
pub use local::__Variable;
pub use local::{AccessError, LocalKey};
pub use scoped::{Scope, ScopedJoinHandle, scope};
pub use spawn::{Builder, spawn};
pub use std::thread::{Result, available_parallelism};
// Re-exported under this crate's path, so that `thread_local!` needs no `std` in the crate that
// calls it.
#[doc(hidden)]
pub use std::thread_local as __std_thread_local;

/// Returns a handle to the calling thread.
#[must_use]
pub fn current() -> Thread {
    Thread::current()
}

/// Waits until the thread's token is available, and takes it.
///
/// std's function may also return spuriously. Spurious returns are explored if
/// [`Builder::spurious_wakeups`](crate::Builder::spurious_wakeups) sets how many a thread may have.
#[track_caller]
pub fn park() {
    if !rt::park_here() {
        std::thread::park();
    }
}

/// Waits until the thread's token is available, for at most `duration`, and takes it.
///
/// Inside a model a timeout and a token in time are both explored.
#[track_caller]
pub fn park_timeout(duration: Duration) {
    match rt::current() {
        Some(me) => {
            let answer = rt::waited(rt::on_token(me, OpKind::ParkTimeout));
            if matches!(answer, Answer::Done(outcome) if !outcome.succeeded()) {
                rt::let_time_pass(duration);
            }
        }
        None => std::thread::park_timeout(duration),
    }
}

/// Same as [`park_timeout`], in milliseconds.
#[track_caller]
#[deprecated(note = "std has deprecated it; use `park_timeout`")]
pub fn park_timeout_ms(ms: u32) {
    park_timeout(Duration::from_millis(ms.into()));
}

/// Lets other threads run. Inside a model this is a spin hint, see [`crate::hint::spin_loop`].
#[inline(always)]
#[track_caller]
pub fn yield_now() {
    rt::fill_below();
    yield_there();
    rt::fill_below();
}

/// [`yield_now`] over the stack that it has filled, in a frame of its own.
#[inline(never)]
#[track_caller]
fn yield_there() {
    if let Answer::Outside = rt::hint() {
        std::thread::yield_now();
    }
}

/// Sleeps for `duration`. Inside a model this is the same as [`yield_now`], and
/// [`Instant`](crate::time::Instant) goes forward by `duration`.
#[track_caller]
pub fn sleep(duration: Duration) {
    match rt::hint() {
        Answer::Outside => std::thread::sleep(duration),
        _ => rt::let_time_pass(duration),
    }
}

/// Same as [`sleep`], in milliseconds.
#[track_caller]
#[deprecated(note = "std has deprecated it; use `sleep`")]
pub fn sleep_ms(ms: u32) {
    sleep(Duration::from_millis(ms.into()));
}

/// Returns whether this thread is unwinding.
///
/// A thread unwinds from a panic, or because its execution is over and the thread did not end. A
/// destructor that may panic should call this function first: a panic in a thread that unwinds ends
/// the process.
#[must_use]
pub fn panicking() -> bool {
    // Only a thread's own panics poison a lock.
    rt::panicking() || rt::ending() && std::thread::panicking()
}
