//! What is known of a program before an exploration of it begins?

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::schedule::{Guarded, Hold, Schedule};

use super::{Awaits, Limits, Machine};

/// What is learnt of a program while it is explored, so that the exploration begins anew.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Learnt {
    /// Whether the end of a thread is an event. Where no thread looks whether another one has
    /// finished, nobody can tell the end of a thread from its last event, and a thread that is
    /// joined has ended.
    pub(crate) ends_are_events: bool,
    pub(crate) hintless: Hintless,
    /// Whether a loop with a hint that changes something in each round has kept others from going
    /// on until there were too many events: each such loop lets them go first after a few rounds.
    pub(crate) fair: bool,
    /// The loops with a hint that are taken for one step.
    pub(crate) awaits: Awaits,
    /// The thread that is held up, in an execution that is to show what it does then.
    pub(crate) held: Option<Hold>,
    /// The blocks whose uses after their free are seen then, or in an execution in which nobody is
    /// held up.
    pub(crate) guarded: Option<Guarded>,
}

/// What is known of loops without a hint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Hintless {
    /// Nothing: each waits after many rounds.
    #[default]
    Unknown,
    /// One has waited until another thread changed something: each waits after a few rounds.
    Soon,
    /// And one gives up by itself, as a `for` loop that reads: again each waits after many rounds.
    BoundedLoop,
}

/// How many rounds a loop that is to let the others go first makes whenever it likes.
const ROUNDS_OF_TURN: usize = 2;

impl Limits {
    /// Sets what goes by what was learnt. A livelock is one after as many rounds.
    pub(crate) fn learn(&mut self, learnt: Learnt) {
        (self.unhinted_spin_bound, self.unhinted_livelock_bound) = match learnt.hintless {
            Hintless::Soon => (10, 3000),
            Hintless::Unknown | Hintless::BoundedLoop => (1000, 30),
        };
        self.rounds_of_turn = learnt.fair.then_some(ROUNDS_OF_TURN);
        self.learnt = learnt;
    }
}

impl Machine {
    /// The schedule of so many events of this trace, which leads to what this thread did then: with
    /// who was to be held up, and which blocks were guarded.
    pub(crate) fn leading_to(
        &self,
        thread: Option<ThreadId>,
        trace: &Trace,
        length: usize,
    ) -> Schedule {
        let Learnt {
            held,
            guarded,
            fair,
            ..
        } = &self.limits.learnt;
        Schedule::leading_to(thread, trace, length, &self.names)
            .with_fair(*fair)
            .with_held(held.as_ref(), *guarded)
    }
}
