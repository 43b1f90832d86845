//! Which events and schedules lead to a point of the search?
//!
//! \[POP\] section 4. An execution is a list of items. A *default* is one event that the run chose
//! by itself. A *schedule* is a sequence that was planned to reverse a race: events that are
//! independent of the default e that it replaces, and at its end the head, which is dependent with
//! e. Only defaults have alternatives. The end of an item is a *node*. A [`Record`] says where a
//! schedule was found, as the items between e and that node. That is all the order of schedules
//! needs ([`order`](super::order)), so records are immutable and shared.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::rt::event::id::{Names, ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome, Step};
use crate::rt::event::{Event, NOWHERE};
use crate::rt::relation::independence::{Label, ReadSets, ordered};

/// The part of an event that its place in happens-before follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathEvent {
    pub(super) thread: ThreadId,
    /// The index among the events of its thread.
    pub(super) index: u32,
    pub(super) alternative: u32,
    pub(super) label: Label,
    pub(super) link: Link,
}

/// An order with other events besides program order and the accesses to objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    None,
    /// The event comes before all events of this thread.
    Spawns(ThreadId),
    /// The event comes after all events of this thread.
    Joins(ThreadId),
    /// The event comes after so many events, the first ones of the execution.
    Released(u32),
}

impl PathEvent {
    pub(super) fn of(event: &Event) -> PathEvent {
        PathEvent {
            thread: event.thread,
            index: event.index,
            alternative: event.alternative,
            label: event.label,
            link: Link::of(&event.operation.kind, event.outcome),
        }
    }

    pub(super) fn step(&self) -> Step {
        Step {
            thread: self.thread,
            alternative: self.alternative,
        }
    }

    /// Whether the two are one event of one trace.
    pub(super) fn is_same(&self, other: &PathEvent) -> bool {
        self.thread == other.thread && self.key() == other.key()
    }

    fn key(&self) -> impl Ord + use<> {
        let label = self.label.canonical();
        (
            (self.index, self.alternative),
            (label.object(), label.number(), label.room(), label.count()),
        )
    }

    /// A total order of events by thread, index, outcome and label. It is the same in each process,
    /// and so are the schedules that are found with it: of two labels for one event of a thread the
    /// objects are the same, so the numbers of objects do not count.
    pub(super) fn compare(&self, names: &Names, other: &PathEvent) -> Ordering {
        let threads = names.compare(self.thread, other.thread);
        threads.then_with(|| self.key().cmp(&other.key()))
    }

    /// Whether this event at `position` comes before `later` by program order, a spawn, a join, a
    /// release of waits, or accesses to objects, without an event between them.
    pub(super) fn is_directly_before(
        &self,
        sets: &ReadSets,
        position: u32,
        later: &PathEvent,
    ) -> bool {
        self.thread == later.thread
            || self.link == Link::Spawns(later.thread)
            || later.link == Link::Joins(self.thread)
            || matches!(later.link, Link::Released(after) if position < after)
            || ordered(sets, self.label, later.label)
    }
}

impl Link {
    pub(super) fn of(kind: &OpKind, outcome: Outcome) -> Link {
        match (kind, outcome) {
            (OpKind::Spawn { child }, _) => Link::Spawns(*child),
            (OpKind::Join { child }, _) => Link::Joins(*child),
            (_, Outcome::Released { quiescent_at }) => Link::Released(quiescent_at as u32),
            _ => Link::None,
        }
    }
}

/// For each of `events` whether it happens before one of the marked ones, or is marked, or happens
/// before `last`. The first of them is at `base` in the execution.
pub(super) fn mark_past(
    sets: &ReadSets,
    events: &[PathEvent],
    base: u32,
    marked: &mut [bool],
    last: Option<&PathEvent>,
) {
    for at in (0..events.len()).rev() {
        let (event, position) = (&events[at], base.saturating_add(at as u32));
        let comes_before = |later: &PathEvent| event.is_directly_before(sets, position, later);
        marked[at] = marked[at]
            || last.is_some_and(comes_before)
            || (at + 1..events.len()).any(|later| marked[later] && comes_before(&events[later]));
    }
}

/// The base of a list of events that are all behind every release of waits in their execution.
pub(super) const ANYWHERE: u32 = NOWHERE / 2;

/// A sequence of events against a default, the head last.
pub(super) type Schedule = Box<[PathEvent]>;

/// One item of a path.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Default(PathEvent),
    Schedule(Rc<Record>),
}

/// A schedule, and the place where it was found.
#[derive(Debug)]
pub(super) struct Record {
    /// The number of events before the schedule.
    pub(super) start: u32,
    /// The event that it replaces.
    pub(super) default: PathEvent,
    /// The items from behind the default to the node where the schedule was found.
    pub(super) way: Box<[Item]>,
    pub(super) schedule: Schedule,
}

impl Record {
    /// The number of events up to the end of the schedule.
    pub(super) fn end(&self) -> u32 {
        self.start + self.schedule.len() as u32
    }
}

/// A record on the path of the current execution.
#[derive(Clone, Debug)]
pub(super) struct OnPath {
    pub(super) record: Rc<Record>,
    /// The position of the first event behind which no further schedule against the same default
    /// can be completed, or [`NOWHERE`].
    pub(super) over_at: u32,
}

