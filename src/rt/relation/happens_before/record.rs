//! Which events have accessed an object?

use crate::rt::event::NOWHERE;
use crate::rt::event::id::ThreadId;
use crate::rt::pooled::Empty;
use crate::rt::rare::{Roomy, rarely};
use crate::rt::relation::happens_before::messages::Messages;
use crate::rt::relation::independence::{Class, Classes, Label, SLOTS, TOTAL_SLOT, changes_value};

/// The accesses to one object.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The latest event of each slot.
    pub(super) heads: [u32; SLOTS],
    /// The slots that have an event.
    pub(super) used: u32,
    /// The classes of all events so far, in all executions.
    pub(super) classes: Classes,
    /// The slots of the events that may change a value that a wait compares.
    pub(super) changing: u32,
    /// The thread that has made all accesses, or the constant below.
    owner: ThreadId,
    /// The positions of all events on the object.
    pub(super) events: Vec<u32>,
    pub(super) messages: Messages,
}

/// Stands for several threads, or for none.
const NO_ONE_THREAD: ThreadId = ThreadId(u32::MAX);

impl Empty for Record {
    fn empty(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.empty();
        *self = Record {
            events,
            ..Record::new()
        };
    }
}

impl Record {
    /// The record of an object without an access.
    pub(super) fn new() -> Record {
        Record {
            heads: [NOWHERE; SLOTS],
            used: 0,
            classes: Classes::NONE,
            changing: 0,
            owner: NO_ONE_THREAD,
            events: Vec::new(),
            messages: Messages::default(),
        }
    }

    /// Whether the next event on the object, which is of `thread`, follows only events of `thread`,
    /// because no other thread has accessed the object.
    #[inline]
    pub(super) fn is_left_to(&mut self, thread: ThreadId) -> bool {
        if self.owner == thread {
            return true;
        }
        if self.events.is_empty() {
            self.owner = thread;
            return true;
        }
        self.owner = NO_ONE_THREAD;
        false
    }

    /// Whether several threads have accessed the object.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.owner == NO_ONE_THREAD
    }

    /// The position of the latest total event, or 0 if there is none.
    #[inline]
    pub(super) fn since_total(&self) -> u32 {
        match self.heads[TOTAL_SLOT] {
            NOWHERE => 0,
            total => total,
        }
    }

    /// Notes an access by the event. Returns the number of accesses before it, and the previous
    /// event in its slot.
    #[inline(always)]
    pub(super) fn note(&mut self, label: Label, slot: u8, event: u32) -> (u32, u32) {
        if rarely!(!self.classes.intersects(label.classes())) {
            self.meet(label.class());
        }
        self.used |= 1 << slot;
        let rank = self.events.len() as u32;
        self.events.put(event);
        self.messages.note(label, event);
        let previous = std::mem::replace(&mut self.heads[usize::from(slot)], event);
        (rank, previous)
    }

    /// Notes that the object has an access of this class.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, class: Class) {
        self.classes.add(class);
        if changes_value(class) {
            self.changing |= class.slots();
        }
    }

    /// Forgets the last access. `previous` is the previous event in its slot.
    #[inline]
    pub(super) fn forget(&mut self, slot: u8, previous: u32) {
        self.heads[usize::from(slot)] = previous;
        if previous == NOWHERE {
            self.used &= !(1 << slot);
        }
        if let Some(event) = self.events.pop() {
            self.messages.forget(event);
        }
        if self.events.is_empty() {
            self.owner = NO_ONE_THREAD;
        }
    }
}
