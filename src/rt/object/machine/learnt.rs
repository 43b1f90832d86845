//! What is known of a program before an exploration of it begins?

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use std::sync::Arc;

use crate::rt::event::Site;
use crate::rt::event::schedule::{Guarded, Hold, Schedule};

use super::{Awaits, Limits, Machine, Spot};

/// The facts that an exploration learns of a program and for which it restarts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Learnt {
    /// Whether the end of a thread is an event. If no thread asks whether another thread has
    /// finished, no operation distinguishes the end of a thread from its last event, and a joined
    /// thread has ended.
    pub(crate) ends_are_events: bool,
    pub(crate) hintless: Hintless,
    /// Whether a loop with a hint that changes something in each round has kept other threads from
    /// their next steps until the limit of events. Then each such loop lets the others go first
    /// after a few rounds.
    pub(crate) fair: bool,
    /// Whether an execution that was taken for a livelock has ended when it went on. Then a
    /// livelock has many more rounds.
    pub(crate) patient: bool,
    /// The loops with a hint that are taken for one step.
    pub(crate) awaits: Awaits,
    pub(crate) loud: Loud,
    /// The thread that is delayed, in an execution that shows its behaviour under this delay.
    pub(crate) held: Option<Hold>,
    /// The blocks for which uses after the free are detected in that execution, or in an execution
    /// without a delay.
    pub(crate) guarded: Option<Guarded>,
}

/// The knowledge about loops without a hint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Hintless {
    /// Nothing is known: each loop waits after many rounds.
    #[default]
    Unknown,
    /// One loop has waited until another thread changed something: each loop waits after a few
    /// rounds.
    Soon,
    /// One of them also gives up by itself, for example a `for` loop that reads: again each loop
    /// waits after many rounds.
    BoundedLoop,
}

/// The most places of loud drop glue that are told apart. Each of them restarts the exploration.
const LOUD_MAX: usize = 8;

/// The places at which values were put into an `Arc` with drop glue that has done more than free
/// memory. Which thread drops such a value last is explored.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Loud {
    places: Option<Arc<[Spot]>>,
    /// All places count as loud.
    all: bool,
}

impl Loud {
    /// All glue is loud.
    pub(crate) fn all() -> Loud {
        Loud {
            places: None,
            all: true,
        }
    }

    /// The places that were found, and whether all others count as loud, too.
    pub(crate) fn parts(&self) -> (&[Spot], bool) {
        (self.places.as_deref().unwrap_or_default(), self.all)
    }

    pub(crate) fn from_parts(places: Vec<Spot>, all: bool) -> Loud {
        Loud {
            places: (!places.is_empty()).then(|| places.into()),
            all,
        }
    }

    /// Whether the glue of values from this place is loud.
    #[inline]
    pub(crate) fn has(&self, site: Site) -> bool {
        let places = self.places.as_deref().unwrap_or_default();
        self.all || places.iter().any(|place| place.is(site))
    }

    /// These places and this one. If that is `late`, or makes too many, all places count as loud.
    pub(crate) fn with(&self, site: Site, late: bool) -> Loud {
        let (places, all) = self.parts();
        if all || late || places.len() >= LOUD_MAX {
            return Loud::all();
        }
        Loud::from_parts([places, &[Spot::of(site)]].concat(), false)
    }
}

/// The numbers of releases in a row before a livelock if the loops of another execution have ended
/// after more rounds than usual: at a hint, and in a loop without one.
const PATIENT: u32 = 1_000_000;
const PATIENT_UNHINTED: u32 = 100_000;

/// The number of rounds that a fair loop makes before it begins to let the other threads go first.
const ROUNDS_OF_TURN: usize = 2;

impl Limits {
    /// Sets the bounds that depend on the learnt facts. The number of rounds before a livelock
    /// stays the same, unless an execution has shown loops that end after more rounds.
    pub(crate) fn learn(&mut self, learnt: Learnt) {
        (self.unhinted_spin_bound, self.unhinted_livelock_bound) = match learnt.hintless {
            Hintless::Soon => (10, 3000),
            Hintless::Unknown | Hintless::BoundedLoop => (1000, 30),
        };
        if learnt.patient {
            (self.livelock_bound, self.unhinted_livelock_bound) = (PATIENT, PATIENT_UNHINTED);
        }
        self.rounds_of_turn = learnt.fair.then_some(ROUNDS_OF_TURN);
        self.learnt = learnt;
    }
}

impl Machine {
    /// The schedule of the first `length` events of this trace, which leads to the step of `thread`
    /// behind them. It includes the delayed thread and the guarded blocks.
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
