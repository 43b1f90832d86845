//! Which heap block does an address belong to, and what is its name?
//!
//! A [`Heap`] knows the live blocks that the threads of a model have allocated in this execution.
//! The tracking allocator (`dpor::alloc::Tracking`) reports them by the functions in [`attached`].
//!
//! The name of a block is the same in each execution with the same history, whatever address the
//! system returns. It consists of the thread that allocated the block, the number of events of that
//! thread before the allocation, size and alignment, and the number of such blocks since that
//! event. The number of events keeps the effect of an allocation that happens only once in a
//! process (a buffer made on first use) local: the allocation can change the names of blocks of its
//! own layout up to the thread's next event, and no others.
//!
//! The heap records:
//!
//! - *Allocations* only while [`Heap::record`] is on, that is while user code runs. Allocations of
//!   the runtime are not part of the model. A box for the user's values has to be allocated while
//!   recording is on if the user can reach the values there. Otherwise the objects in it have an
//!   address, but no name.
//! - *Frees* of known blocks always, since the runtime may drop a value for the user. Frees of
//!   unknown blocks (older than the model, or than this execution) only while recording is on.
//! - A freed block stays known, as *gone*. Its memory is returned to the allocator only when the
//!   execution ends ([`kept`]), or is reused by the next execution ([`stock`]). So the heap detects
//!   a use of the block, and a second free. A free of an address that is no block does not reach
//!   the allocator; [`Heap::take_fault`] reports it.
//! - A reallocation as the end of one block and the begin of another, even if the block stays in
//!   place: the system decides whether it stays, and a name must not depend on that.
//!
//! Only its own OS thread may touch the heap. A block of the model that another OS thread frees
//! stays listed. When the allocator returns its memory again, [`Heap::find`] finds the newer block.
//!
//! The heap allocates too, for its own tables. It moves its [`State`] out of its cell while it
//! works, so the hooks of these allocations find no state and return. The same holds if a stack
//! overflows within a hook and the work is never finished: that state is leaked, and the next
//! [`Heap::reset`] makes a new one.

use std::alloc::Layout;
use std::cell::Cell;
use std::mem;

use crate::rt::event::NOWHERE;
use crate::rt::event::fence::MadeSoFar;
use crate::rt::pooled::Empty;
use crate::rt::process::outside_use;
use crate::rt::rare::{Roomy, cold_path, rarely};

mod again;
mod attached;
mod behind;
mod block;
mod blocks;
mod classes;
pub(crate) mod contents;
mod counters;
mod guarded;
mod kept;
pub(crate) mod reach;
mod stock;
mod watched;

use crate::rt::event::schedule::Guarded;
use crate::rt::heap::again::Again;
pub(crate) use crate::rt::heap::attached::{
    allocated, entered, freed, installed, instead, knows, reallocated, unrecorded,
};
pub(crate) use crate::rt::heap::behind::{Asked, behind, from_reserve};
#[cfg(unix)]
pub(crate) use crate::rt::heap::behind::{asked, fail};
pub(crate) use crate::rt::heap::block::Block;
use crate::rt::heap::blocks::{Blocks, Ended, Listing};
use crate::rt::heap::counters::Counters;
use crate::rt::heap::guarded::Pages;
pub(crate) use crate::rt::heap::guarded::{CAN_LOCK, was_refused};
pub(crate) use crate::rt::heap::kept::Kept;
use crate::rt::heap::kept::Queue;
use crate::rt::heap::stock::Stock;
pub(crate) use crate::rt::heap::watched::{COUNTS, Watched};

/// When is the memory of a block given back?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Free {
    Now,
    /// At the end of the execution. The block has not been kept yet.
    AtTheEnd,
    /// Later, or to the next execution, or not at all.
    NotNow,
}

/// An invalid free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A free of a block that is gone.
    Again(Block),
    /// A free of a block with this other layout.
    Layout(Block, Layout),
    /// A free of an address inside a block.
    Inside(Block, usize),
}

/// Which blocks are a leak if they are still allocated when an execution has ended?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MustFree {
    /// Blocks that were declared with [`Heap::owe`].
    Owed,
    /// Also blocks that [`Heap::find`] has returned.
    Found,
}

