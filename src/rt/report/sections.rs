//! Which critical sections has an execution, and what did each of them do to the data?
//!
//! A critical section that changes nothing is to the data what a load is to an atomic, and one that
//! changes it is a write. So a mistake over two critical sections has the same name.

use super::places::Callers;
use crate::rt::event::held::Datum;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{Event, Trace};

/// A critical section. Events are given by their positions.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) thread: ThreadId,
    pub(super) object: ObjectId,
    /// The event that took the lock.
    pub(super) begin: usize,
    /// The event that released the lock, if the execution got that far.
    pub(super) end: Option<usize>,
    /// Whether the data may have been changed under the lock. True if the execution ended before.
    pub(super) changes: bool,
    /// The data at the begin and at the end, if the execution that was run to be reported saw it.
    pub(super) found: Option<Datum>,
    pub(super) left: Option<Datum>,
}

impl Section {
    /// Whether an event is the begin or the end of the section.
    pub(super) fn has(&self, at: usize) -> bool {
        self.begin == at || self.end == Some(at)
    }

    /// Whether the section leaves other data than it has found, as far as a reader can see.
    pub(super) fn leaves_another(&self) -> bool {
        self.changes && self.end.is_some() && (self.left.is_none() || self.found != self.left)
    }
}

/// What an event does to a lock.
enum Does {
    Takes,
    Releases { changed: bool },
}

fn does(event: &Event) -> Option<Does> {
    match event.operation.kind {
        OpKind::Lock | OpKind::ReadLock | OpKind::WriteLock => Some(Does::Takes),
        OpKind::TryLock | OpKind::TryRead | OpKind::TryWrite => {
            event.outcome.succeeded().then_some(Does::Takes)
        }
        OpKind::Unlock { changed } | OpKind::UnlockWrite { changed } => {
            Some(Does::Releases { changed })
        }
        OpKind::UnlockRead => Some(Does::Releases { changed: false }),
        _ => None,
    }
}

/// All critical sections, in the order of their begins. A thread that holds several read locks of
/// one object releases the last one first.
pub(super) fn of(trace: &Trace, callers: &Callers) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (at, event) in trace.events().iter().enumerate() {
        let datum = || callers.data(event).cloned();
        match does(event) {
            Some(Does::Takes) => sections.push(Section {
                thread: event.thread,
                object: event.operation.object,
                begin: at,
                end: None,
                changes: true,
                found: datum(),
                left: None,
            }),
            Some(Does::Releases { changed }) => {
                let mut open = sections.iter_mut().rev();
                let of = |it: &&mut Section| {
                    (it.thread, it.object, it.end) == (event.thread, event.operation.object, None)
                };
                if let Some(section) = open.find(of) {
                    section.end = Some(at);
                    section.changes = changed;
                    section.left = datum();
                }
            }
            None => {}
        }
    }
    sections
}
