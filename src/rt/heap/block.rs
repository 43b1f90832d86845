//! What is known of a block of the heap, and what is it called?

use std::alloc::Layout;

use crate::rt::event::id::ThreadId;
use crate::rt::event::{NOWHERE, verdict};

/// A block of the heap that is live or was freed, and what makes up its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// The address of the first byte.
    pub(crate) start: usize,
    /// In bytes.
    pub(crate) size: usize,
    /// In bytes.
    pub(crate) align: usize,
    /// Who allocated it.
    pub(crate) thread: u32,
    /// How many events that thread had performed.
    pub(crate) events: u32,
    /// Which block of this layout it is since that event, counted from 0.
    pub(crate) nth: u32,
    /// Whether somebody asked for it, and may have put something about it into a table.
    pub(crate) found: bool,
    /// Whether it must be freed before the execution ends, whether it was found or not.
    pub(crate) owed: bool,
    /// Whether it may stay allocated when the execution ends.
    pub(crate) forgiven: bool,
    /// Whether the references to it are counted out of sight, so that nobody has a pointer to it
    /// who has none of them.
    pub(crate) counted: bool,
    /// Who freed it, and how many events that thread had performed; nobody while it is alive.
    pub(crate) freed: Option<(u32, u32)>,
    /// On which shelf of the stock it belongs.
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
            freed: None,
            shelf: NOWHERE,
        }
    }

    /// Whether it was allocated like this.
    pub(super) fn has(&self, layout: Layout) -> bool {
        (self.size, self.align) == (layout.size(), layout.align())
    }

    /// A block that has been in stock is handed out anew, to this thread after so many events.
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
            freed: None,
            ..*self
        };
    }

    /// What is the same in each execution with the same history.
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
