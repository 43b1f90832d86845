//! What is known of a block of the heap, and what is its name?

use std::alloc::Layout;

use crate::rt::event::id::ThreadId;
use crate::rt::event::{NOWHERE, verdict};

/// A block of the heap that is live or was freed, with the parts of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// The address of the first byte.
    pub(crate) start: usize,
    /// In bytes.
    pub(crate) size: usize,
    /// In bytes.
    pub(crate) align: usize,
    /// The thread that allocated the block.
    pub(crate) thread: u32,
    /// The number of events of that thread before the allocation.
    pub(crate) events: u32,
    /// The number of the block among those of this layout since that event, counted from 0.
    pub(crate) nth: u32,
    /// Whether [`Heap::find`](super::Heap::find) has returned the block, so that a table may have
    /// an entry for it.
    pub(crate) found: bool,
    /// Whether the block must be freed before the execution ends, found or not.
    pub(crate) owed: bool,
    /// Whether the block may stay allocated when the execution ends.
    pub(crate) forgiven: bool,
    /// Whether the model does not see the reference counts of the block. Then only the owners of a
    /// reference have a pointer to the block.
    pub(crate) counted: bool,
    /// Whether an atomic has held a pointer to the block.
    pub(super) published: bool,
    /// Whether its thread has got the memory of an earlier block of this execution again.
    pub(super) again: bool,
    /// The thread that freed the block, and the number of its events; `None` while the block is
    /// alive.
    pub(crate) freed: Option<(u32, u32)>,
    /// The shelf of the stock to which the block belongs.
    pub(super) shelf: u32,
}

impl Block {
    pub(super) const fn new(
        start: usize,
        layout: Layout,
        thread: u32,
        events: u32,
        nth: u32,
    ) -> Block {
        Block {
            start,
            size: layout.size(),
            align: layout.align(),
            thread,
            events,
            nth,
            found: false,
            owed: false,
            forgiven: false,
            counted: false,
            published: false,
            again: false,
            freed: None,
            shelf: NOWHERE,
        }
    }

    /// Whether the block was allocated with this layout.
    pub(super) fn has(&self, layout: Layout) -> bool {
        (self.size, self.align) == (layout.size(), layout.align())
    }

    /// Reuses a block of the stock: this thread gets the block after this number of events.
    #[inline]
    pub(super) fn renew(&mut self, (thread, events): (u32, u32), nth: u32) {
        *self = Block {
            thread,
            events,
            nth,
            found: false,
            owed: false,
            forgiven: false,
            counted: false,
            published: false,
            again: false,
            freed: None,
            ..*self
        };
    }

    /// The name, which is the same in each execution with the same history.
    pub(crate) fn name(&self) -> verdict::Block {
        verdict::Block {
            thread: ThreadId(self.thread),
            events: self.events,
            size: self.size,
            align: self.align,
            nth: self.nth,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.freed.is_none()
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.size
    }
}
