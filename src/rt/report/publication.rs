//! Has a thread told others too early that it has written something?
//!
//! A thread that reads goes by the last that it has seen of the one that writes. If that came
//! before the write, it told of what was not there yet, or it was written again while the reader
//! could still be at it.
//!
//! Who has changed an atomic by an operation that acquires, too, may have told that something is
//! there, or may have taken a lock or a turn. That is not to be seen in the operation, but in what
//! comes later: a lock is given back, and who has taken a turn tells others some time that it has
//! written. Who has told already does neither. So the others are let go on while the reader stands
//! where it is about to look ([`claim`]); what they do only once it has gone on as well cannot be
//! what it should have waited for. The reader must have left everything as it was, and must read
//! only: who finds a lock taken, and writes all the same, has made another mistake.

use std::sync::atomic::Ordering;

use super::changes;
use super::text::View;
use super::words::Names;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, ObjectKind, OpKind, Rmw};
use crate::rt::event::verdict::{Access, DataRace, Effect};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;
use crate::rt::race::{acquires, releases};

/// The sentence, if that is the mistake behind this race.
pub(super) fn sentence(race: &DataRace, view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let events = view.trace.events();
    let publication = Publication::before(race, events, view.machine)?;
    let has_told = match publication.meaning() {
        Meaning::Told => true,
        Meaning::ToldOrTaken => race.publishes_no_more,
        Meaning::Else => false,
    };
    if !has_told {
        return None;
    }
    let told = publication.told;
    let [writer, reader] = [race.first.thread, race.second.thread].map(|it| names.thread(it));
    let (what, number) = (names.happened(&events[told]), told + 1);
    Some(match publication.is_again() {
        // It said so before the write, and nothing after it.
        false => format!(
            "published before it was written: {writer} told by \"{what}\" (event {number}) what it wrote only after that"
        ),
        true => format!(
            "written again too early: {writer} had published this by \"{what}\" (event {number}), and nothing told it that {reader} was done with it"
        ),
    })
}

/// What a thread has changed before a race in which it writes, by an operation of which only the
/// rest of the execution can show whether it has told of the write.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// The position of the change.
    told: usize,
    /// The position of the look at it by the thread that reads.
    pub(crate) read: usize,
}

/// The claim before this race, if there is one.
pub(crate) fn claim(race: &DataRace, trace: &Trace, machine: &Machine) -> Option<Claim> {
    let publication = Publication::before(race, trace.events(), machine)?;
    let Publication { told, read, .. } = publication;
    matches!(publication.meaning(), Meaning::ToldOrTaken).then_some(Claim { told, read })
}

impl Claim {
    /// Whether in this execution, which begins with the same events, nobody changes the same atomic
    /// again, and its thread tells nothing by anything else.
    pub(crate) fn is_all(&self, trace: &Trace, machine: &Machine) -> bool {
        let events = trace.events();
        let Some((told, later)) = events.get(self.told..).and_then(|it| it.split_first()) else {
            return false;
        };
        let tells_more = |event: &Event| {
            let kind = &event.operation.kind;
            let is_by_the_way = kind.counts() || kind.is_of_a_life();
            let is_another = event.thread == told.thread && !is_by_the_way;
            let is_same = event.operation.object == told.operation.object;
            (is_another || is_same) && changes::leaves_another(event, machine)
        };
        !later.iter().any(tells_more)
    }
}

/// What the operation by which a thread has changed an atomic may have meant.
enum Meaning {
    /// It has told others something.
    Told,
    /// That, or it has taken a lock or a turn.
    ToldOrTaken,
    Else,
}

/// The last that the thread that reads has seen of the one that writes.
struct Publication<'a> {
    race: &'a DataRace,
    events: &'a [Event],
    machine: &'a Machine,
    /// The position of the change.
    told: usize,
    /// The position of the look at it.
    read: usize,
}

