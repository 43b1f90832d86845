//! What does a thread know of the others?

use crate::rt::event::id::ThreadId;

/// Of how many threads a clock knows without memory of its own. Few tests have more.
const FEW: usize = 8;

/// For each thread how much of what it has done is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    few: [u32; FEW],
    /// Of the threads from [`FEW`] on.
    more: Vec<u32>,
}

impl Clone for Clock {
    fn clone(&self) -> Clock {
        Clock {
            few: self.few,
            more: self.more.clone(),
        }
    }

    /// Keeps the memory that this clock has.
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

    /// The thread goes on. Gives its time until now.
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

    /// Learns what `other` knows.
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
