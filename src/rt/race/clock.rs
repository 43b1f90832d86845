//! What does a thread know of the others?

use crate::rt::trace::id::ThreadId;

/// For each thread how much of what it has done is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

impl Clone for Clock {
    fn clone(&self) -> Clock {
        Clock(self.0.clone())
    }

    /// Keeps the memory that this clock has.
    fn clone_from(&mut self, other: &Clock) {
        self.0.clone_from(&other.0);
    }
}

impl Clock {
    pub(super) fn get(&self, thread: ThreadId) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, thread: ThreadId, time: u32) {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, 0);
        }
        self.0[thread.index()] = time;
    }

    /// Learns what `other` knows.
    pub(super) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = theirs.max(*mine);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
