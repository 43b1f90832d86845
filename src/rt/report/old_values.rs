//! Which store does each event of a C11 execution read, and is it an old one?
//!
//! Under C11 the alternative of an event on an atomic is a place in the modification order, counted
//! from its end at that moment ([`Place`]). The replay of these places gives every event its store,
//! and every atomic its modification order. An event is *old* if its store was not the last one
//! then: a load has read an older value, or a store has gone in front of stores that were made
//! before it. An execution without old events is one of sequential consistency.
//!
//! A `try_lock` of a mutex that fails reads the word of the mutex: the events that lock and unlock
//! it are stores of that.
//!
//! The same stores can be read in another order of the events, often with fewer old ones:
//! [`OldValues::freshest`] looks for such an order.

use std::collections::BTreeMap;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{Event, Trace};
use crate::rt::object::orders::Place;

/// Of a longer execution no other order is sought: each try takes a time that grows with the square
/// of the number of events.
const EVENTS_MAX: usize = 500;

/// A store of an atomic: its initial value, or the event at this position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Store {
    Initial,
    Event(usize),
}

/// An event on an atomic, or a `try_lock` that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    /// The store that it reads; a store that does not read goes directly behind it.
    pub(crate) of: Store,
    /// The positions of the stores that were newer at that moment, in modification order.
    pub(crate) newer: Vec<usize>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    fails: bool,
}

/// The stores that the events of an execution read, and their modification orders.
#[derive(Default, Debug)]
pub(crate) struct OldValues {
    /// By position. Empty if memory is sequentially consistent.
    uses: Vec<Option<Use>>,
    /// The modification order of each atomic and of each mutex, the initial value first.
    orders: BTreeMap<ObjectId, Vec<Store>>,
}

impl OldValues {
    /// The stores of an execution; none if memory is not C11's. O(n) events, each with an insertion
    /// into the modification order of its atomic.
    pub(crate) fn of(trace: &Trace) -> OldValues {
        match trace.is_weak {
            true => OldValues::replayed(trace.events()),
            false => OldValues::default(),
        }
    }

    fn replayed(events: &[Event]) -> OldValues {
        let mut orders: BTreeMap<ObjectId, Vec<Store>> = BTreeMap::new();
        let uses = events.iter().enumerate().map(|(position, event)| {
            let is_on_lock = is_on_lock(event);
            if !event.operation.kind.is_atomic() && !is_on_lock {
                return None;
            }
            let Place { newer, fails } = Place::of(event.alternative);
            let stores = orders.entry(event.operation.object);
            let stores = stores.or_insert_with(|| vec![Store::Initial]);
            if is_on_lock && !fails_to_lock(event) {
                stores.push(Store::Event(position));
                return None;
            }
            let at = (stores.len() - 1).saturating_sub(newer as usize);
            let newer = stores[at + 1..].iter().filter_map(|store| match store {
                Store::Event(position) => Some(*position),
                Store::Initial => None,
            });
            let made = Use {
                of: stores[at],
                newer: newer.collect(),
                reads: !matches!(event.operation.kind, OpKind::Store { .. }),
                writes: writes(event),
                fails,
            };
            if made.writes {
                stores.insert(at + 1, Store::Event(position));
            }
            Some(made)
        });
        OldValues {
            uses: uses.collect(),
            orders,
        }
    }

    /// The use of an atomic, or the failed `try_lock`, that the event at `position` is, if memory
    /// is C11's.
    pub(crate) fn at(&self, position: usize) -> Option<&Use> {
        self.uses.get(position)?.as_ref()
    }

    /// The use that the event at `position` is, if that is old.
    pub(crate) fn old_at(&self, position: usize) -> Option<&Use> {
        self.at(position).filter(|made| !made.newer.is_empty())
    }

