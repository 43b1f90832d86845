//! Which orderings are too weak for two accesses to be in order?
//!
//! What a thread knows may come to another one by several hands, and is lost where one of them
//! tells it, or learns it, with an ordering that is too weak. [`too_weak`] names the pairs of
//! operations where that is so, of which it has tried what stronger orderings would do: one of
//! several, if each of them would do, or several that would do only together.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::put;
use super::sync::{self, Knowledge};
use crate::rt::event::Event;
use crate::rt::event::fence::{Fence, Move, Past};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ADDRESS_MIN, OpKind};
use crate::rt::event::verdict::{DataRace, Effect, Lasts, TooWeak, Weak};

/// How many pairs are tried at most.
const PAIRS_MAX: usize = 64;

/// The atomic writes by a thread that knew of the first access, each with a read of it by one that
/// did not, which would have ordered the two accesses with stronger orderings. A fence makes up for
/// an ordering.
pub(crate) fn too_weak(race: &DataRace, past: Past<'_>) -> TooWeak {
    let certainly = behind_the_making(race, past);
    let race = certainly.as_ref().unwrap_or(race);
    let any = each_alone(race, past);
    match any.is_empty() {
        false => TooWeak {
            pairs: any,
            together: false,
        },
        true => TooWeak {
            pairs: all_together(race, past),
            together: true,
        },
    }
}

/// The race with the making of a variable on a stack, of which nobody knows when it was made, as
/// one with what was certainly done later: whoever got the pointer from an atomic got it by the
/// last pointer that the maker has put into one, or by an earlier one, and whoever has it from
/// elsewhere by the last that the maker did.
fn behind_the_making(race: &DataRace, past: Past<'_>) -> Option<DataRace> {
    if race.first.effect != Effect::Make || race.block.is_some() {
        return None;
    }
    let maker = race.first.thread;
    let mut knowledge = known_at_the_use(race, past, |_| Strength::Most);
    let (clock, fences) = knowledge.of_with_fences(race.second.thread);
    let known = clock.get(maker);
    let theirs = past
        .events
        .iter()
        .rev()
        .filter(|event| event.thread == maker);
    let mut latest_first = theirs.filter(|event| fences.before(maker, event.index) < known);
    let puts = |event: &&Event| put(event).is_some_and(|value| value >= ADDRESS_MIN);
    let last = (latest_first.clone().find(puts)).or(latest_first.next())?;
    Some(DataRace {
        lasts: Lasts::Until(last.index),
        time: fences.before(maker, last.index),
        ..race.clone()
    })
}

/// Those of which each would do, the last one first. If there are some of which only one side is
/// too weak, something was forgotten there, and where both sides are too weak they are mostly meant
/// to be: no others are named then. Of what one thread tells another one by one atomic, the last is
/// what that one goes by.
fn each_alone(race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let suffices = |these: &[usize]| would_know(race, past, strong(these));
    let mut links: Vec<Weak> = Vec::new();
    for &(writer, reader) in pairs(race, past, false).iter().rev().take(PAIRS_MAX) {
        let [one, other] = [writer, reader].map(|at| &past.events[at]);
        // What the same lines of the program do again is the same pair.
        if !links.iter().any(|link| link.is_by(one, other)) && suffices(&[writer, reader]) {
            links.push(Weak {
                writer: *one,
                reader: *other,
                released: may_release(past, writer) && suffices(&[reader]),
                acquired: may_acquire(past, reader) && suffices(&[writer]),
            });
        }
    }
    let is_forgotten = |link: &Weak| link.released != link.acquired;
    if links.iter().any(is_forgotten) {
        links.retain(is_forgotten);
    }
    let way = |link: &Weak| {
        let Weak { writer, reader, .. } = link;
        (writer.operation.object, writer.thread, reader.thread)
    };
    let mut ways = FxHashSet::default();
    links.retain(|link| ways.insert(way(link)));
    without_other_readers(links, race, past)
}

