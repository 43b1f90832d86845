//! How can an execution, or an exploration, end?

use super::id::ThreadId;
use super::operation::Operation;
use super::{Event, Site};

/// An operation that a thread has announced and could not perform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    pub(crate) thread: ThreadId,
    pub(crate) operation: Operation,
    pub(crate) site: Site,
}

/// Why an execution was given up before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pruned {
    /// Every enabled thread was asleep: what is left is covered elsewhere.
    Asleep,
    /// `assume(false)`.
    Assumed,
}

/// How an execution ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Every thread finished.
    Complete,
    /// No thread can go on, and these are not finished.
    Deadlock(Vec<Blocked>),
    /// Some of these threads spin, the others are blocked, and nothing else can run; the spinning
    /// ones were let go `rounds` times in a row without any change.
    Livelock { stuck: Vec<Blocked>, rounds: u32 },
    /// The execution has more events than the limit.
    TooManyEvents { limit: usize },
    /// More threads exist than the limit allows.
    TooManyThreads { limit: usize },
    /// A thread panicked; who runs the threads knows the rest.
    Panicked { thread: ThreadId },
    /// A thread used more stack than it has.
    StackOverflow { thread: ThreadId },
    /// A schedule that was to be followed does not fit the program: the position in the schedule,
    /// and what was expected there.
    Stale { position: usize, expected: String },
    /// On replay a thread did something else than before.
    NotDeterministic(Box<Divergence>),
    /// Two accesses to plain memory are not ordered.
    DataRace(Box<DataRace>),
    /// Every thread finished, and values that were made at these places were not dropped.
    Leaked(Vec<Site>),
    /// Given up.
    Pruned(Pruned),
}

/// An access to plain memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) thread: ThreadId,
    pub(crate) write: bool,
    pub(crate) site: Site,
    /// How many events the thread had performed before it.
    pub(crate) after: u32,
}

/// Two accesses of different threads to the same memory, one of them a write, that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataRace {
    pub(crate) first: Access,
    pub(crate) second: Access,
    pub(crate) weak: Option<Weak>,
}

/// An atomic write and the read that saw it, which would have ordered a race's accesses had both been
/// strong enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) writer: Event,
    pub(crate) reader: Event,
}

/// What a thread was expected to do on replay, and what it did.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) thread: ThreadId,
    /// The position of the event in the execution.
    pub(crate) position: usize,
    /// `None` in `found` if the thread has ended or waits.
    pub(crate) expected: Option<(Operation, Site)>,
    pub(crate) found: Option<(Operation, Site)>,
    /// The same operation came out differently.
    pub(crate) outcome_differs: bool,
}
