//! What did the program say while it ran?
//!
//! The user's own log, with the moment at which each line was said. It takes no part in any
//! decision.

use crate::rt::event::id::ThreadId;

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) thread: ThreadId,
    /// How many events the execution had before.
    pub(crate) after: usize,
    pub(crate) level: &'static str,
    pub(crate) target: &'static str,
    /// The spans that the thread was in, the message and the other fields.
    pub(crate) text: String,
    pub(crate) file: Option<&'static str>,
    pub(crate) line: Option<u32>,
}
