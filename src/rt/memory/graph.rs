//! What has happened so far, and what does each thread know of it?
//!
//! An execution graph: program order (po), which store each load reads (rf), the modification order
//! of each location (mo), the order of dependent operations on other objects, and the clocks that
//! follow. Events are taken in any order that respects all of these but mo, and taken back in the
//! opposite one. Each event has two clocks: what the language grants it to know (`known`,
//! happens-before), and what it cannot be without (`past`). A *place* in a modification order is a
//! number: 0 is the initial value.
//!
//! A *step* is an event with the fences of its thread directly before it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::clocks::{NOTHING, Row, Rows};
use super::operation::{Fences, OpKind, Operation};
use super::{Access, Decision, Interval, Outcome, StoreRef, Until};
use crate::rt::event::grant::Grant;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::mix::{STEP, mix};
use crate::rt::event::operation::{self, AtomicType, Touch};
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::object::State;
use crate::rt::relation::independence::{Class, Label, ReadSets, clash, ordered};

/// Stands where a position is absent.
const NOWHERE: u32 = u32::MAX;

/// An operation that has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    /// The number of the event in its thread, from 0, fences among them.
    pub(crate) index: u32,
    /// The number of its step in its thread, from 0.
    pub(crate) step: u32,
    pub(crate) access: Access,
    pub(crate) outcome: Outcome,
    /// The object that was accessed. A wait has accessed the location that has changed.
    object: ObjectId,
    /// The value that was read; 0 if the event reads none.
    #[cfg(test)]
    pub(crate) read: u64,
    /// The value that was written, if one was.
    pub(crate) written: Option<u64>,
    /// The ordering that holds for this outcome. A failed compare-exchange has the one for
    /// failures.
    pub(crate) order: Ordering,
    clocks: Clocks,
    /// What the reader of this store learns.
    message: Row,
    /// The last event that reads this store, and before that one,
    readers: u32,
    /// the reader of the same store that this event comes behind.
    next_reader: u32,
    /// Whether this is a fence that is a part of the step behind it.
    is_lead: bool,
    /// What there was of the rows before.
    mark: usize,
}

/// What a thread knows behind an event.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    /// Happens-before, this event included.
    known: Row,
    /// What the event cannot be without, this event included.
    past: Row,
    /// What relaxed loads have seen, to be known from an acquire fence on.
    seen: Row,
    /// What was known at the last release fence, which relaxed stores tell.
    released: Row,
    /// The events before the thread's last wait that ended because no thread could go on. Stores
    /// become visible in a finite time, so the thread reads nothing older from then on.
    aware: Row,
}

#[derive(Clone, Debug)]
struct Location {
    ty: AtomicType,
    initial: u64,
    /// The stores in modification order, by their positions.
    stores: Vec<u32>,
    /// The last event that reads the initial value.
    readers: u32,
}

/// An object that is no atomic.
#[derive(Clone, Debug)]
struct Other {
    /// The events on it, by their positions. A failed `try_lock` that reads the word of its mutex
    /// is none of them.
    events: Vec<u32>,
    told: Told,
    /// Of a mutex, the events that lock and unlock it, by their positions. They are the stores of
    /// its word.
    stores: Vec<u32>,
    /// The last event that reads the word as it was before the first of these.
    readers: u32,
}

impl Default for Other {
    fn default() -> Other {
        Other {
            events: Vec::new(),
            told: Told::default(),
            stores: Vec::new(),
            readers: NOWHERE,
        }
    }
}

/// The word of a mutex that a thread holds.
pub(super) const LOCKED: u64 = 1;

/// The word of a mutex that no thread holds.
const UNLOCKED: u64 = 0;

/// What threads may learn from an object ([`Grant`]).
#[derive(Clone, Default, PartialEq, Debug)]
struct Told {
    all: Row,
    some: Row,
    messages: VecDeque<(u64, Row)>,
    taken: VecDeque<(u64, Row)>,
    /// By the way of touching an object with unknown contents.
    touched: Vec<(Touch, Row)>,
}

/// An execution.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    events: Vec<Event>,
    threads: Vec<Thread>,
    locations: Vec<Option<Location>>,
    others: Vec<Other>,
    /// What an object was told before an event, by the event's position.
    told_before: Vec<(u32, ObjectId, Told)>,
    rows: Rows,
    /// The positions of the events that are `SeqCst`.
    sequential: Vec<u32>,
    /// The sets of objects that waits look at.
    pub(crate) sets: ReadSets,
    /// Whether an operation on another object than an atomic knows of all operations that it
    /// depends on. Then a program in which all orderings are `SeqCst` is sequentially consistent.
    #[cfg(test)]
    pub(crate) is_strong: bool,
}

#[derive(Clone, Debug)]
struct Thread {
    /// The positions of its events.
    events: Vec<u32>,
    /// The positions of its steps.
    steps: Vec<u32>,
    /// The position of the event that spawned it, or [`NOWHERE`].
    spawned: u32,
}

