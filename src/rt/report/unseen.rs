//! Why may an event read an old value?
//!
//! Its thread does not know of the newer store. Either the way from the store to the event has an
//! operation that is too weak to publish or to learn ([`too_weak_to_know`]), or no way leads there.
//! In the latter case there may be a circle: of two threads each does two operations, and sees, or
//! is, less in its second one than the other thread has done in its first one. Then a `SeqCst`
//! fence between the two operations of each thread would let one of them see the other.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::changes;
use super::old_values::{OldValues, Store, Use, fails_to_lock};
use super::words::Names;
use crate::rt::event::fence::Past;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{TooWeak, Weak};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;
use crate::rt::race::too_weak_to_know;

/// The most old events that are explained below a table.
const SHOWN_MAX: usize = 8;

/// The most pairs of operations that one sentence names.
const PAIRS_MAX: usize = 3;

/// An old event, and why it may be old.
pub(super) struct Unseen {
    pub(super) position: usize,
    /// The position of the newer store that its thread does not know of.
    pub(super) newer: usize,
    pub(super) sentence: String,
}

/// Writes the sentences below a table.
pub(super) fn write(out: &mut String, unseen: &[Unseen]) {
    for it in unseen.iter().take(SHOWN_MAX) {
        let _ = writeln!(out, "  {}", it.sentence);
    }
    let more = unseen.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        let _ = writeln!(out, "  and {more} more events with old values");
    }
    if !unseen.is_empty() {
        out.push('\n');
    }
}

/// The old events of an execution, in order. `place` gives the place of an event in the program.
pub(super) fn unseen(
    trace: &Trace,
    machine: &Machine,
    names: &Names<'_>,
    place: &dyn Fn(&Event) -> String,
) -> Vec<Unseen> {
    let stores = OldValues::of(trace);
    let telling = Telling {
        trace,
        machine,
        names,
        place,
        stores: &stores,
    };
    let old = stores.old().filter_map(|position| {
        let made = stores.old_at(position)?;
        let newer = *made.newer.first()?;
        Some(Unseen {
            position,
            newer,
            sentence: telling.sentence(position, made, newer),
        })
    });
    old.collect()
}

struct Telling<'a> {
    trace: &'a Trace,
    machine: &'a Machine,
    names: &'a Names<'a>,
    place: &'a dyn Fn(&Event) -> String,
    stores: &'a OldValues,
}