/// The heap blocks of one exploration. One heap at a time can be attached to an OS thread.
pub(crate) struct Heap {
    recording: Cell<bool>,
    /// The thread that allocates, and the number of its events.
    thread: Cell<(u32, u32)>,
    /// Whether `State::freed` or `State::fault` may be non-empty.
    some_freed: Cell<bool>,
    /// Whether frees of blocks that were not found are reported, as long as other threads exist
    /// than the running one.
    tells_all: Cell<bool>,
    others: Cell<bool>,
    /// Whether a block is watched.
    watching: Cell<bool>,
    /// Whether the execution that runs here has failed.
    failed: Cell<fn() -> bool>,
    /// The blocks that get pages of their own, which are locked when the blocks are freed.
    guarding: Cell<Option<Guarded>>,
    /// Whether threads get the memory again that they have freed.
    reuses: Cell<bool>,
    /// Whether a block of this execution had to be freed whatever the settings are.
    owing: Cell<bool>,
    /// Empty while a function of this module works on the state.
    state: Cell<Option<Box<State>>>,
}

#[derive(Default)]
struct State {
    blocks: Blocks,
    kept: Queue,
    stock: Stock,
    fault: Option<Fault>,
    watched: Watched,
    counters: Counters,
    /// The number of uses from outside before the execution began.
    outsiders: u64,
    /// The start of each block that was allocated after further uses from outside, and the number
    /// of these uses before it.
    later: Vec<(usize, u64)>,
    /// The memory that was freed since the last query of the object table.
    freed: Vec<(usize, usize)>,
    /// The freed blocks that may come again.
    again: Again,
    /// The pages of the guarded blocks.
    pages: Pages,
}

impl Heap {
    /// A heap without blocks, neither attached nor recording.
    pub(crate) fn new() -> Heap {
        Heap {
            recording: Cell::new(false),
            thread: Cell::new((0, 0)),
            some_freed: Cell::new(false),
            tells_all: Cell::new(false),
            others: Cell::new(false),
            watching: Cell::new(false),
            failed: Cell::new(|| false),
            guarding: Cell::new(None),
            reuses: Cell::new(false),
            owing: Cell::new(false),
            state: Cell::new(Some(Box::default())),
        }
    }

    /// Switches the recording of allocations on or off, and returns whether it was on. Costs a
    /// store.
    #[inline]
    pub(crate) fn record(&self, on: bool) -> bool {
        self.recording.replace(on)
    }

    /// Sets the thread that allocates from now on, and the number of its events. Costs a store.
    #[inline]
    pub(crate) fn set_thread(&self, thread: u32, events: u32) {
        self.thread.set((thread, events));
    }

    /// Updates the number of events of this thread, which is the allocating one. Costs a store.
    #[inline(always)]
    pub(crate) fn set_events(&self, thread: u32, events: u32) {
        let (by, _) = self.thread.get();
        debug_assert_eq!(by, thread);
        self.thread.set((by, events));
    }

    /// The last event of this thread, which is the allocating one, is withdrawn. It has performed
    /// so many others.
    pub(crate) fn withdraw(&self, thread: u32, events: u32) {
        self.set_thread(thread, events);
        self.with(|state| state.counters.withdraw(thread));
    }

    /// For each layout, the number of blocks that the allocating thread has made since its last
    /// event.
    pub(crate) fn made_since_event(&self) -> MadeSoFar {
        let by = self.thread.get();
        let made = self.with(|state| state.counters.so_far(by).collect());
        made.unwrap_or_default()
    }

    /// From now on the selected blocks get pages of their own, and a use after their free is a
    /// fault.
    pub(crate) fn guard(&self, which: Guarded) {
        self.guarding.set(Some(which));
    }

    /// Begins a new execution: forgets all blocks, returns the freed memory to the allocator, keeps
    /// the memory of the tables, and switches recording off. Blocks that are still allocated are
    /// unknown from now on.
    pub(crate) fn reset(&self) {
        self.give_back();
        self.recording.set(false);
        self.thread.set((0, 0));
        self.some_freed.set(self.watching.get());
        self.owing.set(false);
        let mut state = self.state.take().unwrap_or_else(|| {
            cold_path();
            Box::default()
        });
        state.blocks.clear();
        state.counters.clear();
        state.fault = None;
        state.freed.clear();
        state.again.clear();
        state.outsiders = outside_use::noted();
        state.later.clear();
        // As in `with`.
        mem::forget(self.state.replace(Some(state)));
    }

