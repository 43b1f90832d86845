//! Has an iteration of a loop undone what it has done, as the one before?
//!
//! A loop that takes something and puts it back leaves each location as it has found it, and the
//! values are those that the iteration before has left.

use crate::rt::event::id::ObjectId;

use crate::rt::loops::spin::ENOUGH;

/// What a thread has done to atomics since its last hint, and in the iteration before.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Each location with its value now, and, in the same order, the values before.
    left: Vec<(ObjectId, u64)>,
    found: Vec<u64>,
    /// What the iteration before has left.
    pub(super) before: Vec<(ObjectId, u64)>,
    /// What was in the plain memory that it was about to write to, and in the iteration before.
    pub(super) memory: u64,
    memory_before: u64,
    /// Whether something was done that is not undone, or too much.
    pub(super) lasting: bool,
}

impl Round {
    pub(super) fn reset(&mut self) {
        self.left.clear();
        self.found.clear();
        self.before.clear();
        self.memory = 0;
        self.memory_before = 0;
        self.lasting = false;
    }

    #[inline]
    pub(super) fn touch(&mut self, object: ObjectId, found: u64, left: u64) {
        if let Some(known) = self.left.iter_mut().find(|(o, _)| *o == object) {
            known.1 = left;
        } else if self.left.len() < ENOUGH {
            self.left.push((object, left));
            self.found.push(found);
        } else {
            self.lasting = true;
        }
    }

    pub(super) fn untouch(&mut self, object: ObjectId) {
        if let Some(at) = self.left.iter().position(|&(o, _)| o == object) {
            self.left.remove(at);
            self.found.remove(at);
        }
    }

    /// The iteration is over. Says whether it has left everything as it was, like the one before.
    pub(super) fn turn(&mut self) -> bool {
        let undone = self
            .left
            .iter()
            .map(|&(_, left)| left)
            .eq(self.found.iter().copied());
        let alike = self.left == self.before && self.memory == self.memory_before;
        let again = undone && !self.lasting && !self.left.is_empty() && alike;
        std::mem::swap(&mut self.left, &mut self.before);
        self.left.clear();
        self.memory_before = std::mem::take(&mut self.memory);
        self.found.clear();
        self.lasting = false;
        again
    }
}
