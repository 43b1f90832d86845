//! Is a block freed that another thread may still use without being seen?
//!
//! What a thread does between two of its events is seen only where it goes through shims and cells. A plain field that is read
//! through a raw pointer is neither, so a use of it after the block was freed goes unnoticed. What can be noticed is that there
//! may be one: another thread has read a pointer to the block, nothing orders its next event before the free, and none of the
//! blocks with this layout has a shim or a cell in it.

use crate::rt::trace::id::{Names, Region, ThreadId};
use crate::rt::trace::{Event, Site};

use super::driver::Driver;

/// The most executions in which it is looked for: it is in the same few places in most of them.
const EXECUTIONS_MAX: u64 = 1000;

/// The most layouts of which one is kept.
const USES_MAX: usize = 8;

/// The size and the alignment of a block, in bytes.
pub(crate) type Layout = (usize, usize);

/// Where a pointer was read, and a block freed to which it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawUse {
    pub(crate) read: Site,
    /// The last operation of the thread that has freed it.
    pub(crate) freed: Site,
    layout: Layout,
}

/// Those of an exploration.
#[derive(Debug, Default)]
pub(crate) struct RawUses {
    /// One for each layout.
    uses: Vec<RawUse>,
    /// The layouts of blocks with cells in them that were used.
    watched: Vec<Layout>,
}

impl RawUses {
    /// A cell was used in a block with this layout.
    pub(crate) fn note_cell(&mut self, layout: Layout) {
        if !self.watched.contains(&layout) {
            self.watched.push(layout);
        }
    }

    /// Whether one in a block with this layout is known, or would not be kept.
    fn has(&self, layout: Layout) -> bool {
        self.uses.len() >= USES_MAX || self.uses.iter().any(|known| known.layout == layout)
    }

    /// The first one in a block of which nothing is seen.
    pub(crate) fn first(&self, names: &Names) -> Option<RawUse> {
        let has_shims = |layout| {
            names.places().any(|place| match place.region {
                Region::Heap { size, align, .. } => (size, align) == layout,
                _ => false,
            })
        };
        let mut unseen = self.uses.iter();
        let unseen = unseen.find(|it| !self.watched.contains(&it.layout) && !has_shims(it.layout));
        unseen.copied()
    }
}

impl Driver {
    /// `thread` has freed the block at this address, in which no shim and no cell was used in this execution.
    pub(crate) fn note_raw_use(
        &mut self,
        start: usize,
        layout: impl FnOnce() -> Option<Layout>,
        thread: ThreadId,
    ) {
        // What is the same as in the execution before was looked at there.
        if self.was_asked() || self.stats.begun() >= EXECUTIONS_MAX {
            return;
        }
        let (Some(layout), Some(last)) = (layout(), self.last_of(thread)) else {
            return;
        };
        if self.raw_uses.as_ref().is_some_and(|it| it.has(layout)) {
            return;
        }
        let (size, _) = layout;
        let leads_there = |value: u64| (start..start + size).contains(&(value as usize));
        let is_read = |event: &Event| {
            let is_anothers = event.thread != thread && event.operation.kind.is_atomic();
            is_anothers && event.outcome.value().is_some_and(leads_there)
        };
        if !self.executed().iter().any(is_read) {
            return;
        }
        self.measure();
        let clocks = &self.clocks;
        let is_late = |read: &Event| !clocks.knows(last, read.thread, read.index + 1);
        let late = |event: &&Event| is_read(event) && is_late(event);
        if let Some(&Event { site: read, .. }) = self.executed().iter().find(late) {
            let freed = self.trace.at(last).site;
            let uses = &mut self.raw_uses.get_or_insert_default().uses;
            uses.push(RawUse {
                read,
                freed,
                layout,
            });
        }
    }
}
