//! With which of the earlier events on its objects does an event race?
//!
//! It races with the events that its label is ordered behind and that do not already happen before
//! it. The events of one slot are visited from the latest to the earliest ([`Way`]). With several
//! slots, or several objects, the latest event of all comes first, so that an event that happens
//! before another is known to do so by then.

use crate::rt::event::id::ThreadId;
use crate::rt::event::{NOWHERE, Trace};
#[cfg(test)]
use crate::rt::relation::happens_before::past::Race;
use crate::rt::relation::happens_before::past::{Clock, Past};
use crate::rt::relation::happens_before::record::Record;
use crate::rt::relation::happens_before::rows::Row;
#[cfg(test)]
use crate::rt::relation::happens_before::rows::Whose;
use crate::rt::relation::happens_before::way::Way;
use crate::rt::relation::independence::{Label, ReadSets, ordered};

/// The last event, for which the races are searched.
#[derive(Clone, Copy)]
pub(super) struct Seeker {
    pub(super) thread: ThreadId,
    pub(super) label: Label,
    pub(super) position: u32,
}

/// The next event to visit in a slot, behind a visited one on the way back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The event before it in the slot.
    Previous,
    /// The latest earlier event that is not known to happen before it. The events in between do.
    Apart,
}

/// Whether their accesses to objects order the event at `at` before a later event with this label.
#[inline(never)]
fn are_ordered(trace: &Trace, sets: &ReadSets, at: u32, label: Label) -> bool {
    ordered(sets, trace.at(at).label, label)
}

