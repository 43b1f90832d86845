//! Does a loop that was taken to wait for a change give up by itself, if it may go on?
//!
//! A loop with a hint waits after a few rounds in which it found the same, and whether it counts
//! them is not to be seen. So its thread goes further once, and nobody else does: along the
//! schedule that has led to its first wait, and then without waits, until it does something else,
//! or has made many rounds.

use std::cell::Cell;
use std::rc::Rc;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::Pruned;

use crate::rt::engine::expand_awaits::InFull;
use crate::rt::engine::replay::{Replay, ReplayPolicy};
use crate::rt::engine::{Choice, Point};

/// A thread that has not come back to its hint after so many events has left the loop. One without
/// a hint comes back after ten rounds, of at most 65 looks each.
const ROUND_MAX: u32 = 1024;

/// How many steps the thread makes before it is looked at again. It only has to be stopped some
/// time.
const AT_ONCE: usize = 128;

/// A thread that goes further alone.
pub(crate) struct Further {
    steps: InFull,
    path: String,
    /// The thread, once it has a name.
    thread: Option<ThreadId>,
    /// How many rounds it had made at its last step, and how many events it had performed then.
    last: (u32, u32),
    rounds: Rc<Cell<Option<u32>>>,
}

impl Further {
    /// The explorer for the thread with this path of births, behind the schedule; and where it says
    /// how many rounds the thread made without waiting before it left the loop, if it did.
    pub(crate) fn explorer(
        schedule: Schedule,
        path: String,
    ) -> (Replay<Further>, Rc<Cell<Option<u32>>>) {
        let rounds = Rc::new(Cell::new(None));
        let further = Further {
            steps: InFull::of(schedule),
            path,
            thread: None,
            last: (0, 0),
            rounds: rounds.clone(),
        };
        (Replay::along(further), rounds)
    }
}

impl ReplayPolicy for Further {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        if !self.steps.is_over(at) {
            return self.steps.choose(at);
        }
        let over = Choice::Prune(Pruned::Asleep);
        let named = self.thread.or_else(|| at.machine.names.find(&self.path));
        self.thread = named;
        let Some(thread) = named else {
            return over;
        };
        let (rounds, has_left) = at.machine.rounds_further();
        let events = match at.machine.live().contains(&thread) {
            true => at.machine.events_of(thread),
            false => 0,
        };
        if rounds != self.last.0 {
            self.last = (rounds, events);
        }
        // Behind the last of these rounds the thread waits again, which is no sign that it has left
        // the loop.
        if at.machine.has_gone_far() {
            return over;
        }
        let has_left = has_left || events > self.last.1 + ROUND_MAX;
        let is_stuck = !at.machine.enabled(thread);
        if rounds > 0 && (has_left || is_stuck) {
            self.rounds.set(Some(rounds));
        }
        match has_left || is_stuck {
            true => over,
            false => Choice::RunOn(Step::of(thread), AT_ONCE),
        }
    }
}
