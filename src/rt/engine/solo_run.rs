//! Does a loop that was taken to wait for a change give up by itself, if it may continue?
//!
//! A thread in a loop with a hint waits after a few rounds in which it read the same values.
//! Whether the loop counts its rounds is invisible to the model. So there is one solo run, in which
//! this thread alone continues: along the schedule that has led to its first wait, and then without
//! waits, until the thread leaves the loop or has made many rounds.

use std::cell::Cell;
use std::rc::Rc;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::Pruned;

use crate::rt::engine::expand_awaits::InFull;
use crate::rt::engine::replay::{Replay, ReplayPolicy};
use crate::rt::engine::{Choice, Point};

/// A thread that has not reached its hint again after this many events has left the loop. A thread
/// in a loop without a hint reaches it after ten rounds, of at most 65 reads each.
const ROUND_MAX: u32 = 1024;

/// The number of steps that the thread makes between two checks. The run only has to stop at some
/// time.
const AT_ONCE: usize = 128;

/// The replay policy of a solo run.
pub(crate) struct Further {
    steps: InFull,
    path: String,
    /// The thread, once it has a name.
    thread: Option<ThreadId>,
    /// The number of rounds that the thread had made at its last step, and the number of events
    /// that it had performed then.
    last: (u32, u32),
    rounds: Rc<Cell<Option<u32>>>,
}

impl Further {
    /// The explorer for the thread with this path of births, behind the schedule; and a cell that
    /// gets the number of rounds that the thread made without a wait before it left the loop, if it
    /// did.
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
        let events = if at.machine.live().contains(&thread) {
            at.machine.events_of(thread)
        } else {
            0
        };
        if rounds != self.last.0 {
            self.last = (rounds, events);
        }
        // Behind the last of these rounds the thread waits again, so a wait does not show that it
        // has left the loop.
        if at.machine.has_gone_far() {
            return over;
        }
        let has_left = has_left || events > self.last.1 + ROUND_MAX;
        let is_stuck = !at.machine.enabled(thread);
        if rounds > 0 && (has_left || is_stuck) {
            self.rounds.set(Some(rounds));
        }
        if has_left || is_stuck {
            over
        } else {
            // The loop may wait because of an old value, and then goes on with that one.
            let step = Step {
                thread,
                alternative: at.oldest(thread),
            };
            Choice::RunOn(step, AT_ONCE)
        }
    }
}
