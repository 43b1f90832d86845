//! What happens to one block during its life?
//!
//! An execution that is repeated for the report records the places at which the block of its
//! failure is allocated and freed.

use std::alloc::Layout;
use std::backtrace::Backtrace;
use std::{mem, ptr};

use crate::rt::event::verdict;
use crate::rt::heap::contents;
use crate::rt::heap::{Block, Heap, State};
use crate::rt::rare::rarely;

/// The history of one block, if it was watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    name: Option<verdict::Block>,
    pub(crate) allocated: Option<Backtrace>,
    pub(crate) freed: Option<Backtrace>,
    pub(crate) again: Option<Backtrace>,
    /// Whether its first words look like counts of its owners, so far.
    counts: Counts,
    /// The blocks that begin with such counts, and lead to the watched block.
    owners: Vec<Owner>,
    /// The number of words that the search for owners has read.
    read: usize,
}

/// A block that looks like the block of an `Arc`, and from which pointers lead to the watched
/// block.
#[derive(Debug)]
struct Owner {
    name: verdict::Block,
    /// Its start, and its size in bytes.
    memory: (usize, usize),
    /// Whether its last owner was gone before the watched block was freed.
    is_over: bool,
}

/// The two counts with which the block of an `Arc` begins.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Counts {
    /// The words have not looked like counts of owners.
    #[default]
    None,
    /// There are owners.
    Some,
    /// There were owners, and the last one has freed the block.
    Over,
}

/// The size in bytes of the two counts.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// No program has more owners of one block. Addresses are greater.
const OWNERS_MAX: usize = i32::MAX as usize;

/// The search for pointers skips larger blocks, in bytes.
const SEARCHED_MAX: usize = 32 << 10;

/// The search for owners ends after this number of words, after about a second.
const READ_MAX: usize = 1 << 26;

impl Watched {
    /// Whether the block looks as if its last owner has freed it, like the `Arc` of std: it begins
    /// with two counts that were positive, and were 0 in the end.
    pub(crate) fn was_counted_down(&self) -> bool {
        self.counts == Counts::Over
    }

    /// The blocks that caused the free of this one by their own end: each looks as if its last
    /// owner was gone by then, and led to this block while there were owners. The last owner of
    /// std's `Arc` drops its value, or takes it out, and with the value go all blocks that it owns.
    pub(crate) fn freed_with(&self) -> impl Iterator<Item = &verdict::Block> {
        let over = self.owners.iter().filter(|owner| owner.is_over);
        over.map(|owner| &owner.name)
    }

    /// The slot for the place of the next free.
    pub(super) fn next_free(&mut self) -> &mut Option<Backtrace> {
        match self.freed {
            None => &mut self.freed,
            Some(_) => &mut self.again,
        }
    }
}

impl Heap {
    /// Notes from now on the places at which the block with this name is allocated and freed, as
    /// long as the execution has not failed.
    pub(crate) fn watch(&self, name: verdict::Block, failed: fn() -> bool) {
        self.watching.set(true);
        self.failed.set(failed);
        self.with(|state| state.watched.name = Some(name));
    }

    /// The history of the watched block.
    pub(crate) fn take_watched(&self) -> Watched {
        self.watching.set(false);
        self.with(|state| mem::take(&mut state.watched))
            .unwrap_or_default()
    }

    /// Looks at the first words of the watched block, if it exists. Once per operation is enough.
    #[cold]
    pub(super) fn look_inside(&self) {
        let first = self.with(|state| {
            let name = state.watched.name?;
            let block = state.blocks.iter().find(|block| block.name() == name)?;
            first_words(&block)
        });
        if let Some(Some((strong, weak))) = first
            && (1..=OWNERS_MAX).contains(&strong)
            && (1..=OWNERS_MAX).contains(&weak)
        {
            self.with(|state| state.watched.counts = Counts::Some);
        }
        self.with(find_owners);
    }

    /// [`Heap::look`] at the block with this start, if a block is watched.
    #[inline]
    pub(super) fn look_at(
        &self,
        start: usize,
        layout: Layout,
        slot: fn(&mut Watched) -> &mut Option<Backtrace>,
    ) {
        if rarely!(self.watching.get()) {
            self.look_for(start, layout, slot);
        }
    }

