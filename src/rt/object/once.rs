//! What does a one-time initialisation do with an operation?

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Outcome};

/// The progress of an initialisation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Once {
    Incomplete,
    Running(ThreadId),
    Done,
    Poisoned,
}

impl Once {
    /// The number that stands for the progress in a shim's memory.
    pub(crate) fn number(self) -> u64 {
        match self {
            Once::Incomplete => 0,
            Once::Running(_) => 1,
            Once::Done => 2,
            Once::Poisoned => 3,
        }
    }

    /// The progress that a shim's memory holds. No thread can run the initialisation when an
    /// execution meets it.
    pub(crate) fn from_number(number: u64) -> Once {
        match number {
            2 => Once::Done,
            3 => Once::Poisoned,
            _ => Once::Incomplete,
        }
    }
}

/// Whether `kind` is enabled. A thread that calls the initialisation from within the initialisation
/// is blocked for ever.
pub(crate) fn enabled(once: Once, kind: &OpKind) -> bool {
    match kind {
        OpKind::CallOnce { .. } => !matches!(once, Once::Running(_)),
        OpKind::WaitOnce { force } => once == Once::Done || once == Once::Poisoned && !force,
        _ => true,
    }
}

/// Applies an enabled operation of `thread`. A call succeeds if it begins the initialisation. The
/// value is the progress before the call.
pub(crate) fn apply(once: Once, thread: ThreadId, kind: &OpKind) -> (Once, Outcome) {
    let found = once.number();
    match *kind {
        OpKind::CallOnce { force } => match once {
            Once::Incomplete => (Once::Running(thread), Outcome::Success(found)),
            Once::Poisoned if force => (Once::Running(thread), Outcome::Success(found)),
            Once::Poisoned | Once::Done | Once::Running(_) => (once, Outcome::Failure(found)),
        },
        OpKind::EndOnce { poison: false } => (Once::Done, Outcome::Done),
        OpKind::EndOnce { poison: true } => (Once::Poisoned, Outcome::Done),
        OpKind::WaitOnce { .. } => (once, Outcome::Failure(found)),
        OpKind::CheckOnce => (once, Outcome::Value((once == Once::Done) as u64)),
        ref other => super::misplaced(other),
    }
}
