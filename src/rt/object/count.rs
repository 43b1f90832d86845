//! What does a reference count do with an operation?
//!
//! The owner of a reference may do with it what it likes without asking anybody, so retaining and
//! releasing is always enabled. The outcome carries the count that was found; the relation needs it
//! (`rt/relation/independence.rs`).
//!
//! One word holds both counts, the weak references above the others, because `Arc::get_mut` asks
//! for both at one moment.

use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::relation::independence::Nature;

/// One weak reference, in the word that holds both counts.
pub(crate) const WEAK: u64 = 1 << 32;

/// How many bytes stand in front of the value whose references are counted, with their counts, if
/// it is aligned as they are.
pub(crate) const HEADER: usize = 6 * size_of::<usize>();

/// What labels need to know of a count.
#[inline]
pub(crate) fn nature(observed: bool) -> Nature {
    match observed {
        true => Nature::Observed,
        false => Nature::Plain,
    }
}

/// What an upgrade sees that succeeds: not how many references there are, which others make at the
/// same time.
pub(crate) const ALIVE: u64 = u64::MAX;

/// [`State::polled`](super::State::polled). Where no reference is left there never is one again,
/// and an upgrade fails however many weak ones there are.
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

/// Applies `kind` to both counts; gives the new ones and the outcome.
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