/// Those of which the second thread learns something. Where a write would do because one thread
/// reads it, it would do with any other read of it, too.
fn without_other_readers(mut links: Vec<Weak>, race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let place = |of: &Event| {
        let is_it = |event: &Event| (event.thread, event.index) == (of.thread, of.index);
        past.events.iter().position(is_it)
    };
    let mut at = 0;
    while at < links.len() {
        let Weak { writer, reader, .. } = &links[at];
        // With a fence it would learn of the write whatever its own ordering.
        let acquires = |read: usize| {
            sync::reads(&past.events[read]).is_some_and(sync::acquires)
                && !acquires_behind(past, read)
        };
        let same = |link: &&Weak| place(&link.writer) == place(writer);
        let is_other = reader.thread != race.second.thread
            && place(reader).is_some_and(acquires)
            && links.iter().filter(same).count() > 1;
        let (writer, reader) = (place(writer), place(reader));
        let without = |at: usize| match Some(at) {
            at if at == writer => Strength::Most,
            at if at == reader => Strength::Least,
            _ => Strength::Own,
        };
        match is_other && would_know(race, past, without) {
            true => drop(links.remove(at)),
            false => at += 1,
        }
    }
    links
}

/// How strong the ordering of an operation on an atomic is taken to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// As it is.
    Own,
    /// The strongest, or the weakest, that there is.
    Most,
    Least,
}

/// These, by their positions, are as strong as can be.
fn strong(these: &[usize]) -> impl Fn(usize) -> Strength + '_ {
    |at| match these.contains(&at) {
        true => Strength::Most,
        false => Strength::Own,
    }
}

/// Those that would do together, and not if one of them stayed as it is, in the order of the reads.
/// None if there are too many.
fn all_together(race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let suffices = |these: &[usize]| would_know(race, past, strong(these));
    let both = |pairs: &[(usize, usize)]| -> Vec<usize> {
        pairs.iter().flat_map(|&(w, r)| [w, r]).collect()
    };
    let mut pairs = pairs(race, past, true);
    if pairs.len() > PAIRS_MAX || !suffices(&both(&pairs)) {
        return Vec::new();
    }
    // Of several ways the last one stays.
    let mut at = 0;
    while at < pairs.len() {
        let left_out = pairs.remove(at);
        if !suffices(&both(&pairs)) {
            pairs.insert(at, left_out);
            at += 1;
        }
    }
    // A fence may make up for one side or for another one, and not for both: whoever leaves out one
    // of them needs the other.
    let mut needed = both(&pairs);
    for side in both(&pairs) {
        let fewer: Vec<usize> = needed.iter().copied().filter(|&at| at != side).collect();
        if suffices(&fewer) {
            needed = fewer;
        }
    }
    let weak = |&(writer, reader): &(usize, usize)| Weak {
        writer: past.events[writer],
        reader: past.events[reader],
        released: may_release(past, writer) && !needed.contains(&writer),
        acquired: may_acquire(past, reader) && !needed.contains(&reader),
    };
    pairs.iter().map(weak).collect()
}

/// Whether this write releases by itself, or stands behind a fence that does. Otherwise, if its
/// ordering does not matter, it is another operation that makes up for it, and nothing can be said
/// of this one.
fn may_release(past: Past<'_>, writer: usize) -> bool {
    let by_itself = sync::writes(&past.events[writer]).is_some_and(sync::releases);
    let is_before = |fence: &Fence| {
        fence.thread == past.events[writer].thread
            && fence.before as usize <= writer
            && sync::releases(fence.order)
    };
    by_itself || past.fences.iter().any(is_before)
}

/// The same of a read that acquires, or stands before a fence that does.
fn may_acquire(past: Past<'_>, reader: usize) -> bool {
    let by_itself = sync::reads(&past.events[reader]).is_some_and(sync::acquires);
    by_itself || acquires_behind(past, reader)
}

/// Whether the thread of this event has a fence behind it that acquires.
fn acquires_behind(past: Past<'_>, event: usize) -> bool {
    past.fences.iter().any(|fence| {
        fence.thread == past.events[event].thread
            && fence.before as usize > event
            && sync::acquires(fence.order)
    })
}

