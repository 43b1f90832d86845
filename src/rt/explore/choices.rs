//! Which outcomes of a choice are explored already, or will be?
//!
//! A choice commutes with everything. So an outcome that sleeps, or has a branch of its own behind which
//! nobody sleeps, is covered whatever else there is in an execution, and need not be searched for; a
//! choice may have thousands of outcomes, and each execution asks for all of them.

use crate::rt::trace::operation::Step;

use super::Finished;

/// The outcomes of the choice that was asked for last.
#[derive(Default, Debug)]
pub(super) struct Choices {
    /// The position of the choice in the current execution.
    at: Option<u32>,
    /// For each outcome whether it is covered.
    covered: Vec<bool>,
}

impl Choices {
    /// Another execution is looked at.
    pub(super) fn forget(&mut self) {
        self.at = None;
    }

    /// Whether this outcome of the choice at `first` is covered, where `known` are the steps at that point
    /// that are.
    pub(super) fn cover<I: Iterator<Item = Step>>(
        &mut self,
        run: &Finished<'_>,
        first: u32,
        step: Step,
        known: impl FnOnce() -> I,
    ) -> bool {
        if self.at != Some(first) {
            self.at = Some(first);
            let event = run.trace.at(first);
            self.covered.clear();
            self.covered.resize(event.alternatives as usize, false);
            self.covered[event.alternative as usize] = true;
            for known in known().filter(|known| known.thread == step.thread) {
                self.covered[known.alternative as usize] = true;
            }
        }
        self.covered[step.alternative as usize]
    }

    /// Whether all outcomes of the choice that was asked for last are covered.
    pub(super) fn all(&self) -> bool {
        !self.covered.contains(&false)
    }
}
