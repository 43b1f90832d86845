//! What does a thread find when it reads the clock?
//!
//! Any time may pass between two reads of the clock, and time only goes forward. So a read is a
//! choice: no time has passed since the latest read that happens before this one, or so much that
//! a deadline is over. Two reads that no event orders may find any two times, as far as their own
//! pasts allow: if each read finds no earlier time than those before it in happens-before, the
//! events have an order, sorted by time, that respects happens-before, and all such orders are the
//! same trace. So a read needs no race with a read of another thread. It is an operation on no
//! object, and what it may find is a function of its past alone.
//!
//! The deadlines are the sums of an instant and a duration in the past of the read. A read may find
//! a time just behind each of them, or a day after the latest time, which is behind the deadlines
//! that are no sums (`start.elapsed() < timeout`). No read goes beyond a deadline that is more than
//! a year ahead, because such an instant stands for "never".
//!
//! A timed wait that times out, and a sleep, make the clock go forward by their duration.
//!
//! A loop that looks at the clock must have an end. If its thread waits for a change in vain, until
//! nothing else can run, time passes ([`Asked::passes`]); so it does after a few rounds that only
//! look at the clock behind a hint, and after [`most_reads`] reads in a row at one place.

use crate::rt::event::Site;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{Choice, OpKind};
use crate::rt::pooled::Empty;

/// The most outcomes of a read. There are more only if a thread has more deadlines at once.
const OUTCOMES_MAX: usize = 8;

const SECOND: u64 = 1_000_000_000;
pub(super) const DAY: u64 = 24 * 60 * 60 * SECOND;
const YEAR: u64 = 366 * DAY;

/// The least number of reads in a row, at one place, that may find that no time has passed.
const READS_MIN: u32 = 20;

/// The number of reads in a row at one place that may find that no time has passed, with this bound
/// on timeouts in a row.
pub(super) fn most_reads(timeout_bound: u32) -> u32 {
    READS_MIN.max(timeout_bound)
}

/// A time that a thread knows of, in nanoseconds since the clock began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) thread: ThreadId,
    /// The index, among the events of the thread, of the event with which others learn of it.
    pub(super) index: u32,
    pub(super) time: u64,
    /// Whether it is the sum of an instant and a duration, and not a time that the clock has shown.
    pub(super) is_deadline: bool,
}

/// The reads of one thread at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    thread: ThreadId,
    site: Site,
    /// The number of reads in a row that have found that no time has passed.
    pub(super) still: u32,
    /// The number of those before which the thread did nothing since the read before but reach a
    /// hint.
    pub(super) bare: u32,
    /// The number of reads that have found that time has passed.
    pub(super) passed: u32,
    /// The number of events of the thread behind its last read here.
    pub(super) events: u32,
}

/// The clock of an execution.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    pub(super) moments: Vec<Moment>,
    reads: Vec<Reads>,
}

impl Empty for Clock {
    fn empty(&mut self) {
        let Clock { moments, reads } = self;
        moments.empty();
        reads.empty();
    }
}

/// What a read of the clock may find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(super) times: [u64; OUTCOMES_MAX],
    pub(super) outcomes: u32,
    /// Whether the only outcome is that time passes, because the loop around the read would have no
    /// end otherwise.
    pub(super) passes: bool,
}

impl Asked {
    /// The operation that chooses what the read finds.
    pub(crate) fn operation(&self) -> OpKind {
        OpKind::Choose {
            options: self.outcomes,
            what: match self.passes {
                true => Choice::TimePasses,
                false => Choice::Clock,
            },
        }
    }
}

impl Clock {
    /// Another execution begins.
    pub(super) fn clear(&mut self) {
        if !self.moments.is_empty() {
            self.empty();
        }
    }

    /// The reads of this thread at this place.
    pub(super) fn reads(&mut self, thread: ThreadId, site: Site) -> &mut Reads {
        let known = (self.reads.iter()).position(|it| it.thread == thread && it.site == site);
        let at = known.unwrap_or_else(|| {
            self.reads.push(Reads {
                thread,
                site,
                still: 0,
                bare: 0,
                passed: 0,
                events: 0,
            });
            self.reads.len() - 1
        });
        &mut self.reads[at]
    }

    /// The latest time that this thread knows of, if any, and the deadlines that it knows of.
    pub(super) fn known_to(
        &self,
        thread: ThreadId,
        mut learnt: impl FnMut(ThreadId, u32) -> bool,
    ) -> (Option<u64>, Vec<u64>) {
        let mut latest = None;
        let mut deadlines = Vec::new();
        for moment in &self.moments {
            if moment.thread != thread && !learnt(moment.thread, moment.index) {
                continue;
            }
            if moment.is_deadline {
                deadlines.push(moment.time);
            } else {
                latest = latest.max(Some(moment.time));
            }
        }
        (latest, deadlines)
    }
}

/// What a read may find, where `latest` is the latest time before it: that time, times just behind
/// the deadlines ahead, and one behind all of them.
pub(super) fn outcomes(latest: u64, mut deadlines: Vec<u64>) -> ([u64; OUTCOMES_MAX], u32) {
    deadlines.retain(|&it| it > latest && it <= latest.saturating_add(YEAR));
    deadlines.sort_unstable();
    deadlines.dedup();
    let last = deadlines.pop();
    deadlines.truncate(OUTCOMES_MAX - 2);
    let mut times = [latest; OUTCOMES_MAX];
    for (slot, deadline) in times[1..].iter_mut().zip(&deadlines) {
        *slot = deadline + 1;
    }
    let outcomes = deadlines.len() + 2;
    let behind_all = last.map_or(0, |last| last.saturating_add(1));
    times[outcomes - 1] = latest.saturating_add(DAY).max(behind_all);
    (times, outcomes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_finds_no_time_gone_or_a_time_behind_each_deadline_ahead() {
        let found = |latest, deadlines: &[u64]| {
            let (times, outcomes) = outcomes(latest, deadlines.to_vec());
            times[..outcomes as usize].to_vec()
        };
        assert_eq!(found(7, &[]), [7, 7 + DAY]);
        assert_eq!(found(7, &[7, 3, 9]), [7, 7 + DAY]);
        assert_eq!(found(7, &[20, 9, 20]), [7, 10, 7 + DAY]);
        assert_eq!(found(7, &[9, 3 * DAY]), [7, 10, 3 * DAY + 1]);
        // An instant so far ahead stands for "never".
        assert_eq!(found(7, &[8 + YEAR]), [7, 7 + DAY]);
        let many: Vec<u64> = (0..20).map(|nth| 100 + nth).collect();
        assert_eq!(found(0, &many).len(), OUTCOMES_MAX);
        assert_eq!(found(u64::MAX, &[]), [u64::MAX; 2]);
    }
}
