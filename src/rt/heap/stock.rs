//! Which memory is reused by the next execution?
//!
//! An execution mostly allocates the same blocks as the one before. So the small blocks that an
//! execution frees are not given back to the allocator when it ends. The next execution gets them:
//! those of each layout in the order in which the allocator made them. Then the next execution has
//! its blocks at the same addresses, and its end has no work for a layout if all its blocks are
//! free. The next exploration on an OS thread begins with the stock that a small exploration has at
//! its end.
//!
//! Each block still belongs to the inner allocator, with the layout of its request. So a block that
//! outlives its execution, or that another OS thread frees, simply leaves the stock.

use std::alloc::Layout;

use crate::rt::event::NOWHERE;
use crate::rt::heap::blocks::Listing;
use crate::rt::heap::kept::Kept;
use crate::rt::rare::{Roomy, rarely};

/// The largest blocks of the stock, in bytes.
const SIZE_MAX: usize = 1024;

/// The number of bytes in the stock at most.
const BYTES_MAX: usize = 16 << 20;

/// The number of bytes up to which a stock is small.
const SMALL_STOCK: usize = 64 << 10;

/// The blocks that are reused.
#[derive(Default)]
pub(super) struct Stock {
    /// For each size up to the largest that has a shelf, the number of its shelf, counted from 1; 0
    /// if there is none.
    numbers: Vec<u16>,
    shelves: Vec<Shelf>,
    /// The shelves with blocks that are in use.
    used: Vec<u16>,
    bytes: usize,
}

/// The blocks of one layout. Each size has one shelf. Its alignment is the one that was met first
/// while the shelf was empty.
struct Shelf {
    layout: Layout,
    blocks: Vec<Stocked>,
    /// The number of blocks that the execution has got, from the first one on, and the number of
    /// these that it has freed.
    out: usize,
    back: usize,
}

struct Stocked {
    block: Kept,
    /// The listing of the block when it was last in use.
    listing: Listing,
}

/// A block that leaves the shelf.
pub(super) struct Taken<'a> {
    pub(super) start: *mut u8,
    /// The shelf of the block.
    pub(super) shelf: u32,
    /// The old listing, which the new one replaces.
    pub(super) listing: &'a mut Listing,
}

impl Stock {
    /// Takes a block of this layout that this allocator made.
    #[inline]
    pub(super) fn take(&mut self, layout: Layout, allocator: *const ()) -> Option<Taken<'_>> {
        let number = *self.numbers.get(layout.size())?;
        let shelf = self.shelves.get_mut((number as usize).wrapping_sub(1))?;
        let at = shelf.out;
        let stocked = shelf.blocks.get_mut(at)?;
        // Each size has one shelf.
        if rarely!(shelf.layout.align() != layout.align() || stocked.block.allocator != allocator) {
            return None;
        }
        shelf.out += 1;
        if at == 0 {
            self.used.put(number);
        }
        Some(Taken {
            start: stocked.block.start,
            shelf: number as u32 - 1,
            listing: &mut stocked.listing,
        })
    }

    /// Takes the block of this shelf that begins at `start`, which this allocator made, and which
    /// the execution has got and freed.
    pub(super) fn take_again(
        &mut self,
        shelf: u32,
        start: usize,
        allocator: *const (),
    ) -> Option<Taken<'_>> {
        let of = &mut self.shelves[shelf as usize];
        let mut out = of.blocks[..of.out].iter_mut();
        let stocked = out.find(|stocked| stocked.block.start.addr() == start)?;
        if stocked.block.allocator != allocator {
            return None;
        }
        of.back -= 1;
        Some(Taken {
            start: stocked.block.start,
            shelf,
            listing: &mut stocked.listing,
        })
    }

    /// Registers a block that the allocator has made, and returns its shelf; [`NOWHERE`] if the
    /// block does not belong to the stock.
    pub(super) fn add(&mut self, block: Kept) -> u32 {
        let layout = block.layout;
        let size = layout.size();
        if size == 0 || size > SIZE_MAX || self.bytes + size > BYTES_MAX {
            return NOWHERE;
        }
        if self.numbers.len() <= size {
            self.make_room(size);
        }
        if self.numbers[size] == 0 {
            self.shelves.push(Shelf {
                layout,
                blocks: Vec::new(),
                out: 0,
                back: 0,
            });
            self.numbers[size] = self.shelves.len() as u16;
        }
        let number = self.numbers[size];
        let shelf = &mut self.shelves[number as usize - 1];
        let at = shelf.blocks.len();
        if at == 0 {
            // The blocks of the earlier layout have not come back.
            shelf.layout = layout;
        }
        if shelf.layout != layout || shelf.out != at {
            return NOWHERE;
        }
        shelf.blocks.push(Stocked {
            block,
            listing: Listing::default(),
        });
        shelf.out += 1;
        self.bytes += size;
        if at == 0 {
            self.used.push(number);
        }
        number as u32 - 1
    }

    /// Makes room for the number of a shelf of this size, and for as many shelves as most tests
    /// have.
    #[cold]
    fn make_room(&mut self, size: usize) {
        self.numbers.resize((size + 1).next_multiple_of(256), 0);
        self.shelves.reserve(8);
        self.used.reserve(8);
    }

    /// Notes the listing of the block that this shelf got last.
    pub(super) fn note_listing(&mut self, shelf: u32, listing: Listing) {
        if let Some(stocked) = self.shelves[shelf as usize].blocks.last_mut() {
            stocked.listing = listing;
        }
    }

    /// Notes that a block of this shelf has been freed.
    #[inline]
    pub(super) fn put_back(&mut self, shelf: u32) {
        self.shelves[shelf as usize].back += 1;
    }

    /// Ends the execution: the blocks that it has freed can be reused. The others leave the stock.
    #[inline(always)]
    pub(super) fn end(&mut self, is_free: impl Fn(&Kept, &Listing) -> bool) {
        for number in self.used.drain(..) {
            let shelf = &mut self.shelves[number as usize - 1];
            if rarely!(shelf.back < shelf.out) {
                let before = shelf.blocks.len();
                // The blocks behind were not in use, and wait for their turn as before.
                let mut out = shelf.out;
                shelf.blocks.retain(|stocked| {
                    let was_out = out > 0;
                    out = out.saturating_sub(1);
                    !was_out || is_free(&stocked.block, &stocked.listing)
                });
                self.bytes -= (before - shelf.blocks.len()) * shelf.layout.size();
            }
            shelf.out = 0;
            shelf.back = 0;
        }
    }

    /// The number of bytes in the stock.
    #[cfg(all(test, target_pointer_width = "64"))]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the stock is no larger than a small exploration needs.
    pub(super) fn is_small(&self) -> bool {
        self.bytes <= SMALL_STOCK
    }
}

impl Drop for Stock {
    /// Gives back the blocks that are no longer reused.
    fn drop(&mut self) {
        let shelves = self.shelves.drain(..);
        let stocked = shelves.flat_map(|shelf| shelf.blocks);
        stocked.for_each(|stocked| stocked.block.release());
    }
}
