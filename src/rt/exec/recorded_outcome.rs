//! What has an execution come to, as the test says it?

use std::collections::BTreeSet;

/// What an execution has come to.
#[derive(Debug, Default)]
pub(crate) struct RecordedOutcome {
    /// In words.
    pub(crate) said: BTreeSet<String>,
    /// The number of the value that its closure has returned, where these are numbered.
    pub(crate) returned: Option<usize>,
}
