//! Which blocks are freed while another thread has a pointer to them, which it may still use without being seen?
//!
//! What a thread does between two of its events is seen only where it goes through shims and cells. A plain field that is read
//! through a raw pointer is neither, so a use of it after the block was freed goes unnoticed; and it does not even come to that,
//! because the code behind an event runs at once. But who has read a pointer to the block can be held up behind the last of its
//! events that come before the free, and what it does then be seen. Here it is noted where that is to be tried.

use crate::rt::trace::id::ThreadId;
use crate::rt::trace::operation::{OpKind, address_in};
use crate::rt::trace::{Event, Site};

use super::driver::Driver;

/// The most executions in which it is looked for: it is in the same few places in most of them.
const EXECUTIONS_MAX: u64 = 1000;

/// The most pairs of places that are tried, and how often each of them is: the thread may come to a use in one execution and
/// not in another.
const PAIRS_MAX: usize = 64;
const TRIES_MAX: u32 = 4;

/// A free that a thread with a pointer to the block may be held up for, in the execution that has just ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawUse {
    /// Who has the pointer, and behind how many of its events it can be held up.
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
    /// Who frees the block, after how many events of its own, and of the execution.
    pub(crate) freeing: (ThreadId, u32),
    pub(crate) length: usize,
}

/// Those of an exploration.
#[derive(Debug, Default)]
pub(crate) struct RawUses {
    /// Those that are still to be tried.
    uses: Vec<RawUse>,
    /// Where threads were held up, behind which event blocks were freed, and how often that was tried.
    pairs: Vec<((Site, Site), u32)>,
}

impl RawUses {
    /// Whether there are some that are to be tried.
    pub(crate) fn are_some(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Another execution begins, and what leads to those of the last one is known no more.
    pub(crate) fn forget(&mut self) {
        self.uses.clear();
    }

    /// Those that are to be tried, for who tries.
    pub(crate) fn take(&mut self) -> Vec<RawUse> {
        std::mem::take(&mut self.uses)
    }

    /// Whether this pair of places is to be tried, which counts as a try.
    fn is_to_be_tried(&mut self, pair: (Site, Site)) -> bool {
        if let Some((_, tries)) = self.pairs.iter_mut().find(|(known, _)| *known == pair) {
            *tries += 1;
            return *tries <= TRIES_MAX;
        }
        let is_new = self.pairs.len() < PAIRS_MAX;
        if is_new {
            self.pairs.push((pair, 1));
        }
        is_new
    }
}

impl Driver {
    /// `thread` has freed the block of so many bytes at this address.
    pub(crate) fn note_raw_uses(&mut self, (start, size): (usize, usize), thread: ThreadId) {
        // What is the same as in the execution before was looked at there. Who is held up looks for one use.
        if self.was_asked()
            || self.stats.begun() >= EXECUTIONS_MAX
            || self.machine.limits.learnt.held.is_some()
        {
            return;
        }
        let leads_there = |value: u64| address_in(value).wrapping_sub(start) < size;
        let is_read = |event: &&Event| {
            let is_anothers = event.thread != thread && event.operation.kind.is_atomic();
            is_anothers && event.outcome.value().is_some_and(leads_there)
        };
        if !self.executed().iter().any(|event| is_read(&event)) {
            return;
        }
        let Some(last) = self.last_of(thread) else {
            return;
        };
        self.measure();
        let length = self.executed().len();
        let mut readers: Vec<(ThreadId, u32)> = Vec::new();
        for read in self.executed().iter().filter(is_read) {
            if !readers.iter().any(|(reader, _)| *reader == read.thread) {
                let known = self.clocks.clock(last, read.thread);
                readers.push((read.thread, known.max(read.index + 1)));
            }
        }
        for (reader, events) in readers {
            let joins = OpKind::Join { child: reader };
            let mut executed = self.executed().iter();
            let is_over = |event: &Event| event.operation.kind == joins;
            if executed.any(is_over) {
                continue;
            }
            let positions = self.trace.positions_of(reader);
            let held = self.trace.at(positions[events as usize - 1]);
            if !held.operation.kind.is_atomic() {
                continue;
            }
            let freed = self.trace.at(last).site;
            let uses = self.raw_uses.get_or_insert_default();
            if uses.is_to_be_tried((held.site, freed)) {
                uses.uses.push(RawUse {
                    thread: reader,
                    events,
                    freeing: (thread, self.machine.events_of(thread)),
                    length,
                });
            }
        }
    }
}
