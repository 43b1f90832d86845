//! A build without the feature `json` writes none: what asks for it is refused, or asks whether it
//! is there.

use crate::rt::report::execution::Execution;

pub(crate) fn render(execution: &Execution) -> String {
    compact(execution)
}

/// Anything is plain data.
pub(crate) fn compact<T: ?Sized>(_: &T) -> String {
    unreachable!("dpor bug: the feature `json` is off, and JSON was asked for")
}
