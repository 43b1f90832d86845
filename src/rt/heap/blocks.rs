//! Which block contains an address?
//!
//! The index is a hash table with open addressing. It contains a block once, under the *cell* that
//! contains its start, where cells are as wide as the block's size rounded up to a power of two
//! (its *class*). So inserting and removing touch one entry. To find the block around an address,
//! the search looks up two cells in each class that has blocks: the cell of the address and the one
//! before it. A block is no longer than a cell of its class, so it begins in no other. Live blocks
//! do not overlap and are longer than half a cell, so no more than two begin in one cell, except
//! that all small sizes share a class. The search skips classes that have had no block around the
//! address.
//!
//! Why not an ordered structure: each block is inserted and removed, and few blocks are ever looked
//! up. In nanoseconds, blocks of 16 to 215 bytes in random order:
//!
//! | live blocks | insert and remove: this table | `BTreeMap` | sorted `Vec` | find: this table | `BTreeMap` | sorted `Vec` |
//! |---|---|---|---|---|---|---|
//! | 16 | 22 | 77 | 53 | 17 | 12 | 10 |
//! | 1,000 | 31 | 185 | 367 | 88 | 44 | 23 |
//! | 100,000 | 197 | 533 | | 312 | 228 | |

use std::alloc::Layout;

use crate::rt::event::NOWHERE;
use crate::rt::heap::block::Block;
use crate::rt::heap::classes::{Classes, class};
use crate::rt::rare::{cold_path, mostly, rarely};

/// The blocks of an execution, by address: the live ones, and the freed ones with kept memory.
///
/// A block of the stock stays in its slot when the execution ends, so that it is listed again
/// without a search when a thread gets it. Until then it is no block of the execution.
pub(super) struct Blocks {
    /// A power of two slots, or none; never more than half of them in use.
    slots: Vec<Slot>,
    /// The number of slots in use.
    len: usize,
    /// The number of live blocks.
    live: usize,
    /// The number of slots in use for blocks that do not belong to the stock.
    unstocked: usize,
    classes: Classes,
    /// The serial number of the newest block ever.
    serial: u64,
    /// Slots with a serial number up to this one have no block of the execution.
    cleared: u64,
    /// Slots with a serial number up to this one are empty.
    emptied: u64,
    /// The blocks of the execution that did not come from the stock: start, size and serial number.
    fresh: Vec<(usize, usize, u64)>,
    /// The slot of the block that was found last, if no block was listed or removed since.
    latest: Option<usize>,
    /// The slots of blocks that were found before, by [`near`].
    recent: [u32; NEAR],
}

/// An entry of the table. Empty slots end a search. [`Blocks::emptied`] decides which slots are
/// empty, so clearing the table writes nothing into it.
#[derive(Clone, Copy)]
struct Slot {
    block: Block,
    serial: u64,
}

/// The slot of a block, and its serial number.
#[derive(Clone, Copy, Default)]
pub(super) struct Listing {
    slot: u32,
    serial: u64,
}

/// The number of entries for blocks that are found without a search.
const NEAR: usize = 32;

/// The entry for a block around this address.
#[inline]
fn near(address: usize) -> usize {
    (address >> 4) % NEAR
}

/// To scan more blocks than this takes as long as a search for one.
const FEW: usize = 8;

/// The number of slots up to which a table is small: 16 KiB.
const SMALL_TABLE: usize = 256;

const EMPTY: Slot = Slot {
    block: Block::new(0, Layout::new::<()>(), 0, 0, 0),
    serial: 0,
};

/// Whether another block may contain the address and be newer than the block with this serial
/// number, which contains the address, too. Live blocks overlap if another OS thread has freed one
/// and the allocator has reused its memory for another. Memory of the stock was free before its
/// reuse, so only the blocks that did not come from the stock need a check.
fn may_be_newer(fresh: &[(usize, usize, u64)], address: usize, serial: u64) -> bool {
    fresh.len() > FEW
        || fresh
            .iter()
            .any(|&(start, size, newer)| newer > serial && address.wrapping_sub(start) < size)
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            slots: Vec::new(),
            len: 0,
            live: 0,
            unstocked: 0,
            classes: Classes::default(),
            serial: 0,
            cleared: 0,
            emptied: 0,
            fresh: Vec::new(),
            latest: None,
            recent: [0; NEAR],
        }
    }
}

