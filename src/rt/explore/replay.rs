//! How is one schedule followed, and what if the program has changed?

use crate::rt::trace::operation::Step;
use crate::rt::trace::schedule::Schedule;

use super::driver::Plan;
use super::{Choice, Coverage, Explorer, Finished, Point};

/// Follows one schedule, and beyond its end lets the thread that ran last go on.
pub(crate) struct Replay {
    schedule: Schedule,
    position: usize,
    started: bool,
}

impl Replay {
    pub(crate) fn new(schedule: Schedule) -> Replay {
        Replay {
            schedule,
            position: 0,
            started: false,
        }
    }
}

impl Explorer for Replay {
    fn begin(&mut self, _plan: &mut Plan) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        if at.enabled().next().is_none() {
            return Choice::NothingEnabled;
        }
        let Some((path, alternative)) = self.schedule.steps.get(self.position) else {
            return match at.default_thread(|_| true) {
                Some(thread) => Choice::Run(Step::of(thread)),
                None => Choice::NothingEnabled,
            };
        };
        let enabled: Vec<String> = at.enabled().map(|t| at.machine.names.path(t)).collect();
        let thread = at.machine.names.find(path);
        match thread.filter(|&thread| at.machine.enabled(thread)) {
            Some(thread) if *alternative < at.machine.alternatives(thread) => {
                self.position += 1;
                Choice::Run(Step {
                    thread,
                    alternative: *alternative,
                })
            }
            Some(thread) => Choice::Stale {
                position: self.position,
                expected: format!(
                    "outcome {alternative} of {path}, whose operation has {} outcomes here",
                    at.machine.alternatives(thread)
                ),
            },
            None => Choice::Stale {
                position: self.position,
                expected: format!(
                    "a step of {path}, but only {} can go on here",
                    enabled.join(", ")
                ),
            },
        }
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _execution: &Finished<'_>) {}

    fn more(&self) -> bool {
        !self.started
    }

    fn coverage(&self) -> Coverage {
        Coverage::Replayed
    }
}
