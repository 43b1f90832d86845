//! What did one block's life look like?
//!
//! An execution that is run again to be shown says who allocates the block that its failure is
//! about, and who frees it.

use std::alloc::Layout;
use std::backtrace::Backtrace;
use std::{mem, ptr};

use crate::rt::event::verdict;
use crate::rt::heap::contents;
use crate::rt::heap::{Block, Heap, State};
use crate::rt::rare::rarely;

/// What one block's life looked like, if it was watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    name: Option<verdict::Block>,
    pub(crate) allocated: Option<Backtrace>,
    pub(crate) freed: Option<Backtrace>,
    pub(crate) again: Option<Backtrace>,
    /// What its first words have told of whether they count its owners.
    counts: Counts,
    /// The blocks that begin with such counts, and lead to it.
    owners: Vec<Owner>,
    /// So many words have been read in search of them.
    read: usize,
}

/// A block that looks like one of an `Arc`, and from which pointers lead to the block that is
/// watched.
#[derive(Debug)]
struct Owner {
    name: verdict::Block,
    /// Where it begins, and its size in bytes.
    memory: (usize, usize),
    /// Whether its last owner was gone before the block was freed that is watched.
    is_over: bool,
}

/// The two counts with which the block of an `Arc` begins.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Counts {
    /// They have not been what counts of owners are.
    #[default]
    None,
    /// There are owners.
    Some,
    /// There were, and the last one has freed the block.
    Over,
}

/// How many bytes the counts of owners have with which the block of an `Arc` begins.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// No program has more owners of one block. Addresses are greater.
const OWNERS_MAX: usize = i32::MAX as usize;

/// A larger block, in bytes, is not searched for what it leads to.
const SEARCHED_MAX: usize = 32 << 10;

/// The search for owners ends after so many words, as it does in a second or so.
const READ_MAX: usize = 1 << 26;

impl Watched {
    /// Whether the block looks like one whose last owner has freed it, as an `Arc` of std's does:
    /// it begins with two counts that were positive, and were 0 in the end.
    pub(crate) fn was_counted_down(&self) -> bool {
        self.counts == Counts::Over
    }

    /// The blocks from which the free of this one follows: each looks as if its last owner was gone
    /// by then, and led to this one while there were owners. The value of an `Arc` of std's is
    /// dropped then, or taken out, and with it goes all that it owns.
    pub(crate) fn freed_with(&self) -> impl Iterator<Item = &verdict::Block> {
        let over = self.owners.iter().filter(|owner| owner.is_over);
        over.map(|owner| &owner.name)
    }

    /// Where the next free is noted.
    pub(super) fn next_free(&mut self) -> &mut Option<Backtrace> {
        match self.freed {
            None => &mut self.freed,
            Some(_) => &mut self.again,
        }
    }
}

impl Heap {
    /// Notes, from now on, where the block with this name is allocated and freed, as long as the
    /// execution has not failed.
    pub(crate) fn watch(&self, name: verdict::Block, failed: fn() -> bool) {
        self.watching.set(true);
        self.failed.set(failed);
        self.with(|state| state.watched.name = Some(name));
    }

    /// What was noted of the block that was watched.
    pub(crate) fn take_watched(&self) -> Watched {
        self.watching.set(false);
        self.with(|state| mem::take(&mut state.watched))
            .unwrap_or_default()
    }

    /// Looks at the first words of the block that is watched, if it is there. Once per operation is
    /// enough.
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

    /// [`Heap::look`] at the block with this start, if any is watched.
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

    /// Notes who uses this block, which is gone.
    #[cold]
    pub(crate) fn look_at_use(&self, block: &Block) {
        self.look(block, |watched| &mut watched.again);
    }

    /// Notes who is at work, if this is the block that is watched.
    pub(super) fn look(&self, block: &Block, slot: fn(&mut Watched) -> &mut Option<Backtrace>) {
        // That somebody unwinds is no reason: panics may be caught, and others go on meanwhile.
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
            // Making it allocates. Nothing of that is the model's.
            let recording = self.record(false);
            let trace = Backtrace::force_capture();
            self.with(|state| *slot(&mut state.watched) = Some(trace));
            self.record(recording);
        }
    }
}

/// Notes which live blocks begin with counts of owners and lead to the block that is watched, from
/// one to the next.
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

/// Whether there is a pointer in this block to the other one. Counts the words that are `read`.
fn leads_to(block: &Block, goal: &Block, read: &mut usize) -> bool {
    if block.size > SEARCHED_MAX || block.start == goal.start {
        return false;
    }
    *read += block.size / size_of::<usize>();
    let mut leads = false;
    let meet = |word| leads |= goal.contains(word);
    // SAFETY: the allocator has handed this memory out and has not got it back. What is in it is
    // taken for no more than numbers.
    unsafe { contents::each_word(block.start, block.size, meet) };
    leads
}

/// The first two words in this block, if it is large enough for something behind them.
fn first_words(block: &Block) -> Option<(usize, usize)> {
    let words = ptr::with_exposed_provenance::<usize>(block.start);
    if block.size <= COUNTS || !words.is_aligned() {
        return None;
    }
    // SAFETY: the allocator has handed this memory out and has not got it back, and it is only used
    // on this OS thread, which is here. What is in it is the program's, so it is read as a debugger
    // would: once, as it is, and to be taken for no more than numbers that may mean anything.
    Some(unsafe { (words.read_volatile(), words.add(1).read_volatile()) })
}
