//! Does a loop with several hints repeat itself?
//!
//! One that tries a few times before it yields has a hint inside and another one outside, and one that looks into several
//! queues in turns may have one hint for all of them. None of its rounds is like the one before, but the rounds come
//! in a cycle. So the last rounds in which nothing was changed are kept, each with its hint and what it has read.

use crate::rt::trace::Site;
use crate::rt::trace::id::ObjectId;

/// The most rounds that are taken for a cycle.
pub(super) const LONGEST: usize = 16;

/// The rounds of one thread since it has changed something last, the latest of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    rounds: Vec<Past>,
    /// What they have read, one after the other; what a round has read like the one before it is there once.
    reads: Vec<(ObjectId, u64)>,
    /// What the rounds of a cycle have read, without duplicates.
    all: Vec<(ObjectId, u64)>,
    /// How many rounds are still to come before there may be another wait: who was let go looks at everything.
    spare: usize,
}

/// A round that is over.
#[derive(Clone, Copy, Debug)]
struct Past {
    hint: Site,
    /// What it has read: where that begins and ends.
    reads: (usize, usize),
}

impl Cycle {
    /// Something was changed, so it is another loop from here on.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.rounds.clear();
        self.reads.clear();
        self.spare = 0;
    }

    /// A round that has changed nothing since what it has read has come to its hint. `again` says that the round before,
    /// whatever that was, has read the same.
    #[inline]
    pub(super) fn push(
        &mut self,
        hint: Site,
        reads: &[(ObjectId, u64)],
        again: bool,
        times: usize,
    ) {
        if self.rounds.len() > 2 * LONGEST * times {
            self.drop_half();
        }
        let reads = match self.rounds.last() {
            Some(before) if again => before.reads,
            _ => {
                let start = self.reads.len();
                self.reads.extend_from_slice(reads);
                (start, self.reads.len())
            }
        };
        self.rounds.push(Past { hint, reads });
        self.spare = self.spare.saturating_sub(1);
    }

    #[cold]
    #[inline(never)]
    fn drop_half(&mut self) {
        let half = self.rounds.len() / 2;
        self.rounds.drain(..half);
        // The first one that is left may have read what stands with one that is gone.
        let (gone, _) = self.rounds[0].reads;
        self.reads.drain(..gone);
        for round in &mut self.rounds {
            round.reads = (round.reads.0 - gone, round.reads.1 - gone);
        }
    }

    /// If the last rounds were the same cycle of at least two so many `times` in a row, and the thread has not waited since
    /// the last but one of these cycles: what they have read, each location with the value that was seen last.
    #[inline]
    pub(super) fn repeated(&mut self, times: usize) -> Option<&[(ObjectId, u64)]> {
        // Mostly something was changed a moment ago.
        if self.rounds.len() < 2 * times || self.spare > 0 {
            return None;
        }
        self.find_repeated(times)
    }

    #[inline(never)]
    fn find_repeated(&mut self, times: usize) -> Option<&[(ObjectId, u64)]> {
        let longest = LONGEST.min(self.rounds.len() / times);
        let length = (2..=longest).find(|&length| self.repeats(length, times))?;
        self.spare = length;
        self.all.clear();
        let (first, _) = self.rounds[self.rounds.len() - length].reads;
        for &(object, value) in &self.reads[first..] {
            match self.all.iter_mut().find(|(known, _)| *known == object) {
                Some(known) => known.1 = value,
                None => self.all.push((object, value)),
            }
        }
        Some(&self.all)
    }

    /// Whether the last rounds were a cycle of this length so many times.
    fn repeats(&self, length: usize, times: usize) -> bool {
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
    use crate::rt::trace::mix::mix;

    #[test]
    fn each_round_that_is_kept_has_what_it_has_read() {
        const TIMES: usize = 3;
        let hint = Location::caller();
        let mut cycle = Cycle::default();
        let mut all: Vec<Vec<(ObjectId, u64)>> = Vec::new();
        let mut again = 0;
        for step in 0..2000 {
            let drawn = mix(step);
            let reads = vec![(ObjectId(0), drawn & 1), (ObjectId(1), drawn >> 1 & 1)];
            let is_alike = all.last() == Some(&reads);
            again += usize::from(is_alike);
            cycle.push(hint, &reads, is_alike, TIMES);
            all.push(reads);
            let kept = &all[all.len() - cycle.rounds.len()..];
            for (round, reads) in cycle.rounds.iter().zip(kept) {
                assert_eq!(cycle.read_in(round), reads);
            }
        }
        assert!(again > 200 && cycle.rounds.len() <= 2 * LONGEST * TIMES + 1);
        assert!(cycle.reads.len() < 2 * cycle.rounds.len());
    }
}
