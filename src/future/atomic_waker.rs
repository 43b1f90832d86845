//! A place for the waker of one task, as `loom::future::AtomicWaker`.

use std::sync::PoisonError;
use std::task::Waker;

use crate::sync::{Mutex, MutexGuard};

/// Holds the waker that was registered last, as `loom::future::AtomicWaker`.
///
/// Each method is one critical section, so a wake-up comes before or after a registration and never
/// during it.
#[derive(Debug, Default)]
pub struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    /// Creates an `AtomicWaker` without a waker.
    pub const fn new() -> AtomicWaker {
        AtomicWaker(Mutex::new(None))
    }

    /// Stores `waker` and drops the previous one.
    ///
    /// If the previous waker is of the same task, it is kept instead. So a task that registers at
    /// each poll, and is not ready, changes nothing.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        let mut slot = self.lock();
        let known = slot.as_ref();
        if known.is_none_or(|known| !known.will_wake(&waker)) {
            let before = slot.replace(waker);
            drop(slot);
            drop(before);
        }
    }

    /// Stores a clone of `waker` and drops the previous one, as
    /// [`register`](AtomicWaker::register).
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Takes the waker and wakes its task. Does nothing if there is no waker.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the waker without waking its task.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        let mut slot = self.lock();
        match *slot {
            Some(_) => slot.take(),
            None => None,
        }
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
