//! Is a thread delayed behind the operation that it has just made?
//!
//! A thread runs its code between two operations in one go with the first of them. To see the
//! effect if other threads are faster, the thread is delayed there
//! ([`Hold`](crate::rt::event::schedule::Hold)): once its shim has applied the announced operation
//! to its memory, the thread announces that it resumes ([`OpKind::Resume`]). In the exploration of
//! a model no thread is delayed, and explorations that delay one are rare.
//!
//! [`OpKind::Resume`]: crate::rt::event::operation::OpKind::Resume

use std::sync::atomic::{AtomicBool, Ordering};

use crate::rt::exec::context::Runtime;
use crate::rt::object::orders::InMemory;

/// Whether a thread has been delayed in this process.
static IS_ANY_DELAYED: AtomicBool = AtomicBool::new(false);

/// Whether any thread may be delayed.
#[inline]
pub(crate) fn is_any_delayed() -> bool {
    // An exploration that delays a thread has set this on the same OS thread.
    IS_ANY_DELAYED.load(Ordering::Relaxed)
}

/// Notes that a thread is delayed from now on.
pub(super) fn note() {
    IS_ANY_DELAYED.store(true, Ordering::Relaxed);
}

impl Runtime {
    /// Whether the thread that runs is delayed now.
    pub(crate) fn is_delayed(&self) -> bool {
        // A thread that uses an atomic within the runtime is not delayed there.
        let inner = self.inner.try_borrow();
        inner.is_ok_and(|inner| inner.driver.is_delayed(self.current.get()))
    }

    /// The values that the memory of an atomic has for the last operation, if memory is C11's.
    pub(crate) fn in_memory(&self) -> Option<InMemory> {
        let machine = &self.inner.borrow().driver.machine;
        match self.tries_a_value() {
            true => machine.tried_in_memory(self.current.get()),
            false => machine.in_memory(),
        }
    }
}
