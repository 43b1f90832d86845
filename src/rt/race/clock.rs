//! Which actions of the other threads does a thread know of?

use crate::rt::event::id::ThreadId;

/// The number of threads that a clock covers without memory of its own on the heap. Few tests have
/// more threads.
const FEW: usize = 8;

/// A vector clock: for each thread, the time up to which its actions are known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    few: [u32; FEW],
    /// The times of the threads from [`FEW`] on.
    more: Vec<u32>,
}

impl Clone for Clock {
    fn clone(&self) -> Clock {
        Clock {
            few: self.few,
            more: self.more.clone(),
        }
    }

    /// Reuses the memory that this clock has.
    #[inline]
    fn clone_from(&mut self, other: &Clock) {
        self.few = other.few;
        if self.more.len() + other.more.len() > 0 {
            self.more.clone_from(&other.more);
        }
    }
}

impl Clock {
    #[inline]
    pub(super) fn get(&self, thread: ThreadId) -> u32 {
        match self.few.get(thread.index()) {
            Some(&time) => time,
            None => (self.more.get(thread.index() - FEW)).copied().unwrap_or(0),
        }
    }

    /// Advances the time of the thread, and returns its time before that.
    #[inline]
    pub(super) fn tick(&mut self, thread: ThreadId) -> u32 {
        let entry = match self.few.get_mut(thread.index()) {
            Some(entry) => entry,
            None => {
                let index = thread.index() - FEW;
                if self.more.len() <= index {
                    self.more.resize(index + 1, 0);
                }
                &mut self.more[index]
            }
        };
        let time = *entry;
        *entry += 1;
        time
    }

    /// Adds all that `other` knows of.
    #[inline]
    pub(super) fn join(&mut self, other: &Clock) {
        for (mine, &theirs) in self.few.iter_mut().zip(&other.few) {
            *mine = theirs.max(*mine);
        }
        if !other.more.is_empty() {
            self.join_more(other);
        }
    }

    #[inline(never)]
    fn join_more(&mut self, other: &Clock) {
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        for (mine, &theirs) in self.more.iter_mut().zip(&other.more) {
            *mine = theirs.max(*mine);
        }
    }

    pub(super) fn clear(&mut self) {
        self.few = [0; FEW];
        self.more.clear();
    }
}
