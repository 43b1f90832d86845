//! Which outcomes of a choice are explored already, or will be?
//!
//! A choice commutes with everything. So an outcome that sleeps, or has a branch of its own behind
//! which nobody sleeps, is covered whatever else there is in an execution, and need not be searched
//! for; a choice may have thousands of outcomes, and each execution asks for all of them.
//!
//! Where no other thread sleeps or has a branch, nobody has to be woken by what follows the choice,
//! so a branch of one step is enough.

use crate::rt::event::operation::Step;

use crate::rt::engine::Execution;

/// The outcomes of the choice that was asked for last.
#[derive(Default, Debug)]
pub(super) struct Choices {
    /// The position of the choice in the current execution.
    at: Option<u32>,
    /// For each outcome whether it is covered, and how many are not.
    covered: Vec<bool>,
    missing: usize,
    /// Whether all that sleeps or is planned there is an outcome of this choice.
    alone: bool,
}

/// Something that sleeps or begins a branch at a choice.
pub(super) struct Known {
    pub(super) step: Step,
    /// Whether it covers its outcome, if it is one.
    pub(super) covers: bool,
}

/// What there is to do for an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    /// It is covered.
    Nothing,
    /// A branch of this one step.
    Step,
    /// A sequence that has to be searched for.
    Sequence,
}

impl Choices {
    /// Another execution is looked at.
    pub(super) fn forget(&mut self) {
        self.at = None;
    }

    /// What this outcome of the choice at `first` lacks, where `known` are the steps that sleep or
    /// begin a branch there. If that is a step, it counts as planned from here on.
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

    /// Whether all outcomes of the choice that was asked for last are covered.
    pub(super) fn all(&self) -> bool {
        self.missing == 0
    }
}
