//! What does a search over graphs need to know of a program?

use super::Access;
use super::graph::Graph;
use crate::rt::event::id::ThreadId;

/// What a search needs to know of a program: what each thread does next, which depends on what its
/// events have read.
pub(crate) trait Program {
    /// The empty execution, with every object.
    fn begin(&self) -> Graph;
    /// The next operation of `thread`; `None` if it has come to its end.
    fn next(&self, graph: &Graph, thread: ThreadId) -> Option<Access>;
}
