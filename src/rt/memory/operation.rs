//! The operations of a graph: those of atomics, fences, what grants happens-before between threads,
//! waits for a change, and the operations of all other objects.
//!
//! A fence is an operation here, and no event of the engine: under sequential consistency it moves
//! clocks only ([`fence`](crate::rt::event::fence)), under C11 it decides which stores a later load
//! may read. In an abstract program a fence is a step of its own. In a live program the fences of a
//! thread are parts of the thread's next step ([`Fences`]).

use std::mem::discriminant;
use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{self, Rmw};
#[cfg(feature = "checkpoint")]
use crate::rt::event::ordering::OrderingAs;

/// The verb of an operation, with its operands. Values are the bits of the type, zero-extended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum OpKind {
    Load {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
    },
    Store {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
        value: u64,
    },
    Rmw {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
        rmw: Rmw,
        operand: u64,
    },
    CompareExchange {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        success: Ordering,
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        failure: Ordering,
        expected: u64,
        new: u64,
        /// Whether the spurious failure of `compare_exchange_weak` is an outcome.
        spurious: bool,
    },
    Fence {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
    },
    Spawn {
        child: ThreadId,
    },
    Join {
        child: ThreadId,
    },
    /// The wait of a loop until one of the locations in this list of the model has changed. It
    /// comes out as reading a store with another value, and learns no more than that the store is
    /// there: the loop reads that store or a newer one next.
    Wait {
        list: u32,
    },
    /// `try_lock` of a mutex. Where it succeeds, it is an operation on another object. Where it
    /// fails, it is a relaxed load of the mutex's word, which reads a store that has locked it:
    /// the mutex may have been unlocked since, if the thread does not know of that.
    TryLock,
    /// An operation on another object, or on none.
    Other(operation::OpKind),
}

impl OpKind {
    /// This operation on an atomic.
    ///
    /// # Panics
    ///
    /// If the operation is on another object.
    pub(crate) fn on_atomic(kind: operation::OpKind) -> OpKind {
        use operation::OpKind as Kind;
        match kind {
            Kind::Load { order } => OpKind::Load { order },
            Kind::Store { order, value } => OpKind::Store { order, value },
            // The graphs know all orders of modifications, so an update is one like the others.
            Kind::Rmw {
                order,
                rmw,
                operand,
                blind: _,
            } => OpKind::Rmw {
                order,
                rmw,
                operand,
            },
            Kind::CompareExchange {
                success,
                failure,
                expected,
                new,
                spurious,
            } => OpKind::CompareExchange {
                success,
                failure,
                expected,
                new,
                spurious,
            },
            _ => unreachable!("dpor bug: {kind:?} is on no atomic"),
        }
    }

    /// Whether the operation accesses an atomic.
    pub(crate) const fn is_atomic(&self) -> bool {
        matches!(
            self,
            OpKind::Load { .. }
                | OpKind::Store { .. }
                | OpKind::Rmw { .. }
                | OpKind::CompareExchange { .. }
        )
    }
}

/// An operation and its object; a fence, a spawn, a join and a wait have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Operation {
    pub(crate) object: ObjectId,
    pub(crate) kind: OpKind,
}

impl Operation {
    /// Whether it may be the other one in another execution: operands may be addresses, which
    /// differ.
    pub(crate) fn is_like(&self, other: &Operation) -> bool {
        let is_same = match (&self.kind, &other.kind) {
            (OpKind::Other(kind), OpKind::Other(other)) => {
                discriminant(kind) == discriminant(other)
            }
            (kind, other) => discriminant(kind) == discriminant(other),
        };
        is_same && self.object == other.object
    }
}

/// The fences of a thread between two of its steps. Fences that follow each other are as strong as
/// one or two: a release fence tells what was known before an acquire fence behind it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Fences {
    #[default]
    Nothing,
    Acquire,
    Release,
    /// A release fence, and an acquire fence behind it.
    ReleaseAcquire,
    /// An acquire fence, and a release fence behind it; or one fence that is both.
    AcquireRelease,
    SeqCst,
}

impl Fences {
    /// These fences, and one more behind them.
    pub(crate) fn and(self, order: Ordering) -> Fences {
        use Fences::{Acquire, AcquireRelease, Nothing, Release, ReleaseAcquire, SeqCst};
        match (self, order) {
            (_, Ordering::SeqCst) | (SeqCst, _) => SeqCst,
            (AcquireRelease, _) | (_, Ordering::AcqRel) => AcquireRelease,
            (Acquire | ReleaseAcquire, Ordering::Release) => AcquireRelease,
            (Release, Ordering::Acquire) => ReleaseAcquire,
            (Nothing, Ordering::Acquire) => Acquire,
            (Nothing, Ordering::Release) => Release,
            // The fence repeats the last one, or its ordering is one that no fence has.
            (fences, _) => fences,
        }
    }

    /// The orderings of one or two fences that are as strong.
    pub(super) const fn orders(self) -> &'static [Ordering] {
        match self {
            Fences::Nothing => &[],
            Fences::Acquire => &[Ordering::Acquire],
            Fences::Release => &[Ordering::Release],
            Fences::ReleaseAcquire => &[Ordering::Release, Ordering::Acquire],
            Fences::AcquireRelease => &[Ordering::AcqRel],
            Fences::SeqCst => &[Ordering::SeqCst],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_in_a_row_are_one_or_two() {
        use Ordering::{AcqRel, Acquire, Release, SeqCst};
        let all = |orders: &[Ordering]| {
            let fences = Fences::default();
            orders
                .iter()
                .fold(fences, |fences, &order| fences.and(order))
        };
        assert_eq!(all(&[]), Fences::Nothing);
        assert_eq!(all(&[Acquire, Acquire]), Fences::Acquire);
        assert_eq!(all(&[Acquire, Release]), Fences::AcquireRelease);
        assert_eq!(all(&[Release, Acquire]), Fences::ReleaseAcquire);
        assert_eq!(all(&[Release, Acquire, Acquire]), Fences::ReleaseAcquire);
        assert_eq!(all(&[Release, Acquire, Release]), Fences::AcquireRelease);
        assert_eq!(all(&[AcqRel, Acquire]), Fences::AcquireRelease);
        assert_eq!(all(&[Release, SeqCst, Release]), Fences::SeqCst);
    }
}
