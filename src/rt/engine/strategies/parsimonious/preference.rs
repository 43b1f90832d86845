//! Which step is the default?
//!
//! Any enabled step may be. A bad choice makes the search longer only where a run gets stuck: all
//! enabled steps are asleep, and another branch covers the rest. That can happen where steps that
//! commute with one another shut the default out: two readers shut a write lock out, and two
//! writers a wait on several locations. It can also happen where the default comes out differently
//! behind one of two such steps, and then commutes with the other: a receive finds nothing, one
//! thread sends, and another one drops its sender. Such a default comes last. If other threads can
//! continue, their steps come first, and no schedule has to reverse it.

use crate::rt::engine::Point;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::relation::independence::{Class, ReadSets};

/// Whether an operation of this kind comes last in some state of its objects.
pub(super) fn may_be_late(sets: &ReadSets, kind: &OpKind) -> bool {
    match *kind {
        OpKind::WriteLock | OpKind::TryRecv | OpKind::Recv { timed: true } => true,
        OpKind::Wait { set, .. } => sets.get(set).len() > 1,
        _ => false,
    }
}

/// Whether the pending operation of the enabled thread comes last.
pub(super) fn is_late(at: &Point<'_>, thread: ThreadId) -> bool {
    let Some(pending) = at.machine.pending(thread) else {
        return false;
    };
    match pending.operation.kind {
        OpKind::WriteLock => true,
        OpKind::Wait { set, .. } => at.machine.sets.get(set).len() > 1,
        OpKind::TryRecv | OpKind::Recv { timed: true } => {
            let label = at.machine.predict(Step::of(thread));
            label.is_some_and(|label| label.class() == Class::RecvFailed)
        }
        _ => false,
    }
}
