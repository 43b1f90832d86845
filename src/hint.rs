//! Drop-in replacements for `std::hint`.
//!
//! A loop that only reads waits at its hint until a value that it has read changes; see
//! [`spin_loop`].

#[cfg(not(any(loom, feature = "loom")))]
pub use std::hint::unreachable_unchecked;
pub use std::hint::{assert_unchecked, black_box, select_unpredictable};

pub use crate::rt::rare::cold_path;
use crate::rt::{self, Answer};

/// Panics, as loom's function does: a test that reaches this call has found a bug.
///
/// # Safety
///
/// This function itself is always safe to call. With std's function in its place, the call must
/// never be reached.
///
/// # Panics
///
/// Always panics.
#[cfg(any(loom, feature = "loom"))]
#[track_caller]
pub const unsafe fn unreachable_unchecked() -> ! {
    panic!("`unreachable_unchecked` was reached")
}

/// Drop-in replacement for `std::hint::spin_loop`.
///
/// Inside a model, a thread waits here if, since its last hint, it has changed nothing and has read
/// the same values again; it continues when one of these values changes.
/// [`Builder::spin_bound`](crate::Builder::spin_bound) sets how many such rounds run without a
/// wait. Most rounds that read no new value are left out; see
/// [`Builder::await_loops`](crate::Builder::await_loops).
///
/// ```
/// use dpor::sync::atomic::{AtomicBool, Ordering::{Acquire, Release}};
///
/// let report = dpor::Builder::new().explore(|| {
///     let ready = AtomicBool::new(false);
///     dpor::thread::scope(|scope| {
///         scope.spawn(|| ready.store(true, Release));
///         while !ready.load(Acquire) {
///             dpor::hint::spin_loop();
///         }
///     });
/// });
/// assert!(report.expect("the loop ends").complete);
/// ```
#[inline(always)]
#[track_caller]
pub fn spin_loop() {
    rt::fill_below();
    spin_loop_there();
    rt::fill_below();
}

/// [`spin_loop`] over the stack that it has filled, in a frame of its own.
#[inline(never)]
#[track_caller]
fn spin_loop_there() {
    if let Answer::Outside = rt::hint() {
        std::hint::spin_loop();
    }
}
