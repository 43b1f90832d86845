//! How do clocks grow with each event, and which events race?
//!
//! Each event has a vector clock: for each thread, how many of its events happen before this one
//! (or are it). `e -> f` is then one comparison. Clocks are computed in one pass after an execution,
//! for the part that is new; the prefix keeps its own ([SS] section 3 for the relation, and the
//! advice of a mature engine for the order of the steps: judge a race first, join its clock after).
//!
//! A *race* is a pair of ordered events of different threads with nothing between them. Candidates
//! come from the object's access record, not from all pairs: for each slot of classes
//! ([`Class::slot`]) the latest accesses since the last total one. The candidates are looked at from
//! the latest to the earliest, so that one which happens before another is seen to be covered.
//!
//! Most events join nothing new, for instance every access to an object that only one thread
//! touches. Such an event shares the row of the event before it: a row leaves out the owner's own
//! component, which is its index.

use super::dependency::{
    ALL, CHANGING_SLOTS, CONFLICTING_SLOTS, COUNTED, Class, Classes, Label, ReadSets, SLOTS,
    changes_value, ordered,
};
use super::id::{ObjectId, ThreadId};
use super::{NOWHERE, Trace};

/// Two events of different threads, ordered, with nothing between them in happens-before. Both are
/// positions in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Race {
    pub(crate) first: u32,
    pub(crate) second: u32,
}

/// The clocks, access records and races of a trace.
#[derive(Default, Clone, Debug)]
pub(crate) struct HappensBefore {
    /// One for each event.
    rows: Vec<Row>,
    /// The words of the clocks, one after the other.
    clocks: Vec<u32>,
    accesses: Vec<Access>,
    races: Vec<Race>,
    objects: Vec<Record>,
    candidates: Vec<u32>,
}

/// What there is to know of one event.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The thread of the event, and which of its events it is.
    thread: ThreadId,
    index: u32,
    /// Where its clock is, without its own component.
    start: u32,
    len: u32,
    /// How many events there were before it on its object, or on the last of several.
    rank: u32,
    /// How many accesses, races and words of clocks there were before it, to undo it.
    accesses: u32,
    races: u32,
    clocks: u32,
}

/// One event's access to one object, linked to the one before it in the same slot.
#[derive(Clone, Copy, Debug)]
struct Access {
    event: u32,
    thread: ThreadId,
    object: ObjectId,
    slot: u32,
    previous: u32,
}

/// What has been done to one object.
#[derive(Clone, Debug)]
struct Record {
    /// For each slot the latest access, as an index into `accesses`.
    heads: [u32; SLOTS],
    /// The slots and the classes that have ever had an access.
    used: u32,
    classes: Classes,
    /// The thread that has made all accesses, if it is only one.
    owner: Option<ThreadId>,
    /// The positions of all events on the object.
    events: Vec<u32>,
}

impl HappensBefore {
    /// How many events of `thread` happen before the event at `position` or are it.
    #[inline]
    pub(crate) fn clock(&self, position: u32, thread: ThreadId) -> u32 {
        let row = self.rows[position as usize];
        if row.thread == thread {
            row.index + 1
        } else if thread.0 < row.len {
            self.clocks[(row.start + thread.0) as usize]
        } else {
            0
        }
    }

    /// Whether the event at `first` happens before the one at `second`, or is it.
    #[inline]
    pub(crate) fn before(&self, first: u32, second: u32) -> bool {
        let Row { thread, index, .. } = self.rows[first as usize];
        self.clock(second, thread) > index
    }

    /// The races, in the order of their second events.
    pub(crate) fn races(&self) -> &[Race] {
        &self.races
    }

    /// How many races have a second event before `position`.
    pub(crate) fn races_before(&self, position: usize) -> usize {
        let row = self.rows.get(position);
        row.map_or(self.races.len(), |row| row.races as usize)
    }

    /// The races whose second event is the one at `position`.
    #[inline]
    pub(crate) fn races_of(&self, position: u32) -> &[Race] {
        let at = position as usize;
        let from = self.rows[at].races as usize;
        &self.races[from..self.races_before(at + 1)]
    }

    /// The positions of the events on `object`, in order.
    pub(crate) fn events_on(&self, object: ObjectId) -> &[u32] {
        self.objects
            .get(object.index())
            .map_or(&[], |record| &record.events)
    }

    /// [`HappensBefore::events_on`] in two: those before `position`, and from there on.
    #[inline]
    pub(crate) fn split_on(&self, object: ObjectId, position: u32) -> (&[u32], &[u32]) {
        let events = self.events_on(object);
        // The event there knows, if it is one of them.
        let rank = self
            .rows
            .get(position as usize)
            .map(|row| row.rank as usize);
        let known = rank.filter(|&rank| events.get(rank) == Some(&position));
        let at = known.unwrap_or_else(|| events.partition_point(|&p| p < position));
        events.split_at(at)
    }

    /// The classes of which events have touched `object` in this execution or in an earlier one.
    #[inline]
    pub(crate) fn classes_on(&self, object: ObjectId) -> Classes {
        let record = self.objects.get(object.index());
        record.map_or(Classes::NONE, |record| record.classes)
    }

