//! Which outcome of an execution does the test record?

use std::collections::BTreeSet;

/// The recorded outcome of an execution.
#[derive(Debug, Default)]
pub(crate) struct RecordedOutcome {
    /// Outcomes in words.
    pub(crate) said: BTreeSet<String>,
    /// The number of the value that the closure has returned, where these values are numbered.
    pub(crate) returned: Option<usize>,
}
