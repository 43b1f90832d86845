//! Why an exploration has tested nothing.

use std::fmt;

/// Reason why an exploration without a failure has tested nothing.
///
/// `Display` writes a clause, such as `no operation was visible`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vacuous {
    /// No execution came to its end: each was pruned, or a limit allowed none.
    NoExecution,
    /// The closure performed no visible operation and used no cell, as if its imports were not
    /// swapped.
    NoOperation,
    /// Several threads ran in the only execution, and no two of their operations conflict.
    ///
    /// Two operations conflict if their order matters: two accesses to one atomic of which one
    /// writes, for example, or two locks of one mutex. Operations that are ordered by spawns and
    /// joins alone do not count: the threads of such a test could as well run one after the other.
    /// A program that uses [cells](crate::cell), for which there are data races to find, does not
    /// count either.
    NoConflict,
}

impl Vacuous {
    /// Returns the name, in the form `no_conflict`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Vacuous::NoExecution => "no_execution",
            Vacuous::NoOperation => "no_operation",
            Vacuous::NoConflict => "no_conflict",
        }
    }
}

impl fmt::Display for Vacuous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vacuous::NoExecution => "no execution came to its end",
            Vacuous::NoOperation => "no operation was visible",
            Vacuous::NoConflict => "no two operations of different threads conflict",
        })
    }
}