    /// The positions of the old events, in order.
    pub(crate) fn old(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.uses.len()).filter(|&position| self.old_at(position).is_some())
    }

    /// Whether no event is old.
    pub(crate) fn is_fresh(&self) -> bool {
        self.old().next().is_none()
    }

    /// The place in the modification order of its atomic of the store that the event at `position`
    /// is, or reads. The initial value has the place 0.
    pub(crate) fn place(&self, trace: &Trace, position: usize) -> Option<usize> {
        let made = self.at(position)?;
        let store = match made.writes {
            true => Store::Event(position),
            false => made.of,
        };
        let order = self
            .orders
            .get(&trace.events()[position].operation.object)?;
        order.iter().position(|&it| it == store)
    }

    /// The events in an order in which fewer of them are old, each with the alternative that it has
    /// there, and with the same stores; `None` if there is no such order. Every old event goes in
    /// front of the stores that are newer than its own, if nothing else keeps it behind them.
    pub(crate) fn freshest(&self, trace: &Trace) -> Option<Vec<(usize, u32)>> {
        if trace.len() > EVENTS_MAX {
            return None;
        }
        let old: Vec<usize> = self.old().collect();
        let mut before = past(trace, self)?;
        for &position in &old {
            for &newer in &self.at(position)?.newer {
                before[newer].push(position);
                if sorted(&before).is_none() {
                    before[newer].pop();
                }
            }
        }
        let order = sorted(&before)?;
        let order = self.alternatives(trace, &order);
        let is_old = |&&(position, alternative): &&(usize, u32)| {
            self.at(position).is_some() && Place::of(alternative).newer > 0
        };
        (order.iter().filter(is_old).count() < old.len()).then_some(order)
    }

    /// The alternatives that events of these positions, in this order, have with the same stores.
    fn alternatives(&self, trace: &Trace, order: &[usize]) -> Vec<(usize, u32)> {
        let mut made: BTreeMap<ObjectId, Vec<usize>> = BTreeMap::new();
        let alternatives = order.iter().map(|&position| {
            let event = &trace.events()[position];
            let object = event.operation.object;
            let Some(of) = self.at(position) else {
                if let Some(order) = self.orders.get(&object) {
                    // It locks or unlocks a mutex.
                    let place = order.iter().position(|&it| it == Store::Event(position));
                    made.entry(object).or_default().extend(place);
                }
                return (position, event.alternative);
            };
            let places = made.entry(object).or_default();
            let place = self.place(trace, position).unwrap_or_default();
            let newer = places.iter().filter(|&&other| other > place).count() as u32;
            if of.writes {
                places.push(place);
            }
            let fails = of.fails;
            (position, Place { newer, fails }.alternative())
        });
        alternatives.collect()
    }
}

/// The number of old events of an execution; 0 if memory is not C11's.
pub(crate) fn old_events(trace: &Trace) -> usize {
    OldValues::of(trace).old().count()
}

/// Whether the event reads or writes the word of a mutex.
fn is_on_lock(event: &Event) -> bool {
    matches!(
        event.operation.kind,
        OpKind::Lock | OpKind::TryLock | OpKind::Unlock { .. }
    )
}

/// Whether the event is a `try_lock` of a mutex that fails.
pub(super) fn fails_to_lock(event: &Event) -> bool {
    event.operation.kind == OpKind::TryLock && !event.outcome.succeeded()
}

fn writes(event: &Event) -> bool {
    match event.operation.kind {
        OpKind::Store { .. } | OpKind::Rmw { .. } => true,
        OpKind::CompareExchange { .. } => event.outcome.succeeded(),
        _ => false,
    }
}

/// For each event the positions of events that have to come before it: the previous event of its
/// thread, the store that it reads, the spawn of its thread, the last event of the thread that it
/// joins, and the previous event on its object, if that is no atomic. A `try_lock` that fails by
/// the past needs the event that it reads alone. `None` if the order cannot change: a loop that
/// waits looks at several objects.
fn past(trace: &Trace, uses: &OldValues) -> Option<Vec<Vec<usize>>> {
    let mut last_of: BTreeMap<ThreadId, usize> = BTreeMap::new();
    let mut last_on: BTreeMap<ObjectId, usize> = BTreeMap::new();
    let mut past = Vec::with_capacity(trace.len());
    for (position, event) in trace.events().iter().enumerate() {
        let mut before = Vec::new();
        match event.operation.kind {
            OpKind::Wait { .. } => return None,
            OpKind::Join { child } => before.extend(last_of.get(&child)),
            _ => {}
        }
        let spawn = trace.spawn_of(event.thread).map(|spawn| spawn as usize);
        before.extend(last_of.insert(event.thread, position).or(spawn));
        match uses.at(position) {
            Some(made) if fails_to_lock(event) && made.newer.is_empty() => {
                before.extend(last_on.insert(event.operation.object, position));
            }
            Some(&Use {
                of: Store::Event(store),
                reads: true,
                ..
            }) => before.push(store),
            Some(_) => {}
            None if event.operation.object == ObjectId::NONE => {}
            None => before.extend(last_on.insert(event.operation.object, position)),
        }
        past.push(before);
    }
    Some(past)
}