/// The positions of such writes, each with that of the read, in the order of the reads. It may
/// count as knowing what a thread would know if all orderings were the strongest.
fn pairs(race: &DataRace, past: Past<'_>, if_strong: bool) -> Vec<(usize, usize)> {
    let first = race.first.thread;
    let (mut has, mut would) = (Knowledge::default(), Knowledge::default());
    // By atomic, the last write of a thread that knew of the access, of which a reader there
    // learns, if it was not overwritten by one that did not know.
    let mut carried: FxHashMap<ObjectId, usize> = FxHashMap::default();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for it in past.moves() {
        let (position, event) = match it {
            Move::Fence(fence) => {
                has.fence(fence);
                would.fence(fence);
                continue;
            }
            Move::Event(position, event) => (position, event),
        };
        if is_the_use(race, event) {
            break;
        }
        let (object, thread) = (event.operation.object, event.thread);
        let knew = thread == first || knows(&mut has, thread, race);
        let _ = has.observe(event, |_, _| Ok(true));
        let as_told = match if_strong {
            true => with_strength(event, Strength::Most),
            false => *event,
        };
        let _ = would.observe(&as_told, |_, _| Ok(true));
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
        if knows(&mut would, thread, race) {
            if !continues(event, carried.get(&object).map(|&at| &past.events[at])) {
                carried.insert(object, position);
            }
        } else if matches!(event.operation.kind, OpKind::Store { .. }) {
            carried.remove(&object);
        }
    }
    pairs
}

/// Whether this write only hands on what an earlier one has released, and releases nothing by
/// itself.
fn continues(event: &Event, earlier: Option<&Event>) -> bool {
    let releases = |event| sync::writes(event).is_some_and(sync::releases);
    !matches!(event.operation.kind, OpKind::Store { .. })
        && !releases(event)
        && earlier.is_some_and(releases)
}

/// Whether the second thread would know of the first access if the events, by their positions, had
/// orderings of this strength.
fn would_know(race: &DataRace, past: Past<'_>, strength: impl Fn(usize) -> Strength) -> bool {
    let mut knowledge = known_at_the_use(race, past, strength);
    knows(&mut knowledge, race.second.thread, race)
}

/// What the threads would know of each other when the second access comes.
fn known_at_the_use(
    race: &DataRace,
    past: Past<'_>,
    strength: impl Fn(usize) -> Strength,
) -> Knowledge {
    let mut knowledge = Knowledge::default();
    for it in past.moves() {
        let (position, event) = match it {
            Move::Fence(fence) => {
                knowledge.fence(fence);
                continue;
            }
            Move::Event(position, event) => (position, event),
        };
        if is_the_use(race, event) {
            break;
        }
        let event = with_strength(event, strength(position));
        let _ = knowledge.observe(&event, |_, _| Ok(true));
    }
    knowledge
}

/// Whether the event uses what is in the block that the first access has made: by that, its thread
/// learns of it too late.
fn is_the_use(race: &DataRace, event: &Event) -> bool {
    race.first.effect == Effect::Make
        && event.thread == race.second.thread
        && event.index >= race.second.after
}

/// Whether the thread knows of the first access, all of it.
fn knows(knowledge: &mut Knowledge, thread: ThreadId, race: &DataRace) -> bool {
    let is_over = matches!(race.lasts, Lasts::Until(_));
    is_over && knowledge.of(thread).get(race.first.thread) > race.time
}

/// The event with an ordering of this strength, if it is an operation on an atomic.
fn with_strength(event: &Event, strength: Strength) -> Event {
    let mut event = *event;
    let given = match strength {
        Strength::Own => return event,
        Strength::Most => SeqCst,
        Strength::Least => Relaxed,
    };
    match &mut event.operation.kind {
        OpKind::Load { order } | OpKind::Store { order, .. } | OpKind::Rmw { order, .. } => {
            *order = given;
        }
        OpKind::CompareExchange {
            success, failure, ..
        } => (*success, *failure) = (given, given),
        _ => {}
    }
    event
}
