//! Which heap block does an address belong to, and what is its name?
//!
//! A [`Heap`] knows the live blocks that the threads of a model have allocated in this execution.
//! It hears of them from the tracking allocator (`dpor::alloc::Tracking`), by the functions in
//! [`attached`].
//!
//! The name of a block is what is the same in each execution with the same history, whatever
//! address the system hands out: the thread that allocated it, how many events that thread had
//! performed by then, size and alignment, and how many such blocks came before it since that event.
//! The number of events keeps the effect of an allocation that happens only once in a process (a
//! buffer made on first use) local: it can change the names of blocks of its own layout up to the
//! thread's next event, and no others.
//!
//! What is recorded:
//!
//! - *Allocations* count only while [`Heap::record`] is on, which is while user code runs. What the
//!   runtime allocates to do its work is not part of the model. A box that is made for the user's
//!   values should be allocated while it is on if the user can get at them there, or the objects in
//!   it have no name but an address.
//! - *Frees* of known blocks count always, since the runtime may drop a value for the user. Frees
//!   of unknown blocks (older than the model, or than this execution) count while recording is on.
//! - A block that is freed is still known, as *gone*, and its memory is not given back before the
//!   execution ends ([`kept`]), or handed out to the next one ([`stock`]): a use of it, and a
//!   second free, are found. Frees of what is no block are kept from the allocator, and reported by
//!   [`Heap::take_fault`].
//! - A reallocation ends one block and begins another, even when it stays in place: whether it
//!   stays is the system's choice and must not show in a name.
//!
//! The heap may only be touched by its own OS thread. A block of the model that another OS thread
//! frees stays listed; when its memory is handed out again, the newer block is what [`Heap::find`]
//! finds.
//!
//! The heap allocates too, for its own tables. It moves its [`State`] out of its cell while it
//! works, so the hooks that it causes find nothing to work on and leave. The same holds if a stack
//! overflows within a hook and the work is never finished: that state is leaked, and the next
//! [`Heap::reset`] makes a new one.

use std::alloc::Layout;
use std::cell::Cell;
use std::mem;

use crate::rt::event::NOWHERE;
use crate::rt::pooled::Empty;
use crate::rt::process::outside_use;
use crate::rt::rare::{Roomy, cold_path, rarely};

mod attached;
mod behind;
mod block;
mod blocks;
mod classes;
pub(crate) mod contents;
mod counters;
mod guarded;
mod kept;
mod stock;
mod watched;

use crate::rt::event::schedule::Guarded;
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
    /// Nobody has kept it yet.
    AtTheEnd,
    /// Later, or to the next execution, or not at all.
    NotNow,
}

/// A free that must not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Of a block that is gone.
    Again(Block),
    /// Of a block with this other layout.
    Layout(Block, Layout),
    /// Of an address inside a block.
    Inside(Block, usize),
}

/// Which blocks are a leak if they are still allocated when an execution has ended?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MustFree {
    /// Those of which somebody has said so, by [`Heap::owe`].
    Owed,
    /// Those as well that somebody has asked for.
    Found,
}