impl Thread {
    fn new() -> Thread {
        Thread {
            events: Vec::new(),
            steps: Vec::new(),
            spawned: NOWHERE,
        }
    }
}

impl Event {
    /// The object that was accessed.
    pub(crate) fn object(&self) -> ObjectId {
        self.object
    }

    /// Whether it reads or writes an atomic, or the word of a mutex.
    pub(crate) fn is_access(&self) -> bool {
        self.written.is_some() || self.reads().is_some()
    }

    pub(crate) fn is_fence(&self) -> bool {
        matches!(self.access.operation.kind, OpKind::Fence { .. })
    }

    /// The store that was read.
    pub(crate) fn reads(&self) -> Option<StoreRef> {
        match self.outcome {
            Outcome::Reads(store) | Outcome::Modifies(store) => Some(store),
            Outcome::Done | Outcome::Behind(_) | Outcome::Other { .. } => None,
        }
    }

    /// Whether it reads one store and is the next one.
    pub(crate) fn modifies(&self) -> bool {
        matches!(self.outcome, Outcome::Modifies(_))
    }

    /// The label of an event on another object than an atomic.
    pub(crate) fn label(&self) -> Option<Label> {
        match self.outcome {
            Outcome::Other { label, .. } => Some(label),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> StoreRef {
        StoreRef::of(self.thread, self.step)
    }

    /// Whether it comes directly before the other one or earlier in the same thread.
    pub(super) fn is_po_before(&self, other: &Event) -> bool {
        self.thread == other.thread && self.index < other.index
    }
}

impl Graph {
    /// The empty execution of so many threads.
    pub(crate) fn new(threads: usize) -> Graph {
        Graph {
            events: Vec::new(),
            threads: vec![Thread::new(); threads],
            locations: Vec::new(),
            others: Vec::new(),
            told_before: Vec::new(),
            rows: Rows::new(threads),
            sequential: Vec::new(),
            sets: ReadSets::default(),
            #[cfg(test)]
            is_strong: false,
        }
    }

    /// Adds an atomic, which gets the next number as its name.
    #[cfg(test)]
    pub(crate) fn declare(&mut self, ty: AtomicType, initial: u64) -> ObjectId {
        let object = ObjectId(self.locations.len() as u32);
        self.meet_atomic(object, ty, initial);
        object
    }

    /// Adds an object that is no atomic, which gets the next number as its name.
    #[cfg(test)]
    pub(crate) fn declare_other(&mut self) -> ObjectId {
        self.locations.push(None);
        ObjectId(self.locations.len() as u32 - 1)
    }

    /// The atomic has this type, and this value before the first store.
    pub(crate) fn meet_atomic(&mut self, object: ObjectId, ty: AtomicType, initial: u64) {
        if self.locations.len() <= object.index() {
            self.locations.resize_with(object.index() + 1, || None);
        }
        let location = self.locations[object.index()].get_or_insert_with(|| Location {
            ty,
            initial,
            stores: Vec::new(),
            readers: NOWHERE,
        });
        (location.ty, location.initial) = (ty, initial);
    }

    /// The object is no atomic. It must have no event yet.
    pub(super) fn meet_other(&mut self, object: ObjectId) {
        if let Some(location) = self.locations.get_mut(object.index()) {
            *location = None;
        }
    }

    /// The largest number of atomics that there may be.
    pub(super) fn locations(&self) -> usize {
        self.locations.len()
    }

    /// The state of an atomic before the first store; `None` if the object is no atomic that was
    /// met.
    pub(super) fn initial(&self, object: ObjectId) -> Option<State> {
        let location = self.locations.get(object.index())?.as_ref()?;
        Some(State::Atomic {
            ty: location.ty,
            value: location.initial,
        })
    }

    /// Whether there is an event on the object, which is no atomic.
    pub(super) fn has_event_on(&self, object: ObjectId) -> bool {
        let other = self.others.get(object.index());
        other.is_some_and(|other| !other.events.is_empty())
    }

    /// Makes room for the thread.
    pub(crate) fn admit(&mut self, thread: ThreadId) {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Thread::new);
            self.rows.widen(thread.index() + 1);
        }
    }

    fn other(&mut self, object: ObjectId) -> &mut Other {
        if self.others.len() <= object.index() {
            self.others.resize_with(object.index() + 1, Other::default);
        }
        &mut self.others[object.index()]
    }

    fn location(&self, object: ObjectId) -> &Location {
        let location = self.locations.get(object.index()).and_then(Option::as_ref);
        location.expect("dpor bug: an atomic is unknown to the graph")
    }

