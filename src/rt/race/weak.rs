//! Which orderings are too weak for two accesses to be in order?
//!
//! One thread may learn of another's access through a chain of operations. The chain breaks at an
//! operation with an ordering that is too weak to publish, or to learn, what it should.
//! [`too_weak`] names the pairs of operations where the chain breaks. It tries which stronger
//! orderings would suffice: one pair of several, if each of them would suffice alone, or several
//! pairs that would suffice only together.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::put;
use super::sync::{self, Knowledge};
use crate::rt::event::Event;
use crate::rt::event::fence::{Fence, Move, Past};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ADDRESS_MIN, OpKind};
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{Access, DataRace, Effect, Lasts, TooWeak, Weak};
use crate::rt::object::orders::Place;

/// The most pairs that are tried.
const PAIRS_MAX: usize = 64;

/// The pairs of an atomic write, by a thread that knew of the first access, and a read of it, by a
/// thread that did not, that would have ordered the two accesses with stronger orderings. A fence
/// replaces a strong ordering.
pub(crate) fn too_weak(race: &DataRace, past: Past<'_>) -> TooWeak {
    let certainly = behind_the_making(race, past);
    let race = certainly.as_ref().unwrap_or(race);
    let any = each_alone(race, past);
    if !any.is_empty() {
        TooWeak {
            pairs: any,
            together: false,
        }
    } else {
        TooWeak {
            pairs: all_together(race, past),
            together: true,
        }
    }
}

/// The pairs that keep the thread of the event at `user` from knowing of the store at `store`, an
/// earlier event of another thread.
pub(crate) fn too_weak_to_know(store: usize, user: usize, past: Past<'_>) -> TooWeak {
    let access = |at: usize, effect| Access {
        thread: past.events[at].thread,
        effect,
        site: past.events[at].site,
        after: past.events[at].index,
    };
    let until = past.fences.iter();
    let until = until.take_while(|fence| fence.before as usize <= user);
    let past = Past {
        events: &past.events[..user],
        fences: &past.fences[..until.count()],
        parts: past.parts,
    };
    let first = access(store, Effect::AtomicWrite);
    // The time of a thread counts its fences, too.
    let fences = past
        .fences
        .iter()
        .filter(|fence| fence.thread == first.thread && fence.before as usize <= store);
    let second = access(user, Effect::AtomicRead);
    let time = first.after + fences.count() as u32;
    let unknown = DataRace::between(first, second, Lasts::Until(first.through()), time);
    too_weak(&unknown, past)
}

/// If the race is with the making of a variable on a stack, which has no known time, returns the
/// race with an event of the maker that is certainly later instead. A thread that got the pointer
/// from an atomic got it through the last pointer that the maker wrote to an atomic, or through an
/// earlier one. A thread that has the pointer from elsewhere has it, at the latest, through the
/// maker's last event.
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

