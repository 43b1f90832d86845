//! Is a thread held up behind the operation that it has just made?
//!
//! What a thread does between two operations it does at once with the first of them. To see what it
//! does if others are faster, it is held up there ([`Hold`](crate::rt::event::schedule::Hold)): it
//! announces to go on ([`OpKind::Resume`]), once its shim has done to its memory what was announced
//! before. Nobody is held up in an exploration, and those in which somebody is are rare.
//!
//! [`OpKind::Resume`]: crate::rt::event::operation::OpKind::Resume

use std::sync::atomic::{AtomicBool, Ordering};

use crate::rt::exec::context::Runtime;

/// Whether somebody has been held up in this process.
static SOMEBODY: AtomicBool = AtomicBool::new(false);

/// Whether anybody may be held up.
#[inline]
pub(crate) fn is_any_delayed() -> bool {
    // Who holds up somebody has set it on the same OS thread.
    SOMEBODY.load(Ordering::Relaxed)
}

/// Somebody is held up from now on.
pub(super) fn note() {
    SOMEBODY.store(true, Ordering::Relaxed);
}

impl Runtime {
    /// Whether the thread that runs is held up now.
    pub(crate) fn is_delayed(&self) -> bool {
        // Who uses an atomic in the middle of the runtime is not held up there.
        let inner = self.inner.try_borrow();
        inner.is_ok_and(|inner| inner.driver.is_delayed(self.current.get()))
    }
}
