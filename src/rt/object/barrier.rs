//! What does a barrier do with an operation?
//!
//! Arriving never blocks; leaving does, until the group is complete. Only the last arrival of a
//! group differs from the others, so arrivals are ordered like the releases of a reference count.

use crate::rt::event::operation::{OpKind, Outcome};

/// A barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Barrier {
    /// How many make a group; at least 1.
    pub(crate) size: u32,
    /// How many of the current group have arrived.
    pub(crate) arrived: u32,
    /// How many groups have been complete.
    pub(crate) generation: u32,
}

impl Barrier {
    /// A barrier for groups of `size`; 0 is as good as 1.
    pub(crate) fn new(size: u32) -> Barrier {
        Barrier {
            size: size.max(1),
            arrived: 0,
            generation: 0,
        }
    }
}

/// Whether `kind` can happen now.
pub(crate) fn enabled(barrier: Barrier, kind: &OpKind) -> bool {
    match *kind {
        OpKind::Leave { generation } => barrier.generation > generation,
        _ => true,
    }
}

/// Applies an enabled operation. The value of an arrival has in its upper half the generation, and
/// in its lower half how many were missing before: 1 makes it the leader.
pub(crate) fn apply(barrier: Barrier, kind: &OpKind) -> (Barrier, Outcome) {
    match kind {
        OpKind::Arrive => {
            let missing = barrier.size - barrier.arrived;
            let outcome = Outcome::Value((barrier.generation as u64) << 32 | missing as u64);
            let after = if missing == 1 {
                Barrier {
                    arrived: 0,
                    generation: barrier.generation + 1,
                    ..barrier
                }
            } else {
                Barrier {
                    arrived: barrier.arrived + 1,
                    ..barrier
                }
            };
            (after, outcome)
        }
        OpKind::Leave { .. } => (barrier, Outcome::Done),
        other => super::misplaced(other),
    }
}
