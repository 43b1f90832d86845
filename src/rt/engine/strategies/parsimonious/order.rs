//! Which schedules against one default does a sequence of events contain, and which of them is the
//! smallest?
//!
//! \[POP\] sections 4.2 and 5. A trace may contain several schedules against one default, if their
//! heads commute; it belongs to the branch of the smallest. A schedule S.f is found at one node
//! below the default: the one that executes S with as few detours as possible. The order is that of
//! these nodes, each before the nodes below it and the branches of later schedules, and it can be
//! computed from the way on which a schedule was found. So no list of the schedules is needed, and
//! the order does not depend on when they are explored.

use std::cmp::Ordering;

use crate::rt::engine::strategies::parsimonious::path::{
    ANYWHERE, Item, PathEvent, Record, mark_past,
};
use crate::rt::event::id::Names;
use crate::rt::relation::independence::{Class, ReadSets, commutes};

/// The relations of events and of threads to each other.
pub(super) type Relation<'a> = (&'a ReadSets, &'a Names);

/// A schedule against a default: the events before the head, in order, and the head.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) before: Vec<PathEvent>,
    pub(super) head: PathEvent,
}

impl Found {
    /// Whether this is the schedule with these events.
    fn is(&self, names: &Names, schedule: &[PathEvent]) -> bool {
        self.compare(names, schedule) == Ordering::Equal
    }

    /// Compares the two as sets of events, in any fixed total order.
    fn compare(&self, names: &Names, schedule: &[PathEvent]) -> Ordering {
        let mut mine: Vec<&PathEvent> = self.before.iter().chain([&self.head]).collect();
        let mut other: Vec<&PathEvent> = schedule.iter().collect();
        mine.sort_by(|a, b| a.compare(names, b));
        other.sort_by(|a, b| a.compare(names, b));
        let pairs = mine.iter().zip(&other);
        let mut orders = pairs.map(|(a, b)| a.compare(names, b));
        let differs = orders.find(|it| it.is_ne());
        differs.unwrap_or(mine.len().cmp(&other.len()))
    }
}

/// Whether both are releases of one count, or arrivals at one barrier.
fn are_counted(a: &PathEvent, b: &PathEvent) -> bool {
    a.label.has_count() && b.label.has_count() && a.label.object() == b.label.object()
}

/// Whether the two events of different threads may not be swapped. Of two releases that commute one
/// by one, the count says nothing here ([`joint`]).
fn are_dependent(sets: &ReadSets, a: &PathEvent, b: &PathEvent) -> bool {
    if are_counted(a, b) {
        return is_last(a) || is_last(b);
    }
    !commutes(sets, a.label, b.label)
}

/// Whether this is the last release of a count, or the last arrival of a group.
fn is_last(event: &PathEvent) -> bool {
    event.label.count() == 1
}

/// Whether `event` is one of the releases that make `default` the last one together: one of the
/// same object, and not the last.
fn is_joint(default: &PathEvent, event: &PathEvent) -> bool {
    are_counted(default, event)
        && !is_last(default)
        && !is_last(event)
        && default.label.room() == event.label.room()
        && default.thread != event.thread
}

/// Whether `events` contain so many releases that `default`, which is not the last release where
/// they have not happened, would be the last one behind them; then marks these releases and their
/// pasts. \[POP\] has no counts.
fn joint(
    sets: &ReadSets,
    default: &PathEvent,
    events: &[PathEvent],
    marked: &mut Vec<bool>,
) -> bool {
    if !default.label.has_count() || is_last(default) {
        return false;
    }
    marked.clear();
    marked.extend(events.iter().map(|event| is_joint(default, event)));
    let releases = marked.iter().filter(|&&it| it).count();
    if releases == 0 {
        return false;
    }
    mark_past(sets, events, ANYWHERE, marked, None);
    let retains = events.iter().zip(&*marked).filter(|(event, marked)| {
        let is_retain = event.label.class() == Class::Retain;
        **marked && is_retain && event.label.object() == default.label.object()
    });
    default.label.count() as usize + retains.count() <= releases + 1
}

/// Whether the event in place of `default` can come first in a sequence with these events, which
/// does not contain it.
fn is_independent_of_all(sets: &ReadSets, default: &PathEvent, events: &[PathEvent]) -> bool {
    let is_apart =
        |event: &PathEvent| event.thread != default.thread && !are_dependent(sets, event, default);
    events.iter().all(is_apart) && !joint(sets, default, events, &mut Vec::new())
}

/// The schedule with the head `head` against `default`, if `events` are all events since the
/// default was possible.
pub(super) fn headed_by(
    sets: &ReadSets,
    default: &PathEvent,
    (events, base): (&[PathEvent], u32),
    head: &PathEvent,
) -> Option<Found> {
    if head.thread != default.thread && !are_dependent(sets, head, default) {
        return None;
    }
    let mut marked = vec![false; events.len()];
    mark_past(sets, events, base, &mut marked, Some(head));
    let before = chosen(events, &marked);
    is_head(sets, default, &before, head).then_some(Found {
        before,
        head: *head,
    })
}

/// Whether the event is the head of a schedule against `default`, if `before` are all events of its
/// past since the default was possible.
pub(super) fn is_head(
    sets: &ReadSets,
    default: &PathEvent,
    before: &[PathEvent],
    head: &PathEvent,
) -> bool {
    let is_against = if head.thread == default.thread {
        head.index == default.index && !head.is_same(default)
    } else {
        are_dependent(sets, head, default)
    };
    is_against && is_independent_of_all(sets, default, before)
}

