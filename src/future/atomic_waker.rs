//! A place for the waker of one task, as `loom::future::AtomicWaker`.

use std::sync::PoisonError;
use std::task::Waker;

use crate::sync::Mutex;

/// Keeps the waker of the task that was registered last. Each method is one critical section, so that a
/// wake-up comes before or after a registration and never in the middle.
#[derive(Debug, Default)]
pub struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    /// Without a waker.
    pub const fn new() -> AtomicWaker {
        AtomicWaker(Mutex::new(None))
    }

    /// Keeps `waker` instead of the one before.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        let before = self.replace(Some(waker));
        drop(before);
    }

    /// Keeps a copy of `waker` instead of the one before.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Takes the waker and wakes its task. Does nothing if there is none.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the waker without waking its task.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        self.replace(None)
    }

    #[track_caller]
    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *slot, waker)
    }
}
