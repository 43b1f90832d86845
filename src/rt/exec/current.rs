//! What runs on this OS thread? Each function here finds the runtime, and asks it or tells it one
//! thing.

use std::any::Any;

use crate::rt::exec::context::{Runtime, Stop, with, with_any};
use crate::rt::exec::recorded_outcome::RecordedOutcome;

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

/// Whether the execution that runs here has failed, so that what is still done is not what it is
/// about.
pub(crate) fn failed() -> bool {
    let failed = |runtime: &Runtime| runtime.stopping.get() || runtime.failing.get().is_some();
    with_any(failed) == Some(true)
}

/// Whether panics of threads are only their own ends.
#[inline(always)]
pub(crate) fn catches_panics() -> bool {
    with_any(|runtime| runtime.catches_panics) == Some(true)
}

/// A thread has been caught unwinding with this, in a model that wants panics to be caught. It goes
/// on unwinding if that is no panic of its own.
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

/// The execution that runs here says of itself what it has come to, among others.
pub(crate) fn record_outcome(outcome: &str) {
    add_to_outcome(|recorded_outcome| {
        recorded_outcome.said.insert(outcome.to_owned());
    });
}

/// The closure of the execution that runs here has returned the value with this number.
pub(crate) fn record_returned(number: usize) {
    add_to_outcome(|recorded_outcome| recorded_outcome.returned = Some(number));
}

/// The execution that runs here has come to something. What is left of one that was given up comes
/// to nothing.
fn add_to_outcome(note: impl FnOnce(&mut RecordedOutcome)) {
    // Where no model runs nobody counts.
    let _ = with(|runtime| {
        if !runtime.unexplored.get() {
            let mut recorded_outcome = runtime.recorded_outcome.take().unwrap_or_default();
            note(&mut recorded_outcome);
            runtime.recorded_outcome.set(Some(recorded_outcome));
        }
    });
}
