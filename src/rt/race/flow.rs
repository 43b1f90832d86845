//! Has a thread learnt, by any operations, that another thread had reached a point?
//!
//! Here no ordering is too weak. A thread that reads a written value knows all that the writer
//! knew, whatever the orderings are and whatever the language grants, and its own writes pass that
//! on. So an access that precedes a free by such a flow alone may be the reason for the free, and
//! then no execution has the two in the other order. Such an access differs from an access that
//! only happened to come first: a thread that overwrites a value, which another thread has read or
//! written, has learnt nothing, nor has a thread with an operation that commutes with that read or
//! write.

use rustc_hash::{FxHashMap, FxHashSet};

use super::sync::{reads, writes};
use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Rmw};
use crate::rt::relation::independence::{Classes, changes_value};

/// Whether `learner` knows, after these events, of what `thread` did when it had performed so many
/// of its own events: of its next event, or of its actions directly before that event.
pub(super) fn reaches(
    events: &[Event],
    (thread, performed): (ThreadId, u32),
    learner: ThreadId,
) -> bool {
    let mut knowing = FxHashSet::default();
    // By object, the classes of the changes that the knowing threads have made.
    let mut told: FxHashMap<ObjectId, Classes> = FxHashMap::default();
    for event in events {
        let me = event.thread;
        if me == thread && event.index >= performed {
            knowing.insert(me);
        }
        match event.operation.kind {
            OpKind::Spawn { child } if knowing.contains(&me) => {
                knowing.insert(child);
            }
            // The child has ended, and so its actions behind its last event are over, too.
            OpKind::Join { child } if child == thread || knowing.contains(&child) => {
                knowing.insert(me);
            }
            _ => {}
        }
        let object = event.operation.object;
        if object == ObjectId::NONE {
            continue;
        }
        let class = event.label.class();
        let is_atomic = event.label.writes_atomic().is_some();
        let looks = !is_atomic || reads(event).is_some();
        let changes = told.get(&object).copied().unwrap_or(Classes::NONE);
        if looks && class.conflicts().intersects(changes) {
            knowing.insert(me);
        }
        if knowing.contains(&me) && changes_value(class) {
            told.entry(object).or_insert(Classes::NONE).add(class);
        } else if !looks && writes(event).is_some() {
            told.remove(&object);
        }
    }
    knowing.contains(&learner)
}

/// Whether `taker` has got a pointer into this memory from an atomic, and that pointer came from
/// the thread that made the content of the memory when it had performed so many events: directly,
/// or through other threads that had got the pointer in the same way.
///
/// A thread that has the pointer from another source may have it through an operation that the
/// model does not see, and that operation may order the two. The same holds for a thread that has
/// only read the atomic, if another thread has then taken the pointer out of it.
pub(super) fn hands_over(
    events: &[Event],
    (maker, made): (ThreadId, u32),
    (start, length): (usize, usize),
    taker: ThreadId,
) -> bool {
    let is_within = |value: u64| (value as usize).wrapping_sub(start) < length;
    // The threads that have the pointer, each with the atomic it comes from, and the atomics that
    // hold the pointer because such a thread, or the maker, has written them.
    let mut having: Vec<(ThreadId, ObjectId)> = Vec::new();
    let mut holding: Vec<ObjectId> = Vec::new();
    for event in events {
        let (me, object) = (event.thread, event.operation.object);
        if reads(event).is_some()
            && event.outcome.value().is_some_and(is_within)
            && holding.contains(&object)
            && !having.contains(&(me, object))
        {
            having.push((me, object));
        }
        let Some(value) = put(event) else {
            continue;
        };
        let has = having.iter().any(|&(thread, _)| thread == me);
        let has = has || me == maker && event.index >= made;
        let holds = holding.iter().position(|&other| other == object);
        match (holds, has && is_within(value)) {
            (None, true) => holding.push(object),
            (Some(at), false) => {
                holding.swap_remove(at);
                having.retain(|&(thread, from)| thread == me || from != object);
            }
            _ => {}
        }
    }
    having.iter().any(|&(thread, _)| thread == taker)
}

/// The value that the event has written over the previous value of an atomic.
pub(super) fn put(event: &Event) -> Option<u64> {
    match event.operation.kind {
        OpKind::Store { value, .. }
        | OpKind::Rmw {
            rmw: Rmw::Swap,
            operand: value,
            ..
        } => Some(value),
        OpKind::CompareExchange { new, .. } if event.outcome.succeeded() => Some(new),
        _ => None,
    }
}
