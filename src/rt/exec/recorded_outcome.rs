//! What has an execution come to, as the test says it?

use std::collections::BTreeSet;

use crate::rt::exec::context;

/// What an execution has come to.
#[derive(Debug, Default)]
pub(crate) struct RecordedOutcome {
    /// In words.
    pub(crate) said: BTreeSet<String>,
    /// The number of the value that its closure has returned, where these are numbered.
    pub(crate) returned: Option<usize>,
}

/// The execution that runs here says of itself what it has come to, among others.
pub(crate) fn say(outcome: &str) {
    note(|recorded_outcome| {
        recorded_outcome.said.insert(outcome.to_owned());
    });
}

/// The closure of the execution that runs here has returned the value with this number.
pub(crate) fn has_returned(number: usize) {
    note(|recorded_outcome| recorded_outcome.returned = Some(number));
}

/// The execution that runs here has come to something. What is left of one that was given up comes to nothing.
fn note(note: impl FnOnce(&mut RecordedOutcome)) {
    // Where no model runs nobody counts.
    let _ = context::with(|runtime| {
        if !runtime.unexplored.get() {
            let mut recorded_outcome = runtime.recorded_outcome.take().unwrap_or_default();
            note(&mut recorded_outcome);
            runtime.recorded_outcome.set(Some(recorded_outcome));
        }
    });
}
