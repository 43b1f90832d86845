//! What does a barrier do with an operation?
//!
//! An arrival never blocks. A departure blocks until the group is complete. Only the last arrival
//! of a group differs from the others, so the arrivals are ordered like the releases of a reference
//! count.

use crate::rt::event::operation::{OpKind, Outcome};

/// The state of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Barrier {
    /// The number of threads that make a group; at least 1.
    pub(crate) size: u32,
    /// The number of threads of the current group that have arrived.
    pub(crate) arrived: u32,
    /// The number of groups that have been completed.
    pub(crate) generation: u32,
}

impl Barrier {
    /// A barrier for groups of `size` threads. Size 0 means the same as size 1.
    pub(crate) fn new(size: u32) -> Barrier {
        Barrier {
            size: size.max(1),
            arrived: 0,
            generation: 0,
        }
    }
}

/// Whether `kind` is enabled in this state.
pub(crate) fn enabled(barrier: Barrier, kind: &OpKind) -> bool {
    match *kind {
        OpKind::Leave { generation } => barrier.generation > generation,
        _ => true,
    }
}

/// Applies an enabled operation. The value of an arrival has the generation in its upper half. Its
/// lower half is the number of threads that were missing before the arrival: 1 makes the thread the
/// leader.
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