    fn location_mut(&mut self, object: ObjectId) -> &mut Location {
        let location = self.locations[object.index()].as_mut();
        location.expect("dpor bug: an atomic is unknown to the graph")
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn at(&self, position: u32) -> &Event {
        &self.events[position as usize]
    }

    /// Whether the event is a step, and no fence that is a part of one.
    pub(crate) fn is_step(&self, position: u32) -> bool {
        !self.at(position).is_lead
    }

    /// The positions of the events of `thread`.
    pub(crate) fn positions_of(&self, thread: ThreadId) -> &[u32] {
        &self.threads[thread.index()].events
    }

    /// The store of this atomic that the thread has read or written last.
    pub(crate) fn met_last(&self, thread: ThreadId, object: ObjectId) -> StoreRef {
        let mut events = self.positions_of(thread).iter().rev();
        let met = events.find_map(|&position| {
            let event = self.at(position);
            let is_on_it = event.is_access() && event.object() == object;
            is_on_it.then(|| match event.outcome {
                Outcome::Reads(store) => store,
                _ => event.name(),
            })
        });
        met.unwrap_or(StoreRef::initial(object))
    }

    /// The positions of the steps of `thread`.
    pub(crate) fn steps_of(&self, thread: ThreadId) -> &[u32] {
        &self.threads[thread.index()].steps
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadId> + Clone + use<> {
        (0..self.threads.len() as u32).map(ThreadId)
    }

    /// The objects that were declared.
    #[cfg(test)]
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.locations.len() as u32).map(ObjectId)
    }

    /// The positions of the events that are `SeqCst`.
    pub(super) fn sequential(&self) -> &[u32] {
        &self.sequential
    }

    /// The stores of `object` in modification order, by their positions; without the initial value.
    /// Of a mutex, the events that lock and unlock it.
    pub(crate) fn stores(&self, object: ObjectId) -> &[u32] {
        match self.locations.get(object.index()) {
            Some(Some(location)) => &location.stores,
            _ => {
                let other = self.others.get(object.index());
                other.map_or(&[], |other| &other.stores)
            }
        }
    }

    /// The modification order of `object`, and the last event that reads the initial value.
    fn word_mut(&mut self, object: ObjectId) -> (&mut Vec<u32>, &mut u32) {
        if self.is_other(object) {
            let other = self.other(object);
            return (&mut other.stores, &mut other.readers);
        }
        let location = self.location_mut(object);
        (&mut location.stores, &mut location.readers)
    }

    /// The value of `object` before the first store. Only the word of a mutex that was met locked
    /// is read before.
    fn initial_value(&self, object: ObjectId) -> u64 {
        match self.is_other(object) {
            true => LOCKED,
            false => self.location(object).initial,
        }
    }

    /// The position of this store's event; `None` for an initial value.
    pub(crate) fn position(&self, store: StoreRef) -> Option<u32> {
        let (thread, step) = store.event()?;
        Some(self.threads[thread.index()].steps[step as usize])
    }

    /// Whether the store is in this execution.
    pub(crate) fn has(&self, store: StoreRef) -> bool {
        (store.event()).is_none_or(|(thread, step)| {
            let thread = self.threads.get(thread.index());
            thread.is_some_and(|thread| thread.steps.len() > step as usize)
        })
    }

    /// The number of steps that the thread has made.
    pub(crate) fn made(&self, thread: ThreadId) -> u32 {
        let thread = self.threads.get(thread.index());
        thread.map_or(0, |thread| thread.steps.len() as u32)
    }

    /// The location of a store.
    pub(crate) fn object_of(&self, store: StoreRef) -> ObjectId {
        match self.position(store) {
            Some(position) => self.at(position).object(),
            None => store.initial_of(),
        }
    }

    /// The place of a store in the modification order of `object`.
    pub(crate) fn place(&self, object: ObjectId, store: StoreRef) -> usize {
        let Some(position) = self.position(store) else {
            return 0;
        };
        let behind = self.stores(object).iter().rposition(|&p| p == position);
        1 + behind.expect("dpor bug: a store is not one of its object")
    }

    /// The place of the last store.
    pub(crate) fn last_place(&self, object: ObjectId) -> usize {
        self.stores(object).len()
    }

    /// The store at a place.
    pub(crate) fn store_at(&self, object: ObjectId, place: usize) -> StoreRef {
        match place.checked_sub(1) {
            None => StoreRef::initial(object),
            Some(behind) => self.at(self.stores(object)[behind]).name(),
        }
    }

    pub(crate) fn value_at(&self, object: ObjectId, place: usize) -> u64 {
        match place.checked_sub(1) {
            None => self.initial_value(object),
            Some(behind) => {
                let written = self.at(self.stores(object)[behind]).written;
                written.expect("a store has written a value")
            }
        }
    }

    /// The value of a store.
    pub(super) fn value_of(&self, store: StoreRef) -> u64 {
        match self.position(store) {
            None => self.initial_value(store.initial_of()),
            Some(source) => self
                .at(source)
                .written
                .expect("a store has written a value"),
        }
    }

