//! Which orderings are too weak for two accesses to be in order?
//!
//! What a thread knows may come to another one by several hands, and is lost where one of them tells it, or learns it, with
//! an ordering that is too weak. [`weak_link`] names such a pair of operations.

use std::sync::atomic::Ordering::{self, SeqCst};

use rustc_hash::FxHashMap;

use super::sync::{self, Knowledge};
use crate::rt::trace::Event;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::OpKind;
use crate::rt::trace::verdict::{DataRace, Effect, Lasts, Weak};

/// How many pairs are tried at most where what the first thread knew has gone through other hands.
const PAIRS_MAX: usize = 64;

/// The atomic accesses through which the first thread's progress has come to the second, if one of
/// them would have ordered the two accesses with a stronger ordering. Of several pairs the last one of which only one is too weak,
/// which is mostly the one where something was forgotten, or else the last. A fence makes up for an ordering.
///
/// Where other threads have handed it on, the last pair that suffices by itself.
pub(crate) fn weak_link(race: &DataRace, events: &[Event]) -> Option<Weak> {
    direct(race, events).or_else(|| handed_on(race, events))
}

/// [`weak_link`] where the second thread has read what the first one has written.
pub(super) fn direct(race: &DataRace, events: &[Event]) -> Option<Weak> {
    let (mut one, mut both) = (None, None);
    // By atomic, the last write of the first thread behind its access, or that access itself, that a reader there has
    // to do with: it sees that write, or what only modifications have made of it, which hand on what it tells.
    let mut carried: FxHashMap<ObjectId, (&Event, bool)> = FxHashMap::default();
    // Whether a fence of the first thread behind its access publishes that by any write that follows, and the last one of
    // the second thread that makes any read before it acquire.
    let mut fenced = false;
    let acquired_until = events.iter().rposition(|event| {
        event.thread == race.second.thread
            && event.index < race.second.after
            && fence(event).is_some_and(sync::acquires)
    });
    for (position, event) in events.iter().enumerate() {
        let object = event.operation.object;
        fenced = fenced
            || event.thread == race.first.thread
                && event.index >= race.first.after
                && fence(event).is_some_and(sync::releases);
        if event.thread == race.second.thread
            && !is_the_use(race, event)
            && let Some(&(writer, released)) = carried.get(&object)
            && let Some(read) = sync::reads(event)
        {
            let acquired =
                sync::acquires(read) || acquired_until.is_some_and(|until| position < until);
            let weak = Weak {
                writer: *writer,
                reader: *event,
                released,
                acquired,
            };
            match (released, acquired) {
                (true, true) => {}
                (false, false) => both = Some(weak),
                _ => one = Some(weak),
            }
        }
        let Some(write) = sync::writes(event) else {
            continue;
        };
        if event.thread == race.first.thread && event.index >= race.first.after {
            carried.insert(object, (event, fenced || sync::releases(write)));
        } else if matches!(event.operation.kind, OpKind::Store { .. }) {
            carried.remove(&object);
        }
    }
    one.or(both)
}

/// [`weak_link`] where other threads come between the two.
fn handed_on(race: &DataRace, events: &[Event]) -> Option<Weak> {
    let first = race.first.thread;
    let mut knowledge = Knowledge::default();
    // By atomic, the last write of a thread that knew of the access, of which a reader there learns, if it was not
    // overwritten by one that did not know.
    let mut carried: FxHashMap<ObjectId, usize> = FxHashMap::default();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (position, event) in events.iter().enumerate() {
        if is_the_use(race, event) {
            break;
        }
        let (object, thread) = (event.operation.object, event.thread);
        let knew = thread == first || knows(&mut knowledge, thread, race);
        let _ = knowledge.observe(event, |_| Ok(true));
        if let Some(&writer) = carried.get(&object)
            && sync::reads(event).is_some()
            && !knew
            && !knows(&mut knowledge, thread, race)
        {
            pairs.push((writer, position));
        }
        if sync::writes(event).is_none() {
            continue;
        }
        if knew && (thread != first || event.index >= race.first.after) {
            carried.insert(object, position);
        } else if matches!(event.operation.kind, OpKind::Store { .. }) {
            carried.remove(&object);
        }
    }
    let suffices = |strong: &[usize]| would_know(race, events, |at| strong.contains(&at));
    let mut last = pairs.iter().rev().take(PAIRS_MAX);
    let &(writer, reader) = last.find(|&&(writer, reader)| suffices(&[writer, reader]))?;
    Some(Weak {
        writer: events[writer],
        reader: events[reader],
        released: suffices(&[reader]),
        acquired: suffices(&[writer]),
    })
}

/// Whether the second thread would know of the first access if these of the events, by their positions, had the strongest
/// ordering there is.
fn would_know(race: &DataRace, events: &[Event], is_strong: impl Fn(usize) -> bool) -> bool {
    let mut knowledge = Knowledge::default();
    for (position, event) in events.iter().enumerate() {
        if is_the_use(race, event) {
            break;
        }
        let event = match is_strong(position) {
            true => strengthened(event),
            false => *event,
        };
        let _ = knowledge.observe(&event, |_| Ok(true));
    }
    knows(&mut knowledge, race.second.thread, race)
}

/// Whether the event uses what is in the block that the first access has made: by that, its thread learns of it too late.
fn is_the_use(race: &DataRace, event: &Event) -> bool {
    race.first.effect == Effect::Make
        && event.thread == race.second.thread
        && event.index >= race.second.after
}

/// Whether the thread knows of the first access, all of it.
fn knows(knowledge: &mut Knowledge, thread: ThreadId, race: &DataRace) -> bool {
    let Lasts::Until(time) = race.lasts else {
        return false;
    };
    knowledge.of(thread).get(race.first.thread) > time
}

/// The event with the strongest ordering, if it is an operation on an atomic.
fn strengthened(event: &Event) -> Event {
    let mut event = *event;
    match &mut event.operation.kind {
        OpKind::Load { order } | OpKind::Store { order, .. } | OpKind::Rmw { order, .. } => {
            *order = SeqCst;
        }
        OpKind::CompareExchange {
            success, failure, ..
        } => (*success, *failure) = (SeqCst, SeqCst),
        _ => {}
    }
    event
}

/// The ordering of a fence.
fn fence(event: &Event) -> Option<Ordering> {
    match event.operation.kind {
        OpKind::Fence { order } => Some(order),
        _ => None,
    }
}