/// A block that has been freed.
pub(super) struct Ended {
    pub(super) is_found: bool,
    /// Whether the allocating thread freed the block before its own next event.
    pub(super) by_maker: bool,
    /// Whether an atomic has held a pointer to the block.
    pub(super) is_published: bool,
    /// The shelf to which the block belongs.
    pub(super) shelf: u32,
}

impl Blocks {
    /// The number of live blocks.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Forgets all blocks. Freed blocks that belong to the stock keep their slots.
    pub(super) fn clear(&mut self) {
        self.cleared = self.serial;
        self.latest = None;
        self.fresh.clear();
        if rarely!(self.live > 0 || self.unstocked > 0) {
            self.unlist();
        }
    }

    /// Empties all slots.
    fn unlist(&mut self) {
        self.emptied = self.serial;
        self.len = 0;
        self.live = 0;
        self.unstocked = 0;
        self.classes.clear();
    }

    /// Whether the number of blocks has never exceeded that of a small exploration, so that the
    /// tables are small, too.
    pub(super) fn are_few(&self) -> bool {
        self.slots.len() <= SMALL_TABLE
    }

    /// The live blocks.
    pub(super) fn iter(&self) -> impl Iterator<Item = Block> {
        let some = if self.live == 0 { &[] } else { &self.slots[..] };
        some.iter()
            .filter(|slot| self.has(slot) && slot.block.is_live())
            .map(|slot| slot.block)
    }

    /// Adds the start and the size of each live block to the list. Returns their total size in
    /// bytes.
    pub(super) fn list(&self, list: &mut Vec<(usize, usize)>) -> usize {
        let (mut left, mut bytes) = (self.live, 0);
        for slot in &self.slots {
            if left == 0 {
                break;
            }
            if self.has(slot) && slot.block.is_live() {
                list.push((slot.block.start, slot.block.size));
                bytes += slot.block.size;
                left -= 1;
            }
        }
        bytes
    }

    /// Lists a live block that the allocator has made. Blocks of size 0 are not listed, because
    /// they contain no address.
    pub(super) fn insert(&mut self, block: Block) -> Listing {
        let listing = self.place(block);
        self.fresh.push((block.start, block.size, listing.serial));
        listing
    }

    /// Lists a block of the stock as live again, under a new name. `listing` is its entry from
    /// before. Returns false if its slot contains another block by now.
    #[inline]
    pub(super) fn renew(
        &mut self,
        listing: &mut Listing,
        (start, size): (usize, usize),
        by: (u32, u32),
        nth: u32,
    ) -> bool {
        let slot = match self.slots.get_mut(listing.slot as usize) {
            Some(slot) if mostly!(slot.serial > self.emptied) => slot,
            _ => return false,
        };
        if rarely!((slot.block.start, slot.block.size) != (start, size)) {
            return false;
        }
        slot.block.renew(by, nth);
        self.serial += 1;
        slot.serial = self.serial;
        listing.serial = self.serial;
        self.live += 1;
        true
    }

    /// Lists a live block.
    #[inline(never)]
    pub(super) fn place(&mut self, block: Block) -> Listing {
        if block.size == 0 {
            return Listing::default();
        }
        self.latest = None;
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let mut at = self.home(block.start, block.size);
        while !self.is_empty(at) {
            if self.slots[at].block.start == block.start {
                // The heap has missed the free of the block, or the block has been in the stock.
                self.forget(at);
                return self.place(block);
            }
            at = self.next(at);
        }
        self.serial += 1;
        self.slots[at] = Slot {
            block,
            serial: self.serial,
        };
        self.len += 1;
        self.live += 1;
        self.unstocked += (block.shelf == NOWHERE) as usize;
        self.classes.add(block.start, block.size);
        Listing {
            slot: at as u32,
            serial: self.serial,
        }
    }

    /// Notes that the thread `by` has freed the live block with this start and layout after this
    /// number of events.
    #[inline]
    pub(super) fn end(&mut self, start: usize, layout: Layout, by: (u32, u32)) -> Option<Ended> {
        let at = self.listed(start, layout.size())?;
        let block = &mut self.slots[at].block;
        if rarely!(!block.is_live() || !block.has(layout)) {
            return None;
        }
        block.freed = Some(by);
        self.live -= 1;
        Some(Ended {
            is_found: block.found,
            by_maker: (block.thread, block.events) == by,
            is_published: block.published,
            shelf: block.shelf,
        })
    }

