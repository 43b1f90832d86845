//! Who unwinds from a panic?
//!
//! The OS thread's own answer would not do: where panics are caught, a modelled thread that unwinds may
//! have to wait for others, which then run while the OS thread counts a panic. So the panic hook notes
//! whose panic it is. Nobody says when the test itself catches one (`std::panic::catch_unwind`); but as
//! soon as the OS thread counts none, nobody unwinds. (While another thread is in the middle of its
//! unwinding, a thread that has caught its own panic is still taken for one that unwinds.)

use std::cell::{Cell, RefCell};

use crate::rt::trace::id::ThreadId;

use super::context::{Stop, with_any};

/// The threads that are unwinding from a panic.
#[derive(Default)]
pub(crate) struct Unwinding {
    threads: RefCell<Vec<ThreadId>>,
    /// Whether one of them did something that the model did not see, because the panic was taken for
    /// the end of the execution.
    missed: Cell<bool>,
}

impl Unwinding {
    /// A panic of this thread has begun.
    pub(crate) fn begin(&self, thread: ThreadId) {
        if let Ok(mut threads) = self.threads.try_borrow_mut() {
            threads.push(thread);
        }
    }

    /// The panic of this thread has been caught by the runtime.
    pub(crate) fn end(&self, thread: ThreadId) {
        self.threads.borrow_mut().retain(|&t| t != thread);
    }

    /// The execution is over, and all stacks are gone.
    pub(crate) fn reset(&self) {
        self.threads.borrow_mut().clear();
        self.missed.set(false);
    }

    /// Whether this thread unwinds.
    pub(crate) fn is(&self, thread: ThreadId) -> bool {
        std::thread::panicking() && self.threads.borrow().contains(&thread)
    }

    /// Whether nobody has begun to unwind since [`Unwinding::nobody`] was last called.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.threads.borrow().is_empty()
    }

    /// The model does not see what a thread that unwinds is about to do.
    pub(crate) fn miss(&self) {
        self.missed.set(true);
    }

    /// Nobody unwinds, says the OS thread. True if the test has caught a panic itself since the last
    /// call.
    ///
    /// # Panics
    ///
    /// If something was missed meanwhile, so that the model no longer knows its objects.
    pub(crate) fn nobody(&self) -> bool {
        if self.threads.borrow().is_empty() {
            return false;
        }
        self.threads.borrow_mut().clear();
        assert!(
            !self.missed.take(),
            "a panic that fails the test was caught by `catch_unwind`, and its destructors used locks, \
             atomics or channels, which the model did not see any more: set `Builder::catch_panics`, \
             and let the panic happen in a spawned thread"
        );
        true
    }
}

/// Whether the thread that runs here is unwinding from a panic.
pub(crate) fn panicking() -> bool {
    let caught = with_any(|runtime| runtime.catches_panics.then(|| runtime.is_unwinding()));
    caught.flatten().unwrap_or_else(std::thread::panicking)
}

/// Whether panics of threads are only their own ends.
pub(crate) fn catches_panics() -> bool {
    with_any(|runtime| runtime.catches_panics) == Some(true)
}

/// Runs the body of a thread whose panics are caught, where that is what the model wants.
#[inline]
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> std::thread::Result<T> {
    if !catches_panics() {
        return Ok(body());
    }
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Err(payload) if payload.is::<Stop>() => std::panic::resume_unwind(payload),
        Err(payload) => {
            with_any(|runtime| {
                runtime.unwinding.end(runtime.current.get());
                runtime.message.set(None);
            });
            Err(payload)
        }
        ok => ok,
    }
}
