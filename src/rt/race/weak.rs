//! Which orderings are too weak for two accesses to be in order?
//!
//! What a thread knows may come to another one by several hands, and is lost where one of them tells it, or learns it, with
//! an ordering that is too weak. [`weak_link`] names such a pair of operations, of which it has tried what stronger
//! orderings would do.

use std::sync::atomic::Ordering::SeqCst;

use rustc_hash::FxHashMap;

use super::sync::{self, Knowledge};
use crate::rt::trace::Event;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::OpKind;
use crate::rt::trace::verdict::{DataRace, Effect, Lasts, Weak};

/// How many pairs are tried at most.
const PAIRS_MAX: usize = 64;

/// An atomic write by a thread that knew of the first access, and a read of that by one that did not, which would have
/// ordered the two accesses with stronger orderings: of several pairs the last one of which only one is too weak, which is
/// mostly the one where something was forgotten, or else the last. A fence makes up for an ordering.
pub(crate) fn weak_link(race: &DataRace, events: &[Event]) -> Option<Weak> {
    let suffices = |strong: &[usize]| would_know(race, events, |at| strong.contains(&at));
    let pairs = pairs(race, events);
    let pairs = pairs.iter().rev().take(PAIRS_MAX);
    let mut links = pairs
        .filter(|&&(writer, reader)| suffices(&[writer, reader]))
        .map(|&(writer, reader)| Weak {
            writer: events[writer],
            reader: events[reader],
            released: suffices(&[reader]),
            acquired: suffices(&[writer]),
        });
    let last = links.next()?;
    let is_one = |weak: &Weak| weak.released != weak.acquired;
    match is_one(&last) {
        true => Some(last),
        false => links.find(is_one).or(Some(last)),
    }
}

/// The positions of such writes, each with that of the read, in the order of the reads.
fn pairs(race: &DataRace, events: &[Event]) -> Vec<(usize, usize)> {
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
        {
            pairs.push((writer, position));
        }
        if sync::writes(event).is_none() {
            continue;
        }
        // Its write tells what the thread knows by then.
        if knows(&mut knowledge, thread, race) {
            if !continues(event, carried.get(&object).map(|&at| &events[at])) {
                carried.insert(object, position);
            }
        } else if matches!(event.operation.kind, OpKind::Store { .. }) {
            carried.remove(&object);
        }
    }
    pairs
}

/// Whether this write only hands on what an earlier one has released, and releases nothing by itself.
fn continues(event: &Event, earlier: Option<&Event>) -> bool {
    let releases = |event| sync::writes(event).is_some_and(sync::releases);
    !matches!(event.operation.kind, OpKind::Store { .. })
        && !releases(event)
        && earlier.is_some_and(releases)
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
