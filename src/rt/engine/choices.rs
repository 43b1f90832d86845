//! Which outcomes of a choice are explored already, or will be?
//!
//! A choice commutes with everything. So an outcome that is in the sleep set, or has a branch of
//! its own with an empty sleep set behind it, is covered, whatever the other events of an execution
//! are. Such an outcome needs no search; a choice may have thousands of outcomes, and each
//! execution checks all of them.
//!
//! Where the sleep set and the wakeup tree hold no step of another thread, the events behind the
//! choice have no sleeper to wake, so a branch of one step is enough.

use crate::rt::event::operation::Step;

use crate::rt::engine::Execution;

/// The outcomes of the choice that the last call asked for.
#[derive(Default, Debug)]
pub(super) struct Choices {
    /// The position of the choice in the current execution.
    at: Option<u32>,
    /// For each outcome whether it is covered, and the number of outcomes that are not.
    covered: Vec<bool>,
    missing: usize,
    /// Whether all sleepers and branches there are outcomes of this choice.
    alone: bool,
}

/// A sleeper, or the first step of a branch, at a choice.
pub(super) struct Known {
    pub(super) step: Step,
    /// Whether the step covers its outcome, if it is an outcome of the choice.
    pub(super) covers: bool,
}

/// The missing part of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    /// The outcome is covered.
    Nothing,
    /// A branch of this one step.
    Step,
    /// A sequence, which the caller has to find.
    Sequence,
}

impl Choices {
    /// Prepares for another execution.
    pub(super) fn forget(&mut self) {
        self.at = None;
    }

    /// The missing part of this outcome of the choice at `first`, where `known` are the sleepers
    /// and the first steps of branches there. An outcome that lacks a step counts as planned from
    /// here on.
    pub(super) fn lack<I: Iterator<Item = Known>>(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        step: Step,
        known: impl FnOnce() -> I,
    ) -> Lack {
        if self.at != Some(first) {
            self.at = Some(first);
            let event = execution.trace.at(first);
            self.covered.clear();
            self.covered.resize(event.alternatives as usize, false);
            self.missing = self.covered.len();
            self.cover(event.alternative);
            self.alone = true;
            for known in known() {
                if known.step.thread == step.thread && known.covers {
                    self.cover(known.step.alternative);
                } else {
                    self.alone = false;
                }
            }
        }
        if self.covered[step.alternative as usize] {
            return Lack::Nothing;
        }
        if !self.alone {
            return Lack::Sequence;
        }
        self.cover(step.alternative);
        Lack::Step
    }

    fn cover(&mut self, alternative: u32) {
        let before = std::mem::replace(&mut self.covered[alternative as usize], true);
        self.missing -= !before as usize;
    }

    /// Whether all outcomes of the last choice are covered.
    pub(super) fn all(&self) -> bool {
        self.missing == 0
    }
}
