//! What do all threads do while one of them stands still?
//!
//! Along a schedule, and then without another step of that thread until nobody else can go on
//! either.

use std::cell::Cell;
use std::rc::Rc;

use crate::rt::event::operation::Step;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::Pruned;

use crate::rt::engine::replay::{Replay, ReplayPolicy, Steps};
use crate::rt::engine::{Choice, Point};

/// How many steps the others make at most. Threads may keep each other going for ever.
const STEPS_MAX: usize = 1000;

/// The way of all threads but one.
pub(crate) struct Without {
    steps: Steps,
    /// Who stands still, as its path of births.
    path: String,
    left: usize,
    is_over: Rc<Cell<bool>>,
}

impl Without {
    /// The explorer for the threads that go on behind this schedule, which are all but that with
    /// this path of births; and where it says whether they have come as far as they could.
    pub(crate) fn explorer(schedule: Schedule, path: String) -> (Replay<Without>, Rc<Cell<bool>>) {
        let is_over = Rc::new(Cell::new(false));
        let without = Without {
            steps: Steps::of(schedule),
            path,
            left: STEPS_MAX,
            is_over: is_over.clone(),
        };
        (Replay::along(without), is_over)
    }
}

impl ReplayPolicy for Without {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        if !self.steps.is_over(at) {
            return self.steps.choose(at);
        }
        let still = at.machine.names.find(&self.path);
        let next = at.default_thread(|thread| Some(thread) != still);
        match (next, self.left.checked_sub(1)) {
            (Some(thread), Some(left)) => {
                self.left = left;
                Choice::Run(Step::of(thread))
            }
            (next, _) => {
                self.is_over.set(next.is_none());
                Choice::Prune(Pruned::Asleep)
            }
        }
    }
}