    /// Returns to the allocator the freed memory that cannot be reused.
    fn give_back(&self) {
        self.with(|state| {
            let blocks = &state.blocks;
            let is_free = |kept: &Kept, listing: &Listing| {
                blocks.is_gone(kept.start.addr(), kept.layout.size(), listing)
            };
            state.stock.end(is_free);
        });
        while let Some(kept) = self.with(State::pop_kept).flatten() {
            kept.release();
        }
    }

    /// The first invalid free of this execution.
    pub(crate) fn take_fault(&self) -> Option<Fault> {
        self.with(|state| state.fault.take()).flatten()
    }

    /// The block that contained `address` and was freed, if no other block contains it now, or its
    /// free is still to be examined.
    pub(crate) fn find_gone(&self, address: usize) -> Option<Block> {
        self.with(|state| match state.blocks.contain(address) {
            false => state.blocks.find_gone(address),
            true => state.again.find_gone(address),
        })
        .flatten()
    }

    /// The number of uses from outside before the execution began.
    pub(crate) fn outsiders_at_start(&self) -> u64 {
        self.with(|state| state.outsiders).unwrap_or(u64::MAX)
    }

    /// Whether the address was in a block of this execution at the use from outside with this
    /// number, and [`Heap::find`] has returned the block.
    pub(crate) fn had(&self, address: usize, number: u64) -> bool {
        let had = self.with(|state| {
            let block = state.blocks.peek(address)?;
            let later = state.later.iter().rev();
            let mut same = later.filter(|(start, _)| *start == block.start);
            Some(block.found && same.next().is_none_or(|&(_, before)| number >= before))
        });
        had.flatten() == Some(true)
    }

    /// The number of the block that was listed last.
    pub(crate) fn last_listed(&self) -> u64 {
        self.with(|state| state.blocks.last_serial())
            .unwrap_or_default()
    }

