//! Does the search explore the steps that a bound has left out all the same?
//!
//! A step that is too dear at one place leads to a prefix, and the search may reach the trace of
//! this prefix on another way. All continuations are then explored from there, or left out in turn
//! and noted here. So nothing is missing if each of these steps leads to a place that the search
//! has visited, and no thread was in the sleep set there that is not in the sleep set behind the
//! step. A branch that is parked before an operation on which no other operation depends is not
//! missing either.

use crate::rt::engine::strategies::bound::parked::Parked;
use crate::rt::engine::strategies::bound::seen::{Seen, Way};
use crate::rt::relation::key::TraceKey;

/// The most steps that are kept, without those that the search has already covered. If a search
/// leaves out more, some are taken to be missing: keeping all of them would cost more than the
/// search.
const STEPS_MAX: usize = 4096;

/// A step that was too dear.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The trace behind it, and the way there.
    pub(super) to: TraceKey,
    pub(super) way: Way,
    /// The operation before which the step would have been made, if the step matters only where
    /// another operation depends on that operation.
    pub(super) before: Option<TraceKey>,
}

/// The steps that were too dear, as long as the list of them is complete.
pub(super) struct LeftOut(Option<Vec<Step>>);

impl Default for LeftOut {
    fn default() -> LeftOut {
        LeftOut(Some(Vec::new()))
    }
}

impl LeftOut {
    /// Whether steps are noted.
    pub(super) fn is_told(&self) -> bool {
        self.0.is_some()
    }

    /// From here on some traces are taken to be missing.
    pub(super) fn give_up(&mut self) {
        self.0 = None;
    }

    /// Notes a step.
    pub(super) fn note(&mut self, step: Step, seen: &Seen) {
        let Some(steps) = &mut self.0 else { return };
        steps.push(step);
        if steps.len() > STEPS_MAX {
            steps.retain(|step| !is_seen(step, seen));
            if steps.len() > STEPS_MAX / 2 {
                self.0 = None;
            }
        }
    }

    /// Whether no trace is missing because of these steps, at the end of the search.
    pub(super) fn is_explored(&self, seen: &Seen, parked: &Parked) -> bool {
        let is_needless = |step: &Step| step.before.is_some_and(|it| !parked.is_raced(it));
        let mut steps = self.0.iter().flatten();
        self.is_told() && steps.all(|step| is_needless(step) || is_seen(step, seen))
    }

    /// The number of bytes of the steps.
    pub(super) fn memory(&self) -> usize {
        let steps = self.0.as_ref().map_or(0, Vec::capacity);
        steps * size_of::<Step>()
    }
}

/// Whether the search has visited a place behind the step, at any price and with any thread of the
/// last step.
fn is_seen(step: &Step, seen: &Seen) -> bool {
    let way = Way {
        cost: u32::MAX,
        ..step.way
    };
    seen.covers(step.to, |_| Some(way))
}
