//! Which threads need not run from a point in a bounded search?
//!
//! The set holds only threads and no labels: the sleeping step is always the next operation of its
//! thread.

use crate::rt::event::id::ThreadId;

/// Threads that need not run before an event happens that their next operation depends on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sleep(u32);

impl Sleep {
    pub(super) const NONE: Sleep = Sleep(0);

    /// The number of threads that can be in the set. The others stay out of it, which only costs
    /// time.
    const MOST: u32 = u32::BITS;

    #[inline]
    pub(super) fn has(self, thread: ThreadId) -> bool {
        thread.0 < Sleep::MOST && self.0 >> thread.0 & 1 == 1
    }

    pub(super) fn with(self, thread: ThreadId) -> Sleep {
        if thread.0 < Sleep::MOST {
            Sleep(self.0 | 1 << thread.0)
        } else {
            self
        }
    }

    pub(super) fn and(self, other: Sleep) -> Sleep {
        Sleep(self.0 & other.0)
    }

    pub(super) fn is_within(self, other: Sleep) -> bool {
        self.0 & !other.0 == 0
    }

    /// The threads in the set for which `holds` is true.
    pub(super) fn filter(self, mut holds: impl FnMut(ThreadId) -> bool) -> Sleep {
        let mut left = self;
        let mut rest = self.0;
        while rest != 0 {
            let thread = ThreadId(rest.trailing_zeros());
            if !holds(thread) {
                left.0 &= !(1 << thread.0);
            }
            rest &= rest - 1;
        }
        left
    }
}
