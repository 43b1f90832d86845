//! What does an atomic do with an operation?
//!
//! [`apply`] is the only function that gives a load its value. Under sequential consistency the
//! atomic holds the last value that was stored; under C11 it may be an older one
//! ([`orders`](super::orders)).

use crate::rt::event::operation::{AtomicType, OpKind, Outcome};

/// Applies `kind` to an atomic that holds `value`. Returns the new value and the outcome.
/// Alternative 1 of a weak compare-exchange is the spurious failure.
#[inline(always)]
pub(crate) fn apply(ty: AtomicType, value: u64, kind: &OpKind, alternative: u32) -> (u64, Outcome) {
    match *kind {
        OpKind::Load { .. } => (value, Outcome::Value(value)),
        OpKind::Store { value: new, .. } => (new, Outcome::Done),
        OpKind::Rmw {
            rmw,
            operand,
            blind,
            ..
        } => {
            let outcome = if blind {
                Outcome::Done
            } else {
                Outcome::Value(value)
            };
            (rmw.apply(ty, value, operand), outcome)
        }
        OpKind::CompareExchange { expected, new, .. } => {
            if value == expected && alternative == 0 {
                (new, Outcome::Success(value))
            } else {
                (value, Outcome::Failure(value))
            }
        }
        ref other => super::misplaced(other),
    }
}

/// The number of outcomes that `kind` has for an atomic that holds `value`.
#[inline]
pub(crate) fn alternatives(value: u64, kind: &OpKind) -> u32 {
    match *kind {
        OpKind::CompareExchange {
            expected, spurious, ..
        } if spurious && value == expected => 2,
        _ => 1,
    }
}
