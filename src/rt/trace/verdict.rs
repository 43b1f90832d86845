//! How can an execution, or an exploration, end?

use super::Site;
use super::id::ThreadId;
use super::operation::Operation;

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
    /// Given up.
    Pruned(Pruned),
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