    /// Whether a read-modify-write reads the store at this place, so that it is the next one.
    pub(crate) fn is_modified(&self, object: ObjectId, place: usize) -> bool {
        let next = self.stores(object).get(place);
        next.is_some_and(|&next| self.at(next).modifies())
    }

    /// The events that read the store at this place, the last one first.
    pub(crate) fn readers(&self, object: ObjectId, place: usize) -> impl Iterator<Item = u32> {
        let mut next = match place.checked_sub(1) {
            None => match self.locations.get(object.index()) {
                Some(Some(location)) => location.readers,
                _ => (self.others.get(object.index())).map_or(NOWHERE, |other| other.readers),
            },
            Some(behind) => self.at(self.stores(object)[behind]).readers,
        };
        std::iter::from_fn(move || {
            let reader = (next != NOWHERE).then_some(next)?;
            next = self.at(reader).next_reader;
            Some(reader)
        })
    }

    /// Whether the event at `a` happens before the one at `b`.
    pub(crate) fn happens_before(&self, a: u32, b: u32) -> bool {
        a != b && self.knows(self.at(b).clocks.known, a)
    }

    /// Whether the event at `b` cannot be without the one at `a`, which is another one.
    pub(crate) fn is_past(&self, a: u32, b: u32) -> bool {
        a != b && self.knows(self.at(b).clocks.past, a)
    }

    /// Of each thread, how many events the one at `position` cannot be without, itself included.
    pub(crate) fn past(&self, position: u32) -> &[u32] {
        self.rows.words(self.at(position).clocks.past)
    }

    /// Of each thread, how many events happen before the one at `position`, itself included.
    #[cfg(test)]
    pub(crate) fn known(&self, position: u32) -> &[u32] {
        self.rows.words(self.at(position).clocks.known)
    }

    fn knows(&self, row: Row, position: u32) -> bool {
        let event = self.at(position);
        self.rows.get(row, event.thread) > event.index
    }

    /// The position of the event that comes directly before the thread's next one: its own last
    /// one, or the spawn.
    pub(crate) fn last_of(&self, thread: ThreadId) -> Option<u32> {
        let last = self.threads.get(thread.index())?.events.last().copied();
        last.or_else(|| self.spawn_of(thread))
    }

    /// The position of the event that spawned the thread; `None` if the thread was there before.
    pub(crate) fn spawn_of(&self, thread: ThreadId) -> Option<u32> {
        let spawn = self.threads.get(thread.index())?.spawned;
        (spawn != NOWHERE).then_some(spawn)
    }

    /// A hash of the graph. Without the `whole`, spawns and joins that are the last steps of their
    /// threads do not count.
    pub(crate) fn key(&self, whole: bool) -> u128 {
        let mut halves = [0, STEP];
        let mut add = |word: u64| {
            for half in &mut halves {
                *half = mix(half.wrapping_add(STEP) ^ word).wrapping_mul(STEP | 1);
            }
        };
        for thread in self.threads() {
            let steps = self.steps_of(thread);
            let is_done = |position: u32| self.at(position).outcome == Outcome::Done;
            let counts = |&position: &u32| whole || !is_done(position);
            let count = steps.iter().rposition(counts).map_or(0, |last| last + 1);
            if count == 0 {
                continue;
            }
            add(1 << 63 | u64::from(thread.0) << 32 | count as u64);
            for &position in &steps[..count] {
                let event = self.at(position);
                let (kind, store) = match event.outcome {
                    Outcome::Done => (1, None),
                    Outcome::Reads(store) => (2, Some(store)),
                    Outcome::Modifies(store) => (3, Some(store)),
                    Outcome::Behind(_) => {
                        let object = event.object();
                        let place = self.place(object, event.name());
                        (4, Some(self.store_at(object, place - 1)))
                    }
                    Outcome::Other { alternative, label } => {
                        add(u64::from(alternative) << 8 | label.class() as u64);
                        // Its order with the other operations on its objects.
                        for (&of, thread) in self.past(position).iter().zip(0u64..) {
                            if of > 0 {
                                add(thread << 32 | u64::from(of));
                            }
                        }
                        (5, None)
                    }
                };
                add(kind);
                if let Some(store) = store {
                    add(u64::from(store.thread) << 32 | u64::from(store.index));
                }
            }
        }
        u128::from(halves[0]) << 64 | u128::from(halves[1])
    }

    /// The positions of the joins of the thread.
    pub(super) fn joins_of(&self, thread: ThreadId) -> impl Iterator<Item = u32> {
        let events = self.events.iter().zip(0..);
        events.filter_map(move |(event, position)| match event.access.operation.kind {
            OpKind::Join { child } if child == thread => Some(position),
            _ => None,
        })
    }

    /// What the thread knows before its next event.
    fn clocks(&self, thread: ThreadId) -> Clocks {
        self.clocks_behind(thread, self.last_of(thread))
    }

