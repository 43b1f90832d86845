//! What do a thread and its park token do with an operation?

use crate::rt::event::operation::{OpKind, Outcome};

/// Whether `kind` is enabled on a thread that has `finished` or not.
pub(crate) fn enabled(finished: bool, kind: &OpKind) -> bool {
    match kind {
        OpKind::Join { .. } => finished,
        _ => true,
    }
}

/// Applies an enabled operation to a thread. Returns whether the thread has finished afterwards.
pub(crate) fn apply(finished: bool, kind: &OpKind) -> (bool, Outcome) {
    match kind {
        OpKind::Spawn { .. } => (false, Outcome::Done),
        OpKind::Exit => (true, Outcome::Done),
        // The thread counts as finished whether or not its end is an event.
        OpKind::Join { .. } => (true, Outcome::Done),
        OpKind::IsFinished => (finished, Outcome::Value(finished as u64)),
        other => super::misplaced(other),
    }
}

/// Whether `kind` is enabled on a park token that is `available` or not.
pub(crate) fn token_enabled(available: bool, kind: &OpKind) -> bool {
    match kind {
        OpKind::Park => available,
        _ => true,
    }
}

/// Applies an enabled operation to a park token. Returns whether the token is available afterwards.
pub(crate) fn token_apply(available: bool, kind: &OpKind) -> (bool, Outcome) {
    match kind {
        OpKind::Park => (false, Outcome::Done),
        OpKind::ParkTimeout if available => (false, Outcome::Success(1)),
        OpKind::ParkTimeout => (false, Outcome::Failure(0)),
        OpKind::EndForNoReason => (available, Outcome::Failure(0)),
        OpKind::Unpark => (true, Outcome::Value(available as u64)),
        other => super::misplaced(other),
    }
}
