//! How does a sampler hit a bug of small depth with a guaranteed chance?
//!
//! PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, *A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs*, ASPLOS 2010, section 2.4). Threads have random distinct priorities,
//! and of the enabled threads the one with the highest priority runs. At d - 1 moments, drawn
//! uniformly from the k steps of an execution, the running thread falls below all others: the i-th
//! of them gives it priority i. An execution with n threads hits a bug that needs d ordering
//! constraints with a chance of at least 1 / (n * k^(d-1)).
//!
//! Deviation 1: k is not given but learnt; it is the most steps of an execution so far. The first
//! execution has no change of priorities.
//! Deviation 2: only steps at which several threads are enabled count. A thread that is the only
//! enabled one runs at any priority, and the change has the same effect at its next step with
//! competition.
//! Deviation 3: the number of changes is at most the number of steps. A greater d is beyond every
//! bug that an execution of this length can have.

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
    /// The number of steps of this execution at which several threads were enabled.
    step: u64,
    /// For each change of priorities the step before which it happens, and the priority that it
    /// gives, in order of the steps.
    changes: Vec<(u64, u64)>,
    /// The number of changes that have happened.
    changed: usize,
    /// The priority of each thread. Priorities that are drawn when a thread first appears are above
    /// 2^63.
    priorities: Vec<u64>,
}

impl Pct {
    /// For bugs of this depth; with 1 priorities never change.
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

    /// The number of steps up to the next change of priorities.
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