    /// What the thread knows behind this event, which is its own or the spawn.
    fn clocks_behind(&self, thread: ThreadId, last: Option<u32>) -> Clocks {
        let Some(last) = last else {
            return Clocks::default();
        };
        let Event {
            thread: of, clocks, ..
        } = *self.at(last);
        match of == thread {
            true => clocks,
            // A fence of the thread that spawned this one is none of its own.
            false => Clocks {
                seen: NOTHING,
                released: NOTHING,
                ..clocks
            },
        }
    }

    /// Whether the thread knows that the event at `position` has happened.
    pub(crate) fn has_learnt(&self, thread: ThreadId, position: u32) -> bool {
        self.knows(self.clocks(thread).known, position)
    }

    /// Whether the thread knows of a fence that is `SeqCst`.
    pub(super) fn knows_fence(&self, thread: ThreadId) -> bool {
        let mut sequential = self.sequential.iter();
        sequential.any(|&p| self.at(p).is_fence() && self.has_learnt(thread, p))
    }

    /// The place of the newest store of `object` that the thread knows, itself or through an event
    /// that reads it. The thread reads nothing older, and stores nowhere before.
    pub(crate) fn floor(&self, thread: ThreadId, object: ObjectId) -> usize {
        self.floor_with(object, self.clocks(thread))
    }

    /// [`Graph::floor`] of the thread of an event directly before it, for the object of the event.
    /// The graph may have later events.
    pub(super) fn floor_before(&self, position: u32) -> usize {
        let event = self.at(position);
        let mine = self.positions_of(event.thread);
        let last = match event.index.checked_sub(1) {
            Some(before) => Some(mine[before as usize]),
            None => self.spawn_of(event.thread),
        };
        self.floor_with(event.object(), self.clocks_behind(event.thread, last))
    }

    fn floor_with(&self, object: ObjectId, clocks: Clocks) -> usize {
        let Clocks { known, aware, .. } = clocks;
        self.floor_of(object, |position| {
            self.knows(known, position) || aware != NOTHING && self.knows(aware, position)
        })
    }

    /// [`Graph::floor`] for a thread that knows what `knows` says.
    pub(crate) fn floor_of(&self, object: ObjectId, knows: impl Fn(u32) -> bool) -> usize {
        if self.is_other(object) {
            return self.floor_of_lock(object, knows);
        }
        let stores = self.stores(object).iter().enumerate().rev();
        for (behind, &store) in stores {
            if knows(store) || self.readers(object, behind + 1).any(&knows) {
                return behind + 1;
            }
        }
        0
    }

    /// [`Graph::floor_of`] of a mutex. A wait that has ended because the mutex has changed is a
    /// reader of the word, too.
    fn floor_of_lock(&self, object: ObjectId, knows: impl Fn(u32) -> bool) -> usize {
        let Some(other) = self.others.get(object.index()) else {
            return 0;
        };
        let mut place = other.stores.len();
        for &event in other.events.iter().rev() {
            let is_store = place > 0 && other.stores[place - 1] == event;
            if knows(event) || is_store && self.readers(object, place).any(&knows) {
                return place;
            }
            place -= usize::from(is_store);
        }
        0
    }

    /// What `access` to an atomic comes out as where it reads the store at this place, or goes
    /// behind it, and does not fail spuriously; `None` if it waits for another value.
    pub(crate) fn outcome_at(&self, access: &Access, place: usize) -> Option<Outcome> {
        let Operation { object, kind } = access.operation;
        let store = self.store_at(object, place);
        if let OpKind::Store { .. } = kind {
            return Some(Outcome::Behind(store));
        }
        let value = self.value_at(object, place);
        let goes_round = match access.until {
            None => false,
            #[cfg(test)]
            Some(Until::Is(wanted)) => value != wanted,
            Some(Until::Newer(than)) => place <= self.place(object, than),
        };
        if goes_round {
            return None;
        }
        Some(match kind {
            OpKind::Rmw { .. } => Outcome::Modifies(store),
            OpKind::CompareExchange { expected, .. } if expected == value => {
                Outcome::Modifies(store)
            }
            _ => Outcome::Reads(store),
        })
    }

    /// How this outcome of `access` is kept while other threads go on.
    pub(crate) fn decision(&self, access: &Access, outcome: Outcome) -> Decision {
        match outcome {
            Outcome::Done => Decision::Done,
            Outcome::Reads(store) => Decision::Reads(store),
            Outcome::Modifies(store) => Decision::Modifies(store),
            Outcome::Other { alternative, label } => Decision::Other { alternative, label },
            Outcome::Behind(after) => {
                let object = access.operation.object;
                let place = self.place(object, after) + 1;
                let before =
                    (place <= self.last_place(object)).then(|| self.store_at(object, place));
                Decision::Within(Interval { after, before })
            }
        }
    }

