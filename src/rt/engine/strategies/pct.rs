//! How is a bug of small depth hit with a guaranteed chance?
//!
//! PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, *A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs*, ASPLOS 2010, section 2.4). Threads have random distinct priorities,
//! and of those that are enabled the highest runs. At d - 1 moments, drawn uniformly from the k
//! steps of an execution, the running thread falls below all others: the i-th of them gives it
//! priority i. A bug that needs d ordering constraints is hit with a chance of at least
//! 1 / (n * k^(d-1)) per execution, with n threads.
//!
//! Deviation 1: k is not given but learnt; it is the most steps of an execution so far. The
//! first execution has no change of priorities.
//! Deviation 2: only steps at which several threads are enabled count. Where one is alone it runs
//! whatever its priority, and the change can as well be made when it next has competition.
//! Deviation 3: no more changes are drawn than there are steps. A greater d is one beyond every bug
//! that an execution of this length can have.

use crate::rt::engine::Point;
use crate::rt::engine::rng::Rng;
use crate::rt::engine::strategies::sample::{Strategy, highest};
use crate::rt::event::id::ThreadId;

/// The priorities of one execution.
#[derive(Debug)]
pub(crate) struct Pct {
    depth: usize,
    /// The k of the paper.
    steps: u64,
    /// How many steps of this execution had competition.
    step: u64,
    /// For each change of priorities the step before which it happens, and the priority that it
    /// gives, in this order.
    changes: Vec<(u64, u64)>,
    /// How many of them have happened.
    changed: usize,
    /// For each thread its priority. Those drawn when a thread is first seen are above 2^63.
    priorities: Vec<u64>,
}

impl Pct {
    /// For bugs of this depth; 1 means that priorities never change.
    pub(crate) fn new(depth: usize) -> Pct {
        Pct {
            depth,
            steps: 0,
            step: 0,
            changes: Vec::new(),
            changed: 0,
            priorities: Vec::new(),
        }
    }
}

impl Strategy for Pct {
    fn begin(&mut self, rng: &mut Rng) {
        self.priorities.clear();
        self.changes.clear();
        self.changed = 0;
        self.step = 0;
        let steps = self.steps;
        let changes = (self.depth as u64).saturating_sub(1).min(steps);
        let drawn = (1..=changes).map(|priority| (rng.below(steps), priority));
        self.changes.extend(drawn);
        self.changes.sort_unstable();
    }

    fn pick(&mut self, at: &Point<'_>, able: &[ThreadId], rng: &mut Rng) -> Option<ThreadId> {
        for thread in at.machine.live() {
            if self.priorities.len() <= thread.index() {
                self.priorities.resize(thread.index() + 1, 0);
            }
            if self.priorities[thread.index()] == 0 {
                self.priorities[thread.index()] = rng.next() | 1 << 63;
            }
        }
        if able.len() < 2 {
            return able.first().copied();
        }
        while let Some(&(step, priority)) = self.changes.get(self.changed)
            && step <= self.step
        {
            let thread = highest(able, &self.priorities)?;
            self.priorities[thread.index()] = priority;
            self.changed += 1;
        }
        self.step += 1;
        highest(able, &self.priorities)
    }

    /// Up to the next change of priorities.
    fn further(&self, _thread: ThreadId, able: &[ThreadId], _rng: &Rng) -> usize {
        if able.len() < 2 {
            return usize::MAX;
        }
        let next = self.changes.get(self.changed);
        next.map_or(usize::MAX, |(step, _)| (step - self.step) as usize)
    }

    fn pass(&mut self, times: u64, able: &[ThreadId], _rng: &mut Rng) {
        if able.len() > 1 {
            self.step += times;
        }
    }

    fn finish(&mut self) {
        self.steps = self.steps.max(self.step);
    }
}
