//! Which thread and which execution run on this OS thread? Each function here finds the runtime,
//! and reads or notes one fact.

use std::any::Any;

use crate::rt::exec::context::{Runtime, Stop, with, with_any};
use crate::rt::exec::recorded_outcome::RecordedOutcome;

/// Whether the thread that runs here is unwinding from a panic.
#[inline]
pub(crate) fn panicking() -> bool {
    // Mostly the OS thread counts no panic, and then no thread unwinds.
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

/// Whether the execution that runs here has failed. The operations that follow are not the subject
/// of the report then.
pub(crate) fn failed() -> bool {
    let failed = |runtime: &Runtime| runtime.stopping.get() || runtime.failing.get().is_some();
    with_any(failed) == Some(true)
}

/// Whether a panic only ends its thread and is no failure.
#[inline(always)]
pub(crate) fn catches_panics() -> bool {
    with_any(|runtime| runtime.catches_panics) == Some(true)
}

/// Ends the unwinding of a thread that was caught with this payload, in a model that wants panics
/// to be caught. The thread continues to unwind if the payload is no panic of its own.
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

/// Adds an outcome that the execution that runs here records for itself.
pub(crate) fn record_outcome(outcome: &str) {
    add_to_outcome(|recorded_outcome| {
        recorded_outcome.said.insert(outcome.to_owned());
    });
}

/// Notes the number of the value that the closure of the execution that runs here has returned.
pub(crate) fn record_returned(number: usize) {
    add_to_outcome(|recorded_outcome| recorded_outcome.returned = Some(number));
}

/// Changes the recorded outcome of the execution that runs here. The rest of an abandoned execution
/// records none.
fn add_to_outcome(note: impl FnOnce(&mut RecordedOutcome)) {
    // Where no model runs, no outcome is counted.
    let _ = with(|runtime| {
        if !runtime.unexplored.get() {
            let mut recorded_outcome = runtime.recorded_outcome.take().unwrap_or_default();
            note(&mut recorded_outcome);
            runtime.recorded_outcome.set(Some(recorded_outcome));
        }
    });
}
