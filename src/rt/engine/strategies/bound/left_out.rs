//! Is what a bound has left out explored all the same?
//!
//! A step that is too dear at one place leads to a trace's prefix that the search may come to on
//! another way, and all that can follow is then explored from there, or left out in turn and noted
//! here. So if each of the steps leads to where the search has been, with no thread asleep that is
//! awake behind the step, then nothing is missing. What is parked before an operation that no other
//! one depends on is not missing either.

use crate::rt::engine::strategies::bound::parked::Parked;
use crate::rt::engine::strategies::bound::seen::{Seen, Way};
use crate::rt::relation::key::TraceKey;

/// So many steps are kept, with those left out for good not among them. Of a search that leaves out
/// more, it is taken for granted that some are missing: to keep them all would cost more than the
/// search.
const STEPS_MAX: usize = 4096;

/// A step that was too dear.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Where it leads, and on which way.
    pub(super) to: TraceKey,
    pub(super) way: Way,
    /// The operation before which it would have been made, if it need be only where another one
    /// depends on that.
    pub(super) before: Option<TraceKey>,
}

/// The steps that were too dear, as long as it can be told whether they are explored all the same.
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

    /// From here on something is taken to be missing.
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

    /// Whether nothing is missing because of these steps, now that there is nothing more to be
    /// explored.
    pub(super) fn is_explored(&self, seen: &Seen, parked: &Parked) -> bool {
        let is_needless = |step: &Step| step.before.is_some_and(|it| !parked.is_raced(it));
        let mut steps = self.0.iter().flatten();
        self.is_told() && steps.all(|step| is_needless(step) || is_seen(step, seen))
    }

    /// How many bytes that takes.
    pub(super) fn memory(&self) -> usize {
        let steps = self.0.as_ref().map_or(0, Vec::capacity);
        steps * size_of::<Step>()
    }
}

/// Whether the search has been where the step leads, whatever that has cost and whichever thread
/// ran last.
fn is_seen(step: &Step, seen: &Seen) -> bool {
    let way = Way {
        cost: u32::MAX,
        ..step.way
    };
    seen.covers(step.to, |_| Some(way))
}