    /// Whether [`Blocks::find`] certainly returns a block with this start and size for the address,
    /// and `is_it` accepts this block. If so, marks the block as found.
    #[inline]
    pub(super) fn is_still(
        &mut self,
        address: usize,
        (start, size): (usize, usize),
        is_it: impl FnOnce(&Block) -> bool,
    ) -> bool {
        let Some(at) = self.listed(start, size) else {
            cold_path();
            return false;
        };
        let Slot { block, serial } = &mut self.slots[at];
        let is_still = block.size == size
            && block.is_live()
            && is_it(block)
            && (self.fresh.is_empty() || !may_be_newer(&self.fresh, address, *serial));
        block.found |= is_still;
        is_still
    }

    /// Notes that the thread `by` has freed the live block with this start and size after this
    /// number of events. Returns the block as it was.
    #[inline]
    pub(super) fn bury(&mut self, start: usize, size: usize, by: (u32, u32)) -> Option<Block> {
        let at = self.listed(start, size)?;
        let block = &mut self.slots[at].block;
        if !block.is_live() {
            return None;
        }
        let before = *block;
        block.freed = Some(by);
        self.live -= 1;
        Some(before)
    }

    /// Removes the block with this start and size from the list.
    pub(super) fn remove(&mut self, start: usize, size: usize) -> Option<Block> {
        let at = self.listed(start, size)?;
        let block = self.slots[at].block;
        self.forget(at);
        Some(block)
    }

    /// The block with this start and size, if it is listed.
    pub(super) fn get(&self, start: usize, size: usize) -> Option<Block> {
        let at = self.listed(start, size)?;
        Some(self.slots[at].block)
    }