/// The joint set against `default` in these events, as a schedule.
fn joint_schedule(
    (sets, names): Relation<'_>,
    default: &PathEvent,
    events: &[PathEvent],
) -> Option<Found> {
    let mut marked = Vec::new();
    if !joint(sets, default, events, &mut marked) {
        return None;
    }
    let mut before = chosen(events, &marked);
    let is_apart =
        |event: &PathEvent| event.thread != default.thread && !are_dependent(sets, event, default);
    if !before.iter().all(is_apart) {
        return None;
    }
    // The head is the release that is pending where the schedule is found: of those that nothing
    // follows, the one of the highest thread.
    let is_end = |&at: &usize| {
        let event = &before[at];
        let behind = &before[at + 1..];
        !(behind.iter()).any(|later| event.is_directly_before(sets, ANYWHERE, later))
    };
    let ends = (0..before.len()).filter(is_end);
    let head = ends.max_by(|&a, &b| names.compare(before[a].thread, before[b].thread))?;
    let head = before.remove(head);
    Some(Found { before, head })
}

/// The joint set against `default` that `last` completes behind these events.
pub(super) fn completed_jointly(
    relation: Relation<'_>,
    default: &PathEvent,
    events: &[PathEvent],
    last: &PathEvent,
) -> Option<Found> {
    if !is_joint(default, last) {
        return None;
    }
    let all: Vec<PathEvent> = events.iter().chain([last]).copied().collect();
    joint_schedule(relation, default, &all)
}

fn chosen(events: &[PathEvent], marked: &[bool]) -> Vec<PathEvent> {
    let pairs = events.iter().zip(marked);
    pairs
        .filter(|(_, marked)| **marked)
        .map(|(event, _)| *event)
        .collect()
}

/// Whether `event`, as the next one behind `events`, completes a schedule against the default of
/// the record that is smaller than the schedule of the record. `events` are those behind the start
/// of the record.
pub(super) fn is_asleep(
    relation: Relation<'_>,
    record: &Record,
    events: &[PathEvent],
    event: &PathEvent,
) -> bool {
    let default = &record.default;
    if let Some(found) = headed_by(relation.0, default, (events, record.start), event)
        && is_smaller(relation, record, &found)
    {
        return true;
    }
    completed_jointly(relation, default, events, event)
        .is_some_and(|found| is_smaller(relation, record, &found))
}

/// Whether the schedule comes before the one of `record` in the order of the schedules against its
/// default.
fn is_smaller(relation: Relation<'_>, record: &Record, found: &Found) -> bool {
    let (sets, names) = relation;
    // What is still to happen on the way to the node where the schedule is found.
    let mut rest = found.before.clone();
    for item in &record.way {
        if rest.is_empty() {
            // It is found earlier on the way of the record.
            return true;
        }
        match item {
            Item::Default(default) => {
                let own = rest.iter().position(|event| event.thread == default.thread);
                let comes_first = match own {
                    Some(at) => {
                        let own = &rest[at];
                        let is_before =
                            |event: &PathEvent| event.is_directly_before(sets, ANYWHERE, own);
                        own.is_same(default) && !rest[..at].iter().any(is_before)
                    }
                    None => is_independent_of_all(sets, default, &rest),
                };
                if !comes_first {
                    // It leaves the way of the record where that took the default.
                    return true;
                }
                if let Some(at) = own {
                    rest.remove(at);
                }
            }
            Item::Schedule(inner) => {
                let within = schedules_in(relation, &inner.default, &rest);
                let (same, others): (Vec<Found>, Vec<Found>) = within
                    .into_iter()
                    .partition(|found| found.is(names, &inner.schedule));
                if others
                    .iter()
                    .any(|other| is_smaller(relation, inner, other))
                {
                    return true;
                }
                if same.is_empty() {
                    return false;
                }
                let is_left =
                    |event: &PathEvent| !inner.schedule.iter().any(|done| done.is_same(event));
                rest.retain(is_left);
            }
        }
    }
    // Otherwise it is found further down than the record.
    rest.is_empty() && is_smaller_at_its_node(names, record, found)
}

/// [`is_smaller`] where both are found at one node. The other outcomes of the default itself come
/// first: behind such an outcome the default cannot happen any more and wake another head.
fn is_smaller_at_its_node(names: &Names, record: &Record, found: &Found) -> bool {
    let is_outcome = |head: &PathEvent| head.thread == record.default.thread;
    let mine = is_outcome(&found.head);
    let other = record.schedule.last().is_some_and(is_outcome);
    if mine != other {
        return mine;
    }
    found.compare(names, &record.schedule).is_lt()
}

/// The schedules against `default` that a sequence with these events contains.
fn schedules_in(relation: Relation<'_>, default: &PathEvent, events: &[PathEvent]) -> Vec<Found> {
    let heads = (0..events.len())
        .filter_map(|at| headed_by(relation.0, default, (&events[..at], ANYWHERE), &events[at]));
    heads
        .chain(joint_schedule(relation, default, events))
        .collect()
}

/// Whether these events are, or contain, a joint set against `default`.
pub(super) fn is_joint_already(sets: &ReadSets, default: &PathEvent, events: &[PathEvent]) -> bool {
    joint(sets, default, events, &mut Vec::new())
}
