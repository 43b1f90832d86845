//! What has happened so far, and what does each thread know of it?
//!
//! An execution graph: program order (po), which store each load reads (rf), the modification order
//! of each location (mo), and the clocks that follow. Events are taken in any order that respects
//! po and rf, and taken back in the opposite one. Each event has two clocks: what the language
//! grants it to know (`known`, happens-before), and what it cannot be without (`past`, po and rf).
//! A *place* in a modification order is a number: 0 is the initial value.

use std::sync::atomic::Ordering;

use super::clocks::{NOTHING, Row, Rows};
use super::{Access, Decision, Interval, Outcome, StoreRef};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::AtomicType;
use crate::rt::memory::operation::{OpKind, Operation};

/// Stands where a position is absent.
const NOWHERE: u32 = u32::MAX;

/// An operation that has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    /// Which event of its thread this is, from 0.
    pub(crate) index: u32,
    pub(crate) access: Access,
    pub(crate) outcome: Outcome,
    /// The value that was read; 0 if nothing was.
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
    /// What there was of the rows before.
    mark: usize,
}

/// What a thread knows behind an event.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    /// Happens-before, this event included.
    known: Row,
    /// po and rf, this event included.
    past: Row,
    /// What relaxed loads have seen, to be known from an acquire fence on.
    seen: Row,
    /// What was known at the last release fence, which relaxed stores tell.
    released: Row,
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

/// An execution.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    events: Vec<Event>,
    /// For each thread the positions of its events.
    threads: Vec<Vec<u32>>,
    /// For each thread the position of the event that spawned it, or [`NOWHERE`].
    spawned: Vec<u32>,
    locations: Vec<Location>,
    rows: Rows,
    /// The positions of the events that are `SeqCst`.
    sequential: Vec<u32>,
}

pub(super) fn acquires(order: Ordering) -> bool {
    use Ordering::{AcqRel, Acquire, SeqCst};
    matches!(order, Acquire | AcqRel | SeqCst)
}

pub(super) fn releases(order: Ordering) -> bool {
    use Ordering::{AcqRel, Release, SeqCst};
    matches!(order, Release | AcqRel | SeqCst)
}

impl Event {
    pub(crate) fn object(&self) -> ObjectId {
        self.access.operation.object
    }

    /// Whether it is an access to an atomic.
    pub(crate) fn is_access(&self) -> bool {
        self.access.is_to_atomic()
    }

    pub(crate) fn is_fence(&self) -> bool {
        matches!(self.access.operation.kind, OpKind::Fence { .. })
    }

    /// The store that was read.
    pub(crate) fn reads(&self) -> Option<StoreRef> {
        match self.outcome {
            Outcome::Reads(store) | Outcome::Spurious(store) => Some(store),
            Outcome::Done | Outcome::Behind(_) => None,
        }
    }

    /// Whether it reads one store and is the next one.
    pub(crate) fn modifies(&self) -> bool {
        self.written.is_some() && matches!(self.outcome, Outcome::Reads(_))
    }