    /// The value that `access` writes over `read` if it comes out so, and the ordering that then
    /// holds.
    fn effect(&self, access: &Access, read: u64, outcome: Outcome) -> (Option<u64>, Ordering) {
        let modifies = matches!(outcome, Outcome::Modifies(_));
        match access.operation.kind {
            OpKind::Load { order } | OpKind::Fence { order } => (None, order),
            OpKind::Other(operation::OpKind::Lock) => (Some(LOCKED), Ordering::Relaxed),
            OpKind::Other(operation::OpKind::Unlock { .. }) => (Some(UNLOCKED), Ordering::Relaxed),
            OpKind::TryLock => {
                let locks = matches!(outcome, Outcome::Other { .. });
                (locks.then_some(LOCKED), Ordering::Relaxed)
            }
            OpKind::Spawn { .. } | OpKind::Join { .. } | OpKind::Wait { .. } | OpKind::Other(_) => {
                (None, Ordering::Relaxed)
            }
            OpKind::Store { order, value } => (Some(value), order),
            OpKind::Rmw {
                order,
                rmw,
                operand,
            } => {
                let ty = self.location(access.operation.object).ty;
                (Some(rmw.apply(ty, read, operand)), order)
            }
            OpKind::CompareExchange { success, new, .. } if modifies => (Some(new), success),
            OpKind::CompareExchange { failure, .. } => (None, failure),
        }
    }

    /// The ordering that holds for this outcome of `access`.
    pub(super) fn order(&self, access: &Access, outcome: Outcome) -> Ordering {
        self.effect(access, 0, outcome).1
    }

    /// Takes the fences as parts of the next step of `thread`.
    pub(super) fn lead(&mut self, thread: ThreadId, fences: Fences) {
        for &order in fences.orders() {
            let access = Access::fence(order);
            self.add(thread, &access, Outcome::Done, Grant::Nothing);
            let last = self.events.last_mut().expect("the fence was added");
            last.is_lead = true;
            self.threads[thread.index()].steps.pop();
        }
    }

    /// Takes the fences of the next step back.
    pub(super) fn unlead(&mut self) {
        while self.events.last().is_some_and(|event| event.is_lead) {
            self.remove();
        }
    }

    /// Makes `access` the next step of `thread`. `grant` is the synchronisation of an operation
    /// that is not on an atomic.
    pub(super) fn take(
        &mut self,
        thread: ThreadId,
        access: &Access,
        outcome: Outcome,
        grant: Grant,
    ) {
        self.admit(thread);
        if let OpKind::Join { child } = access.operation.kind {
            self.admit(child);
            if access.ended != Fences::Nothing {
                self.lead(child, access.ended);
            }
        }
        if access.fences != Fences::Nothing {
            self.lead(thread, access.fences);
        }
        self.add(thread, access, outcome, grant);
    }

    /// The event at this position has these operands now. Events that it needs have theirs.
    pub(super) fn again(&mut self, position: u32, access: &Access) {
        let Event { outcome, .. } = *self.at(position);
        let read = self
            .at(position)
            .reads()
            .map_or(0, |store| self.value_of(store));
        let (written, _) = self.effect(access, read, outcome);
        let event = &mut self.events[position as usize];
        (event.access, event.written) = (*access, written);
        #[cfg(test)]
        {
            event.read = read;
        }
    }

    /// Takes the last step back.
    pub(super) fn undo(&mut self) {
        self.remove();
        self.unlead();
    }

    /// The object that `access` has accessed with this outcome.
    fn accessed(&self, access: &Access, outcome: Outcome) -> ObjectId {
        match (access.operation.kind, outcome) {
            (OpKind::Wait { .. }, Outcome::Reads(store)) => self.object_of(store),
            _ => access.operation.object,
        }
    }

