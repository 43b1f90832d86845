//! Which blocks are freed while another thread has a pointer to them, which it may still use without being seen?
//!
//! What a thread does between two of its events is seen only where it goes through shims and cells. A plain field that is read
//! through a raw pointer is neither, so a use of it after the block was freed goes unnoticed; and it does not even come to that,
//! because the code behind an event runs at once. But who has read a pointer to the block, or used an atomic in it, can be held up
//! behind the last of its events that come before the free, and what it does then be seen. Here it is noted where that is to be
//! tried.

use std::cell::LazyCell;

use crate::rt::rare::rarely;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::{OpKind, Outcome, address_in};
use crate::rt::trace::schedule::Guarded;
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
    pub(crate) block: Guarded,
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

    /// So many events of the execution are left.
    pub(crate) fn forget_after(&mut self, length: usize) {
        self.uses.retain(|raw| raw.length <= length);
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
        // What is the same as in the execution before was looked at there. One that is made again has that behind it, too.
        !self.was_asked() && self.executed().len() == self.trace.len() && self.may_note_raw_uses()
    }

    /// Whether it may be of interest in this execution.
    pub(crate) fn may_note_raw_uses(&self) -> bool {
        self.looks_for_raw_uses
            && self.stats.begun() < EXECUTIONS_MAX
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
        let made = LazyCell::new(made);
        let mut from = 0;
        if rarely!(self.executed().len() > SHORT) {
            // Nobody has a pointer to a block before there is one.
            let Some((maker, events)) = *made else {
                return;
            };
            let is_before = |event: &Event| event.thread == maker && event.index < events;
            let executed = self.executed();
            from = (executed.iter().rposition(is_before)).map_or(0, |at| at + 1);
            let looked = (executed.len() - from) as u64;
            self.raw_uses.get_or_insert_default().looked += looked;
        }
        let leads_there = |value: u64| address_in(value).wrapping_sub(start) < size;
        let shows = |event: &Event| {
            objects.contains(&event.operation.object)
                || words_of(event).into_iter().flatten().any(leads_there)
        };
        let others = |event: &Event| event.thread != thread;
        let may_show = |event: &Event| others(event) && (shows(event) || hands_over(event));
        if !self.executed()[from..].iter().any(may_show) {
            return;
        }
        let Some(last) = self.last_of(thread) else {
            return;
        };
        self.measure();
        let length = self.executed().len();
        // Whoever has come to know of something that the maker of the block has done since then may have the pointer from what
        // a lock protects, or from a message.
        let may_know = |position: usize, event: &Event| {
            let knows = |&(maker, events): &(ThreadId, u32)| {
                self.clocks.clock(position as u32, maker) > events
            };
            // Who frees the block may have waited for what another one has written.
            let is_waited_for = || self.clocks.clock(last, event.thread) > event.index;
            (*made).as_ref().is_some_and(knows)
                && (!event.operation.kind.is_atomic() || is_waited_for())
        };
        let mut readers: Vec<(ThreadId, u32)> = Vec::new();
        for (at, event) in self.executed()[from..].iter().enumerate() {
            let is_known = readers.iter().any(|(reader, _)| *reader == event.thread);
            if !is_known && may_show(event) && (shows(event) || may_know(from + at, event)) {
                let known = self.clocks.clock(last, event.thread);
                readers.push((event.thread, known.max(event.index + 1)));
            }
        }
        for (reader, events) in readers {
            let joins = OpKind::Join { child: reader };
            let mut since = self.executed()[from..].iter();
            let is_over = |event: &Event| event.operation.kind == joins;
            if since.any(is_over) {
                continue;
            }
            // Behind that event, or the next one behind which it can be held up.
            let positions = self.trace.positions_of(reader).iter();
            let mut later = positions.skip(events as usize - 1);
            let is_made = |position: &&u32| (**position as usize) < length;
            let held = later.by_ref().take_while(is_made).find_map(|&position| {
                let event = self.trace.at(position);
                can_hold(event).then_some(*event)
            });
            let Some(held) = held else {
                continue;
            };
            let freed = self.trace.at(last).site;
            let uses = self.raw_uses.get_or_insert_default();
            if uses.is_to_be_tried((held.site, freed)) {
                uses.uses.push(RawUse {
                    thread: reader,
                    events: held.index + 1,
                    block: (*made)
                        .map_or(Guarded::All, |(_, events)| Guarded::Like { size, events }),
                    freeing: (thread, self.machine.events_of(thread)),
                    length,
                });
            }
        }
    }
}

/// The words of an atomic that a thread has read or written, which may be pointers.
fn words_of(event: &Event) -> [Option<u64>; 2] {
    let kind = &event.operation.kind;
    let read = event.outcome.value().filter(|_| kind.is_atomic());
    let written = match *kind {
        OpKind::Store { value, .. } => Some(value),
        OpKind::Rmw { operand, .. } => Some(operand),
        OpKind::CompareExchange { new, .. } => Some(new),
        _ => None,
    };
    [read, written]
}

/// Whether a thread may have got a pointer before this operation, or give a block away with it, without its showing the pointer.
fn hands_over(event: &Event) -> bool {
    can_hold(event) && !matches!(event.operation.kind, OpKind::Load { .. })
}

/// Whether a thread can be held up behind this event.
fn can_hold(event: &Event) -> bool {
    match event.operation.kind {
        OpKind::Unlock { .. }
        | OpKind::UnlockRead
        | OpKind::UnlockWrite { .. }
        | OpKind::NotifyOne
        | OpKind::NotifyAll
        | OpKind::Unpark
        | OpKind::Leave { .. } => true,
        // Its shim has more to do if others are to come to the barrier.
        OpKind::Arrive => matches!(event.outcome, Outcome::Value(value) if value as u32 == 1),
        OpKind::Send | OpKind::TrySend | OpKind::Taken { .. } => event.outcome.succeeded(),
        ref kind => kind.is_atomic(),
    }
}
