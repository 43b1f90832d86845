//! How does code of the program run without taking part in the execution?
//!
//! It runs as in an execution that is torn down: shims do to their own memory what std does,
//! announce nothing, and never block. A shim that would have to block has no value to return, so
//! its code unwinds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::context::{Runtime, Stop, with};
use crate::rt::coroutine::Stretch;

/// Runs `f` aside of the execution. The allocations of `f` do not count as the program's either.
/// `None` where no model runs, or its execution is over.
pub(super) fn aside<R>(f: impl FnOnce(&Runtime) -> R) -> Option<R> {
    /// Returns to the execution, also if `f` panics.
    struct Back<'a>(&'a Runtime, Stretch);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            self.0.aside.set(false);
            self.0.stopping.set(false);
            self.0.roomy.set(self.1);
            self.0.heap.record(true);
        }
    }
    let result = with(|runtime| {
        let _back = Back(runtime, runtime.roomy.take());
        runtime.stopping.set(true);
        runtime.in_vain.set(0);
        runtime.aside.set(true);
        f(runtime)
    });
    result.ok()
}

/// Runs `f` aside of the execution if a model runs, and as usual otherwise. `None` if `f` had to
/// wait for another thread.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> Option<R> {
    let mut f = Some(f);
    let mut run = || f.take().map(|f| f());
    match aside(|_| unless_it_waits(&mut run)) {
        Some(done) => done.flatten(),
        None => run(),
    }
}

/// Runs code of the program within [`aside`]. `None` if that code has to wait for another thread,
/// which cannot run meanwhile.
pub(super) fn unless_it_waits<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Stop>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
