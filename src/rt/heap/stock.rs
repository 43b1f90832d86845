//! Which memory is handed out again?
//!
//! An execution allocates mostly what the one before it did. So the small blocks that it frees are
//! not given back to the allocator when it ends, but handed out to the next one: those of each
//! layout in the order in which they came from the allocator. Then the next execution has its
//! blocks where this one had them, and at its end nothing has to be done for a layout whose blocks
//! are all free. What a small exploration has in stock at its end the next one on its OS thread has
//! from the start.
//!
//! Each block still is one of the allocator behind, with the layout that it was asked for. So one
//! that outlives its execution, or that another OS thread frees, simply is not in stock any more.

use std::alloc::Layout;

use crate::rt::event::NOWHERE;
use crate::rt::heap::blocks::Listing;
use crate::rt::heap::kept::Kept;
use crate::rt::rare::{Roomy, rarely};

/// The largest blocks that are stocked, in bytes.
const SIZE_MAX: usize = 1024;

/// How many bytes are in stock at most.
const BYTES_MAX: usize = 16 << 20;

/// So many bytes are few.
const SMALL_STOCK: usize = 64 << 10;

/// The blocks that are handed out again.
#[derive(Default)]
pub(super) struct Stock {
    /// For each size up to the largest that has one the number of its shelf, counted from 1; 0 if
    /// there is none.
    numbers: Vec<u16>,
    shelves: Vec<Shelf>,
    /// The shelves of which blocks are out.
    used: Vec<u16>,
    bytes: usize,
}

/// The blocks of one layout. Of each size there is one shelf, for the alignment that was met first
/// while it was empty.
struct Shelf {
    layout: Layout,
    blocks: Vec<Stocked>,
    /// How many of them the execution has been given, from the first one on, and how many of these
    /// it has freed.
    out: usize,
    back: usize,
}

struct Stocked {
    block: Kept,
    /// When it was handed out last.
    listing: Listing,
}

/// A block that is handed out.
pub(super) struct Taken<'a> {
    pub(super) start: *mut u8,
    /// Its shelf.
    pub(super) shelf: u32,
    /// The one before, to be replaced by the new one.
    pub(super) listing: &'a mut Listing,
}

impl Stock {
    /// Hands out a block of this layout that came from this allocator.
    #[inline]
    pub(super) fn take(&mut self, layout: Layout, allocator: *const ()) -> Option<Taken<'_>> {
        let number = *self.numbers.get(layout.size())?;
        let shelf = self.shelves.get_mut((number as usize).wrapping_sub(1))?;
        let at = shelf.out;
        let stocked = shelf.blocks.get_mut(at)?;
        // Of each size there is one.
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

    /// Takes up a block that the allocator has handed out, and says on which shelf; [`NOWHERE`] if
    /// it is not to be stocked.
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
            // What it was for has not come back.
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

    /// The block that this shelf got last was listed.
    pub(super) fn note_listing(&mut self, shelf: u32, listing: Listing) {
        if let Some(stocked) = self.shelves[shelf as usize].blocks.last_mut() {
            stocked.listing = listing;
        }
    }

    /// A block of this shelf has been freed.
    #[inline]
    pub(super) fn put_back(&mut self, shelf: u32) {
        self.shelves[shelf as usize].back += 1;
    }

    /// The execution has ended: what it has freed can be handed out again, the rest is somebody
    /// else's.
    #[inline(always)]
    pub(super) fn end(&mut self, is_free: impl Fn(&Kept, &Listing) -> bool) {
        for number in self.used.drain(..) {
            let shelf = &mut self.shelves[number as usize - 1];
            if rarely!(shelf.back < shelf.out) {
                let before = shelf.blocks.len();
                // Those behind have not been handed out, and wait for their turn as before.
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

    /// How many bytes are in stock.
    #[cfg(all(test, target_pointer_width = "64"))]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no more than a small exploration needs.
    pub(super) fn is_small(&self) -> bool {
        self.bytes <= SMALL_STOCK
    }
}

impl Drop for Stock {
    /// Gives back what is not handed out any more.
    fn drop(&mut self) {
        let shelves = self.shelves.drain(..);
        let stocked = shelves.flat_map(|shelf| shelf.blocks);
        stocked.for_each(|stocked| stocked.block.release());
    }
}
