//! What would the same executions cost without exploration?
//!
//! A [`Recorder`] explores and records the plan of each execution. A [`Floor`] follows the recorded
//! plans and keeps the same common prefixes, so the same executions run; but it computes no plans,
//! and needs no clocks and races.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::event::operation::Step;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};

/// One execution.
#[derive(Debug, Default)]
struct RecordedSteps {
    /// The length of the common prefix with the execution before.
    kept: usize,
    /// The planned steps behind this prefix.
    planned: Vec<Step>,
}

/// Executions in the order in which they were run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded(Rc<RefCell<Vec<RecordedSteps>>>);

/// Explores like the explorer in it.
pub(crate) struct Recorder<E> {
    explorer: E,
    recorded: Recorded,
}

impl<E: Explorer> Recorder<E> {
    /// Records the executions of `explorer`.
    pub(crate) fn new(explorer: E, recorded: &Recorded) -> Recorder<E> {
        let recorded = recorded.clone();
        Recorder { explorer, recorded }
    }
}

impl<E: Explorer> Explorer for Recorder<E> {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        let more = self.explorer.begin(plan);
        if more {
            self.recorded.0.borrow_mut().push(RecordedSteps {
                kept: plan.common_prefix,
                planned: plan.steps.iter().map(|&(step, _)| step).collect(),
            });
        }
        more
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.explorer.choose(at)
    }

    fn lets_the_last_go_on(&self) -> bool {
        self.explorer.lets_the_last_go_on()
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        self.explorer.finish(execution);
    }
}

/// Repeats the recorded executions of an explorer that lets the last thread continue.
pub(crate) struct Floor {
    recorded: Recorded,
    begun: usize,
}

impl Floor {
    pub(crate) fn new(recorded: &Recorded) -> Floor {
        let recorded = recorded.clone();
        Floor { recorded, begun: 0 }
    }
}

impl Explorer for Floor {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        let recorded = self.recorded.0.borrow();
        let Some(next) = recorded.get(self.begun) else {
            return false;
        };
        self.begun += 1;
        plan.common_prefix = next.kept;
        plan.steps
            .extend(next.planned.iter().map(|&step| (step, None)));
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        at.go_on()
    }

    fn lets_the_last_go_on(&self) -> bool {
        true
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _execution: &Execution<'_>) {}

    fn coverage(&self) -> Coverage {
        Coverage::Replayed
    }
}