    /// The slot of the block with this start and size.
    #[inline]
    fn listed(&self, start: usize, size: usize) -> Option<usize> {
        if rarely!(self.len == 0 || size == 0) {
            return None;
        }
        let mut at = self.home(start, size);
        while !self.is_empty(at) {
            let slot = &self.slots[at];
            if mostly!(slot.block.start == start) {
                return self.has(slot).then_some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// Whether the block with this start, size and listing was freed. Another block may have had
    /// its memory since.
    pub(super) fn is_gone(&self, start: usize, size: usize, listing: &Listing) -> bool {
        let slot = self.listed(start, size).map(|at| &self.slots[at]);
        slot.is_some_and(|slot| slot.serial == listing.serial && !slot.block.is_live())
    }

    /// The newest live block that contains `address`. Marks it as found.
    pub(super) fn find(&mut self, address: usize) -> Option<Block> {
        let at = self.live_at(address)?;
        self.slots[at].block.found = true;
        Some(self.slots[at].block)
    }

    /// The slot of the newest live block that contains `address`.
    fn live_at(&mut self, address: usize) -> Option<usize> {
        let again = self.latest.filter(|&at| {
            let block = &self.slots[at].block;
            block.contains(address) && block.is_live()
        });
        let at = match again.or_else(|| self.found_before(address)) {
            Some(at) => at,
            None => self.position(address, true)?,
        };
        self.latest = Some(at);
        self.recent[near(address)] = at as u32;
        Some(at)
    }

    /// The slot of the newest live block that contains `address`, if an earlier search has found
    /// the block and no other block can be the newest.
    fn found_before(&self, address: usize) -> Option<usize> {
        let at = self.recent[near(address)] as usize;
        let slot = self.slots.get(at)?;
        let Slot { block, serial } = slot;
        let is_it = self.has(slot) && block.is_live() && block.contains(address);
        (is_it && !may_be_newer(&self.fresh, address, *serial)).then_some(at)
    }

    /// [`Blocks::find`] for a block that an atomic holds a pointer to, which is noted. Also returns
    /// the number of the block's listing.
    pub(super) fn publish(&mut self, address: usize) -> Option<(Block, u64)> {
        let at = self.live_at(address)?;
        let Slot { block, serial } = &mut self.slots[at];
        (block.found, block.published) = (true, true);
        Some((*block, *serial))
    }

    /// Notes that the memory of this live block was that of an earlier one.
    pub(super) fn note_again(&mut self, start: usize, size: usize) {
        if let Some(at) = self.listed(start, size) {
            self.slots[at].block.again = true;
        }
    }

    /// The number of the listing that was made last.
    pub(super) fn last_serial(&self) -> u64 {
        self.serial
    }

    /// The newest block that contained `address` and was freed.
    pub(super) fn find_gone(&self, address: usize) -> Option<Block> {
        let at = self.position(address, false)?;
        Some(self.slots[at].block)
    }

    /// The newest block that contains `address`, or did so before it was freed. Does not mark the
    /// block.
    pub(super) fn peek(&self, address: usize) -> Option<Block> {
        let at = (self.position(address, true)).or_else(|| self.position(address, false))?;
        Some(self.slots[at].block)
    }

    /// The start and the size of the newest live block that contains `address`. Does not mark the
    /// block.
    pub(super) fn around(&self, address: usize) -> Option<(usize, usize)> {
        let block = &self.slots[self.position(address, true)?].block;
        Some((block.start, block.size))
    }

    /// Whether a live block contains `address`. Does not mark the block.
    pub(super) fn contain(&self, address: usize) -> bool {
        self.position(address, true).is_some()
    }

    /// Applies `mark` to the newest block that contains `address`, if there is one.
    pub(super) fn mark(&mut self, address: usize, mark: impl FnOnce(&mut Block)) {
        if let Some(at) = self.live_at(address) {
            mark(&mut self.slots[at].block);
        }
    }

    /// The slot of the newest block that contains `address`, among the live blocks or among the
    /// others.
    fn position(&self, address: usize, live: bool) -> Option<usize> {
        let mut newest = None;
        let mut classes = self.classes.around(address);
        while classes != 0 {
            let class = classes.trailing_zeros();
            classes &= classes - 1;
            let cell = address >> class;
            for cell in [cell, cell.wrapping_sub(1)] {
                let mut at = self.slot_of(cell, class);
                while !self.is_empty(at) {
                    let slot = &self.slots[at];
                    if slot.block.contains(address)
                        && slot.block.is_live() == live
                        && self.has(slot)
                        && newest.is_none_or(|known: usize| self.slots[known].serial < slot.serial)
                    {
                        newest = Some(at);
                    }
                    at = self.next(at);
                }
            }
        }
        newest
    }

    /// Empties a slot that is in use.
    #[inline]
    fn forget(&mut self, mut hole: usize) {
        let block = &self.slots[hole].block;
        let size = block.size;
        self.live -= block.is_live() as usize;
        self.unstocked -= (block.shelf == NOWHERE) as usize;
        self.latest = None;
        self.len -= 1;
        self.classes.remove(size);
        // A search ends at the first empty slot. So an entry behind the hole has to move into the
        // hole if its search begins before the hole, or at it.
        let mut at = self.next(hole);
        while !self.is_empty(at) {
            let block = &self.slots[at].block;
            let home = self.home(block.start, block.size);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.slots[hole].serial = 0;
    }

    #[cold]
    fn grow(&mut self) {
        self.classes.make_room();
        let slots = vec![EMPTY; (self.slots.len() * 2).max(64)];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old {
            if slot.serial > self.emptied {
                let mut at = self.home(slot.block.start, slot.block.size);
                while !self.is_empty(at) {
                    at = self.next(at);
                }
                self.slots[at] = slot;
            }
        }
    }

    /// The slot at which the search for a block with this start and size begins.
    #[inline]
    fn home(&self, start: usize, size: usize) -> usize {
        let class = class(size);
        self.slot_of(start >> class, class)
    }

    /// The slot at which the search for the blocks that begin in a cell begins. The table must have
    /// slots.
    #[inline]
    fn slot_of(&self, cell: usize, class: u32) -> usize {
        // The upper half of a product with an odd constant (the golden ratio) depends on all bits.
        let mixed = (cell as u64 ^ u64::from(class) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The number of steps forward from one slot to another.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }

    #[inline]
    fn is_empty(&self, at: usize) -> bool {
        self.slots[at].serial <= self.emptied
    }

    /// Whether the block in a slot belongs to the execution.
    #[inline]
    fn has(&self, slot: &Slot) -> bool {
        slot.serial > self.cleared
    }
}
