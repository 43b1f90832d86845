//! What did one block's life look like?
//!
//! An execution that is run again to be shown says who allocates the block that its failure is about, and who
//! frees it.

use std::alloc::Layout;
use std::backtrace::Backtrace;
use std::{mem, ptr};

use crate::rt::event::verdict;
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

impl Watched {
    /// Whether the block looks like one whose last owner has freed it, as an `Arc` of std's does: it begins with two counts
    /// that were positive, and were 0 in the end.
    pub(crate) fn was_counted_down(&self) -> bool {
        self.counts == Counts::Over
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
    /// Notes, from now on, where the block with this name is allocated and freed, as long as the execution has not
    /// failed.
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

    /// Looks at the first words of the block that is watched, if it is there. Once per operation is enough.
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
            if watched.name != Some(block.name()) {
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

/// The first two words in this block, if it is large enough for something behind them.
fn first_words(block: &Block) -> Option<(usize, usize)> {
    let words = ptr::with_exposed_provenance::<usize>(block.start);
    if block.size <= COUNTS || !words.is_aligned() {
        return None;
    }
    // SAFETY: the allocator has handed this memory out and has not got it back, and it is only used on this OS
    // thread, which is here. What is in it is the program's, so it is read as a debugger would: once, as it is, and to
    // be taken for no more than numbers that may mean anything.
    Some(unsafe { (words.read_volatile(), words.add(1).read_volatile()) })
}