    #[cold]
    fn look_for(
        &self,
        start: usize,
        layout: Layout,
        slot: fn(&mut Watched) -> &mut Option<Backtrace>,
    ) {
        let block = self.with(|state| state.blocks.get(start, layout.size()));
        if let Some(block) = block.flatten() {
            self.look(&block, slot);
        }
    }

    /// Notes the place of a use of this block, which is gone.
    #[cold]
    pub(crate) fn look_at_use(&self, block: &Block) {
        self.look(block, |watched| &mut watched.again);
    }

    /// Notes the place of the running code, if this block is the watched one.
    pub(super) fn look(&self, block: &Block, slot: fn(&mut Watched) -> &mut Option<Backtrace>) {
        // A panic that unwinds is no reason to stop: panics may be caught, and other threads
        // continue in the meantime.
        if !self.watching.get() || (self.failed.get())() {
            return;
        }
        let is_watched = |state: &mut State| {
            let watched = &mut state.watched;
            let is_it = watched.name == Some(block.name());
            if watched.freed.is_none() {
                let started =
                    (watched.owners.iter_mut()).filter(|owner| is_it || owner.name == block.name());
                for owner in started {
                    let is_there = |live: &Block| live.name() == owner.name;
                    let (start, size) = owner.memory;
                    let live = state.blocks.get(start, size).filter(is_there);
                    let words = live.as_ref().and_then(first_words);
                    owner.is_over |= words.is_some_and(|(strong, _)| strong == 0);
                }
            }
            if !is_it {
                return false;
            }
            if watched.counts == Counts::Some && first_words(block) == Some((0, 0)) {
                watched.counts = Counts::Over;
            }
            true
        };
        if self.with(is_watched) == Some(true) {
            // Capturing the backtrace allocates. These allocations do not belong to the model.
            let recording = self.record(false);
            let trace = Backtrace::force_capture();
            self.with(|state| *slot(&mut state.watched) = Some(trace));
            self.record(recording);
        }
    }
}

/// Notes the live blocks that begin with counts of owners and lead to the watched block, from one
/// to the next.
fn find_owners(state: &mut State) {
    let watched = &mut state.watched;
    let Some(name) = watched.name.filter(|_| watched.freed.is_none()) else {
        return;
    };
    let Some(goal) = state.blocks.iter().find(|block| block.name() == name) else {
        return;
    };
    let mut left: Vec<Block> = state.blocks.iter().collect();
    let mut goals = vec![goal];
    while let Some(goal) = goals.pop() {
        left.retain(|block| {
            if watched.read > READ_MAX || !leads_to(block, &goal, &mut watched.read) {
                return true;
            }
            goals.push(*block);
            let counts = first_words(block);
            let are_counts = counts.is_some_and(|(strong, weak)| {
                (1..=OWNERS_MAX).contains(&strong) && (1..=OWNERS_MAX).contains(&weak)
            });
            let is_known = (watched.owners.iter()).any(|owner| owner.name == block.name());
            if are_counts && !is_known && block.name() != name {
                watched.owners.push(Owner {
                    name: block.name(),
                    memory: (block.start, block.size),
                    is_over: false,
                });
            }
            false
        });
    }
}

/// Whether this block contains a pointer to `goal`. Adds the words it reads to `read`.
fn leads_to(block: &Block, goal: &Block, read: &mut usize) -> bool {
    if block.size > SEARCHED_MAX || block.start == goal.start {
        return false;
    }
    *read += block.size / size_of::<usize>();
    let mut leads = false;
    let meet = |word| leads |= goal.contains(word);
    // SAFETY: the allocator has provided this memory and has not got it back. The contents are only
    // taken for numbers.
    unsafe { contents::each_word(block.start, block.size, meet) };
    leads
}

/// The first two words in this block, if the block is large enough for more behind them.
fn first_words(block: &Block) -> Option<(usize, usize)> {
    let words = ptr::with_exposed_provenance::<usize>(block.start);
    if block.size <= COUNTS || !words.is_aligned() {
        return None;
    }
    // SAFETY: the allocator has provided this memory and has not got it back, and the memory is
    // only used on this OS thread, which runs this code. The contents are the program's, so they
    // are read as a debugger would: once, as they are, and taken for no more than numbers that may
    // mean anything.
    Some(unsafe { (words.read_volatile(), words.add(1).read_volatile()) })
}