    fn add(&mut self, thread: ThreadId, access: &Access, outcome: Outcome, grant: Grant) {
        let position = self.events.len() as u32;
        let kind = access.operation.kind;
        let object = self.accessed(access, outcome);
        let mark = self.rows.mark();
        let index = self.positions_of(thread).len() as u32;
        let before = self.clocks(thread);
        let store = match outcome {
            Outcome::Reads(store) | Outcome::Modifies(store) => Some(store),
            Outcome::Done | Outcome::Behind(_) | Outcome::Other { .. } => None,
        };
        let source = store.and_then(|store| self.position(store));
        let (mut read, mut told, mut source_past) = (0, NOTHING, NOTHING);
        if let Some(source) = source {
            let Event {
                written,
                message,
                ref clocks,
                ..
            } = *self.at(source);
            read = written.expect("a store has written a value");
            (told, source_past) = (message, clocks.past);
        } else if let Some(store) = store {
            read = self.initial_value(store.initial_of());
        }
        let (written, order) = self.effect(access, read, outcome);

        // A row is added to as long as it is the last one.
        let joined = match kind {
            OpKind::Join { child } => {
                self.admit(child);
                Some(self.clocks(child))
            }
            _ => None,
        };
        let mut clocks = before;
        clocks.past = (self.rows).joined((before.past, source_past), thread, index + 1);
        if let Some(joined) = joined {
            self.rows.add(clocks.past, joined.past);
        }
        if let Outcome::Other { label, alternative } = outcome {
            self.add_dependencies(clocks.past, label, alternative);
            if label.class() == Class::Released {
                clocks.aware = clocks.past;
            }
        }
        let is_fence = matches!(kind, OpKind::Fence { .. });
        let learnt = match (acquires(order), is_fence) {
            (true, true) => before.seen,
            (true, false) => told,
            (false, _) => NOTHING,
        };
        let joined_known = joined.map_or(NOTHING, |joined| joined.known);
        // Where nothing is relaxed, the two clocks are one.
        let is_one = before.known == before.past
            && learnt == source_past
            && joined.is_none_or(|joined| joined.known == joined.past)
            && !matches!(outcome, Outcome::Other { .. });
        clocks.known = match is_one {
            true => clocks.past,
            false => {
                let known = (self.rows).joined((before.known, learnt), thread, index + 1);
                self.rows.add(known, joined_known);
                known
            }
        };
        if !acquires(order) && !is_fence && !matches!(kind, OpKind::Wait { .. }) {
            clocks.seen = self.rows.join(before.seen, told);
        }
        #[cfg(test)]
        if self.is_strong
            && let Outcome::Other { .. } = outcome
        {
            clocks.known = self.rows.join(clocks.known, clocks.past);
        }
        if grant != Grant::Nothing {
            clocks.known = self.synchronise(position, object, grant, clocks.known);
        }
        if is_fence && releases(order) {
            clocks.released = clocks.known;
        }
        let message = match (written, outcome) {
            // A lock grants what it says, and a failed `try_lock` learns nothing.
            (None, _) | (_, Outcome::Other { .. }) => NOTHING,
            (Some(_), _) => {
                let own = match releases(order) {
                    true => clocks.known,
                    false => clocks.released,
                };
                // A read-modify-write goes on with the release sequence of what it reads. A store
                // ends it.
                self.rows.join(own, told)
            }
        };

        let mut next_reader = NOWHERE;
        if store.is_some() {
            let readers = match source {
                None => self.word_mut(object).1,
                Some(source) => &mut self.events[source as usize].readers,
            };
            next_reader = std::mem::replace(readers, position);
        }
        if let Outcome::Behind(store) | Outcome::Modifies(store) = outcome {
            let place = self.place(object, store);
            self.location_mut(object).stores.insert(place, position);
        }
        if order == Ordering::SeqCst {
            self.sequential.push(position);
        }
        if let OpKind::Spawn { child } = kind {
            self.admit(child);
            self.threads[child.index()].spawned = position;
        }
        if let Outcome::Other { label, .. } = outcome {
            self.for_each_object(label, |graph, object| {
                graph.other(object).events.push(position);
            });
            if written.is_some() {
                self.other(object).stores.push(position);
            }
        }
        let of = &mut self.threads[thread.index()];
        let step = of.steps.len() as u32;
        of.events.push(position);
        of.steps.push(position);
        self.events.push(Event {
            thread,
            index,
            step,
            access: *access,
            outcome,
            object,
            #[cfg(test)]
            read,
            written,
            order,
            clocks,
            message,
            readers: NOWHERE,
            next_reader,
            is_lead: false,
            mark,
        });
    }

    fn remove(&mut self) {
        let event = self.events.pop().expect("there is an event");
        let position = self.events.len() as u32;
        debug_assert_eq!(event.readers, NOWHERE);
        let of = &mut self.threads[event.thread.index()];
        of.events.pop();
        if !event.is_lead {
            of.steps.pop();
        }
        if let Some(store) = event.reads() {
            let readers = match self.position(store) {
                None => self.word_mut(event.object()).1,
                Some(source) => &mut self.events[source as usize].readers,
            };
            *readers = event.next_reader;
        }
        if event.written.is_some() {
            let stores = self.word_mut(event.object()).0;
            let at = stores.iter().rposition(|&p| p == position);
            stores.remove(at.expect("a store is in the modification order"));
        }
        if event.order == Ordering::SeqCst {
            self.sequential.pop();
        }
        if let OpKind::Spawn { child } = event.access.operation.kind {
            self.threads[child.index()].spawned = NOWHERE;
        }
        if let Some(label) = event.label() {
            self.for_each_object(label, |graph, object| {
                graph.other(object).events.pop();
            });
        }
        while let Some((_, object, told)) = (self.told_before).pop_if(|(at, ..)| *at == position) {
            self.other(object).told = told;
        }
        self.rows.truncate(event.mark);
    }

    /// Takes all events back.
    pub(crate) fn clear(&mut self) {
        while !self.events.is_empty() {
            self.remove();
        }
    }