/// The positions in an order in which each comes behind those that are before it, the least one
/// first where that leaves a choice; `None` if there is a circle.
fn sorted(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut is_done = vec![false; before.len()];
    let mut order = Vec::with_capacity(before.len());
    while order.len() < before.len() {
        let ready = |&at: &usize| !is_done[at] && before[at].iter().all(|&first| is_done[first]);
        let next = (0..before.len()).find(ready)?;
        is_done[next] = true;
        order.push(next);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::atomic::Ordering::Relaxed;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::rt::event::operation::{Operation, Outcome};
    use crate::rt::relation::independence::{Label, Nature};

    const X: u32 = 0;
    const Y: u32 = 1;

    /// An event by its thread and object: a store, a load, or an addition; and the number of
    /// newer stores.
    type Told = (u32, u32, char, u32);

    fn trace(events: &[Told]) -> Trace {
        let mut trace = Trace::new();
        trace.is_weak = true;
        for &(thread, object, what, newer) in events {
            let order = Relaxed;
            let (kind, outcome) = match what {
                'w' => (OpKind::Store { order, value: 1 }, Outcome::Done),
                'r' => (OpKind::Load { order }, Outcome::Value(0)),
                'x' => {
                    let expected = 5;
                    let (new, spurious) = (6, true);
                    let kind = OpKind::CompareExchange {
                        success: order,
                        failure: order,
                        expected,
                        new,
                        spurious,
                    };
                    (kind, Outcome::Failure(expected))
                }
                _ => panic!("no event is called {what}"),
            };
            let fails = what == 'x';
            let object = ObjectId(object);
            trace.push(Event {
                thread: ThreadId(thread),
                index: 0,
                operation: Operation { object, kind },
                outcome,
                label: Label::new(object, &kind, outcome, Nature::Plain),
                alternative: Place { newer, fails }.alternative(),
                alternatives: 1,
                before: None,
                site: Location::caller(),
            });
        }
        trace
    }

    fn stores(events: &[Told]) -> (Trace, OldValues) {
        let trace = trace(events);
        let stores = OldValues::of(&trace);
        (trace, stores)
    }

    #[test]
    fn places_are_counted_from_the_store_that_is_the_last_one_then() {
        let (trace, stores) = stores(&[
            (1, X, 'w', 0),
            (2, X, 'w', 1),
            (1, Y, 'w', 0),
            (3, X, 'r', 0),
            (3, X, 'w', 0),
            (2, X, 'r', 1),
            (2, X, 'r', 3),
        ]);
        let of = |at: usize| stores.at(at).map(|made| (made.of, made.newer.clone()));
        assert_eq!(of(0), Some((Store::Initial, vec![])));
        assert_eq!(of(1), Some((Store::Initial, vec![0])));
        assert_eq!(of(3), Some((Store::Event(0), vec![])));
        assert_eq!(of(5), Some((Store::Event(0), vec![4])));
        assert_eq!(of(6), Some((Store::Initial, vec![1, 0, 4])));
        assert_eq!(stores.old().collect::<Vec<_>>(), [1, 5, 6]);
        let places: Vec<_> = (0..7).map(|at| stores.place(&trace, at).unwrap()).collect();
        assert_eq!(places, [2, 1, 1, 2, 3, 2, 0]);
    }

    #[test]
    fn nothing_is_old_under_sequential_consistency() {
        let mut trace = trace(&[(1, X, 'w', 0), (2, X, 'x', 0)]);
        assert!(OldValues::of(&trace).is_fresh(), "it fails for no reason");
        trace.is_weak = false;
        assert!(OldValues::of(&trace).at(0).is_none());
    }

    #[test]
    fn an_old_read_goes_before_the_newer_store_if_nothing_keeps_it_behind() {
        // Store buffering: two old loads, of which one can come before the other thread's store.
        let (trace, both) = stores(&[
            (1, X, 'w', 0),
            (2, Y, 'w', 0),
            (1, Y, 'r', 1),
            (2, X, 'r', 1),
        ]);
        let order = both.freshest(&trace).expect("a better order");
        let one_old = [(0, 0), (2, 0), (1, 0), (3, 2)];
        assert_eq!(order, one_old);
        // Message passing: the load has to come behind the store of the flag.
        let (trace, message) = stores(&[
            (1, X, 'w', 0),
            (1, Y, 'w', 0),
            (2, Y, 'r', 0),
            (2, X, 'r', 1),
        ]);
        assert_eq!(message.freshest(&trace), None);
        // A failure for no reason stays one.
        let (trace, failed) = stores(&[(1, X, 'w', 0), (2, X, 'x', 1)]);
        assert_eq!(failed.freshest(&trace), Some(vec![(1, 1), (0, 0)]));
    }
}
