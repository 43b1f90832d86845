//! What does a reference count do with an operation?
//!
//! The owner of a reference may clone or drop it at any time, so retains and releases are always
//! enabled. The outcome carries the count before the operation, because the dependency relation
//! needs it (`rt/relation/independence.rs`).
//!
//! One word holds both counts, the weak count in the upper half, because `Arc::get_mut` reads both
//! in one step.

use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::relation::independence::Nature;

/// One weak reference, in the word that holds both counts.
pub(crate) const WEAK: u64 = 1 << 32;

/// The size in bytes of the header with both counts in front of the counted value, if the value has
/// the alignment of the counts.
pub(crate) const HEADER: usize = 6 * size_of::<usize>();

/// The property of a count that its labels need.
#[inline]
pub(crate) fn nature(observed: bool) -> Nature {
    if observed {
        Nature::Observed
    } else {
        Nature::Plain
    }
}

/// The view of an upgrade that succeeds. The view does not contain the number of references,
/// because other threads change it at the same time.
pub(crate) const ALIVE: u64 = u64::MAX;

/// [`State::polled`](super::State::polled). A strong count of 0 never rises again, and then an
/// upgrade fails whatever the weak count is.
#[inline]
pub(crate) fn polled(counts: u64) -> u64 {
    match counts % WEAK {
        0 => 0,
        _ => counts,
    }
}

/// [`State::polled_by`](super::State::polled_by).
#[inline]
pub(crate) fn polled_by(counts: u64, kind: &OpKind) -> u64 {
    match kind {
        OpKind::Upgrade if !counts.is_multiple_of(WEAK) => ALIVE,
        _ => polled(counts),
    }
}

/// Applies `kind` to both counts. Returns the new counts and the outcome.
#[inline(always)]
pub(crate) fn apply(counts: u64, kind: &OpKind) -> (u64, Outcome) {
    let strong = counts % WEAK;
    match kind {
        OpKind::Retain => (counts + 1, Outcome::Value(strong)),
        OpKind::Release { .. } => (counts - strong.min(1), Outcome::Value(strong)),
        OpKind::RetainWeak => (counts.wrapping_add(WEAK), Outcome::Done),
        OpKind::ReleaseWeak => (counts.checked_sub(WEAK).unwrap_or(counts), Outcome::Done),
        OpKind::FirstReference => (counts - strong + 1, Outcome::Done),
        OpKind::ReadCount { .. } => (counts, Outcome::Value(counts)),
        OpKind::TakeUnique if strong == 1 => (counts - 1, Outcome::Success(1)),
        OpKind::TakeUnique => (counts, Outcome::Failure(counts)),
        OpKind::Upgrade | OpKind::RetainRaw if strong > 0 => (counts + 1, Outcome::Success(strong)),
        OpKind::Upgrade | OpKind::RetainRaw => (counts, Outcome::Failure(counts)),
        other => super::misplaced(other),
    }
}