impl<'a> Publication<'a> {
    /// That of this race, if the first thread has written only after it, and the second one goes by
    /// it.
    fn before(
        race: &'a DataRace,
        events: &'a [Event],
        machine: &'a Machine,
    ) -> Option<Publication<'a>> {
        let DataRace { first, second, .. } = race;
        if first.effect != Effect::Write {
            return None;
        }
        let (told, read) = last_seen(first.thread, second.thread, events, machine)?;
        let publication = Publication {
            race,
            events,
            machine,
            told,
            read,
        };
        let goes_by_it = goes_by_what_it_reads(&events[read]) && !gives_up(&events[told]);
        let is_before = events[told].index < first.after;
        let counts =
            goes_by_it && is_before && (publication.is_again() || !publication.asks_for_leave());
        counts.then_some(publication)
    }

    /// Whether the first thread had written there before it told.
    fn is_again(&self) -> bool {
        let published = self.events[self.told].index;
        self.race
            .written
            .is_some_and(|written| written <= published)
    }

    /// Whether the change may be meant to tell others what its thread has done. To take a lock is
    /// not, and neither is to clear a pointer.
    fn meaning(&self) -> Meaning {
        let event = &self.events[self.told];
        let order = match event.operation.kind {
            OpKind::Store { order, value } => {
                let state = self.machine.state(event.operation.object);
                let is_pointer = state.kind() == ObjectKind::Atomic(AtomicType::Ptr);
                return match releases(order) && !(is_pointer && value == 0) {
                    true => Meaning::Told,
                    false => Meaning::Else,
                };
            }
            OpKind::Rmw { order, .. } => order,
            OpKind::CompareExchange { success, .. } => success,
            _ => return Meaning::Else,
        };
        let only_looks = !changes::leaves_another(&self.events[self.read], self.machine);
        let only_reads = self.race.second.effect == Effect::Read;
        match order {
            Ordering::Release => Meaning::Told,
            _ if releases(order) && only_looks && only_reads && !self.is_again() => {
                Meaning::ToldOrTaken
            }
            _ => Meaning::Else,
        }
    }

    /// Whether the writer has looked, before it wrote, at something else than what it told by that
    /// the reader had changed before it used the memory. So do two threads that ask each other for
    /// leave, by a lock made of atomics: what they say there is that they wish to write, or when it
    /// is their turn, and not that anything has been written.
    fn asks_for_leave(&self) -> bool {
        let DataRace { first, second, .. } = self.race;
        let told_by = self.events[self.told].operation.object;
        let before = |access: &Access, event: &Event| {
            event.thread == access.thread && event.index < access.after
        };
        let changed = |object: ObjectId| {
            let events = self.events;
            let mut changes = changes::of(object, events, 0..events.len(), self.machine);
            changes.any(|at| before(second, &events[at]))
        };
        self.events.iter().any(|event| {
            let object = event.operation.object;
            before(first, event)
                && goes_by_what_it_reads(event)
                && object != told_by
                && changed(object)
        })
    }
}

/// The positions of the last change by the writer that the reader has seen, and of its look at it.
fn last_seen(
    writer: ThreadId,
    reader: ThreadId,
    events: &[Event],
    machine: &Machine,
) -> Option<(usize, usize)> {
    events.iter().enumerate().rev().find_map(|(at, event)| {
        let reads = event.thread == reader
            && matches!(
                event.operation.kind,
                OpKind::Load { .. } | OpKind::CompareExchange { .. } | OpKind::Rmw { .. }
            );
        if !reads {
            return None;
        }
        let from = changes::of(event.operation.object, events, 0..at, machine).next_back()?;
        (events[from].thread == writer).then_some((from, at))
    })
}

/// Whether the event may be the end of its thread's share in something, which tells nobody to use
/// it.
fn gives_up(event: &Event) -> bool {
    matches!(event.operation.kind, OpKind::Rmw { rmw: Rmw::Sub, .. })
}

/// Whether what the event reads decides what its thread does next. A counter may be changed by who
/// does not care for its value; one that does would want to know what it stands for, and so
/// acquires.
fn goes_by_what_it_reads(event: &Event) -> bool {
    match event.operation.kind {
        OpKind::Load { .. } | OpKind::CompareExchange { .. } => true,
        OpKind::Rmw { order, .. } => acquires(order),
        _ => false,
    }
}
