//! With which values have threads left their loops?
//!
//! The driver finds that out with rounds that leave no event (`driver/tried.rs`).

use rustc_hash::FxHashSet;

use crate::rt::event::id::ThreadId;

/// The knowledge of values with which threads leave their loops.
#[derive(Default)]
pub(crate) struct Tried {
    /// A thread, the number of its events before the look, and a value, in this execution.
    pub(super) leaves: Vec<(ThreadId, u32, u64)>,
    /// A mix of the events of a thread before the look, and a value. What a thread does may depend
    /// on plain memory, too. So this is only a guess, which spares an execution that would be made
    /// twice; the planned execution shows whether it is right.
    pub(super) guesses: FxHashSet<(u64, u64)>,
    /// The number of rounds that were tried, and the number of executions that were abandoned.
    pub(super) rounds: usize,
    pub(super) abandoned: usize,
}

/// An execution is abandoned at most this often, and once more for so many rounds that are tried:
/// its stacks are lost. Otherwise each value that is not known counts as one with which the thread
/// leaves its loop.
const ABANDONED_MAX: usize = 64;
const ROUNDS_FOR_ONE: usize = 16;

impl Tried {
    /// Another execution begins; the last one `again`, or a new one.
    pub(super) fn begin(&mut self, again: bool) {
        if !again {
            self.leaves.clear();
        }
    }

    /// Whether an execution may be abandoned.
    pub(super) fn may_abandon(&self) -> bool {
        self.abandoned < ABANDONED_MAX + self.rounds / ROUNDS_FOR_ONE
    }
}
