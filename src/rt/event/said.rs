//! Which lines did the program log during an execution?
//!
//! The user's own log, with the position in the execution of each line. No decision depends on the
//! log.

use crate::rt::event::id::ThreadId;

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) thread: ThreadId,
    /// The number of events of the execution before the line.
    pub(crate) after: usize,
    pub(crate) level: &'static str,
    pub(crate) target: &'static str,
    /// The spans that the thread was in, the message and the other fields.
    pub(crate) text: String,
    pub(crate) file: Option<&'static str>,
    pub(crate) line: Option<u32>,
}