    /// Whether the address is in a live block.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.with(|state| state.blocks.contain(address)) == Some(true)
    }

    /// Whether no block is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.with(|state| state.blocks.live() == 0) == Some(true)
    }

    /// Whether no block can be a leak, without a look at the blocks.
    pub(crate) fn owes_nothing(&self, must_free: MustFree) -> bool {
        must_free == MustFree::Owed && !self.owing.get()
    }

    /// The live blocks that are a leak, in the order of their names.
    pub(crate) fn left(&self, must_free: MustFree) -> Vec<Block> {
        let counts = |block: &Block| {
            let found = must_free == MustFree::Found && block.found;
            (block.owed || found) && !block.forgiven
        };
        let left = |state: &mut State| state.blocks.iter().filter(counts).collect();
        let mut blocks: Vec<Block> = self.with(left).unwrap_or_default();
        blocks.sort_unstable_by_key(Block::name);
        blocks
    }

    /// The live block that contains `address`, the newest if there are several. From now on the
    /// heap reports its free.
    pub(crate) fn find(&self, address: usize) -> Option<Block> {
        self.with(|state| state.blocks.find(address)).flatten()
    }

    /// [`Heap::find`] for an address that an atomic holds. Also returns whether the block has, or
    /// could have, the memory of a block that its thread has freed.
    pub(crate) fn publish(&self, address: usize) -> Option<(Block, bool)> {
        self.with(|state| {
            let (block, serial) = state.blocks.publish(address)?;
            let again = block.again
                || rarely!(!state.again.is_empty()) && state.again.could_be(&block, serial);
            Some((block, again))
        })
        .flatten()
    }

    /// Has threads get the memory again that they have freed, in all executions.
    pub(crate) fn use_again(&self) {
        self.reuses.set(true);
    }

    /// The start and the size of the block that [`Heap::find`] would return.
    pub(crate) fn around(&self, address: usize) -> Option<(usize, usize)> {
        self.with(|state| state.blocks.around(address)).flatten()
    }

    /// Whether [`Heap::find`] certainly returns a block with this start and size for the address,
    /// and `is_it` accepts this block. If so, the block counts as found.
    #[inline]
    pub(crate) fn is_still(
        &self,
        address: usize,
        block: (usize, usize),
        is_it: impl FnOnce(&Block) -> bool,
    ) -> bool {
        self.with(|state| state.blocks.is_still(address, block, is_it)) == Some(true)
    }

    /// The number of live blocks.
    #[cfg(test)]
    pub(crate) fn live_count(&self) -> usize {
        self.with(|state| state.blocks.live()).unwrap_or(0)
    }

    /// The live blocks in the order of their names: by thread, events, layout and number.
    #[cfg(all(test, target_pointer_width = "64"))]
    pub(crate) fn live(&self) -> Vec<Block> {
        let mut live: Vec<Block> = self
            .with(|state| state.blocks.iter().collect())
            .unwrap_or_default();
        live.sort_unstable_by_key(Block::name);
        live
    }

    /// Adds the start and the size of each live block to the list. Returns false if there are more
    /// than `most` blocks or `bytes` bytes, or a caller further up this stack works on the state.
    pub(crate) fn list_within(
        &self,
        list: &mut Vec<(usize, usize)>,
        most: usize,
        bytes: usize,
    ) -> bool {
        let all = self.with(|state| match state.blocks.live() <= most {
            true => state.blocks.list(list) <= bytes,
            false => false,
        });
        all == Some(true)
    }

    /// Whether [`Heap::drain_freed`] or [`Heap::take_fault`] may have something to report. Costs a
    /// load.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.some_freed.get()
    }

    /// Declares that the block that contains this address must be freed, whatever the settings are.
    pub(crate) fn owe(&self, address: usize) {
        self.owing.set(true);
        self.with(|state| state.blocks.mark(address, |block| block.owed = true));
    }

    /// Declares that the block that contains this address may stay allocated.
    pub(crate) fn forgive(&self, address: usize) {
        self.with(|state| state.blocks.mark(address, |block| block.forgiven = true));
    }

    /// Declares that the model does not see the reference counts of the block that contains this
    /// address.
    pub(crate) fn note_counted(&self, address: usize) {
        self.with(|state| state.blocks.mark(address, |block| block.counted = true));
    }

    /// Switches for this execution whether the heap also reports frees of blocks that were not
    /// found. These are blocks that another thread may know, because the allocating thread has made
    /// an event since the allocation, or another thread frees the block.
    pub(crate) fn tell_all(&self, all: bool) {
        self.tells_all.set(all);
        self.others.set(false);
    }

    /// Sets whether threads other than the running one exist. Costs a store.
    #[inline]
    pub(crate) fn note_others(&self, others: bool) {
        self.others.set(others);
    }

    /// Whether the block was freed without having been found.
    pub(crate) fn is_unasked(&self, start: usize) -> bool {
        self.tells_all.get() && self.find_gone(start).is_some_and(|block| !block.found)
    }

    /// Passes to `each` the start and the size in bytes of each block that was freed since the last
    /// call and may hold objects: blocks that [`Heap::find`] has returned, and unknown ones. Other
    /// blocks are passed only if [all are reported](Heap::tell_all). Costs a load if there are
    /// none.
    #[inline]
    pub(crate) fn drain_freed(&self, each: impl FnMut(usize, usize)) {
        if self.some_freed.get() {
            self.drain_some_freed(each);
        }
    }

    fn drain_some_freed(&self, mut each: impl FnMut(usize, usize)) {
        // A watched block has to be examined before each operation.
        self.some_freed.set(self.watching.get());
        if self.watching.get() {
            self.look_inside();
        }
        let mut freed = self
            .with(|state| mem::take(&mut state.freed))
            .unwrap_or_default();
        // The heap is complete while `each` runs, so `each` can free memory and look up blocks.
        for (start, size) in freed.drain(..) {
            each(start, size);
        }
        self.with(|state| {
            state.again.are_examined();
            if state.freed.is_empty() {
                mem::swap(&mut state.freed, &mut freed);
            }
        });
    }

    /// Works on the state, unless a caller further up this stack does. Must not panic: it runs
    /// inside of the global allocator.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> Option<R> {
        let Some(mut state) = self.state.take() else {
            cold_path();
            return None;
        };
        let result = work(&mut state);
        // Dropping the old content would do nothing: the cell has been empty since `take`.
        mem::forget(self.state.replace(Some(state)));
        Some(result)
    }

    /// A block with pages of its own, if the selection contains the block.
    #[cold]
    fn hand_out_guarded(&self, layout: Layout, which: Guarded) -> Option<*mut u8> {
        let (_, events) = self.thread.get();
        if !which.has(layout.size(), events) {
            return None;
        }
        let start = self.with(|state| state.pages.block(layout))??;
        self.note_allocated(start.addr(), layout, || None);
        Some(start)
    }

    /// A block that the previous execution has freed, if user code requests a block of this layout.
    #[inline]
    fn hand_out(&self, layout: Layout, allocator: *const ()) -> Option<*mut u8> {
        if rarely!(!self.recording.get()) {
            return None;
        }
        if let Some(which) = self.guarding.get() {
            cold_path();
            if let Some(start) = self.hand_out_guarded(layout, which) {
                return Some(start);
            }
        }
        let by = self.thread.get();
        let reuses = self.reuses.get();
        let start = self.with(|state| {
            let again = match rarely!(reuses) {
                true => state.hand_out_again(layout, allocator, by),
                false => None,
            };
            again.or_else(|| state.hand_out(layout, allocator, by))
        })??;
        self.look_at(start.addr(), layout, |watched| &mut watched.allocated);
        Some(start)
    }

    #[inline(never)]
    fn note_allocated(&self, start: usize, layout: Layout, kept: impl FnOnce() -> Option<Kept>) {
        if self.recording.get() && start != 0 {
            let by = self.thread.get();
            self.with(|state| {
                let shelf = kept().map_or(NOWHERE, |kept| state.stock.add(kept));
                let block = state.named(start, layout, by, shelf);
                let outsiders = outside_use::noted();
                if rarely!(outsiders != state.outsiders) {
                    state.later.push((start, outsiders));
                }
                let listing = state.blocks.insert(block);
                if shelf != NOWHERE {
                    state.stock.note_listing(shelf, listing);
                }
            });
            self.look_at(start, layout, |watched| &mut watched.allocated);
        }
    }

    /// Decides when a block that is being freed is given back.
    #[inline]
    fn note_freed(&self, start: usize, layout: Layout) -> Free {
        let by = self.thread.get();
        let freed = self.with(|state| {
            let Ended {
                is_found,
                by_maker,
                is_published,
                shelf,
            } = state.blocks.end(start, layout, by)?;
            if is_found || rarely!(self.others.get() && self.tells_all.get() && !by_maker) {
                state.note_gone(start, layout.size());
                self.some_freed.set(true);
            }
            if rarely!(is_published) {
                let serial = state.blocks.last_serial();
                state.again.note(by.0, start, layout, serial);
            }
            if rarely!(shelf == NOWHERE) {
                return Some(Free::AtTheEnd);
            }
            state.stock.put_back(shelf);
            Some(Free::NotNow)
        });
        match freed {
            Some(Some(free)) => {
                self.look_at(start, layout, Watched::next_free);
                free
            }
            Some(None) => {
                cold_path();
                self.note_odd_free(start, layout, by)
            }
            None => Free::Now,
        }
    }

    /// [`Heap::note_freed`] for an address that is no live block with this layout.
    #[inline(never)]
    fn note_odd_free(&self, start: usize, layout: Layout, by: (u32, u32)) -> Free {
        let freed = self.with(|state| {
            if let Some(block) = state.blocks.bury(start, layout.size(), by) {
                if !self.recording.get() {
                    // Another OS thread has freed the block, and the runtime has received its
                    // memory.
                    state.blocks.remove(start, layout.size());
                    return (Free::Now, None);
                }
                if block.found {
                    state.freed.push((start, layout.size()));
                }
                state.fault.get_or_insert(Fault::Layout(block, layout));
                self.some_freed.set(true);
                return (Free::NotNow, Some(block));
            }
            let fault = match self.recording.get() {
                true => state.misplaced(start, layout),
                // A free by the runtime itself is valid, unless the block is the user's.
                false => match state.blocks.get(start, layout.size()) {
                    Some(block) => Some(Fault::Again(block)),
                    None => return (Free::Now, None),
                },
            };
            self.some_freed.set(true);
            match fault {
                Some(fault) => {
                    let (Fault::Again(block) | Fault::Layout(block, _) | Fault::Inside(block, _)) =
                        fault;
                    state.fault.get_or_insert(fault);
                    (Free::NotNow, Some(block))
                }
                None => {
                    state.freed.push((start, layout.size()));
                    (Free::Now, None)
                }
            }
        });
        let (free, block) = freed.unwrap_or((Free::Now, None));
        if let Some(block) = block {
            self.look(&block, Watched::next_free);
        }
        free
    }

    /// Keeps a freed block until the execution has ended.
    fn keep(&self, kept: Kept) {
        if guarded::is_one(kept.start.addr()) {
            return guarded::free(kept.start);
        }
        self.with(|state| state.kept.push(kept));
        while let Some(kept) = self.with(|state| state.kept.surplus()).flatten() {
            let (start, layout) = (kept.start.addr(), kept.layout);
            self.with(|state| {
                state.blocks.remove(start, layout.size());
                state.again.forget(start, layout);
            });
            kept.release();
        }
    }
}

