//! Which values has each atomic held, in the order of its stores?
//!
//! Under C11 a store may go behind newer ones, and a load may read an older one. The objects then
//! keep the modification order of each atomic as a list of values. An outcome is counted from the
//! end of the list: [`Place`]. The state of an atomic is the last value.
//!
//! A failed `try_lock` reads the word of its mutex, which has a modification order as well: the
//! states that the mutex has had.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, OpKind, Outcome};
use crate::rt::object::atomic;
use crate::rt::object::mutex::Mutex;
use crate::rt::rare::cold_path;
use crate::rt::relation::independence::{Class, Nature, classify};

/// The modification orders of the atomics of an execution.
#[derive(Clone, Default, Debug)]
pub(crate) struct Orders {
    /// For each object its values, the initial one first; empty before the first operation.
    values: Vec<Vec<u64>>,
    /// For each mutex the states that it has had, the first one first; empty before the first
    /// operation.
    locks: Vec<Vec<Mutex>>,
    /// For each object the value that each thread has read or written last.
    seen: Vec<Vec<(ThreadId, u64)>>,
    /// For each object the number of its stores that went last when they were made.
    went_last: Vec<u32>,
    /// The result of the last operation.
    made: InMemory,
}

/// The values that the memory of an atomic has for an operation of its shim.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct InMemory {
    /// The value that the operation reads, or overwrites.
    pub(crate) before: u64,
    /// The last value of the modification order, which stays.
    pub(crate) last: u64,
}

/// The outcome of an operation on an atomic under C11, as the alternative of a step: the number of
/// stores behind the one that is read, or behind which the store goes, and whether a
/// compare-exchange fails spuriously.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) newer: u32,
    pub(crate) fails: bool,
}

impl Place {
    pub(crate) const fn of(alternative: u32) -> Place {
        Place {
            newer: alternative >> 1,
            fails: alternative & 1 == 1,
        }
    }

    pub(crate) const fn alternative(self) -> u32 {
        self.newer << 1 | self.fails as u32
    }
}

/// The result of an operation on an atomic.
pub(crate) struct Ordered {
    pub(crate) outcome: Outcome,
    /// The value that was read, or behind which the store went.
    pub(crate) before: u64,
    /// The value that the thread knows to be overwritten: the one that was read. A store does not
    /// read; the value behind which it went may be another one in an equal execution, where stores
    /// were made in another order. So for a store it is what the thread has read or written last.
    pub(crate) found: u64,
    /// The value that was read or written.
    pub(crate) after: u64,
    /// The last value of the modification order.
    pub(crate) last: u64,
}

impl Orders {
    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        self.seen.iter_mut().for_each(Vec::clear);
        self.locks.iter_mut().for_each(Vec::clear);
        self.went_last.fill(0);
    }

    /// The number of stores of the atomic that went last when they were made.
    pub(super) fn went_last(&self, object: ObjectId) -> u32 {
        self.went_last.get(object.index()).copied().unwrap_or(0)
    }

    /// The state that an operation on a mutex finds, which is in this one now. An alternative other
    /// than 0 is that of a `try_lock` that reads an older state.
    pub(super) fn before_lock(
        &mut self,
        (object, kind): (ObjectId, &OpKind),
        now: Mutex,
        alternative: u32,
    ) -> Mutex {
        if self.locks.len() <= object.index() {
            self.locks.resize_with(object.index() + 1, Vec::new);
        }
        let states = &mut self.locks[object.index()];
        if states.is_empty() {
            states.push(now);
        }
        debug_assert!(alternative == 0 || *kind == OpKind::TryLock);
        states[states.len() - 1 - Place::of(alternative).newer as usize]
    }

    /// An operation on a mutex has left this state.
    pub(super) fn note_lock(
        &mut self,
        (object, kind): (ObjectId, &OpKind),
        now: Mutex,
        outcome: Outcome,
    ) {
        if *kind != OpKind::TryLock || outcome.succeeded() {
            self.locks[object.index()].push(now);
        }
    }

    /// The values of the last operation.
    pub(crate) fn made(&self) -> InMemory {
        self.made
    }

    /// Applies `kind` to an atomic. `initial` is its value if this is its first operation.
    ///
    /// # Panics
    ///
    /// If the atomic has fewer stores than the place says. The caller has asked the memory model.
    pub(crate) fn apply(
        &mut self,
        (thread, object): (ThreadId, ObjectId),
        (ty, initial): (AtomicType, u64),
        kind: &OpKind,
        alternative: u32,
    ) -> Ordered {
        let values = self.values_of(object, initial);
        let Place { newer, fails } = Place::of(alternative);
        let at = values.len() - 1 - newer as usize;
        let before = values[at];
        let (after, outcome) = atomic::apply(ty, before, kind, fails.into());
        if classify(kind, outcome, Nature::Plain) != Class::Read {
            values.insert(at + 1, after);
            let goes_last = at + 2 == values.len();
            self.went_last[object.index()] += u32::from(goes_last);
        }
        let values = &self.values[object.index()];
        let last = values[values.len() - 1];
        let found = self.found((thread, object), kind, (before, after));
        self.made = InMemory { before, last };
        Ordered {
            outcome,
            before,
            found,
            after,
            last,
        }
    }

    /// [`Orders::apply`] for a step that has read the newest store, or has gone last, and has found
    /// `before` and left `after`. Returns the value that the thread knows to be overwritten.
    #[inline]
    pub(super) fn note_newest(
        &mut self,
        (thread, object): (ThreadId, ObjectId),
        kind: &OpKind,
        class: Class,
        (before, after): (u64, u64),
    ) -> u64 {
        let values = self.values_of(object, before);
        debug_assert_eq!(values.last(), Some(&before));
        if class == Class::Write {
            values.push(after);
            self.went_last[object.index()] += 1;
        }
        self.found((thread, object), kind, (before, after))
    }

    /// The values of an atomic, which has this one before its first operation.
    #[inline]
    fn values_of(&mut self, object: ObjectId, initial: u64) -> &mut Vec<u64> {
        if self.values.len() <= object.index() {
            cold_path();
            self.values.resize_with(object.index() + 1, Vec::new);
            self.seen.resize_with(object.index() + 1, Vec::new);
            self.went_last.resize(object.index() + 1, 0);
        }
        let values = &mut self.values[object.index()];
        if values.is_empty() {
            values.push(initial);
        }
        values
    }

    /// [`Ordered::found`] of a step that has found `before` and leaves `after`.
    #[inline]
    fn found(
        &mut self,
        (thread, object): (ThreadId, ObjectId),
        kind: &OpKind,
        (before, after): (u64, u64),
    ) -> u64 {
        let seen = &mut self.seen[object.index()];
        let known = match seen.iter_mut().find(|(of, _)| *of == thread) {
            Some((_, value)) => Some(std::mem::replace(value, after)),
            None => {
                seen.push((thread, after));
                None
            }
        };
        match kind {
            OpKind::Store { .. } => known.unwrap_or(!after),
            _ => before,
        }
    }
}