    pub(crate) fn name(&self) -> StoreRef {
        StoreRef::of(self.thread, self.index)
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
            threads: vec![Vec::new(); threads],
            spawned: vec![NOWHERE; threads],
            locations: Vec::new(),
            rows: Rows::new(threads),
            sequential: Vec::new(),
        }
    }

    /// Adds an atomic, which gets the next number as its name.
    pub(crate) fn declare(&mut self, ty: AtomicType, initial: u64) -> ObjectId {
        self.locations.push(Location {
            ty,
            initial,
            stores: Vec::new(),
            readers: NOWHERE,
        });
        ObjectId(self.locations.len() as u32 - 1)
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

    /// The positions of the events of `thread`.
    pub(crate) fn positions_of(&self, thread: ThreadId) -> &[u32] {
        &self.threads[thread.index()]
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadId> + Clone + use<> {
        (0..self.threads.len() as u32).map(ThreadId)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.locations.len() as u32).map(ObjectId)
    }

    /// The positions of the events that are `SeqCst`.
    pub(super) fn sequential(&self) -> &[u32] {
        &self.sequential
    }

    /// The stores of `object` in modification order, by their positions; without the initial value.
    pub(crate) fn stores(&self, object: ObjectId) -> &[u32] {
        &self.locations[object.index()].stores
    }

    /// The position of this store's event; `None` for an initial value.
    pub(crate) fn position(&self, store: StoreRef) -> Option<u32> {
        let (thread, index) = store.event()?;
        Some(self.threads[thread.index()][index as usize])
    }

    /// Whether the store is in this execution.
    pub(crate) fn has(&self, store: StoreRef) -> bool {
        (store.event()).is_none_or(|(thread, index)| self.made(thread) > index)
    }

    /// How many events the thread has made.
    pub(crate) fn made(&self, thread: ThreadId) -> u32 {
        self.threads[thread.index()].len() as u32
    }

    /// The place of a store in the modification order of `object`.
    pub(crate) fn place(&self, object: ObjectId, store: StoreRef) -> usize {
        let Some(position) = self.position(store) else {
            return 0;
        };
        let behind = self.stores(object).iter().rposition(|&p| p == position);
        1 + behind.expect("the store is one of the object")
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
            None => self.locations[object.index()].initial,
            Some(behind) => {
                let written = self.at(self.stores(object)[behind]).written;
                written.expect("a store has written something")
            }
        }
    }

    /// Whether a read-modify-write reads the store at this place, so that it is the next one.
    pub(crate) fn is_modified(&self, object: ObjectId, place: usize) -> bool {
        let next = self.stores(object).get(place);
        next.is_some_and(|&next| self.at(next).modifies())
    }

    /// The events that read the store at this place, the last one first.
    pub(crate) fn readers(&self, object: ObjectId, place: usize) -> impl Iterator<Item = u32> {
        let location = &self.locations[object.index()];
        let mut next = match place.checked_sub(1) {
            None => location.readers,
            Some(behind) => self.at(location.stores[behind]).readers,
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
        let last = self.threads[thread.index()].last().copied();
        last.or_else(|| self.spawn_of(thread))
    }

    /// The position of the event that spawned the thread; `None` if the thread was there before.
    pub(crate) fn spawn_of(&self, thread: ThreadId) -> Option<u32> {
        let spawn = self.spawned[thread.index()];
        (spawn != NOWHERE).then_some(spawn)
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
        let Some(last) = self.last_of(thread) else {
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
        let known = self.clocks(thread).known;
        self.floor_of(object, |position| self.knows(known, position))
    }

    /// [`Graph::floor`] for a thread that knows what `knows` says.
    pub(crate) fn floor_of(&self, object: ObjectId, knows: impl Fn(u32) -> bool) -> usize {
        let stores = self.stores(object).iter().enumerate().rev();
        for (behind, &store) in stores {
            if knows(store) || self.readers(object, behind + 1).any(&knows) {
                return behind + 1;
            }
        }
        0
    }

    /// [`super::MemoryModel::newest`].
    pub(crate) fn newest(&self, access: &Access) -> Option<Outcome> {
        let Operation { object, kind } = access.operation;
        if !access.is_to_atomic() {
            return Some(Outcome::Done);
        }
        let last = self.last_place(object);
        let store = self.store_at(object, last);
        if let OpKind::Store { .. } = kind {
            return Some(Outcome::Behind(store));
        }
        let is_awaited = |value| value == self.value_at(object, last);
        (access.until.is_none_or(is_awaited)).then_some(Outcome::Reads(store))
    }

    /// How this outcome of `access` is kept while other threads go on.
    pub(crate) fn decision(&self, access: &Access, outcome: Outcome) -> Decision {
        match outcome {
            Outcome::Done => Decision::Done,
            Outcome::Reads(store) => Decision::Reads(store),
            Outcome::Spurious(store) => Decision::Spurious(store),
            Outcome::Behind(after) => {
                let object = access.operation.object;
                let place = self.place(object, after) + 1;
                let before =
                    (place <= self.last_place(object)).then(|| self.store_at(object, place));
                Decision::Within(Interval { after, before })
            }
        }
    }

    /// What a read of `value` by `access` writes, and the ordering that then holds.
    pub(crate) fn effect(
        &self,
        access: &Access,
        value: u64,
        is_spurious: bool,
    ) -> (Option<u64>, Ordering) {
        match access.operation.kind {
            OpKind::Load { order } | OpKind::Fence { order } => (None, order),
            OpKind::Spawn { .. } | OpKind::Join { .. } => (None, Ordering::Relaxed),
            OpKind::Store { order, value } => (Some(value), order),
            OpKind::Rmw {
                order,
                rmw,
                operand,
            } => {
                let ty = self.locations[access.operation.object.index()].ty;
                (Some(rmw.apply(ty, value, operand)), order)
            }
            OpKind::CompareExchange {
                success,
                failure,
                expected,
                new,
                ..
            } => match value == expected && !is_spurious {
                true => (Some(new), success),
                false => (None, failure),
            },
        }
    }

    /// Makes `access` the next event of `thread`.
    pub(super) fn take(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) {
        let position = self.events.len() as u32;
        let Operation { object, kind } = access.operation;
        let mark = self.rows.mark();
        let index = self.made(thread);
        let before = self.clocks(thread);
        let (store, is_spurious) = match outcome {
            Outcome::Reads(store) => (Some(store), false),
            Outcome::Spurious(store) => (Some(store), true),
            Outcome::Done | Outcome::Behind(_) => (None, false),
        };
        let source = store.and_then(|store| self.position(store));
        let read = store.map_or(0, |store| match source {
            None => {
                debug_assert_eq!(store, StoreRef::initial(object));
                self.locations[object.index()].initial
            }
            Some(source) => self.at(source).written.expect("a store is read"),
        });
        let (written, order) = self.effect(access, read, is_spurious);

        let mut clocks = before;
        clocks.past = self.rows.with(before.past, thread, index + 1);
        if let Some(source) = source {
            let past = self.at(source).clocks.past;
            self.rows.add(clocks.past, past);
        }
        clocks.known = self.rows.with(before.known, thread, index + 1);
        let told = source.map_or(NOTHING, |source| self.at(source).message);
        let is_fence = matches!(kind, OpKind::Fence { .. });
        if acquires(order) {
            let learnt = if is_fence { before.seen } else { told };
            self.rows.add(clocks.known, learnt);
        } else if !is_fence {
            clocks.seen = self.rows.join(before.seen, told);
        }
        if let OpKind::Join { child } = kind {
            let Clocks { known, past, .. } = self.clocks(child);
            clocks.known = self.rows.join(clocks.known, known);
            clocks.past = self.rows.join(clocks.past, past);
        }
        if is_fence && releases(order) {
            clocks.released = clocks.known;
        }
        let message = match written {
            None => NOTHING,
            Some(_) => {
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
                None => &mut self.locations[object.index()].readers,
                Some(source) => &mut self.events[source as usize].readers,
            };
            next_reader = std::mem::replace(readers, position);
        }
        if written.is_some() {
            let behind = match outcome {
                Outcome::Behind(store) | Outcome::Reads(store) => store,
                Outcome::Done | Outcome::Spurious(_) => unreachable!("nothing is written"),
            };
            let place = self.place(object, behind);
            self.locations[object.index()]
                .stores
                .insert(place, position);
        }
        if order == Ordering::SeqCst {
            self.sequential.push(position);
        }
        if let OpKind::Spawn { child } = kind {
            self.spawned[child.index()] = position;
        }
        self.threads[thread.index()].push(position);
        self.events.push(Event {
            thread,
            index,
            access: *access,
            outcome,
            read,
            written,
            order,
            clocks,
            message,
            readers: NOWHERE,
            next_reader,
            mark,
        });
    }

    /// Takes the last event back.
    pub(super) fn undo(&mut self) {
        let event = self.events.pop().expect("there is an event");
        let position = self.events.len() as u32;
        debug_assert_eq!(event.readers, NOWHERE);
        self.threads[event.thread.index()].pop();
        if let Some(store) = event.reads() {
            let readers = match self.position(store) {
                None => &mut self.locations[event.object().index()].readers,
                Some(source) => &mut self.events[source as usize].readers,
            };
            *readers = event.next_reader;
        }
        if event.written.is_some() {
            let stores = &mut self.locations[event.object().index()].stores;
            let at = stores.iter().rposition(|&p| p == position);
            stores.remove(at.expect("a store is in the modification order"));
        }
        if event.order == Ordering::SeqCst {
            self.sequential.pop();
        }
        if let OpKind::Spawn { child } = event.access.operation.kind {
            self.spawned[child.index()] = NOWHERE;
        }
        self.rows.truncate(event.mark);
    }
}
