//! Futures inside a model.
//!
//! A task is a modelled thread that polls one future. Between polls, [`block_on`] waits on an
//! object that the future's wakers notify. So a wake-up is a visible operation like any other, and
//! async code is explored like threads.

mod atomic_waker;
mod task;
mod waker;

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};

pub use atomic_waker::AtomicWaker;
pub use task::{JoinHandle, spawn};

use crate::alloc::track_block;
use crate::rt::{self, ThreadId};
use crate::sync::Notify;

/// The object that wakes a thread in [`block_on`].
struct Signal {
    notify: Notify,
    /// The thread that polls the future.
    poller: Option<ThreadId>,
    /// Whether the poller itself has asked for another poll. Only the poller reads or changes this
    /// flag.
    again: AtomicBool,
    /// The number of events of the poller when it cloned a waker last, plus 1; 0 if it has cloned
    /// none in this poll. Only the poller reads or changes this number.
    cloned: AtomicU32,
}

impl Signal {
    /// Notes that a waker was cloned.
    fn note_clone(&self) {
        if self.poller.is_some() && rt::current() == self.poller {
            let events = rt::note_cloned_waker();
            self.cloned.store(events.map_or(0, |it| it + 1), Relaxed);
        }
    }
}

impl Wake for Signal {
    #[track_caller]
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[track_caller]
    fn wake_by_ref(self: &Arc<Self>) {
        // Mostly the caller is a waker's table of functions, which is in std.
        let site = task::finishes_at().unwrap_or_else(Location::caller);
        if self.poller.is_some() && rt::current() == self.poller {
            self.again.store(true, Relaxed);
        }
        self.notify.notify_at(site);
    }
}

/// Polls `future` on this thread until it is ready.
///
/// A wake-up that comes before the thread waits is not lost, and several such wake-ups count as
/// one.
///
/// ```
/// let outcomes = dpor::outcomes(|| {
///     let task = dpor::future::spawn(async { dpor::choose(2) });
///     dpor::future::block_on(async { task.await + 1 })
/// });
/// assert!(outcomes.into_keys().eq([1, 2]));
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_at(future, Location::caller())
}

/// [`block_on`] for a thread that waits at this place.
fn block_on_at<F: Future>(future: F, site: &'static Location<'static>) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Signal {
        notify: Notify::new(),
        poller: rt::current(),
        again: AtomicBool::new(false),
        cloned: AtomicU32::new(0),
    });
    // In loom a waker is a reference to one of loom's own `Arc`s, and loom tracks their blocks.
    track_block(Arc::as_ptr(&signal).addr());
    rt::std_counts(Arc::as_ptr(&signal).addr());
    let waker = waker::of(signal.clone());
    let mut context = Context::from_waker(&waker);
    loop {
        let wakers = Arc::strong_count(&signal);
        signal.cloned.store(0, Relaxed);
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                // The thread that is to wake the task finds the waker somewhere. If no event of
                // this poll comes after the clone, the model does not see where, and explores no
                // order of the two.
                if let Some(events) = signal.cloned.load(Relaxed).checked_sub(1)
                    && Arc::strong_count(&signal) > wakers
                {
                    rt::note_unseen_waker(events, site);
                }
                signal.notify.wait_at(site);
            }
        }
        // A task that wakes itself to be polled again yields to other threads.
        if signal.again.swap(false, Relaxed) {
            rt::hint_at(site);
        }
    }
}