    /// Whether `found` holds of an event on `object` in one of these slots that is at `from` or behind it;
    /// asked of the latest first.
    #[inline]
    pub(crate) fn any_access(
        &self,
        object: ObjectId,
        slots: u32,
        from: u32,
        mut found: impl FnMut(u32) -> bool,
    ) -> bool {
        let Some(record) = self.objects.get(object.index()) else {
            return false;
        };
        let mut slots = slots & record.used;
        while slots != 0 {
            let mut access = record.heads[slots.trailing_zeros() as usize];
            slots &= slots - 1;
            while access != NOWHERE {
                let Access {
                    event, previous, ..
                } = self.accesses[access as usize];
                if event < from {
                    break;
                }
                if found(event) {
                    return true;
                }
                access = previous;
            }
        }
        false
    }

    /// The slots of the events on `object` that may change what a wait looks at. Classes that no object has
    /// together share slots, so this is less than the slots of all such classes.
    pub(crate) fn changing_slots(&self, object: ObjectId) -> u32 {
        let known = self.classes_on(object);
        let changing = ALL.into_iter().filter(|&class| changes_value(class));
        let changing = changing.filter(|&class| known.contains(class));
        changing.fold(0, |slots, class| slots | 1 << class.slot())
    }

    /// Forgets the events from `length` on.
    pub(crate) fn truncate(&mut self, length: usize) {
        if length >= self.rows.len() {
            return;
        }
        let mark = self.rows[length];
        while self.accesses.len() > mark.accesses as usize {
            let Some(access) = self.accesses.pop() else {
                break;
            };
            let record = &mut self.objects[access.object.index()];
            record.heads[access.slot as usize] = access.previous;
            record.events.pop();
            if record.events.is_empty() {
                record.owner = None;
            }
        }
        self.races.truncate(mark.races as usize);
        self.clocks.truncate(mark.clocks as usize);
        self.rows.truncate(length);
    }

    /// Gives a clock to every event of `trace` that has none yet, and finds its races.
    pub(crate) fn extend(&mut self, trace: &Trace, sets: &ReadSets) {
        let new = trace.len() - self.rows.len();
        self.rows.reserve(new);
        self.accesses.reserve(new);
        for position in self.rows.len()..trace.len() {
            self.add(trace, sets, position as u32);
        }
    }

    fn add(&mut self, trace: &Trace, sets: &ReadSets, position: u32) {
        let event = trace.at(position);
        // The clock of the event before, unless more comes to it.
        let (start, len) = match event.previous {
            NOWHERE => (0, 0),
            before => (
                self.rows[before as usize].start,
                self.rows[before as usize].len,
            ),
        };
        self.rows.push(Row {
            thread: event.thread,
            index: event.index,
            start,
            len,
            rank: 0,
            accesses: self.accesses.len() as u32,
            races: self.races.len() as u32,
            clocks: self.clocks.len() as u32,
        });
        if event.previous == NOWHERE
            && let Some(spawn) = trace.predecessor(position)
        {
            // A first event comes after its spawn, which is another thread's event.
            self.join(spawn);
        }
        let label = event.label;
        self.candidates.clear();
        match label.class() {
            Class::Local | Class::Spawn => return,
            Class::LetGo => {
                // Behind everything that had happened when nothing else could run. The latest event of
                // each thread before that moment carries the thread's earlier ones.
                for thread in (0..trace.threads() as u32).map(ThreadId) {
                    if thread != event.thread
                        && let Some(earlier) = trace.previous_of(thread, event.quiet_at)
                        && !self.before(earlier, position)
                    {
                        self.join(earlier);
                    }
                }
                return;
            }
            Class::Wait => {
                for &object in sets.get(label.object().0) {
                    self.touch(object, label, CHANGING_SLOTS, event.thread, |_| true);
                }
            }
            Class::Drop | Class::Arrive => self.count(trace, label, event.thread),
            class => {
                let slots = CONFLICTING_SLOTS[class as usize];
                if self.touch(label.object(), label, slots, event.thread, |_| true) {
                    return;
                }
            }
        }
        if self.candidates.len() > 1 {
            self.candidates.sort_unstable_by(|a, b| b.cmp(a));
            self.candidates.dedup();
        }
        for at in 0..self.candidates.len() {
            let first = self.candidates[at];
            if !self.before(first, position) && ordered(sets, trace.at(first).label, label) {
                self.join(first);
                self.races.push(Race {
                    first,
                    second: position,
                });
            }
        }
    }