/// The heap blocks of one exploration. One per OS thread can be attached at a time.
pub(crate) struct Heap {
    recording: Cell<bool>,
    /// Who allocates, and how many events it has performed.
    thread: Cell<(u32, u32)>,
    /// Whether `State::freed` or `State::fault` may have something in it.
    some_freed: Cell<bool>,
    /// Whether frees of blocks are told that nobody has asked for, as long as there are others than
    /// the thread that runs.
    tells_all: Cell<bool>,
    others: Cell<bool>,
    /// Whether a block is watched.
    watching: Cell<bool>,
    /// Whether the execution that runs here has failed.
    failed: Cell<fn() -> bool>,
    /// Which blocks get pages of their own, which are locked when they are freed.
    guarding: Cell<Option<Guarded>>,
    /// Whether a block of this execution had to be freed whatever the settings say.
    owing: Cell<bool>,
    /// Empty while a function of this module works on it.
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
    /// How many uses from outside there had been when the execution began.
    outsiders: u64,
    /// The start of each block that was got from the system after more of them, and how many there
    /// were by then.
    later: Vec<(usize, u64)>,
    /// The memory that was freed since the object table last asked.
    freed: Vec<(usize, usize)>,
    /// What blocks have that are guarded.
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
            owing: Cell::new(false),
            state: Cell::new(Some(Box::default())),
        }
    }

    /// Switches the recording of allocations on or off, and says whether it was on. Costs a store.
    #[inline]
    pub(crate) fn record(&self, on: bool) -> bool {
        self.recording.replace(on)
    }

    /// Says who allocates from now on, and how many events that thread has performed. Costs a
    /// store.
    #[inline]
    pub(crate) fn set_thread(&self, thread: u32, events: u32) {
        self.thread.set((thread, events));
    }

    /// Says how many events this thread, which is the one that allocates, has performed now. Costs
    /// a store.
    #[inline(always)]
    pub(crate) fn set_events(&self, thread: u32, events: u32) {
        let (by, _) = self.thread.get();
        debug_assert_eq!(by, thread);
        self.thread.set((by, events));
    }

    /// A new execution begins: forgets everything, gives back what was freed, keeps the memory of
    /// the tables, and switches recording off. Blocks that are still allocated are unknown from now
    /// on.
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
        state.outsiders = outside_use::noted();
        state.later.clear();
        // As in `with`.
        mem::forget(self.state.replace(Some(state)));
    }

    /// Gives back what was freed and cannot be handed out again.
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

    /// The first free of this execution that must not be.
    pub(crate) fn take_fault(&self) -> Option<Fault> {
        self.with(|state| state.fault.take()).flatten()
    }

    /// The block that contained `address` and was freed, if no other one contains it now.
    pub(crate) fn find_gone(&self, address: usize) -> Option<Block> {
        self.with(|state| match state.blocks.contain(address) {
            false => state.blocks.find_gone(address),
            true => None,
        })
        .flatten()
    }

    /// How many uses from outside there had been when the execution began.
    pub(crate) fn outsiders_at_start(&self) -> u64 {
        self.with(|state| state.outsiders).unwrap_or(u64::MAX)
    }

    /// Whether the address was in a block of this execution at the use from outside with this
    /// number, and somebody has asked for the block.
    pub(crate) fn had(&self, address: usize, number: u64) -> bool {
        let had = self.with(|state| {
            let block = state.blocks.peek(address)?;
            let later = state.later.iter().rev();
            let mut same = later.filter(|(start, _)| *start == block.start);
            Some(block.found && same.next().is_none_or(|&(_, before)| number >= before))
        });
        had.flatten() == Some(true)
    }

    /// Whether the address is in a live block.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.with(|state| state.blocks.contain(address)) == Some(true)
    }

    /// Whether no block is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.with(|state| state.blocks.live() == 0) == Some(true)
    }

    /// Whether no block can be a leak, without looking at any.
    pub(crate) fn owes_nothing(&self, must_free: MustFree) -> bool {
        must_free == MustFree::Owed && !self.owing.get()
    }

    /// The live blocks that must not stay, in the order of their names.
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
    /// heap will report when it is freed.
    pub(crate) fn find(&self, address: usize) -> Option<Block> {
        self.with(|state| state.blocks.find(address)).flatten()
    }

    /// The start and the size of the block that [`Heap::find`] would find.
    pub(crate) fn around(&self, address: usize) -> Option<(usize, usize)> {
        self.with(|state| state.blocks.around(address)).flatten()
    }

    /// Whether [`Heap::find`] certainly finds a block with this start and size for the address, and
    /// it is the one that `is_it` is asked about. If so, it counts as found.
    #[inline]
    pub(crate) fn is_still(
        &self,
        address: usize,
        block: (usize, usize),
        is_it: impl FnOnce(&Block) -> bool,
    ) -> bool {
        self.with(|state| state.blocks.is_still(address, block, is_it)) == Some(true)
    }

    /// How many blocks are live.
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

    /// Adds the start and the size of each live block to the list. False if there are more blocks
    /// or bytes, or none is known.
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

    /// Whether [`Heap::drain_freed`] or [`Heap::take_fault`] may have something to tell. Costs a
    /// load.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.some_freed.get()
    }

    /// The block that holds this address must be freed, whatever the settings say.
    pub(crate) fn owe(&self, address: usize) {
        self.owing.set(true);
        self.with(|state| state.blocks.mark(address, |block| block.owed = true));
    }

    /// The block that holds this address may stay allocated.
    pub(crate) fn forgive(&self, address: usize) {
        self.with(|state| state.blocks.mark(address, |block| block.forgiven = true));
    }

    /// References to the block that holds this address are counted out of sight.
    pub(crate) fn note_counted(&self, address: usize) {
        self.with(|state| state.blocks.mark(address, |block| block.counted = true));
    }

    /// In this execution frees of blocks that nobody has asked for are told, too, or not: those of
    /// which another thread may know, because the thread that has made the block has made an event
    /// since then, or another one frees it.
    pub(crate) fn tell_all(&self, all: bool) {
        self.tells_all.set(all);
        self.others.set(false);
    }

    /// There are other threads now, or only the one that runs is left. Costs a store.
    #[inline]
    pub(crate) fn note_others(&self, others: bool) {
        self.others.set(others);
    }

    /// Whether it was freed without anybody having asked for it.
    pub(crate) fn is_unasked(&self, start: usize) -> bool {
        self.tells_all.get() && self.find_gone(start).is_some_and(|block| !block.found)
    }

    /// Hands over the start and the size in bytes of each block that was freed since the last call
    /// and may hold objects: blocks that [`Heap::find`] has found, and unknown ones; others only if
    /// [all are told](Heap::tell_all). Costs a load if there are none.
    #[inline]
    pub(crate) fn drain_freed(&self, each: impl FnMut(usize, usize)) {
        if self.some_freed.get() {
            self.drain_some_freed(each);
        }
    }

    fn drain_some_freed(&self, mut each: impl FnMut(usize, usize)) {
        // Where a block is watched there is something to be looked at before each operation.
        self.some_freed.set(self.watching.get());
        if self.watching.get() {
            self.look_inside();
        }
        let mut freed = self
            .with(|state| mem::take(&mut state.freed))
            .unwrap_or_default();
        // The heap is whole while `each` runs, so `each` can free memory and ask for blocks.
        for (start, size) in freed.drain(..) {
            each(start, size);
        }
        self.with(|state| {
            if state.freed.is_empty() {
                mem::swap(&mut state.freed, &mut freed);
            }
        });
    }

    /// Works on the state, unless somebody further up this stack does. Must not panic: it runs
    /// inside of the global allocator.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> Option<R> {
        let Some(mut state) = self.state.take() else {
            cold_path();
            return None;
        };
        let result = work(&mut state);
        // Nothing to drop: the cell has been empty since `take`.
        mem::forget(self.state.replace(Some(state)));
        Some(result)
    }

    /// A block that the execution before has freed, if user code asks for such a one.
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
        let start = self.with(|state| state.hand_out(layout, allocator, by))??;
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

    /// Says what is to be done with a block that is being freed.
    #[inline]
    fn note_freed(&self, start: usize, layout: Layout) -> Free {
        let by = self.thread.get();
        let freed = self.with(|state| {
            let Ended {
                is_found,
                by_maker,
                shelf,
            } = state.blocks.end(start, layout, by)?;
            if is_found || rarely!(self.others.get() && self.tells_all.get() && !by_maker) {
                state.note_gone(start, layout.size());
                self.some_freed.set(true);
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

    /// [`Heap::note_freed`] for what is no live block with this layout.
    #[inline(never)]
    fn note_odd_free(&self, start: usize, layout: Layout, by: (u32, u32)) -> Free {
        let freed = self.with(|state| {
            if let Some(block) = state.blocks.bury(start, layout.size(), by) {
                if !self.recording.get() {
                    // Another OS thread has freed it, and the runtime has got its memory.
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
                // What the runtime itself frees is sound, if it is not the user's.
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
            let (start, size) = (kept.start.addr(), kept.layout.size());
            self.with(|state| state.blocks.remove(start, size));
            kept.release();
        }
    }
}

impl Empty for Heap {
    /// Like a new one, but for the memory of its tables and what is in stock, if that is not much.
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
    /// Forgets all that is left of an exploration but the memory of the tables, and what is in
    /// stock.
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
            pages: _,
        } = self;
        blocks.clear();
        counters.clear();
        (*fault, *watched, *outsiders) = (None, Watched::default(), 0);
        later.clear();
        freed.clear();
    }

    /// Hands out a block that is in stock to a thread that has performed so many events.
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

    /// What is known of a block that such a thread has allocated.
    fn named(&mut self, start: usize, layout: Layout, by: (u32, u32), shelf: u32) -> Block {
        let nth = self.counters.next(by, layout);
        Block {
            shelf,
            ..Block::new(start, layout, by.0, by.1, nth)
        }
    }

    /// A block that may hold objects is gone.
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

    /// What is wrong with a free of a block that is not on the list.
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

// The addresses that they speak of have 64 bits.
#[cfg(all(test, target_pointer_width = "64"))]
mod tests;