impl Empty for Heap {
    /// Resets the heap to a new one, but keeps the memory of its tables and its stock, if these are
    /// small.
    fn empty(&mut self) {
        self.give_back();
        self.recording.set(false);
        self.thread.set((0, 0));
        self.some_freed.set(false);
        self.watching.set(false);
        if self.guarding.take().is_some() {
            self.with(|state| state.pages.give_up());
        }
        self.tell_all(false);
        self.owing.set(false);
        self.reuses.set(false);
        let state = self.state.get_mut().get_or_insert_default();
        match state.blocks.are_few() && state.stock.is_small() {
            true => state.empty(),
            false => **state = State::default(),
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.give_back();
        self.with(|state| state.pages.give_up());
    }
}

impl State {
    /// Forgets an exploration except for the memory of the tables, and the stock.
    fn empty(&mut self) {
        let State {
            blocks,
            kept: _,
            stock: _,
            fault,
            watched,
            counters,
            outsiders,
            later,
            freed,
            again,
            pages: _,
        } = self;
        blocks.clear();
        counters.clear();
        (*fault, *watched, *outsiders) = (None, Watched::default(), 0);
        later.clear();
        freed.clear();
        again.clear();
    }

    /// Gives a block of the stock to a thread with this number of events.
    #[inline]
    fn hand_out(
        &mut self,
        layout: Layout,
        allocator: *const (),
        by: (u32, u32),
    ) -> Option<*mut u8> {
        let taken = self.stock.take(layout, allocator)?;
        let nth = self.counters.next(by, layout);
        let start = taken.start.addr();
        let blocks = &mut self.blocks;
        if rarely!(!blocks.renew(taken.listing, (start, layout.size()), by, nth)) {
            let block = Block {
                shelf: taken.shelf,
                ..Block::new(start, layout, by.0, by.1, nth)
            };
            *taken.listing = blocks.place(block);
        }
        Some(taken.start)
    }

