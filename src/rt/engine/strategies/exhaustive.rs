//! What if the search tries every enabled thread at every point?
//!
//! `Naive` does exactly that: it visits every interleaving and is the oracle for the others.
//! `SleepSets` leaves out the steps in the sleep set (Godefroid's sleep sets; *Tiny Model Checker*,
//! part 4): it completes exactly one execution of every trace, but prunes many others.

use crate::rt::event::operation::Step;
use crate::rt::event::verdict::Pruned;
use crate::rt::relation::independence::Label;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// Tries every enabled step at every point.
pub(crate) struct Exhaustive {
    free: TieBreak,
    /// Whether the steps in the sleep set are left out.
    sleeping: bool,
    levels: Vec<Level>,
    started: bool,
}

#[derive(Default)]
struct Level {
    sleep: Vec<Sleeper>,
    /// The step that the current execution made here, and the label of its event.
    taken: Option<(Step, Option<Label>)>,
    todo: Vec<Step>,
}

impl Exhaustive {
    /// Every interleaving.
    pub(crate) fn naive(free: TieBreak) -> Exhaustive {
        Exhaustive {
            free,
            sleeping: false,
            levels: Vec::new(),
            started: false,
        }
    }

    /// Every interleaving that no sleep set covers.
    pub(crate) fn sleep_sets(free: TieBreak) -> Exhaustive {
        Exhaustive {
            sleeping: true,
            ..Exhaustive::naive(free)
        }
    }

    /// The sleep set of the point that follows the last level.
    fn next_sleep(&self, at: &Point<'_>) -> Vec<Sleeper> {
        let depth = self.levels.len();
        let Some(level) = depth.checked_sub(1).map(|d| &self.levels[d]) else {
            return Vec::new();
        };
        let event = at.trace.at(depth as u32 - 1);
        let sets = &at.machine.sets;
        let all = level.sleep.iter().copied();
        all.filter(|s| s.survives(sets, event.thread, event.label))
            .collect()
    }
}

impl Explorer for Exhaustive {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        while let Some(level) = self.levels.last_mut() {
            if let Some((step, Some(label))) = level.taken.take()
                && self.sleeping
            {
                level.sleep.push(Sleeper { step, label });
            }
            if let Some(step) = level.todo.pop() {
                level.taken = Some((step, None));
                plan.common_prefix = self.levels.len() - 1;
                plan.steps.push((step, None));
                return true;
            }
            self.levels.pop();
        }
        false
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let sleep = self.next_sleep(at);
        let mut todo = Vec::new();
        let mut any = false;
        for thread in at.enabled() {
            any = true;
            for alternative in 0..at.machine.alternatives(thread) {
                let step = Step {
                    thread,
                    alternative,
                };
                if sleep.iter().all(|s| s.step != step) {
                    todo.push(step);
                }
            }
        }
        if !any {
            return Choice::NothingEnabled;
        }
        let awake = |thread| todo.iter().any(|s| s.thread == thread);
        let Some(thread) = self.free.pick(at, awake) else {
            return Choice::Prune(Pruned::Asleep);
        };
        let chosen = todo.iter().position(|s| s.thread == thread);
        let step = todo.remove(chosen.unwrap_or_default());
        if at.fixed {
            todo.clear();
        }
        self.levels.push(Level {
            sleep,
            taken: Some((step, None)),
            todo,
        });
        Choice::Run(step)
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        for (level, event) in self.levels.iter_mut().zip(execution.trace.events()) {
            level.taken = Some((event.step(), Some(event.label)));
        }
    }

    fn more(&self) -> bool {
        !self.started || self.levels.iter().any(|level| !level.todo.is_empty())
    }
}
