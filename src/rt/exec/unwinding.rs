//! Who unwinds from a panic?
//!
//! The OS thread's own answer would not do: a modelled thread that unwinds may have to wait for
//! others, which then run while the OS thread counts a panic. So the panic hook notes whose panic
//! it is. Nobody says when the test itself catches one (`std::panic::catch_unwind`); but as soon as
//! the OS thread counts none, nobody unwinds. (While another thread is in the middle of its
//! unwinding, a thread that has caught its own panic is still taken for one that unwinds.)

use std::cell::{Cell, RefCell};

use crate::rt::event::id::ThreadId;

/// The threads that are unwinding from a panic.
#[derive(Default)]
pub(crate) struct Unwinding {
    threads: RefCell<Vec<ThreadId>>,
    /// Whether there are any, which each step asks.
    any: Cell<bool>,
}

impl Unwinding {
    /// A panic of this thread has begun.
    pub(crate) fn begin(&self, thread: ThreadId) {
        if let Ok(mut threads) = self.threads.try_borrow_mut() {
            threads.push(thread);
            self.any.set(true);
        }
    }

    /// The panic of this thread has been caught by the runtime.
    pub(crate) fn end(&self, thread: ThreadId) {
        let mut threads = self.threads.borrow_mut();
        threads.retain(|&t| t != thread);
        self.any.set(!threads.is_empty());
    }

    /// Nobody unwinds.
    pub(crate) fn reset(&self) {
        self.threads.borrow_mut().clear();
        self.any.set(false);
    }

    /// Whether this thread unwinds.
    pub(crate) fn is(&self, thread: ThreadId) -> bool {
        std::thread::panicking() && self.threads.borrow().contains(&thread)
    }

    /// Whether nobody has begun to unwind since the last [`Unwinding::reset`].
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        !self.any.get()
    }
}