    /// Gives a thread the block of this layout that it has freed last, if that may come again.
    #[cold]
    fn hand_out_again(
        &mut self,
        layout: Layout,
        allocator: *const (),
        by: (u32, u32),
    ) -> Option<*mut u8> {
        let start = self.again.take(by.0, layout)?;
        let size = layout.size();
        let gone = self.blocks.get(start, size)?;
        let again = if gone.shelf == NOWHERE {
            let kept = self.kept.take(start, allocator)?;
            let block = self.named(start, layout, by, NOWHERE);
            self.blocks.insert(block);
            kept.start
        } else {
            let taken = self.stock.take_again(gone.shelf, start, allocator)?;
            let nth = self.counters.next(by, layout);
            if !self.blocks.renew(taken.listing, (start, size), by, nth) {
                let block = Block {
                    shelf: gone.shelf,
                    ..Block::new(start, layout, by.0, by.1, nth)
                };
                *taken.listing = self.blocks.place(block);
            }
            taken.start
        };
        self.blocks.note_again(start, size);
        if self.freed.contains(&(start, size)) {
            self.again.replace(gone);
        }
        Some(again)
    }

    /// The record of a block that such a thread has allocated.
    fn named(&mut self, start: usize, layout: Layout, by: (u32, u32), shelf: u32) -> Block {
        let nth = self.counters.next(by, layout);
        Block {
            shelf,
            ..Block::new(start, layout, by.0, by.1, nth)
        }
    }

    /// Notes that a block that may hold objects is gone.
    #[inline(never)]
    fn note_gone(&mut self, start: usize, size: usize) {
        self.freed.put((start, size));
    }

    /// The next block that is to be given back because the execution has ended.
    fn pop_kept(&mut self) -> Option<Kept> {
        let kept = self.kept.pop()?;
        self.blocks.remove(kept.start.addr(), kept.layout.size());
        Some(kept)
    }

    /// The fault of a free of a block that is not listed.
    fn misplaced(&mut self, start: usize, layout: Layout) -> Option<Fault> {
        if let Some(block) = self.blocks.find(start) {
            return Some(match start - block.start {
                0 => Fault::Layout(block, layout),
                offset => Fault::Inside(block, offset),
            });
        }
        let block = self.blocks.find_gone(start)?;
        Some(Fault::Again(block))
    }
}

// The addresses in these tests have 64 bits.
#[cfg(all(test, target_pointer_width = "64"))]
mod tests;
