//! Which events are ordered, and which of them race?
//!
//! Each event has a vector clock: for each thread, the number of its events that happen before this
//! event (or are it). `e -> f` is then one comparison. Clocks are computed in one pass after an
//! execution, or in several passes during a long one, each for the new part; the common prefix
//! keeps its clocks (\[SS\] section 3 for the relation, and the advice of a mature engine for the
//! order of the steps: judge a race first, join its clock after). [`past`] says how clocks grow.
//!
//! A *race* is a pair of ordered events of different threads with no event between them in
//! happens-before. Candidates come from the object's access record, not from all pairs: for each
//! slot of classes ([`Class::slot`]) the latest accesses since the last total access, as far as
//! they do not happen before the previous event of the thread. The candidates are examined from the
//! latest to the earliest, so that a candidate that happens before another is known to be covered.
//!
//! An event on an uncontended atomic ([`contention`]) is not even noted on the atomic, and a long
//! stretch of events that are ordered with no other thread's events has one row ([`rows`]).

mod candidates;
mod clock;
mod contention;
mod look;
mod messages;
mod past;
mod record;
mod rows;
#[cfg(test)]
mod tests;
mod way;

use crate::rt::event::id::{ObjectId, ThreadId, lengthen};
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::event::{Event, NOWHERE, Trace};
use crate::rt::pooled::{Empty, empty_rows};
use crate::rt::rare::{cold_path, rarely};
pub(crate) use crate::rt::relation::happens_before::candidates::Next;
use crate::rt::relation::happens_before::candidates::Seeker;
use crate::rt::relation::happens_before::contention::{Contention, Order};
pub(crate) use crate::rt::relation::happens_before::look::Look;
pub(crate) use crate::rt::relation::happens_before::past::Race;
use crate::rt::relation::happens_before::past::{Clock, Past, Read};
use crate::rt::relation::happens_before::record::Record;
use crate::rt::relation::happens_before::rows::{Row, Whose};
use crate::rt::relation::independence::{
    BLOCK_SLOT, COUNTED, Class, Classes, Footprint, Label, ReadSets, WAIT_SLOT,
};

/// The clocks, access records and races of a trace.
#[derive(Default, Clone, Debug)]
pub(crate) struct HappensBefore {
    past: Past,
    /// The access record of each object. The record of an uncontended atomic is empty.
    objects: Vec<Record>,
    contention: Contention,
    /// All objects with a record. A block without a declared footprint touches them all.
    everything: Vec<ObjectId>,
    /// Whether the trace has such a block.
    has_open_block: bool,
}

impl Empty for HappensBefore {
    fn empty(&mut self) {
        let HappensBefore {
            past,
            objects,
            contention,
            everything,
            has_open_block,
        } = self;
        past.empty();
        empty_rows(objects);
        contention.empty();
        everything.empty();
        *has_open_block = false;
    }
}

impl HappensBefore {
    /// The number of events of `thread` that happen before the event at `position` or are it.
    #[inline]
    pub(crate) fn clock(&self, position: u32, thread: ThreadId) -> u32 {
        let row = self.past.rows.whose(position);
        if row.thread == thread {
            row.index + 1
        } else {
            self.past.clocks.get(row.clock, thread)
        }
    }

    /// Whether the event at `first` happens before the one at `second`, or is it.
    #[inline]
    pub(crate) fn before(&self, first: u32, second: u32) -> bool {
        let Whose { thread, index, .. } = self.past.rows.whose(first);
        self.knows(second, thread, index)
    }

    /// Whether the event of `thread` with this index happens before the one at `position`, or is
    /// it.
    #[inline]
    pub(crate) fn knows(&self, position: u32, thread: ThreadId, index: u32) -> bool {
        self.look_at(position).knows(thread, index)
    }

