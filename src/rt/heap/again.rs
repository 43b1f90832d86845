//! Which memory does an execution use again?
//!
//! An allocator may hand out a block that was freed a moment ago, and most do: a thread gets the
//! block that it has freed last. A program that compares pointers, by a compare-exchange for
//! instance, then takes the new block for the old one. Mostly freed memory stays where it is until
//! the execution ends, so that late uses are found, and no execution shows that. In the further
//! pass for it, a thread gets the memory of the blocks back that it has freed.
//!
//! * A thread gets its own blocks only, as from the cache that most allocators have for each
//!   thread. So which memory a block gets depends on the history of its thread alone, and equal
//!   traces have equal pointers. Were a block of another thread handed out, allocations and frees
//!   would be operations that race.
//! * Only blocks come again to which an atomic has held a pointer. No other pointer is compared
//!   where the model sees it.
//! * The free may not have been examined yet when its memory is in use again. The freed block is
//!   kept for that ([`Again::find_gone`]).

use std::alloc::Layout;

use crate::rt::heap::block::Block;

/// A freed block. Its thread may get the memory again.
#[derive(Clone, Copy, Debug)]
struct Freed {
    /// The thread that freed the block.
    by: u32,
    /// Size and alignment in bytes.
    layout: (usize, usize),
    start: usize,
    /// The number of the last listing at that time.
    serial: u64,
}

/// The freed blocks of one execution that may come again, the latest last.
#[derive(Debug, Default)]
pub(super) struct Again {
    freed: Vec<Freed>,
    /// Blocks with memory that is in use again, and with frees that are still to be examined.
    replaced: Vec<Block>,
}

impl Again {
    /// Another execution begins.
    pub(super) fn clear(&mut self) {
        self.freed.clear();
        self.replaced.clear();
    }

    /// Notes that this thread has freed a published block.
    #[cold]
    pub(super) fn note(&mut self, by: u32, start: usize, layout: Layout, serial: u64) {
        self.freed.push(Freed {
            by,
            layout: (layout.size(), layout.align()),
            start,
            serial,
        });
    }

    /// Whether no block may come again.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.freed.is_empty()
    }

    /// Takes the block of this layout that this thread has freed last.
    pub(super) fn take(&mut self, by: u32, layout: Layout) -> Option<usize> {
        let layout = (layout.size(), layout.align());
        let is_like = |it: &Freed| (it.by, it.layout) == (by, layout);
        let at = self.freed.iter().rposition(is_like)?;
        Some(self.freed.remove(at).start)
    }

    /// The freed block that begins at `start` is given back to the allocator.
    pub(super) fn forget(&mut self, start: usize) {
        self.freed.retain(|it| it.start != start);
    }

    /// Whether the thread that has made this block had freed a block before that could have come
    /// again.
    pub(super) fn could_be(&self, block: &Block, serial: u64) -> bool {
        let layout = (block.size, block.align);
        let is_older =
            |it: &Freed| (it.by, it.layout) == (block.thread, layout) && it.serial < serial;
        self.freed.iter().any(is_older)
    }

    /// Keeps a freed block until its free has been examined.
    pub(super) fn replace(&mut self, block: Block) {
        self.replaced.push(block);
    }

    /// The freed block at this address that is still to be examined, if its memory is in use again.
    pub(super) fn find_gone(&self, address: usize) -> Option<Block> {
        let is_it = |block: &&Block| block.contains(address);
        self.replaced.iter().find(is_it).copied()
    }

    /// All frees have been examined.
    pub(super) fn are_examined(&mut self) {
        self.replaced.clear();
    }
}
