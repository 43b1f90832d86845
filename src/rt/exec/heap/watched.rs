//! What did one block's life look like?
//!
//! An execution that is run again to be shown says who allocates the block that its failure is about, and who
//! frees it.

use std::alloc::Layout;
use std::backtrace::Backtrace;
use std::mem;

use super::{Block, Heap, State};
use crate::rt::trace::verdict;

/// What one block's life looked like, if it was watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    name: Option<verdict::Block>,
    pub(crate) allocated: Option<Backtrace>,
    pub(crate) freed: Option<Backtrace>,
    pub(crate) again: Option<Backtrace>,
}

impl Watched {
    /// Where the next free is noted.
    pub(super) fn next_free(&mut self) -> &mut Option<Backtrace> {
        match self.freed {
            None => &mut self.freed,
            Some(_) => &mut self.again,
        }
    }
}

impl Heap {
    /// Notes, from now on, who allocates and frees the block with this name.
    pub(crate) fn watch(&self, name: verdict::Block) {
        self.watching.set(true);
        self.with(|state| state.watched.name = Some(name));
    }

    /// What was noted of the block that was watched.
    pub(crate) fn take_watched(&self) -> Watched {
        self.watching.set(false);
        self.with(|state| mem::take(&mut state.watched))
            .unwrap_or_default()
    }

    /// [`Heap::look`] at the block with this start, if any is watched.
    #[inline]
    pub(super) fn look_at(
        &self,
        start: usize,
        layout: Layout,
        slot: fn(&mut Watched) -> &mut Option<Backtrace>,
    ) {
        if self.watching.get() {
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

    /// Notes who is at work, if this is the block that is watched.
    pub(super) fn look(&self, block: &Block, slot: fn(&mut Watched) -> &mut Option<Backtrace>) {
        if !self.watching.get() || std::thread::panicking() {
            return;
        }
        let is_watched = |state: &mut State| state.watched.name == Some(block.name());
        if self.with(is_watched) == Some(true) {
            // Making it allocates. Nothing of that is the model's.
            let recording = self.record(false);
            let trace = Backtrace::force_capture();
            self.with(|state| *slot(&mut state.watched) = Some(trace));
            self.record(recording);
        }
    }
}
