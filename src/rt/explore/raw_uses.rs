//! Which blocks are freed while another thread has a pointer to them, which it may still use without being seen?
//!
//! What a thread does between two of its events is seen only where it goes through shims and cells. A plain field that is read
//! through a raw pointer is neither, so a use of it after the block was freed goes unnoticed; and it does not even come to that,
//! because the code behind an event runs at once. But who has read a pointer to the block, or used an atomic in it, can be held up
//! behind the last of its events that come before the free, and what it does then be seen. Here it is noted where that is to be
//! tried.

use crate::rt::rare::rarely;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::{OpKind, address_in};
use crate::rt::trace::{Event, Site};

use super::driver::Driver;

/// The most executions in which it is looked for: it is in the same few places in most of them.
const EXECUTIONS_MAX: u64 = 1000;

/// The most pairs of places that are tried, and how often each of them is: the thread may come to a use in one execution and
/// not in another.
const PAIRS_MAX: usize = 64;
const TRIES_MAX: u32 = 4;

/// How many events are looked at without asking which of them come before the block.
const SHORT: usize = 1000;

/// The most events that are looked at in longer executions: one execution may have many frees, and many events before each of
/// them. It takes some 30 ms.
const EVENTS_MAX: u64 = 10_000_000;

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
    /// At how many events it was looked.
    looked: u64,
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
    /// Whether it is of interest here who may use what is freed.
    pub(crate) fn notes_raw_uses(&self) -> bool {
        // What is the same as in the execution before was looked at there. Who is held up looks for one use.
        !self.was_asked()
            && self.stats.begun() < EXECUTIONS_MAX
            && self.machine.limits.learnt.held.is_none()
            && (self.raw_uses.as_ref()).is_none_or(|uses| uses.looked < EVENTS_MAX)
    }

    /// `thread` has freed the block of so many bytes at this address, in which there are these objects, and which has been there
    /// since another thread had made so many events, as `made` says.
    pub(crate) fn note_raw_uses(
        &mut self,
        (start, size): (usize, usize),
        objects: &[ObjectId],
        made: impl FnOnce() -> Option<(ThreadId, u32)>,
        thread: ThreadId,
    ) {
        let mut from = 0;
        if rarely!(self.executed().len() > SHORT) {
            // Nobody has a pointer to a block before there is one.
            let Some((maker, events)) = made() else {
                return;
            };
            let is_before = |event: &Event| event.thread == maker && event.index < events;
            let executed = self.executed();
            from = (executed.iter().rposition(is_before)).map_or(0, |at| at + 1);
            let looked = (executed.len() - from) as u64;
            self.raw_uses.get_or_insert_default().looked += looked;
        }
        let leads_there = |value: u64| address_in(value).wrapping_sub(start) < size;
        let is_read = |event: &&Event| {
            event.thread != thread
                && event.operation.kind.is_atomic()
                && (objects.contains(&event.operation.object)
                    || event.outcome.value().is_some_and(leads_there))
        };
        if !self.executed()[from..].iter().any(|event| is_read(&event)) {
            return;
        }
        let Some(last) = self.last_of(thread) else {
            return;
        };
        self.measure();
        let length = self.executed().len();
        let mut readers: Vec<(ThreadId, u32)> = Vec::new();
        for read in self.executed()[from..].iter().filter(is_read) {
            if !readers.iter().any(|(reader, _)| *reader == read.thread) {
                let known = self.clocks.clock(last, read.thread);
                readers.push((read.thread, known.max(read.index + 1)));
            }
        }
        for (reader, events) in readers {
            let joins = OpKind::Join { child: reader };
            let mut since = self.executed()[from..].iter();
            let is_over = |event: &Event| event.operation.kind == joins;
            if since.any(is_over) {
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