/// The events of the current execution, and the schedules among them.
#[derive(Default, Debug)]
pub(super) struct Path {
    pub(super) events: Vec<PathEvent>,
    /// In order.
    pub(super) records: Vec<OnPath>,
}

/// The end of a path, while the path of another execution is in its place.
#[derive(Default, Debug)]
pub(super) struct Cut {
    pub(super) events: Vec<PathEvent>,
    pub(super) records: Vec<OnPath>,
}

impl Cut {
    /// Makes this whole path that of the execution below, which shares `base` events with it and
    /// goes on with `end`.
    pub(super) fn lengthen(&mut self, base: u32, end: &Cut) {
        self.events.truncate(base as usize);
        let is_shared = |on: &OnPath| on.record.start < base;
        let shared = self.records.partition_point(is_shared);
        self.records.truncate(shared);
        self.events.extend(&end.events);
        self.records.extend(end.records.iter().cloned());
    }

    /// The number of bytes that hold the cut part.
    pub(super) fn bytes(&self) -> usize {
        self.events.capacity() * size_of::<PathEvent>() + bytes_of(&self.records)
    }
}

/// The number of bytes that hold these records.
fn bytes_of(records: &[OnPath]) -> usize {
    let sizes = records.iter().map(|OnPath { record, .. }| {
        size_of::<OnPath>()
            + size_of::<Record>()
            + record.way.len() * size_of::<Item>()
            + record.schedule.len() * size_of::<PathEvent>()
    });
    sizes.sum()
}

impl Path {
    /// The number of bytes that hold the path.
    pub(super) fn bytes(&self) -> usize {
        self.events.capacity() * size_of::<PathEvent>() + bytes_of(&self.records)
    }

    /// The number of records that begin before `length` events.
    fn records_before(&self, length: u32) -> usize {
        self.records.partition_point(|on| on.record.start < length)
    }

    /// Whether the event at `position` is inside a schedule.
    pub(super) fn is_planned(&self, position: u32) -> bool {
        let before = self.records_before(position + 1);
        before > 0 && position < self.records[before - 1].record.end()
    }

    /// The items from the event at `from` to the node behind the event at `node`.
    pub(super) fn items(&self, from: u32, node: u32) -> Box<[Item]> {
        let mut items = Vec::new();
        let mut at = from;
        let mut next = self.records_before(from);
        while at <= node {
            match self.records.get(next) {
                Some(on) if on.record.start == at => {
                    items.push(Item::Schedule(on.record.clone()));
                    (at, next) = (on.record.end(), next + 1);
                }
                _ => {
                    items.push(Item::Default(self.events[at as usize]));
                    at += 1;
                }
            }
        }
        items.into()
    }

    /// Cuts the path off behind `length` events.
    pub(super) fn cut(&mut self, length: u32) -> Cut {
        let mut records = self.records.split_off(self.records_before(length));
        // The end may become that of another path.
        records.iter_mut().for_each(|on| on.over_at = NOWHERE);
        self.reopen(length);
        Cut {
            records,
            events: self.events.split_off(length as usize),
        }
    }

    /// [`Path::cut`] where the end is not needed any more.
    pub(super) fn truncate(&mut self, length: u32) {
        self.records.truncate(self.records_before(length));
        self.events.truncate(length as usize);
        self.reopen(length);
    }

    /// Appends an end that was cut off here.
    pub(super) fn restore(&mut self, cut: Cut) {
        self.events.extend(cut.events);
        self.records.extend(cut.records);
        self.close(0);
    }

    /// The events behind `length` are gone, so they end no record.
    fn reopen(&mut self, length: u32) {
        for on in &mut self.records {
            if on.over_at >= length {
                on.over_at = NOWHERE;
            }
        }
    }

    /// Finds the records that the events from the position `from` on end.
    pub(super) fn close(&mut self, from: u32) {
        let events = &self.events;
        for on in &mut self.records {
            if on.over_at != NOWHERE {
                continue;
            }
            let first = from.max(on.record.start);
            let mut behind = first..events.len() as u32;
            let over = behind.find(|&at| ends(&on.record, &events[at as usize]));
            on.over_at = over.unwrap_or(NOWHERE);
        }
    }

    /// The records with schedules that are over after the first `length` events, as far as they may
    /// still put events to sleep there.
    pub(super) fn asleep_at(&self, length: u32) -> impl Iterator<Item = &Record> {
        let before = self.records[..self.records_before(length)].iter();
        before
            .filter(move |on| on.record.end() <= length && length <= on.over_at)
            .map(|on| &*on.record)
    }
}

/// Whether no schedule against the default of `record` can be completed behind this event: the
/// event is the default itself, or it is dependent with the default and with every event that is,
/// so that the past of every later head contains it.
pub(super) fn ends(record: &Record, event: &PathEvent) -> bool {
    let default = &record.default;
    if default.label.object() == ObjectId::NONE {
        // Only the other outcomes of a choice come in its place, and its thread makes one of them.
        return event.thread == default.thread;
    }
    event.is_same(default)
        || default.label.touches_one() && event.label.is_total_on(default.label.object())
}