    /// Calls `visit` for each object that an event with this label depends on. Those of a wait are
    /// no atomics here: a wait for an atomic reads a store.
    fn for_each_object(&mut self, label: Label, mut visit: impl FnMut(&mut Graph, ObjectId)) {
        if label.is_wait() {
            let set = label.object().0;
            for at in 0..self.sets.get(set).len() {
                let object = self.sets.get(set)[at];
                if self.is_other(object) {
                    visit(self, object);
                }
            }
        } else if label.object() != ObjectId::NONE {
            visit(self, label.object());
        }
    }

    /// Whether the object is no atomic.
    pub(crate) fn is_other(&self, object: ObjectId) -> bool {
        let location = self.locations.get(object.index());
        !matches!(location, Some(Some(_)))
    }

    /// Adds to the row that was made last what an event with this label depends on.
    fn add_dependencies(&mut self, past: Row, label: Label, alternative: u32) {
        // A wait that was released because no thread could run comes behind all steps before that
        // moment. Its alternative is their number.
        if label.class() == Class::Released {
            let steps = self.events.iter().zip(1..);
            let mut steps = steps.filter(|(event, _)| !event.is_lead);
            let last = alternative.checked_sub(1);
            let last = last.and_then(|last| steps.nth(last as usize));
            let moment: u32 = last.map_or(0, |(_, behind)| behind);
            // The last event of a thread comes behind all others of the thread.
            for thread in self.threads() {
                let mine = self.positions_of(thread);
                let before = mine.partition_point(|&position| position < moment);
                if let Some(last) = before.checked_sub(1) {
                    let last = self.at(mine[last]).clocks.past;
                    self.rows.add(past, last);
                }
            }
            return;
        }
        self.for_each_object(label, |graph, object| {
            for at in 0..graph.other(object).events.len() {
                let earlier = graph.others[object.index()].events[at];
                let Event {
                    outcome, clocks, ..
                } = graph.events[earlier as usize];
                if let Outcome::Other { label: other, .. } = outcome
                    && ordered(&graph.sets, other, label)
                {
                    graph.rows.add(past, clocks.past);
                }
            }
        });
    }

    /// What a thread knows behind an operation on an object, if it knew `known` before.
    fn synchronise(&mut self, position: u32, object: ObjectId, grant: Grant, known: Row) -> Row {
        if matches!(grant, Grant::Spawn { .. } | Grant::Join { .. }) {
            return known;
        }
        let mut told = self.other(object).told.clone();
        let rows = &mut self.rows;
        let mut known = known;
        match grant {
            Grant::Nothing | Grant::Spawn { .. } | Grant::Join { .. } => {}
            Grant::Learn => known = rows.join(known, told.all),
            Grant::LearnSome => known = rows.join(known, told.some),
            Grant::LearnAll => {
                known = rows.join(known, told.all);
                known = rows.join(known, told.some);
            }
            Grant::Tell => told.all = rows.join(told.all, known),
            Grant::TellSome => told.some = rows.join(told.some, known),
            Grant::TellAndLearn => {
                told.all = rows.join(told.all, known);
                known = told.all;
            }
            Grant::Arrive { group } => {
                told.some = rows.join(told.some, known);
                if let Some(group) = group {
                    known = told.some;
                    told.messages.push_back((group, told.some));
                    told.some = NOTHING;
                }
            }
            Grant::Leave { group } => {
                let message = told.messages.iter().find(|&&(of, _)| of == group);
                if let Some(&(_, message)) = message {
                    known = rows.join(known, message);
                }
            }
            Grant::Send { number } => told.messages.push_back((number, known)),
            Grant::Receive { number } => {
                if let Some((_, message)) = told.messages.pop_front() {
                    known = rows.join(known, message);
                }
                told.taken.push_back((number, known));
            }
            Grant::Taken { number } => {
                let at = told.taken.iter().position(|&(of, _)| of == number);
                if let Some((_, message)) = at.and_then(|at| told.taken.remove(at)) {
                    known = rows.join(known, message);
                }
            }
            Grant::Touch(touch) => {
                for &(other, row) in &told.touched {
                    if clash(touch, other) {
                        known = rows.join(known, row);
                    }
                }
                match (told.touched).binary_search_by_key(&touch, |&(other, _)| other) {
                    Ok(at) => told.touched[at].1 = rows.join(told.touched[at].1, known),
                    Err(at) => told.touched.insert(at, (touch, known)),
                }
            }
            Grant::DropReceiver { discards } => {
                told.some = rows.join(told.some, known);
                if discards {
                    for (_, message) in std::mem::take(&mut told.messages) {
                        known = rows.join(known, message);
                    }
                }
            }
        }
        let before = std::mem::replace(&mut self.other(object).told, told);
        if before != self.others[object.index()].told {
            self.told_before.push((position, object, before));
        }
        known
    }
}
