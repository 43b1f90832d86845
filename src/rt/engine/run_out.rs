//! How does an execution end that nobody explores any further?
//!
//! As it likes, but it should: then every value is dropped where its owner drops it, in a world
//! that goes on as the program expects. So threads take turns, and none of them can keep the others
//! from going on for ever.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;

use crate::rt::engine::replay::ReplayPolicy;
use crate::rt::engine::{Choice, Point};

/// How many steps a thread makes before it is another one's turn. Who spins for what another thread
/// does makes no more of them for nothing.
const TURN: usize = 100;

/// Threads that take turns.
#[derive(Default)]
pub(crate) struct Leisure {
    /// After how many events the turn began, if one has.
    since: Option<usize>,
}

impl ReplayPolicy for Leisure {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let events = at.trace.len();
        let made = self.since.map_or(0, |since| events - since);
        let stays = |&thread: &ThreadId| thread == at.last && made <= TURN;
        let Some(thread) = (at.enabled().find(stays))
            .or_else(|| at.enabled().find(|&thread| thread > at.last))
            .or_else(|| at.enabled().next())
        else {
            return Choice::NothingEnabled;
        };
        if thread != at.last || self.since.is_none() {
            self.since = Some(events);
            return Choice::RunOn(Step::of(thread), TURN);
        }
        Choice::RunOn(Step::of(thread), TURN.saturating_sub(made))
    }
}
