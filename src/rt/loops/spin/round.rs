//! Has an iteration of a loop undone its changes, as the one before?
//!
//! A loop that undoes its changes leaves each location with the value it has found there, and the
//! values are those that the iteration before has left.

use crate::rt::event::id::ObjectId;

use crate::rt::loops::spin::ENOUGH;

/// The accesses of a thread to atomics since its last hint, and in the iteration before.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Each location with its current value, and, in the same order, the values that the iteration
    /// found.
    left: Vec<(ObjectId, u64)>,
    found: Vec<u64>,
    /// The locations and values that the iteration before has left.
    pub(super) before: Vec<(ObjectId, u64)>,
    /// A mix of the contents of the plain memory that the iteration was about to write to, and the
    /// same for the iteration before.
    pub(super) memory: u64,
    memory_before: u64,
    /// Whether there is a change that is not undone, or too many locations.
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

    /// Ends the iteration. Returns whether it has left every location with the value it found, like
    /// the one before.
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