impl Telling<'_> {
    fn event(&self, at: usize) -> &Event {
        &self.trace.events()[at]
    }

    fn thread(&self, at: usize) -> String {
        self.names.thread(self.event(at).thread)
    }

    /// The value that the store at this position has left.
    fn value(&self, store: usize) -> String {
        let event = self.event(store);
        let left = changes::left(event, self.machine);
        left.map_or_else(
            || "a value".to_owned(),
            |bits| self.names.value(event.operation.object, bits),
        )
    }

    fn sentence(&self, at: usize, made: &Use, newer: usize) -> String {
        let (number, newer_number) = (at + 1, newer + 1);
        let name = self.names.object(self.event(at).operation.object);
        let (thread, other) = (self.thread(at), self.thread(newer));
        let why = self.why(at, newer);
        if made.writes && !made.reads {
            let done = self.names.happened(self.event(newer));
            return format!(
                "event {number} goes before {other}'s \"{done}\" (event {newer_number}) in the order of {name}: \
                 {thread} does not know of that{why}"
            );
        }
        if fails_to_lock(self.event(at)) {
            return format!(
                "event {number} fails by the past: {other} unlocked {name} before (event {newer_number}), and {thread} \
                 does not know of it{why}"
            );
        }
        let read = match made.of {
            Store::Initial => format!("the initial value of {name}"),
            Store::Event(store) => format!(
                "{}'s {} from {name} (event {})",
                self.thread(store),
                self.value(store),
                store + 1
            ),
        };
        format!(
            "event {number} reads {read}: {other} stored {} before (event {newer_number}), and {thread} does not know \
             of it{why}",
            self.value(newer)
        )
    }

    /// Why the thread of the event at this position does not know of the newer store.
    fn why(&self, at: usize, newer: usize) -> String {
        let past = Past {
            events: self.trace.events(),
            fences: self.trace.fences(),
            parts: self.trace.parts(),
        };
        let TooWeak { pairs, together } = too_weak_to_know(newer, at, past);
        let of = self.event(at).thread;
        if !pairs.is_empty() {
            let told = pairs.iter().take(if together { PAIRS_MAX } else { 1 });
            let told = told.flat_map(|pair| self.weak_sides(pair, of));
            let mut told: Vec<String> = told.collect();
            if together && pairs.len() > PAIRS_MAX {
                told.push(format!(
                    "{} more pairs are too weak",
                    pairs.len() - PAIRS_MAX
                ));
            }
            return format!(", because {}", told.join(", and "));
        }
        match self.circle(at, newer) {
            Some(circle) => format!(", because {circle}"),
            None => format!(
                ", because no synchronisation leads from event {} to event {}",
                newer + 1,
                at + 1
            ),
        }
    }

    /// The sides of a pair that are too weak.
    fn weak_sides(&self, pair: &Weak, of: ThreadId) -> Vec<String> {
        let Weak {
            writer,
            reader,
            released,
            acquired,
        } = pair;
        let side = |event: &Event, fence: &str| {
            let thread = match event.thread == of {
                true => "its".to_owned(),
                false => format!("{}'s", self.names.thread(event.thread)),
            };
            let number = self.trace.nth_of(event.thread, event.index);
            let number = number.map_or(0, |at| at + 1);
            format!(
                "{thread} {} at {} (event {number}) is {:?}{fence}",
                self.operation(event),
                (self.place)(event),
                order(event)
            )
        };
        // If one side relies on a fence, the program may mean the other to have one, too.
        let publishes_by_fence = *released && !releases(order(writer));
        let learns_by_fence = *acquired && !acquires(order(reader));
        let mut sides = Vec::new();
        if !released {
            let fence = match learns_by_fence {
                true => ", and no fence that releases stands before it",
                false => "",
            };
            sides.push(side(writer, fence));
        }
        if !acquired {
            let fence = match publishes_by_fence {
                true => ", and no fence that acquires stands behind it",
                false => "",
            };
            sides.push(side(reader, fence));
        }
        if sides.is_empty() {
            sides = vec![side(writer, ""), side(reader, "")];
        }
        sides
    }

    /// The operation of an event, as a noun.
    fn operation(&self, event: &Event) -> String {
        let object = self.names.object(event.operation.object);
        match event.operation.kind {
            OpKind::Load { .. } => format!("load of {object}"),
            _ => self.names.announced(&event.operation),
        }
    }

    /// Two operations of each of two threads of which each thread's second one comes, in the order
    /// of an atomic, before the other's first one: store buffering, and readers that disagree. The
    /// event at `at` is the second one of its thread.
    fn circle(&self, at: usize, newer: usize) -> Option<String> {
        let events = self.trace.events();
        let mine = self.event(at).thread;
        let place = |at: usize| self.stores.place(self.trace, at);
        // Whether the event comes before the other one in the order of their atomic.
        let precedes = |one: usize, other: usize| {
            events[one].operation.object == events[other].operation.object
                && place(one)
                    .zip(place(other))
                    .is_some_and(|(one, other)| one < other)
        };
        let is_use = |&at: &usize| at == newer || self.stores.at(at).is_some();
        let uses: Vec<usize> = (0..events.len()).filter(is_use).collect();
        let firsts = uses.iter().filter(|&&first| {
            events[first].thread != mine && (first == newer || precedes(at, first))
        });
        for &theirs in firsts {
            let later = uses
                .iter()
                .filter(|&&later| later > theirs && events[later].thread == events[theirs].thread);
            for &last in later {
                let own = uses
                    .iter()
                    .rev()
                    .find(|&&own| own < at && events[own].thread == mine && precedes(last, own));
                if let Some(&own) = own {
                    return self.missing([own, at], [theirs, last]);
                }
            }
        }
        None
    }

    /// Which `SeqCst` fences are missing between two operations of each of two threads.
    fn missing(&self, mine: [usize; 2], theirs: [usize; 2]) -> Option<String> {
        let has_fence = |[first, last]: [usize; 2]| {
            let thread = self.event(first).thread;
            let (first, last) = (self.event(first).index, self.event(last).index);
            self.trace.fences().iter().any(|fence| {
                fence.thread == thread
                    && fence.order == Ordering::SeqCst
                    && (first + 1..=last).contains(&fence.after)
            })
        };
        let between = |[first, last]: [usize; 2]| {
            format!(
                "between {}'s events {} and {}",
                self.thread(first),
                first + 1,
                last + 1
            )
        };
        let missing = [mine, theirs].into_iter().filter(|&it| !has_fence(it));
        let missing: Vec<String> = missing.map(between).collect();
        match &missing[..] {
            [] => None,
            [one] => Some(format!("no SeqCst fence stands {one}")),
            [one, other, ..] => Some(format!("no SeqCst fence stands {one}, and none {other}")),
        }
    }
}

/// The ordering that an event on an atomic has.
fn order(event: &Event) -> Ordering {
    let order = event.operation.kind.ordering(event.outcome.succeeded());
    order.unwrap_or(Ordering::SeqCst)
}
