//! How does an execution reach its end once the exploration has left it?
//!
//! In any order, but it should end: then the owner of every value drops it at the ordinary place,
//! in a program that continues as usual. So threads take turns, and no thread can keep the others
//! from their steps for ever.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;

use crate::rt::engine::replay::ReplayPolicy;
use crate::rt::engine::{Choice, Point};

/// The number of steps in a turn. A thread that spins until another thread makes a step wastes at
/// most this many.
const TURN: usize = 100;

/// Threads that take turns.
#[derive(Default)]
pub(crate) struct Leisure {
    /// The number of events at which the turn began, if one has begun.
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
