//! With which of the earlier events on its objects may an event race?
//!
//! With those that its label is ordered behind and that it does not come after anyway. They are collected from the
//! object's record, and looked at from the latest to the earliest.

use super::super::dependency::{Label, ReadSets, ordered};
use super::super::id::ThreadId;
use super::super::{NOWHERE, Trace};
use super::record::Record;
use super::{Clock, Past};
#[cfg(test)]
use super::{Race, Row};

impl Past {
    /// [`HappensBefore::any_access`] for the object with this record.
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
                at = self.rows[at as usize].previous;
            }
        }
        false
    }

    /// What [`Row::apart`] is for an event of `thread` with this clock that has `previous` before it in its slot.
    #[inline]
    pub(super) fn apart(&self, thread: ThreadId, clock: Clock, previous: u32) -> u32 {
        match self.is_new(thread, clock.start, previous) {
            true => previous,
            false => self.rows[previous as usize].apart,
        }
    }

    /// Collects the accesses in these slots, from the latest total one on, that an event of `thread` with this
    /// label and clock may be ordered behind and does not come after anyway. Those that come before another one
    /// which it is ordered behind are left out, as far as that can be told at once: a long execution
    /// would otherwise go through the whole history of an object that has no total accesses at each event on it.
    pub(super) fn collect(
        &mut self,
        trace: &Trace,
        record: &Record,
        label: Label,
        mut slots: u32,
        thread: ThreadId,
        clock: Clock,
    ) {
        let mut candidates = std::mem::take(&mut self.candidates);
        // From the first event on if there is no total one.
        let from = match record.heads[0] {
            NOWHERE => 0,
            total => total,
        };
        #[cfg(test)]
        {
            let mut all = std::mem::take(&mut self.all);
            self.any_access(record, slots, from, |event, _| {
                if self.is_new(thread, clock.start, event) {
                    all.push(event);
                }
                false
            });
            self.all = all;
        }
        let uncertain = label.uncertain_slots();
        if slots & uncertain != 0 {
            slots &= !(record.messages).find(trace, label, slots, |event| {
                if event >= from && self.is_new(thread, clock.start, event) {
                    candidates.push(event);
                }
            });
        }
        while slots != 0 {
            let slot = slots.trailing_zeros();
            slots &= slots - 1;
            let mut at = record.heads[slot as usize];
            while at != NOWHERE && at >= from {
                let is_new = self.is_new(thread, clock.start, at);
                if is_new {
                    candidates.push(at);
                }
                let row = &self.rows[at as usize];
                at = if is_new && uncertain >> slot & 1 == 1 {
                    row.previous
                } else {
                    row.apart
                };
            }
        }
        self.candidates = candidates;
    }

    /// Finds out with which of the candidates the last event races.
    pub(super) fn race_with_candidates(
        &mut self,
        trace: &Trace,
        sets: &ReadSets,
        label: Label,
        mut clock: Clock,
        position: u32,
    ) -> Clock {
        #[cfg(test)]
        let races = self.races.len();
        self.candidates.sort_unstable_by(|a, b| b.cmp(a));
        for at in 0..self.candidates.len() {
            let first = self.candidates[at];
            // None of them was known before another was joined.
            let known = clock.is_own && self.knows(clock.start, first);
            if !known && ordered(sets, trace.at(first).label, label) {
                clock = self.race(clock, first, position);
            }
        }
        self.candidates.clear();
        // The long way must come to the same.
        #[cfg(test)]
        for first in std::mem::take(&mut self.all) {
            let own = &self.races[races..];
            let covers = |race: &Race| {
                let Row { thread, index, .. } = self.rows[first as usize];
                let later = &self.rows[race.first as usize];
                race.first == first
                    || race.first > first
                        && (later.thread == thread || self.clocks.word(later.clock, thread) > index)
            };
            assert!(
                !ordered(sets, trace.at(first).label, label) || own.iter().any(covers),
                "{first} was left out before {position}"
            );
        }
        clock
    }
}
