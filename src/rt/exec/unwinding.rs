//! Who unwinds from a panic?
//!
//! The OS thread's own answer would not do: a modelled thread that unwinds may have to wait for others, which
//! then run while the OS thread counts a panic. So the panic hook notes
//! whose panic it is. Nobody says when the test itself catches one (`std::panic::catch_unwind`); but as
//! soon as the OS thread counts none, nobody unwinds. (While another thread is in the middle of its
//! unwinding, a thread that has caught its own panic is still taken for one that unwinds.)

use std::any::Any;
use std::cell::{Cell, RefCell};

use crate::rt::event::id::ThreadId;

use super::context::{Runtime, Stop, with_any};

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

/// Whether the thread that runs here is unwinding from a panic.
#[inline]
pub(crate) fn panicking() -> bool {
    // Mostly the OS thread counts none, and then nobody unwinds.
    std::thread::panicking() && is_unwinding()
}

#[cold]
fn is_unwinding() -> bool {
    with_any(Runtime::is_unwinding).unwrap_or(true)
}

/// Whether an execution is being torn down here.
pub(crate) fn ending() -> bool {
    with_any(|runtime| runtime.stopping.get()) == Some(true)
}

/// Whether the execution that runs here has failed, so that what is still done is not what it is about.
pub(crate) fn failed() -> bool {
    let failed = |runtime: &Runtime| runtime.stopping.get() || runtime.failing.get().is_some();
    with_any(failed) == Some(true)
}

/// Whether panics of threads are only their own ends.
#[inline(always)]
pub(crate) fn catches_panics() -> bool {
    with_any(|runtime| runtime.catches_panics) == Some(true)
}

/// A thread has been caught unwinding with this, in a model that wants panics to be caught. It goes on unwinding if that is no
/// panic of its own.
pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
    if payload.is::<Stop>() {
        std::panic::resume_unwind(payload);
    }
    with_any(|runtime| {
        runtime.unwinding.end(runtime.current.get());
        if runtime.failing.get().is_none() {
            runtime.caught();
        }
    });
    payload
}
