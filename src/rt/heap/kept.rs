//! How long does freed memory stay in place?
//!
//! A block that a thread of the model frees is kept from the allocator until the execution ends. So
//! a later use of the block is found, and does not read data that other code has put there. A
//! program that frees much would need much memory, so beyond [`BYTES_MAX`] the oldest blocks are
//! given back early; later uses of those are not found.

use std::alloc::Layout;
use std::collections::VecDeque;

/// The number of bytes that are kept at most.
const BYTES_MAX: usize = 64 << 20;

/// A freed block, with the way to give it back.
pub(crate) struct Kept {
    pub(crate) start: *mut u8,
    pub(crate) layout: Layout,
    /// The allocator that made the block.
    pub(crate) allocator: *const (),
    /// Gives a block back to that allocator.
    pub(crate) release: unsafe fn(*const (), *mut u8, Layout),
}

impl Kept {
    pub(super) fn release(self) {
        // SAFETY: the code that made this value was asked to free the block, by its owner, and did
        // not; the allocator lives as long as the process, because it is the global one.
        unsafe { (self.release)(self.allocator, self.start, self.layout) }
    }
}

/// The kept blocks of one execution, the oldest first.
#[derive(Default)]
pub(super) struct Queue {
    blocks: VecDeque<Kept>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, kept: Kept) {
        self.bytes += kept.layout.size();
        self.blocks.push_back(kept);
    }

    /// Takes the block that begins at `start` and that this allocator made.
    pub(super) fn take(&mut self, start: usize, allocator: *const ()) -> Option<Kept> {
        let is_it = |kept: &Kept| kept.start.addr() == start && kept.allocator == allocator;
        let at = self.blocks.iter().rposition(is_it)?;
        let kept = self.blocks.remove(at)?;
        self.bytes -= kept.layout.size();
        Some(kept)
    }

    /// The next block to be given back because there are too many.
    pub(super) fn surplus(&mut self) -> Option<Kept> {
        if self.bytes <= BYTES_MAX {
            return None;
        }
        self.pop()
    }

    /// The oldest block.
    pub(super) fn pop(&mut self) -> Option<Kept> {
        let kept = self.blocks.pop_front()?;
        self.bytes -= kept.layout.size();
        Some(kept)
    }
}