impl Past {
    /// [`any_access`](crate::rt::relation::happens_before::HappensBefore::any_access)
    /// for the object with this record.
    #[inline]
    pub(super) fn any_access(
        &self,
        record: &Record,
        slots: u32,
        from: u32,
        mut found: impl FnMut(u32, usize) -> bool,
    ) -> bool {
        let mut slots = slots & record.used;
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let mut at = record.heads[slot];
            while at != NOWHERE && at >= from {
                if found(at, slot) {
                    return true;
                }
                at = self.rows.row(at).previous;
            }
        }
        false
    }

    /// [`HappensBefore::go_back`](crate::rt::relation::happens_before::HappensBefore::go_back).
    #[inline]
    pub(super) fn go_back(&self, latest: u32, from: u32, mut found: impl FnMut(u32) -> Next) {
        let mut at = latest;
        while at != NOWHERE && at >= from {
            let row = self.rows.row(at);
            at = match found(at) {
                Next::Previous => row.previous,
                Next::Apart => {
                    #[cfg(test)]
                    self.check_apart(at, row);
                    row.apart
                }
            };
        }
    }

    /// The skipped events must happen before the event at `at`.
    #[cfg(test)]
    fn check_apart(&self, at: u32, row: &Row) {
        let mut passed = row.previous;
        while passed != row.apart {
            let Whose { thread, index, .. } = self.rows.whose(passed);
            assert!(self.look_at(at).knows(thread, index), "{passed} and {at}");
            passed = self.rows.row(passed).previous;
        }
    }

    /// [`Row::apart`] for an event of `thread` with this clock, after the event `previous` in its
    /// slot.
    #[inline]
    pub(super) fn apart(&self, thread: ThreadId, clock: Clock, previous: u32) -> u32 {
        let row = self.rows.row(previous);
        if self.is_new_with(thread, clock.start, row.whose) {
            previous
        } else {
            row.apart
        }
    }

    /// Finds the races of an event with the events in these slots of an object, from the latest
    /// total event on. There is at least one slot. Returns the clock of the event after them.
    #[inline(never)]
    pub(super) fn race_in(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        record: &Record,
        slots: u32,
        seeker: Seeker,
        mut clock: Clock,
    ) -> Clock {
        #[cfg(test)]
        let races = self.races.len();
        // Mostly there is one slot, and the object is no channel.
        if slots & (slots - 1) == 0 && record.messages.are_none() {
            #[cfg(test)]
            self.list_all(record, slots, seeker, clock);
            let mut way = Way::through(record, slots.trailing_zeros(), seeker.label);
            while way.next() != NOWHERE {
                clock = self.go_on(trace, sets, &mut way, seeker, clock);
            }
            #[cfg(test)]
            self.check_all(trace, sets, seeker, races);
            return clock;
        }
        self.set_out(trace, record, slots, seeker, clock);
        self.race_along(trace, sets, seeker, clock)
    }

    /// Adds the ways through these slots of an object, for [`Past::race_along`].
    pub(super) fn set_out(
        &mut self,
        trace: &Trace,
        record: &Record,
        mut slots: u32,
        seeker: Seeker,
        #[cfg_attr(not(test), expect(unused_variables, reason = "only tests list all"))]
        clock: Clock,
    ) {
        #[cfg(test)]
        self.list_all(record, slots, seeker, clock);
        let label = seeker.label;
        if slots & label.uncertain_slots() != 0 {
            let from = record.since_total();
            let ways = &mut self.ways;
            slots &= !(record.messages).find(trace, label, slots, |event| {
                if event >= from {
                    ways.push(Way::to(event));
                }
            });
        }
        while slots != 0 {
            let way = Way::through(record, slots.trailing_zeros(), label);
            slots &= slots - 1;
            if way.next() != NOWHERE {
                self.ways.push(way);
            }
        }
    }

    /// Finds the races of an event along the added ways. Returns the clock of the event after them.
    pub(super) fn race_along(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        seeker: Seeker,
        mut clock: Clock,
    ) -> Clock {
        #[cfg(test)]
        let races = self.races.len();
        let mut ways = std::mem::take(&mut self.ways);
        while !ways.is_empty() {
            let mut latest = 0;
            for at in 1..ways.len() {
                if ways[at].next() > ways[latest].next() {
                    latest = at;
                }
            }
            clock = self.go_on(trace, sets, &mut ways[latest], seeker, clock);
            if ways[latest].next() == NOWHERE {
                ways.swap_remove(latest);
            }
        }
        self.ways = ways;
        #[cfg(test)]
        self.check_all(trace, sets, seeker, races);
        clock
    }

    /// Notes the race with the next event of the way, if the two race, and advances the way.
    /// Returns the clock after that.
    #[inline(always)]
    fn go_on(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        way: &mut Way,
        seeker: Seeker,
        mut clock: Clock,
    ) -> Clock {
        let Seeker {
            thread,
            label,
            position,
        } = seeker;
        let at = way.next();
        #[cfg(test)]
        {
            self.visited += 1;
        }
        let &Row {
            whose,
            previous,
            apart,
            ..
        } = self.rows.row(at);
        // The events in between happen before that event. So they are in the clock, too, once that
        // event is.
        let mut next = apart;
        if self.is_new_with(thread, clock.start, whose) {
            let is_ordered = || are_ordered(trace, sets, at, label);
            assert!(!cfg!(test) || way.is_uncertain() || is_ordered());
            if !way.is_uncertain() || is_ordered() {
                clock = self.race(clock, at, position);
            } else {
                next = previous;
            }
        }
        way.lead_to(next);
        clock
    }

    /// Lists all events in these slots that do not already happen before the event, for
    /// [`Past::check_all`].
    #[cfg(test)]
    fn list_all(&mut self, record: &Record, slots: u32, seeker: Seeker, clock: Clock) {
        let mut all = std::mem::take(&mut self.all);
        self.any_access(record, slots, record.since_total(), |event, _| {
            if self.is_new(seeker.thread, clock.start, event) {
                all.push(event);
            }
            false
        });
        self.all = all;
    }

    /// Compares with the search without shortcuts: every ordered event of the list must be covered
    /// by one of the races from number `races` on.
    #[cfg(test)]
    fn check_all(&mut self, trace: &Trace, sets: &ReadSets, seeker: Seeker, races: usize) {
        for first in std::mem::take(&mut self.all) {
            let own = &self.races[races..];
            let covers = |race: &Race| {
                let Whose { thread, index, .. } = self.rows.whose(first);
                let later = self.rows.whose(race.first);
                race.first == first
                    || race.first > first
                        && (later.thread == thread || self.clocks.word(later.clock, thread) > index)
            };
            assert!(
                !ordered(sets, trace.at(first).label, seeker.label) || own.iter().any(covers),
                "{first} was left out before {}",
                seeker.position
            );
        }
    }
}
