//! What does a reference count do with an operation?
//!
//! The owner of a reference may do with it what it likes without asking anybody, so retaining and
//! releasing is always enabled. The outcome carries the count that was found; the relation needs it
//! (`trace/dependency.rs`).

use crate::rt::trace::operation::{OpKind, Outcome};

/// Applies `kind` to a count; gives the new count and the outcome.
pub(crate) fn apply(count: u64, kind: &OpKind) -> (u64, Outcome) {
    match kind {
        OpKind::Retain => (count + 1, Outcome::Value(count)),
        OpKind::Release => (count.saturating_sub(1), Outcome::Value(count)),
        OpKind::ReadCount => (count, Outcome::Value(count)),
        OpKind::TakeUnique if count == 1 => (0, Outcome::Success(1)),
        OpKind::TakeUnique => (count, Outcome::Failure(count)),
        OpKind::Upgrade if count > 0 => (count + 1, Outcome::Success(count)),
        OpKind::Upgrade => (count, Outcome::Failure(0)),
        other => super::misplaced(other),
    }
}
