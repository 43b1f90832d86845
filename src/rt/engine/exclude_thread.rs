//! How far do all threads get while one of them stands still?
//!
//! This explorer follows a schedule, and then makes no step of that thread until no other thread is
//! enabled.

use std::cell::Cell;
use std::rc::Rc;

use crate::rt::event::operation::Step;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::Pruned;

use crate::rt::engine::replay::{Replay, ReplayPolicy, Steps};
use crate::rt::engine::{Choice, Point};

/// The most steps that the other threads make. They may enable each other for ever.
const STEPS_MAX: usize = 1000;

/// The replay policy for all threads but one.
pub(crate) struct Without {
    steps: Steps,
    /// The thread that stands still, as its path of births.
    path: String,
    left: usize,
    is_over: Rc<Cell<bool>>,
}

impl Without {
    /// The explorer that follows this schedule, and then runs all threads except the one with this
    /// path of births; and a cell that it sets when these threads have come as far as they could.
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