    /// Joins the clock of the event at `position` into that of the last one, which has to be behind all others
    /// or still its predecessor's.
    fn join(&mut self, position: u32) {
        let at = self.rows.len() - 1;
        let (theirs, mut ours) = (self.rows[position as usize], self.rows[at]);
        let own = theirs.thread.0;
        if self.clocks.len() == ours.clocks as usize {
            // From here on it has words of its own.
            let start = ours.start as usize;
            self.clocks
                .extend_from_within(start..start + ours.len as usize);
            ours.start = ours.clocks;
        }
        ours.len = ours.len.max(theirs.len).max(own + 1);
        self.clocks.resize((ours.start + ours.len) as usize, 0);
        self.rows[at] = ours;
        let (earlier, mine) = self.clocks.split_at_mut(ours.start as usize);
        // The row leaves out the owner's own component, which must not count here.
        let before = mine[own as usize];
        let theirs_start = theirs.start as usize;
        let their_words = &earlier[theirs_start..theirs_start + theirs.len as usize];
        for (mine, &word) in mine.iter_mut().zip(their_words) {
            *mine = (*mine).max(word);
        }
        mine[own as usize] = before.max(theirs.index + 1);
    }

    /// [`HappensBefore::touch`] for a release or an arrival. Of those before it that are not the last there are
    /// as many as threads, and one that is not the last either is behind none of them.
    #[inline(never)]
    fn count(&mut self, trace: &Trace, label: Label, thread: ThreadId) {
        let slots = CONFLICTING_SLOTS[label.class() as usize];
        let may_be_last = !label.is_not_last();
        self.touch(label.object(), label, slots, thread, |earlier| {
            may_be_last || !trace.at(earlier).label.is_not_last()
        });
    }

    /// Notes that the last event, which is of `thread` and has this label, touches the object, and collects the
    /// accesses in these slots that it may be ordered behind, unless `ordered` says no. True if no other thread
    /// has touched it, so that it comes behind nothing but the thread's event before.
    #[inline(always)]
    fn touch(
        &mut self,
        object: ObjectId,
        label: Label,
        slots: u32,
        thread: ThreadId,
        ordered: impl Fn(u32) -> bool,
    ) -> bool {
        if self.objects.len() <= object.index() {
            self.make_room(object);
        }
        let record = &mut self.objects[object.index()];
        let is_own = record.owner == Some(thread);
        if !is_own {
            let candidates = &mut self.candidates;
            record.collect(slots, thread, &self.accesses, candidates, ordered);
            record.owner = record.events.is_empty().then_some(thread);
        }
        let at = self.rows.len() - 1;
        let class = label.class();
        self.rows[at].rank = record.note(at as u32, thread, (object, class), &mut self.accesses);
        is_own
    }

    #[cold]
    fn make_room(&mut self, object: ObjectId) {
        let empty = Record {
            heads: [NOWHERE; SLOTS],
            used: 0,
            classes: Classes::NONE,
            owner: None,
            events: Vec::new(),
        };
        self.objects.resize(object.index() + 1, empty);
    }

    /// Whether labels on `object` have counts, which depend on what happened to it before.
    #[inline]
    pub(crate) fn is_counted(&self, object: ObjectId) -> bool {
        self.classes_on(object).intersects(COUNTED)
    }

    /// Joins the clock of the event at `position` into `clock`, which has room for all threads.
    #[inline]
    pub(crate) fn join_into(&self, position: u32, clock: &mut [u32]) {
        let row = self.rows[position as usize];
        let own = &mut clock[row.thread.index()];
        if *own > row.index {
            // It has been joined with the clock of this event, or of a later one of its thread.
            return;
        }
        *own = row.index + 1;
        let start = row.start as usize;
        let words = &self.clocks[start..start + row.len as usize];
        for (mine, &word) in clock.iter_mut().zip(words) {
            *mine = (*mine).max(word);
        }
    }
}

impl Record {
    /// Collects the accesses in these slots that an event of `thread` may be ordered behind.
    #[inline]
    fn collect(
        &self,
        slots: u32,
        thread: ThreadId,
        accesses: &[Access],
        candidates: &mut Vec<u32>,
        ordered: impl Fn(u32) -> bool,
    ) {
        let total_at = match self.heads[0] {
            NOWHERE => 0,
            access => {
                let access = accesses[access as usize];
                if access.thread != thread {
                    candidates.push(access.event);
                }
                access.event
            }
        };
        let mut slots = slots & self.used & !1;
        while slots != 0 {
            let mut access = self.heads[slots.trailing_zeros() as usize];
            slots &= slots - 1;
            while access != NOWHERE {
                let Access {
                    event,
                    thread: other,
                    previous,
                    ..
                } = accesses[access as usize];
                if event < total_at {
                    break;
                }
                if other != thread && ordered(event) {
                    candidates.push(event);
                }
                access = previous;
            }
        }
    }

    /// Notes an access by an event of this thread. Gives how many there were before it.
    #[inline(always)]
    fn note(
        &mut self,
        event: u32,
        thread: ThreadId,
        (object, class): (ObjectId, Class),
        accesses: &mut Vec<Access>,
    ) -> u32 {
        let rank = self.events.len() as u32;
        let slot = class.slot();
        self.used |= 1 << slot;
        self.classes.add(class);
        self.events.push(event);
        accesses.push(Access {
            event,
            thread,
            object,
            slot: slot as u32,
            previous: std::mem::replace(&mut self.heads[slot], accesses.len() as u32),
        });
        rank
    }
}
