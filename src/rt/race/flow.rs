//! Has a thread learnt, by whatever operations, that another one had come to a point?
//!
//! Here nothing is too weak: whoever reads what was written knows what the writer knew, whatever
//! the orderings and whatever the language grants, and hands it on by what it writes. So an access
//! that comes before a free by such a way alone may be the reason for the free, and then no
//! execution has them in the other order. It is told apart from one that only happened to come
//! first: who overwrites what another thread has read or written has learnt nothing, nor has who
//! does what commutes with that.

use rustc_hash::{FxHashMap, FxHashSet};

use super::sync::{reads, writes};
use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Rmw};
use crate::rt::relation::independence::{Classes, changes_value};

/// Whether after these events `learner` knows of what `thread` did when it had performed so many of
/// its own: of its next one, or of what it did just before that.
pub(super) fn reaches(
    events: &[Event],
    (thread, performed): (ThreadId, u32),
    learner: ThreadId,
) -> bool {
    let mut knowing = FxHashSet::default();
    // In which ways those who know have changed an object.
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
            // It has ended, and so has done what it did behind its last event.
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

/// Whether `taker` has got a pointer into this memory from an atomic, which came there from the
/// thread that made what is in it when it had performed so many events: by that thread itself, or
/// by the hands of others who had got it so.
///
/// Whoever has the pointer from anywhere else may have it by what is not seen, and be ordered by
/// that. So may who has only looked at it, if another thread has then taken it out of the atomic.
pub(super) fn hands_over(
    events: &[Event],
    (maker, made): (ThreadId, u32),
    (start, length): (usize, usize),
    taker: ThreadId,
) -> bool {
    let is_within = |value: u64| (value as usize).wrapping_sub(start) < length;
    // Who has it from which atomic, and which atomics hold it that one of those has written.
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

/// The value that the event has put in the place of that of an atomic.
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