/// The pairs that would suffice alone, the last one first. If some pairs are too weak on one side
/// only, an ordering was forgotten there, and pairs that are too weak on both sides are mostly
/// meant to be relaxed: the latter are left out then. Of the pairs between the same two threads
/// through the same atomic only the last stays, because the reading thread relies on that one.
fn each_alone(race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let suffices = |these: &[usize]| would_know(race, past, strong(these));
    let mut links: Vec<Weak> = Vec::new();
    for &(writer, reader) in pairs(race, past, false).iter().rev().take(PAIRS_MAX) {
        let [one, other] = [writer, reader].map(|at| &past.events[at]);
        // The same lines of the program, executed again, are the same pair.
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

/// Removes the pairs from which the second thread learns nothing. If a stronger write would suffice
/// because one thread reads it, then it would suffice with any other read of it, too.
fn without_other_readers(mut links: Vec<Weak>, race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let place = |of: &Event| {
        let is_it = |event: &Event| (event.thread, event.index) == (of.thread, of.index);
        past.events.iter().position(is_it)
    };
    let mut at = 0;
    while at < links.len() {
        let Weak { writer, reader, .. } = &links[at];
        // With a fence the thread would learn of the write whatever the ordering of its read.
        let acquires = |read: usize| {
            sync::reads(&past.events[read]).is_some_and(acquires) && !acquires_behind(past, read)
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
        if is_other && would_know(race, past, without) {
            links.remove(at);
        } else {
            at += 1;
        }
    }
    links
}

/// The ordering that an operation on an atomic is taken to have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// Its own ordering.
    Own,
    /// The strongest ordering, or the weakest one.
    Most,
    Least,
}

/// The strongest orderings for the events at these positions, and their own for the others.
fn strong(these: &[usize]) -> impl Fn(usize) -> Strength + '_ {
    |at| {
        if these.contains(&at) {
            Strength::Most
        } else {
            Strength::Own
        }
    }
}

/// The pairs that would suffice together, and not if one of them kept its orderings, in the order
/// of the reads. Empty if there are too many pairs.
fn all_together(race: &DataRace, past: Past<'_>) -> Vec<Weak> {
    let suffices = |these: &[usize]| would_know(race, past, strong(these));
    let both = |pairs: &[(usize, usize)]| -> Vec<usize> {
        pairs.iter().flat_map(|&(w, r)| [w, r]).collect()
    };
    let mut pairs = pairs(race, past, true);
    if pairs.len() > PAIRS_MAX || !suffices(&both(&pairs)) {
        return Vec::new();
    }
    // Of several chains that suffice, the last one stays.
    let mut at = 0;
    while at < pairs.len() {
        let left_out = pairs.remove(at);
        if !suffices(&both(&pairs)) {
            pairs.insert(at, left_out);
            at += 1;
        }
    }
    // A fence may replace one side of a pair or a side of another pair, and not both: without the
    // one side, the other is needed.
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

/// Whether this write releases by itself, or stands behind a fence that does. If it does not, and
/// still its ordering does not matter, then another operation makes up for it, and the write cannot
/// be called a release.
fn may_release(past: Past<'_>, writer: usize) -> bool {
    let by_itself = sync::writes(&past.events[writer]).is_some_and(releases);
    let is_before = |fence: &Fence| {
        fence.thread == past.events[writer].thread
            && fence.before as usize <= writer
            && releases(fence.order)
    };
    by_itself || past.fences.iter().any(is_before)
}

/// Whether this read acquires by itself, or stands before a fence that does.
fn may_acquire(past: Past<'_>, reader: usize) -> bool {
    let by_itself = sync::reads(&past.events[reader]).is_some_and(acquires);
    by_itself || acquires_behind(past, reader)
}

/// Whether the thread of this event has a fence behind it that acquires.
fn acquires_behind(past: Past<'_>, event: usize) -> bool {
    past.fences.iter().any(|fence| {
        fence.thread == past.events[event].thread
            && fence.before as usize > event
            && acquires(fence.order)
    })
}

/// The positions of such writes, each with the position of its read, in the order of the reads.
/// With `if_strong`, a thread counts as knowing all that it would know if all orderings were the
/// strongest.
fn pairs(race: &DataRace, past: Past<'_>, if_strong: bool) -> Vec<(usize, usize)> {
    let first = race.first.thread;
    let (mut has, mut would) = (knowledge(past), knowledge(past));
    let mut carried = Carried::default();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for it in past.moves() {
        let (position, event) = match it {
            Move::Fence(fence) => {
                has.fence(fence);
                would.fence(fence);
                continue;
            }
            Move::Part(part) => {
                let _ = has.part(part, |_, _| Ok(true));
                let _ = would.part(part, |_, _| Ok(true));
                continue;
            }
            Move::Event(position, event) => (position, event),
        };
        if is_the_use(race, event) {
            break;
        }
        let thread = event.thread;
        let knew = thread == first || knows(&mut has, thread, race);
        let _ = has.observe(event, |_, _| Ok(true));
        let as_told = if if_strong {
            with_strength(event, Strength::Most)
        } else {
            *event
        };
        let _ = would.observe(&as_told, |_, _| Ok(true));
        if sync::reads(event).is_some()
            && !knew
            && let Some(writer) = carried.by(event)
        {
            pairs.push((writer, position));
        }
        if sync::writes(event).is_none() {
            continue;
        }
        // The write publishes all that the thread knows by then.
        let before = carried.by(event);
        let is_rmw = !matches!(event.operation.kind, OpKind::Store { .. });
        let writer = match knows(&mut would, thread, race) {
            true if continues(event, before.map(|at| &past.events[at])) => before,
            true => Some(position),
            false => before.filter(|_| is_rmw),
        };
        carried.write(event, writer);
    }
    pairs
}

/// For each store of each atomic, in modification order and the initial value first, the last write
/// by a thread that knew of the access. A reader of the store would learn of the access from that
/// write, unless a thread that did not know has overwritten the value.
#[derive(Default)]
struct Carried(FxHashMap<ObjectId, Vec<Option<usize>>>);

impl Carried {
    /// The place of the store that the event reads, or goes behind.
    fn place(stores: &[Option<usize>], event: &Event) -> usize {
        let newer = Place::of(event.alternative).newer as usize;
        stores.len().saturating_sub(1 + newer)
    }

    /// The write from which the event would learn of the access.
    fn by(&self, event: &Event) -> Option<usize> {
        let stores = self.0.get(&event.operation.object)?;
        stores[Carried::place(stores, event)]
    }

    /// The event writes, and its readers would learn of the access from `writer`.
    fn write(&mut self, event: &Event, writer: Option<usize>) {
        let stores = self.0.entry(event.operation.object);
        let stores = stores.or_insert_with(|| vec![None]);
        stores.insert(Carried::place(stores, event) + 1, writer);
    }
}

/// What is known at the beginning of an execution with these events. While each operation on an
/// atomic has the newest outcome, C11 and sequential consistency agree on what it learns.
fn knowledge(past: Past<'_>) -> Knowledge {
    let is_old =
        |event: &Event| event.operation.kind.is_atomic() && Place::of(event.alternative).newer > 0;
    let mut knowledge = Knowledge::default();
    knowledge.set_weak(past.events.iter().any(is_old));
    knowledge
}

/// Whether this write only continues the release sequence of an earlier one, and releases nothing
/// by itself.
fn continues(event: &Event, earlier: Option<&Event>) -> bool {
    let tells = |event| sync::writes(event).is_some_and(releases);
    !matches!(event.operation.kind, OpKind::Store { .. })
        && !tells(event)
        && earlier.is_some_and(tells)
}

/// Whether the second thread would know of the first access if the events, by their positions, had
/// orderings of this strength.
fn would_know(race: &DataRace, past: Past<'_>, strength: impl Fn(usize) -> Strength) -> bool {
    let mut knowledge = known_at_the_use(race, past, strength);
    knows(&mut knowledge, race.second.thread, race)
}

/// The clocks that the threads would have at the time of the second access.
fn known_at_the_use(
    race: &DataRace,
    past: Past<'_>,
    strength: impl Fn(usize) -> Strength,
) -> Knowledge {
    let mut knowledge = knowledge(past);
    for it in past.moves() {
        let (position, event) = match it {
            Move::Fence(fence) => {
                knowledge.fence(fence);
                continue;
            }
            Move::Part(part) => {
                let _ = knowledge.part(part, |_, _| Ok(true));
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

/// Whether the event uses the content of the block that the first access has made. Its thread
/// learns of the making too late by such an event.
fn is_the_use(race: &DataRace, event: &Event) -> bool {
    race.first.effect == Effect::Make
        && event.thread == race.second.thread
        && event.index >= race.second.after
}

/// Whether the thread knows of the first access up to its end.
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

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::atomic::Ordering::{self, Acquire, Release};

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::rt::event::operation::{Operation, Outcome};
    use crate::rt::relation::independence::{Label, Nature};

    const P: ThreadId = ThreadId(1);
    const Q: ThreadId = ThreadId(2);
    const R: ThreadId = ThreadId(3);
    const DATA: u32 = 0;
    const FLAG: u32 = 1;
    const PASSED: u32 = 2;

    fn store(thread: ThreadId, index: u32, object: u32, order: Ordering) -> Event {
        let kind = OpKind::Store { order, value: 1 };
        event((thread, index), (object, kind, Outcome::Done), 0)
    }

    /// A load that reads the store behind which there are so many newer ones.
    fn load(index: u32, object: u32, order: Ordering, newer: u32) -> Event {
        load_of((Q, index), object, order, newer)
    }

    fn load_of(of: (ThreadId, u32), object: u32, order: Ordering, newer: u32) -> Event {
        let fails = false;
        let place = Place { newer, fails }.alternative();
        let kind = OpKind::Load { order };
        event(of, (object, kind, Outcome::Value(1)), place)
    }

    fn event(
        (thread, index): (ThreadId, u32),
        (object, kind, outcome): (u32, OpKind, Outcome),
        alternative: u32,
    ) -> Event {
        let object = ObjectId(object);
        Event {
            thread,
            index,
            operation: Operation { object, kind },
            outcome,
            label: Label::new(object, &kind, outcome, Nature::Plain),
            alternative,
            alternatives: 1,
            before: None,
            site: Location::caller(),
        }
    }

    /// The pairs, as the threads and numbers of their events and whether they are strong enough,
    /// that keep the last event from knowing of P's first one.
    fn unknown(events: &[Event], fences: &[Fence]) -> Vec<((u32, bool), (u32, bool))> {
        let past = Past {
            events,
            fences,
            parts: &[],
        };
        let weak = too_weak_to_know(0, events.len() - 1, past);
        let told = weak.pairs.iter().map(|it| {
            assert_eq!((it.writer.thread, it.reader.thread), (P, Q));
            (
                (it.writer.index, it.released),
                (it.reader.index, it.acquired),
            )
        });
        told.collect()
    }

    fn fence(thread: ThreadId, after: u32, before: u32, order: Ordering) -> Fence {
        Fence {
            thread,
            after,
            before,
            order,
            site: Location::caller(),
            made: Vec::new(),
        }
    }

    #[test]
    fn a_message_of_c11_is_too_weak_on_the_relaxed_side() {
        let message = |write, read| {
            [
                store(P, 0, DATA, Relaxed),
                store(P, 1, FLAG, write),
                load(0, FLAG, read, 0),
                load(1, DATA, Relaxed, 1),
            ]
        };
        let relaxed = [((1, false), (0, false))];
        assert_eq!(unknown(&message(Relaxed, Relaxed), &[]), relaxed);
        let written = [((1, true), (0, false))];
        assert_eq!(unknown(&message(Release, Relaxed), &[]), written);
        let read = [((1, false), (0, true))];
        assert_eq!(unknown(&message(Relaxed, Acquire), &[]), read);
        let fence = [fence(P, 1, 1, Release)];
        assert_eq!(unknown(&message(Relaxed, Relaxed), &fence), written);
    }

    #[test]
    fn what_a_load_of_c11_learns_comes_from_the_store_that_it_reads() {
        // The second store of the flag is a strong one, and the load reads the first one.
        let events = [
            store(P, 0, DATA, Relaxed),
            store(P, 1, FLAG, Relaxed),
            store(P, 2, FLAG, Release),
            load(0, FLAG, Acquire, 1),
            load(1, DATA, Relaxed, 1),
        ];
        assert_eq!(unknown(&events, &[]), [((1, false), (0, true))]);
        // A thread that learns of all that Q knows does not learn of it either.
        let [data, relaxed, strong, read, _] = events;
        let passed = [
            data,
            relaxed,
            strong,
            read,
            store(Q, 1, PASSED, Release),
            load_of((R, 0), PASSED, Acquire, 0),
            load_of((R, 1), DATA, Relaxed, 1),
        ];
        assert_eq!(unknown(&passed, &[]), [((1, false), (0, true))]);
        // Nothing leads from the data to the initial value of the flag.
        let events = [events[0], events[1], load(0, FLAG, Relaxed, 1), events[4]];
        assert_eq!(unknown(&events, &[]), []);
    }
}