    /// Looks up the event at `position` once, for several questions.
    #[inline]
    pub(crate) fn look_at(&self, position: u32) -> Look<'_> {
        self.past.look_at(position)
    }

    /// The number of candidates for races that have been examined.
    #[cfg(test)]
    pub(crate) fn visited(&self) -> usize {
        self.past.visited
    }

    /// The races, in the order of their second events.
    pub(crate) fn races(&self) -> &[Race] {
        &self.past.races
    }

    /// Whether the race with this number has the latest first event among the races of its second
    /// event.
    #[inline]
    pub(crate) fn is_latest_of_its_event(&self, race: usize) -> bool {
        let races = &self.past.races[..=race];
        // The candidates are examined from the latest to the earliest.
        let before = race.checked_sub(1).map(|before| races[before].second);
        before != Some(races[race].second)
    }

    /// The number of races with a second event before `position`.
    pub(crate) fn races_before(&self, position: usize) -> usize {
        let row = self.past.rows.get(position);
        row.map_or(self.past.races.len(), |row| row.races as usize)
    }

    /// The races with the event at `position` as the second event.
    #[inline]
    pub(crate) fn races_of(&self, position: u32) -> impl Iterator<Item = &Race> {
        self.look_at(position).races()
    }

    /// The positions of the events on `object`, in order. The list is empty for an uncontended
    /// atomic: no caller needs events that are ordered with no other thread's events.
    pub(crate) fn events_on(&self, object: ObjectId) -> &[u32] {
        self.objects
            .get(object.index())
            .map_or(&[], |record| &record.events)
    }

    /// Whether the event at `position` accesses one object and is the first event on it. False for
    /// an event that accesses several objects.
    #[inline]
    pub(crate) fn is_first_on_its_object(&self, position: u32) -> bool {
        let row = self.past.rows.row(position);
        row.object != ObjectId::NONE && row.rank == 0
    }

    /// Whether the previous event in the slot of the event at `position`, on its object, is of the
    /// same thread.
    #[inline(never)]
    pub(crate) fn comes_back(&self, position: u32) -> bool {
        let row = self.past.rows.row(position);
        let before = self.past.rows.get(row.previous as usize);
        before.is_some_and(|before| before.whose.thread == row.whose.thread)
    }

    /// Whether both events access one object, the same, with no event on it between them.
    #[inline]
    pub(crate) fn is_next_on_its_object(&self, first: u32, second: u32) -> bool {
        let (first, second) = (self.past.rows.row(first), self.past.rows.row(second));
        first.object == second.object
            && first.object != ObjectId::NONE
            && first.rank + 1 == second.rank
    }

    /// Whether events on this object may be ordered with events of other threads, as far as is
    /// known.
    #[inline]
    pub(crate) fn is_contended(&self, object: ObjectId) -> bool {
        self.contention.is_on(object)
    }

    /// The contention of all atomics, as numbers ([`contention`] says why a checkpoint needs it).
    pub(crate) fn save_contention(&self) -> Vec<u64> {
        self.contention.save()
    }

    /// Adds the numbers from [`HappensBefore::save_contention`] of another exploration of the same
    /// program, with its threads and objects under other numbers; false if these are no such
    /// numbers.
    pub(crate) fn add_contention(
        &mut self,
        numbers: &[u64],
        threads: &[ThreadId],
        objects: &[ObjectId],
    ) -> bool {
        self.contention.add(numbers, threads, objects)
    }

    /// Restores the numbers from [`HappensBefore::save_contention`]; false if these are no such
    /// numbers.
    pub(crate) fn restore_contention(&mut self, numbers: &[u64]) -> bool {
        self.contention.restore(numbers)
    }

    /// The thread may perform this operation on an atomic, although no event shows it: events on
    /// the atomic are ordered as if it did.
    pub(crate) fn expect(&mut self, thread: ThreadId, operation: &Operation) {
        let class = match operation.kind {
            OpKind::Load { .. } => Class::Read,
            _ => Class::Write,
        };
        let label = Label::of(operation.object, class);
        if self.contention.note(thread, label) == Order::PossibleFromNow {
            self.restart();
        }
    }

    /// [`HappensBefore::events_on`] split in two: the events before `position`, and the others.
    #[inline]
    pub(crate) fn split_on(&self, object: ObjectId, position: u32) -> (&[u32], &[u32]) {
        let events = self.events_on(object);
        // The row of the event at `position` has the rank, if the event is on the object.
        let row = self.past.rows.get(position as usize);
        let rank = row.map(|row| row.rank as usize);
        let known = rank.filter(|&rank| events.get(rank) == Some(&position));
        let at = known.unwrap_or_else(|| events.partition_point(|&p| p < position));
        events.split_at(at)
    }

    /// The classes of all events on `object`, in this execution or in an earlier one.
    #[inline]
    pub(crate) fn classes_on(&self, object: ObjectId) -> Classes {
        let record = self.objects.get(object.index());
        record.map_or(Classes::NONE, |record| record.classes)
    }

    /// Whether `found` holds for an event on `object`, and its slot, among the events in these
    /// slots from position `from` on. The latest event comes first.
    #[inline]
    pub(crate) fn any_access(
        &self,
        object: ObjectId,
        slots: u32,
        from: u32,
        found: impl FnMut(u32, usize) -> bool,
    ) -> bool {
        let Some(record) = self.objects.get(object.index()) else {
            return false;
        };
        self.past.any_access(record, slots, from, found)
    }

    /// The latest event on `object` in this slot, or [`NOWHERE`].
    #[inline]
    pub(crate) fn latest_in(&self, object: ObjectId, slot: usize) -> u32 {
        let record = self.objects.get(object.index());
        record.map_or(NOWHERE, |record| record.heads[slot])
    }

    /// In the slot of the event at `position`, on its object, the latest earlier event that is not
    /// known to happen before it, or [`NOWHERE`]. The events in between do happen before it.
    #[inline]
    pub(crate) fn apart(&self, position: u32) -> u32 {
        self.past.rows.row(position).apart
    }

    /// Visits the events from `latest` back to `from` in the slot of `latest` on its object.
    /// `found` chooses the event that comes next.
    #[inline]
    pub(crate) fn go_back(&self, latest: u32, from: u32, found: impl FnMut(u32) -> Next) {
        self.past.go_back(latest, from, found);
    }

    /// The slots of the events on `object` that may change a value that a wait compares. Classes
    /// that no object has together share slots, so these are fewer than the slots of all such
    /// classes.
    #[inline]
    pub(crate) fn changing_slots(&self, object: ObjectId) -> u32 {
        let record = self.objects.get(object.index());
        record.map_or(0, |record| record.changing)
    }

    /// The objects that an event with this label touches, if these are several or a set.
    pub(crate) fn set_of<'a>(&'a self, sets: &'a ReadSets, label: Label) -> Option<&'a [ObjectId]> {
        match label.class() {
            Class::Wait => Some(sets.get(label.object().0)),
            Class::Block => {
                let declared = sets.footprint(label.object().0).objects();
                Some(declared.unwrap_or(&self.everything))
            }
            _ => None,
        }
    }

    /// Forgets the events from `length` on.
    pub(crate) fn truncate(&mut self, length: usize) {
        let Past {
            rows,
            clocks,
            reads,
            touched,
            races,
            ..
        } = &mut self.past;
        let Some(first) = rows.get(length) else {
            return;
        };
        races.truncate(first.races as usize);
        rows.truncate(length, |row| {
            if row.is_own {
                clocks.truncate(row.whose.clock);
            }
            if row.object != ObjectId::NONE {
                self.objects[row.object.index()].forget(row.slot, row.previous);
            }
        });
        while let Some(read) = reads.pop_if(|read| read.by as usize >= length) {
            self.objects[read.object.index()].forget(WAIT_SLOT as u8, read.previous);
        }
        while let Some(of) = touched.pop_if(|of| of.by as usize >= length) {
            self.objects[of.object.index()].forget(BLOCK_SLOT as u8, of.previous);
        }
        self.has_open_block &= !touched.is_empty();
    }

    /// The size in bytes of the clocks of all events, if the system does not have that much memory.
    #[inline]
    pub(crate) fn lack(&mut self, trace: &Trace) -> Option<usize> {
        self.past.clocks.lack(trace.len(), trace.threads())
    }

    /// Computes the clock of every event of `trace` that has none yet, and finds its races.
    #[inline]
    pub(crate) fn extend(&mut self, trace: &Trace, sets: &ReadSets) {
        self.extend_if_known(trace, sets, false);
    }

    /// [`HappensBefore::extend`]. If `early`, during the execution, false means that no further
    /// `early` call helps in this execution: the contention of an unfinished execution is not known
    /// well enough.
    #[inline(never)]
    pub(crate) fn extend_if_known(&mut self, trace: &Trace, sets: &ReadSets, early: bool) -> bool {
        while let Err(position) = self.add_all(trace, sets, early) {
            if !early {
                // The contention of the rest is noted before all clocks are computed again: a first
                // execution may have many events that would each cause another restart.
                for event in &trace.events()[position..] {
                    self.contention.note(event.thread, event.label);
                }
            }
            self.restart();
            if early {
                return false;
            }
        }
        true
    }

    /// An event may be ordered with earlier events on its object, and the record does not have
    /// those. That happens once for each object.
    #[cold]
    fn restart(&mut self) {
        self.contention.be_surprised();
        self.truncate(0);
    }

    /// Computes the clock of every event that has none yet, up to the first event on an object that
    /// becomes contended by it.
    #[inline(always)]
    fn add_all(&mut self, trace: &Trace, sets: &ReadSets, early: bool) -> Result<(), usize> {
        if self.past.clocks.width() < trace.threads() {
            self.past.widen(trace.threads());
        }
        // If many events have rows of their own, the future events will have them, too.
        let more = rarely!(early) && self.past.rows.are_many();
        let events = if more { trace.room() } else { trace.len() };
        self.past.rows.reserve(events - self.past.rows.len());
        while let Some(event) = trace.events().get(self.past.rows.len()) {
            let position = self.past.rows.len();
            if rarely!(self.has_open_block || event.label.is_block())
                && !self.has_room_for(trace, sets, event.label)
            {
                return Err(position);
            }
            match self.contention.note(event.thread, event.label) {
                Order::Possible => self.add(trace, sets, event, position as u32),
                Order::Impossible => self.past.add_unordered(trace, &self.contention),
                Order::PossibleFromNow => {
                    cold_path();
                    return Err(position);
                }
            }
        }
        Ok(())
    }

    /// Prepares for an event with this label in an execution with a block. False if the records
    /// lack earlier events on its objects.
    #[cold]
    #[inline(never)]
    fn has_room_for(&mut self, trace: &Trace, sets: &ReadSets, label: Label) -> bool {
        let ends = |label: Label| match label.class() {
            Class::Block => {
                let declared = sets.footprint(label.object().0).objects();
                declared.and_then(<[ObjectId]>::last).copied()
            }
            _ => label.touches_one().then_some(label.object()),
        };
        let mut most = ends(label).map_or(0, |object| object.index() + 1);
        if label.is_block() {
            if let Some(known) = self.contention.give_up() {
                self.make_room(known);
                return false;
            }
            if *sets.footprint(label.object().0) == Footprint::Everything {
                self.has_open_block = true;
                let all = trace.events().iter().filter_map(|event| ends(event.label));
                let last = all.map(|object| object.index() + 1).max();
                most = last.unwrap_or(0).max(self.objects.len()).max(1);
            }
        }
        if !self.has_open_block || most <= self.everything.len() {
            return true;
        }
        // The earlier blocks without a footprint touch the new objects, too.
        self.make_room(most);
        let new = (self.everything.len()..self.objects.len()).map(|it| ObjectId(it as u32));
        self.everything.extend(new);
        false
    }

    /// Makes records for this many objects. A block without a footprint touches those that this
    /// execution does not use, too: another one may.
    pub(crate) fn make_room(&mut self, objects: usize) {
        let most = objects.max(self.objects.len());
        lengthen(&mut self.objects, most, Record::new);
    }

    /// Computes the clock of this event, which is the next one, and finds its races.
    #[inline]
    fn add(&mut self, trace: &Trace, sets: &ReadSets, event: &Event, position: u32) {
        let label = event.label;
        let races = self.past.races.len() as u32;
        let mut clock = self.past.clock_before(trace, event);
        let (mut object, mut slot, mut rank) = (ObjectId::NONE, 0, 0);
        let (mut previous, mut apart) = (NOWHERE, NOWHERE);
        if label.touches_one() {
            object = label.object();
            if rarely!(self.objects.len() <= object.index()) {
                lengthen(&mut self.objects, object.index() + 1, Record::new);
            }
            let record = &mut self.objects[object.index()];
            let place = label.place();
            if !record.is_left_to(event.thread) {
                let slots = place.behind & record.used & !1;
                if slots != 0 {
                    let seeker = Seeker {
                        thread: event.thread,
                        label,
                        position,
                    };
                    clock = (self.past).race_in(trace, sets, record, slots, seeker, clock);
                }
                let total = record.heads[0];
                // The latest total access is before the others, and ordered with every event on its
                // object.
                if total != NOWHERE && self.past.is_new(event.thread, clock.start, total) {
                    clock = self.past.race(clock, total, position);
                }
            }
            slot = place.slot;
            (rank, previous) = record.note(label, slot, position);
            // All earlier events of a thread happen before its next event. Slot 0 needs no search.
            if slot != 0 && previous != NOWHERE && record.is_shared() {
                apart = self.past.apart(event.thread, clock, previous);
            }
        } else if label.class() == Class::Wait {
            slot = WAIT_SLOT as u8;
            previous = self.past.reads.last().map_or(NOWHERE, |read| read.by);
            (rank, clock) = self.add_wait(trace, sets, event, clock, position);
            if previous != NOWHERE {
                apart = self.past.apart(event.thread, clock, previous);
            }
        } else if label.is_block() {
            slot = BLOCK_SLOT as u8;
            previous = self.past.touched.last().map_or(NOWHERE, |of| of.by);
            (rank, clock) = self.add_block(trace, sets, event, clock, position);
            if previous != NOWHERE {
                apart = self.past.apart(event.thread, clock, previous);
            }
        } else if let OpKind::Join { .. } = event.operation.kind {
            return self.past.add_joins(trace, clock);
        } else if let Outcome::Released { quiescent_at } = event.outcome {
            clock = (self.past).follow_all(trace, event.thread, quiescent_at as u32, clock);
        }
        self.past.rows.push(Row {
            whose: Whose {
                thread: event.thread,
                index: event.index,
                clock: clock.start,
            },
            is_own: clock.is_own,
            slot,
            object,
            rank,
            previous,
            apart,
            races,
        });
    }

    /// Notes the locations that the last event, a wait, has read. Returns its clock after all
    /// joins, and its rank on the last location.
    #[inline(never)]
    fn add_wait(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        event: &Event,
        clock: Clock,
        wait: u32,
    ) -> (u32, Clock) {
        let Event { label, thread, .. } = *event;
        let seeker = Seeker {
            thread,
            label,
            position: wait,
        };
        let mut rank = 0;
        let objects = sets.get(label.object().0).iter();
        for &object in objects.filter(|&&object| self.contention.is_on(object)) {
            if self.objects.len() <= object.index() {
                lengthen(&mut self.objects, object.index() + 1, Record::new);
            }
            let record = &mut self.objects[object.index()];
            if !record.is_left_to(thread) {
                let slots = record.changing & record.used;
                (self.past).set_out(trace, record, slots, seeker, clock);
            }
            let previous;
            (rank, previous) = record.note(label, WAIT_SLOT as u8, wait);
            self.past.reads.push(Read {
                by: wait,
                object,
                previous,
            });
        }
        (rank, self.past.race_along(trace, sets, seeker, clock))
    }

    /// Notes the objects in the footprint of the last event, a block. Returns its clock after all
    /// joins, and its rank on the last object.
    #[inline(never)]
    fn add_block(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        event: &Event,
        clock: Clock,
        block: u32,
    ) -> (u32, Clock) {
        let Event { label, thread, .. } = *event;
        let seeker = Seeker {
            thread,
            label,
            position: block,
        };
        let footprint = sets.footprint(label.object().0);
        let objects = footprint.objects().unwrap_or(&self.everything);
        let mut rank = 0;
        for &object in objects {
            if self.objects.len() <= object.index() {
                lengthen(&mut self.objects, object.index() + 1, Record::new);
            }
            let record = &mut self.objects[object.index()];
            if !record.is_left_to(thread) {
                let slots = match footprint.writes(object) {
                    Some(true) => record.used,
                    _ => record.changing & record.used,
                };
                (self.past).set_out(trace, record, slots, seeker, clock);
            }
            let previous;
            (rank, previous) = record.note(label, BLOCK_SLOT as u8, block);
            self.past.touched.push(Read {
                by: block,
                object,
                previous,
            });
        }
        (rank, self.past.race_along(trace, sets, seeker, clock))
    }

    /// Whether labels on `object` have counts, which depend on the earlier events on it.
    #[inline]
    pub(crate) fn is_counted(&self, object: ObjectId) -> bool {
        self.classes_on(object).intersects(COUNTED)
    }

    /// Joins the clock of the event at `position` into `clock`, which has room for all threads.
    #[inline]
    pub(crate) fn join_into(&self, position: u32, clock: &mut [u32]) {
        let row = self.past.rows.whose(position);
        let own = &mut clock[row.thread.index()];
        if *own > row.index {
            // `clock` already contains the clock of this event, or of a later one of its thread.
            return;
        }
        *own = row.index + 1;
        for (mine, &word) in clock.iter_mut().zip(self.past.clocks.words(row.clock)) {
            *mine = (*mine).max(word as u32);
        }
    }
}
