//! Has a thread published its write too early?
//!
//! A reading thread relies on the last change of the writing thread that it has seen. If that
//! change came before the write, one of two mistakes was made: the change published data that was
//! not there yet, or the thread wrote again while the reader could still use the data.
//!
//! A thread that changes an atomic by an operation that acquires as well may have published data,
//! or may have taken a lock or a turn. The operation itself does not show which; later events do:
//! the thread gives a lock back, and a thread that has taken a turn publishes its write some time
//! later. A thread that has published already does neither. So the other threads continue while the
//! reader stays in front of its read ([`claim`]); events that need the reader to continue as well
//! cannot be what the reader should have waited for. The reader must have left the atomic
//! unchanged, and must only read the memory: a thread that finds a lock taken, and writes all the
//! same, has made another mistake.

use std::sync::atomic::Ordering;

use super::changes;
use super::view::View;
use super::words::Names;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, ObjectKind, OpKind, Rmw};
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{Access, DataRace, Effect};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;

/// The sentence, if an early publication is the mistake behind this race.
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
        // The thread published before the write, and published nothing after it.
        false => format!(
            "published before it was written: {writer} told by \"{what}\" (event {number}) what it wrote only after that"
        ),
        true => format!(
            "written again too early: {writer} had published this by \"{what}\" (event {number}), and nothing told it that {reader} was done with it"
        ),
    })
}

/// A change that a thread made before its write in a race. Only the rest of the execution can show
/// whether the change published the write.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// The position of the change.
    told: usize,
    /// The position at which the reading thread read the change.
    pub(crate) read: usize,
}

/// The claim before this race, if there is one.
pub(crate) fn claim(race: &DataRace, trace: &Trace, machine: &Machine) -> Option<Claim> {
    let publication = Publication::before(race, trace.events(), machine)?;
    let Publication { told, read, .. } = publication;
    matches!(publication.meaning(), Meaning::ToldOrTaken).then_some(Claim { told, read })
}

impl Claim {
    /// Whether, in this execution with the same beginning, no thread changes the same atomic again,
    /// and the thread of the change publishes nothing by another object.
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

/// The possible meanings of an operation by which a thread has changed an atomic.
enum Meaning {
    /// The thread has published something.
    Told,
    /// The thread has published something, or has taken a lock or a turn.
    ToldOrTaken,
    Else,
}

/// The last change of the writing thread that the reading thread has seen.
struct Publication<'a> {
    race: &'a DataRace,
    events: &'a [Event],
    machine: &'a Machine,
    /// The position of the change.
    told: usize,
    /// The position of the event that read the change.
    read: usize,
}

impl<'a> Publication<'a> {
    /// The publication of this race, if the first thread wrote only after it, and the second thread
    /// relies on it.
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

    /// Whether the first thread had written to the memory before the publication.
    fn is_again(&self) -> bool {
        let published = self.events[self.told].index;
        self.race
            .written
            .is_some_and(|written| written <= published)
    }

    /// Whether the change may be meant to publish what its thread has done. Taking a lock is not,
    /// and neither is clearing a pointer.
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

    /// Whether the writer, before its write, has read another object than the published one, and
    /// the reader had changed that object before it used the memory. Two threads do this that ask
    /// each other for permission, by a lock made of atomics. Their changes say that a thread wants
    /// to write, or that it has its turn, and not that data has been written.
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

/// The positions of the writer's last change that the reader has seen, and of the reader's event
/// that read it.
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

/// Whether the event may end its thread's share in an object; such an event does not tell other
/// threads to use the object.
fn gives_up(event: &Event) -> bool {
    matches!(event.operation.kind, OpKind::Rmw { rmw: Rmw::Sub, .. })
}

/// Whether the next action of the thread depends on the value that the event reads. A thread may
/// change a counter without regard to its value; a thread that does regard the value wants to see
/// the data that the value stands for, and so acquires.
fn goes_by_what_it_reads(event: &Event) -> bool {
    match event.operation.kind {
        OpKind::Load { .. } | OpKind::CompareExchange { .. } => true,
        OpKind::Rmw { order, .. } => acquires(order),
        _ => false,
    }
}
