//! How is an execution expanded in which threads stopped because they had looked in vain?
//!
//! The expanded execution follows the same schedule. The stopped threads' further steps come after
//! all others, so mostly they are not needed. But a waiting thread is released only where no other
//! thread is enabled, so the stopped threads have to continue there until they wait, too.

use crate::rt::event::operation::Step;
use crate::rt::event::schedule::Schedule;

use crate::rt::engine::price::waits;
use crate::rt::engine::replay::{Replay, ReplayPolicy, Steps};
use crate::rt::engine::{Choice, Point};

/// The replay policy of an expanded execution.
pub(crate) struct InFull(Steps);

impl InFull {
    /// The explorer for the execution with this schedule.
    pub(crate) fn explorer(schedule: Schedule) -> Replay<InFull> {
        Replay::along(InFull::of(schedule))
    }

    pub(super) fn of(schedule: Schedule) -> InFull {
        InFull(Steps::of(schedule))
    }

    /// Whether all steps of the schedule have been made.
    pub(super) fn is_over(&mut self, at: &Point<'_>) -> bool {
        self.0.is_over(at)
    }

    /// Whether the next step of the schedule belongs to a thread that waits until an object changes
    /// or no other thread is enabled.
    fn is_to_wait(&mut self, at: &Point<'_>) -> bool {
        let next = self.0.next_path(at);
        let next = next.and_then(|path| at.machine.names.find(path));
        next.is_some_and(|next| waits(at, next) && !at.machine.enabled(next))
    }
}

impl ReplayPolicy for InFull {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        // Mostly no thread waits.
        let mut live = at.machine.live().iter();
        let is_to_wait = live.any(|&thread| waits(at, thread)) && self.is_to_wait(at);
        match at.enabled().next().filter(|_| is_to_wait) {
            Some(other) => {
                if !at.machine.is_to_begin(other) {
                    self.0.make_way();
                }
                Choice::Run(Step::of(other))
            }
            None => self.0.choose(at),
        }
    }

    fn misfit_at_the_end(&self) -> Option<String> {
        self.0.misfit_at_the_end()
    }
}
