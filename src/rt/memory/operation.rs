//! The operations that a memory model orders: those of atomics, fences, and what grants
//! happens-before between threads.
//!
//! A fence is an operation here, and no event of the engine: under sequential consistency it moves
//! clocks only ([`fence`](crate::rt::event::fence)), under C11 it decides which stores a later load
//! may read.

use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::Rmw;

/// The verb of an operation, with its operands. Values are the bits of the type, zero-extended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpKind {
    Load {
        order: Ordering,
    },
    Store {
        order: Ordering,
        value: u64,
    },
    Rmw {
        order: Ordering,
        rmw: Rmw,
        operand: u64,
    },
    CompareExchange {
        success: Ordering,
        failure: Ordering,
        expected: u64,
        new: u64,
        /// Whether the spurious failure of `compare_exchange_weak` is an outcome.
        spurious: bool,
    },
    Fence {
        order: Ordering,
    },
    Spawn {
        child: ThreadId,
    },
    Join {
        child: ThreadId,
    },
}

impl OpKind {
    /// Whether the operation accesses an atomic.
    pub(crate) const fn is_atomic(&self) -> bool {
        !matches!(
            self,
            OpKind::Fence { .. } | OpKind::Spawn { .. } | OpKind::Join { .. }
        )
    }
}

/// An operation and its object; a fence, a spawn and a join have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) object: ObjectId,
    pub(crate) kind: OpKind,
}
