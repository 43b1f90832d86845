//! Which threads unwind from a panic?
//!
//! The count of the OS thread is not enough: a modelled thread that unwinds may have to wait for
//! other threads, which then run while the OS thread counts a panic. So the panic hook notes the
//! thread of each panic. No hook is called when the test itself catches a panic
//! (`std::panic::catch_unwind`); but as soon as the OS thread counts no panic, no thread unwinds.
//! (While another thread is in the middle of its unwinding, a thread that has caught its own panic
//! still counts as one that unwinds.)

use std::cell::{Cell, RefCell};

use crate::rt::event::id::ThreadId;

/// The threads that are unwinding from a panic.
#[derive(Default)]
pub(crate) struct Unwinding {
    threads: RefCell<Vec<ThreadId>>,
    /// Whether there are any. Each step checks this.
    any: Cell<bool>,
}

impl Unwinding {
    /// Notes that a panic of this thread has begun.
    pub(crate) fn begin(&self, thread: ThreadId) {
        if let Ok(mut threads) = self.threads.try_borrow_mut() {
            threads.push(thread);
            self.any.set(true);
        }
    }

    /// Notes that the runtime has caught the panic of this thread.
    pub(crate) fn end(&self, thread: ThreadId) {
        let mut threads = self.threads.borrow_mut();
        threads.retain(|&t| t != thread);
        self.any.set(!threads.is_empty());
    }

    /// Notes that no thread unwinds.
    pub(crate) fn reset(&self) {
        self.threads.borrow_mut().clear();
        self.any.set(false);
    }

    /// Whether this thread unwinds.
    pub(crate) fn is(&self, thread: ThreadId) -> bool {
        std::thread::panicking() && self.threads.borrow().contains(&thread)
    }

    /// Whether no thread has begun to unwind since the last [`Unwinding::reset`].
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        !self.any.get()
    }
}
