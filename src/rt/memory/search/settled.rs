//! Which sequences need no second look?
//!
//! Most events of an execution were there in the execution before, and so were most outcomes that
//! they could have instead. Each of these was planned then, or found to be covered by a step that
//! is asleep or by a branch of the wakeup tree. The finding rests on some events of that execution.
//! An execution that has all of these in common with it leads to the same finding, because a branch
//! covers every sequence that has its events.

use crate::rt::event::id::ThreadId;
use crate::rt::memory::{Outcome, StoreRef};

/// A step that ends a sequence: the outcome of the thread's step of this number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) thread: ThreadId,
    pub(super) number: u32,
    pub(super) outcome: Outcome,
}

impl Candidate {
    /// The store that is read, or that a store goes behind.
    fn store(&self) -> Option<StoreRef> {
        match self.outcome {
            Outcome::Reads(store) | Outcome::Modifies(store) | Outcome::Behind(store) => {
                Some(store)
            }
            Outcome::Done | Outcome::Other { .. } => None,
        }
    }
}

/// The candidates at a point that are planned, explored or covered.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// Each with the number of first steps of the execution that the finding rests on.
    found: Vec<(Candidate, usize)>,
    /// The highest of these numbers.
    most: usize,
    /// Whether these are all candidates that there are with the stores of the last execution.
    is_complete: bool,
}

/// The steps of an execution that a finding rests on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evidence {
    /// So many first steps.
    First(usize),
    /// All of them, so the finding holds for this execution only.
    Whole,
}

impl Evidence {
    /// The finding rests on the step at this position as well.
    pub(super) fn and(self, step: usize) -> Evidence {
        match self {
            Evidence::First(steps) => Evidence::First(steps.max(step + 1)),
            Evidence::Whole => Evidence::Whole,
        }
    }
}

impl Settled {
    pub(super) fn clear(&mut self) {
        self.found.clear();
        self.most = 0;
        self.is_complete = false;
    }

    /// Whether there is no candidate left, as long as there is no new store.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// All candidates have been looked at.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Keeps what rests on no more than so many first steps.
    #[inline]
    pub(super) fn keep(&mut self, steps: usize) {
        if self.most <= steps {
            return;
        }
        self.most = steps;
        let all = self.found.len();
        self.found.retain(|&(_, rests_on)| rests_on <= steps);
        self.is_complete &= self.found.len() == all;
    }

    pub(super) fn add(&mut self, candidate: Candidate, evidence: Evidence) {
        // What an operation on another object depends on does not follow from its outcome.
        let is_to_atomic = candidate.store().is_some();
        match evidence {
            Evidence::First(steps) if is_to_atomic => {
                self.most = self.most.max(steps);
                self.found.push((candidate, steps));
            }
            _ => self.is_complete = false,
        }
    }

    pub(super) fn has(&self, candidate: &Candidate) -> bool {
        self.found.iter().any(|(found, _)| found == candidate)
    }

    /// Whether the thread's step of this number is settled with an outcome that reads this store or
    /// goes behind it.
    pub(super) fn has_at(&self, thread: ThreadId, number: u32, store: StoreRef) -> bool {
        self.found.iter().any(|(found, _)| {
            found.thread == thread && found.number == number && found.store() == Some(store)
        })
    }
}
