//! Does a loop with several hints repeat itself?
//!
//! A loop that tries a few times before it yields has one hint inside and another one outside. A
//! loop that reads several queues in turn may have one hint for all of them. No round of such a
//! loop is like the one before, but the rounds form a cycle. So the last rounds without a change
//! are kept, each with its hint and its reads.

use crate::rt::event::Site;
use crate::rt::event::id::ObjectId;

/// The most rounds that count as a cycle.
pub(super) const LONGEST: usize = 16;

/// The latest rounds of one thread since its last change.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    rounds: Vec<Past>,
    /// The reads of the rounds, one after the other. Equal reads of consecutive rounds are stored
    /// once.
    reads: Vec<(ObjectId, u64)>,
    /// Tokens that the thread has made available and has taken itself in these rounds. The thread
    /// itself changed what another round has seen of them, so that says nothing about other
    /// threads.
    own: Vec<ObjectId>,
    /// The reads of the rounds of a cycle, without duplicates.
    all: Vec<(ObjectId, u64)>,
    /// The first of their hints in the order of the source.
    first: Option<Site>,
    /// The number of rounds before another wait is allowed: a released thread first reads all of
    /// its locations again.
    spare: usize,
}

/// A completed round.
#[derive(Clone, Copy, Debug)]
struct Past {
    hint: Site,
    /// The range of its reads.
    reads: (usize, usize),
}

impl Cycle {
    /// Begins again after a change: the rounds from here on are those of another loop.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.rounds.clear();
        self.reads.clear();
        self.own.clear();
        self.spare = 0;
    }

    /// The thread has taken a token that it had made available itself.
    pub(super) fn take_own(&mut self, token: ObjectId) {
        if !self.own.contains(&token) {
            self.own.push(token);
        }
    }

    /// A round has reached its hint.
    #[inline]
    pub(super) fn end_round(&mut self) {
        self.spare = self.spare.saturating_sub(1);
    }

    /// Whether no wait is allowed yet, whatever the rounds are.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        self.spare > 0
    }

    /// Adds `rounds` rounds without a change, which have all reached this hint with these reads.
    pub(super) fn push(
        &mut self,
        hint: Site,
        reads: &[(ObjectId, u64)],
        rounds: usize,
        times: usize,
    ) {
        // No more rounds are examined.
        let most = LONGEST * times;
        if self.rounds.len() > 2 * most {
            self.drop_half();
        }
        let start = self.reads.len();
        self.reads.extend_from_slice(reads);
        let past = Past {
            hint,
            reads: (start, self.reads.len()),
        };
        let rounds = rounds.min(most);
        self.rounds.extend(std::iter::repeat_n(past, rounds));
    }

    #[cold]
    #[inline(never)]
    fn drop_half(&mut self) {
        let half = self.rounds.len() / 2;
        self.rounds.drain(..half);
        // The first remaining round may share its reads with a dropped one.
        let (gone, _) = self.rounds[0].reads;
        self.reads.drain(..gone);
        for round in &mut self.rounds {
            round.reads = (round.reads.0 - gone, round.reads.1 - gone);
        }
    }

    /// Whether [`Cycle::repeats`] may return true for these rounds and `more` others.
    #[inline(always)]
    pub(super) fn may_repeat(&self, more: usize, times: usize) -> bool {
        self.rounds.len() + more >= 2 * times && self.spare == 0
    }

    /// Whether the last rounds were the same cycle, of at least two rounds, `times` times in a row.
    /// The last `rounds` rounds, all with this hint and these reads, are included. False if the
    /// thread has waited since the last but one of these cycles. If true, [`Cycle::read`] returns
    /// the reads of the cycle.
    pub(super) fn repeats(
        &mut self,
        hint: Site,
        reads: &[(ObjectId, u64)],
        rounds: usize,
        times: usize,
    ) -> bool {
        self.push(hint, reads, rounds, times);
        let found = self.find_repeated(times);
        // There may be more rounds of the same kind.
        let before = self.rounds.len() - rounds.min(LONGEST * times);
        let (start, _) = self.rounds[before].reads;
        self.rounds.truncate(before);
        self.reads.truncate(start);
        found
    }

    fn find_repeated(&mut self, times: usize) -> bool {
        let longest = LONGEST.min(self.rounds.len() / times);
        let Some(length) = (2..=longest).find(|&length| self.is_cycle(length, times)) else {
            return false;
        };
        self.spare = length;
        self.all.clear();
        let cycle = &self.rounds[self.rounds.len() - length..];
        // Mostly all hints are in one file.
        let place = |site: &Site| (site.line(), site.column(), site.file());
        self.first = cycle.iter().map(|round| round.hint).min_by_key(place);
        let of_others = |(object, _): &&(ObjectId, u64)| !self.own.contains(object);
        for &(object, value) in self.reads[cycle[0].reads.0..].iter().filter(of_others) {
            match self.all.iter_mut().find(|(known, _)| *known == object) {
                Some(known) => known.1 = value,
                None => self.all.push((object, value)),
            }
        }
        true
    }

    /// The reads of the last cycle that was found: each location with its last value, without the
    /// tokens that the thread has taken itself.
    pub(super) fn read(&self) -> &[(ObjectId, u64)] {
        &self.all
    }

    /// The first hint of the last cycle that was found, in the order of the source.
    pub(super) fn first_hint(&self) -> Option<Site> {
        self.first
    }

    /// Whether the last rounds were a cycle of this length, `times` times.
    fn is_cycle(&self, length: usize, times: usize) -> bool {
        let count = self.rounds.len();
        let mut firsts = (count - length * times..count - length).rev();
        firsts.all(|at| self.are_alike(at, at + length))
    }

    fn are_alike(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.rounds[one], &self.rounds[other]);
        std::ptr::eq(one.hint, other.hint) && self.read_in(one) == self.read_in(other)
    }

    fn read_in(&self, round: &Past) -> &[(ObjectId, u64)] {
        let (start, end) = round.reads;
        &self.reads[start..end]
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::rt::event::mix::mix;

    #[test]
    fn each_round_that_is_kept_has_what_it_has_read() {
        const TIMES: usize = 3;
        let hint = Location::caller();
        let mut cycle = Cycle::default();
        let mut all: Vec<Vec<(ObjectId, u64)>> = Vec::new();
        let mut again = 0;
        for step in 0..1000 {
            let drawn = mix(step);
            let reads = vec![(ObjectId(0), drawn & 1), (ObjectId(1), drawn >> 1 & 1)];
            let rounds = 1 + (drawn >> 2) as usize % 3;
            again += rounds - 1;
            cycle.repeats(hint, &reads, rounds, TIMES);
            cycle.push(hint, &reads, rounds, TIMES);
            all.extend(std::iter::repeat_n(reads, rounds));
            let kept = &all[all.len() - cycle.rounds.len()..];
            for (round, reads) in cycle.rounds.iter().zip(kept) {
                assert_eq!(cycle.read_in(round), reads);
            }
        }
        assert!(again > 200 && cycle.rounds.len() <= 2 * LONGEST * TIMES + 3);
        assert!(cycle.reads.len() < 2 * cycle.rounds.len());
    }
}
