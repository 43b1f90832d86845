//! Does an operation with this ordering acquire, and does it release?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Release, SeqCst};

/// Whether a read with this ordering, or a fence, acquires.
pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Acquire | AcqRel | SeqCst)
}

/// Whether a write with this ordering, or a fence, releases.
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Release | AcqRel | SeqCst)
}

/// [`Ordering`] in a checkpoint.
#[cfg(feature = "checkpoint")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "Ordering")]
#[non_exhaustive]
pub(crate) enum OrderingAs {
    Relaxed,
    Release,
    Acquire,
    AcqRel,
    SeqCst,
}
