//! Which blocks are freed while another thread has a pointer to them, which it may still use
//! without being seen?
//!
//! What a thread does between two of its events is seen only where it goes through shims and cells.
//! A plain field that is read through a raw pointer is neither, so a use of it after the block was
//! freed goes unnoticed; and it does not even come to that, because the code behind an event runs
//! at once. But who has read a pointer to the block, or used an atomic in it, can be held up behind
//! the last of its events that come before the free, and what it does then be seen. And of events
//! that are ordered with nothing only one order is explored, in which the use may come behind the
//! free: it is seen if the execution is run once more with the block guarded. Here it is noted
//! where either is to be tried.

use rustc_hash::FxHashMap;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome, address_in};
use crate::rt::event::schedule::Guarded;
use crate::rt::event::{Event, Site, Trace};
use crate::rt::rare::rarely;

use crate::rt::engine::driver::Driver;

/// The most executions in which it is looked for: it is in the same few places in most of them.
const EXECUTIONS_MAX: u64 = 1000;

/// How many tries are made without asking how often it was tried in these places, where a thread
/// has shown a pointer to the block, and where nobody is held up. A small test has few of them, and
/// the thread may come to a use in one execution and not in another.
const SHOWING_AT_FIRST: u32 = 128;
const IN_PLACE_AT_FIRST: u32 = 16;

/// Behind these, in how many pairs of places it is tried, and how often in each of them.
const PAIRS_MAX: usize = 64;
const TRIES_MAX: u32 = 4;

/// How many events are looked at without asking which of them come before the block.
const SHORT: usize = 1000;

/// The most events that are looked at in longer executions: one execution may have many frees, and
/// many events before each of them. It takes some 30 ms.
const EVENTS_MAX: u64 = 10_000_000;

/// A free that a thread with a pointer to the block may be held up for, in the execution that has
/// just ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawUse {
    /// Who has the pointer, and behind how many of its events it can be held up; if behind none,
    /// its code begins later.
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
    pub(crate) block: Guarded,
    /// Who frees the block, after how many events of its own, and of the execution.
    pub(crate) freeing: (ThreadId, u32),
    pub(crate) length: usize,
}

/// A free by a thread that is not the only one, in the execution that goes on or has just ended.
#[derive(Clone, Copy, Debug)]
struct Freed {
    /// Behind which event.
    site: Site,
    block: Guarded,
    length: usize,
}

/// The most frees of an execution that are noted, and how many events behind each of them tell
/// places.
const FREES_MAX: usize = 64;
const BEHIND_MAX: usize = 32;

/// Those of an exploration.
#[derive(Debug, Default)]
pub(crate) struct RawUses {
    /// What was freed in the execution.
    frees: Vec<Freed>,
    /// Those that are still to be tried.
    uses: Vec<RawUse>,
    /// Where threads were held up that had shown a pointer to the block, and behind which event it
    /// was freed.
    showing: Tries,
    /// The same of those that may have one. They are not to use up the tries of those that have.
    others: Tries,
    /// What comes behind a free, and the event of that, where nobody was held up.
    in_place: Tries,
    /// At how many events it was looked.
    looked: u64,
}

/// How often it was tried, and in which pairs of places.
#[derive(Debug, Default)]
struct Tries {
    all: u32,
    pairs: Vec<((Site, Site), u32)>,
}

impl Tries {
    /// Whether it is to be tried in these places; if so many were not made yet, in all places.
    fn is_due(&self, pair: (Site, Site), at_first: u32) -> bool {
        self.all < at_first
            || match self.pairs.iter().find(|(known, _)| *known == pair) {
                Some((_, tries)) => *tries < TRIES_MAX,
                None => self.pairs.len() < PAIRS_MAX,
            }
    }

    /// [`Tries::is_due`], which counts as a try.
    fn make(&mut self, pair: (Site, Site), at_first: u32) -> bool {
        let is_due = self.is_due(pair, at_first);
        if is_due {
            match self.pairs.iter_mut().find(|(known, _)| *known == pair) {
                Some((_, tries)) => *tries += 1,
                None => self.pairs.push((pair, 1)),
            }
        }
        is_due
    }
}

impl RawUses {
    /// Whether there are some that are to be tried.
    pub(crate) fn are_some(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Whether what comes behind a free of this execution is to be tried as it was, with the blocks
    /// guarded.
    pub(crate) fn are_some_in_place(&self, trace: &Trace) -> bool {
        let is_due = |pair| self.in_place.is_due(pair, IN_PLACE_AT_FIRST);
        let is_due = |freed| behind(freed, trace).any(is_due);
        self.frees.iter().any(is_due)
    }

    /// Counts that as a try, and says which blocks are to be guarded.
    pub(crate) fn take_in_place(&mut self, trace: &Trace) -> Option<Guarded> {
        let mut guarded = None;
        for freed in &self.frees {
            let mut pairs: Vec<(Site, Site)> = behind(freed, trace).collect();
            pairs.sort_unstable_by_key(|&(site, _)| std::ptr::from_ref(site));
            pairs.dedup();
            let makes = |&pair: &(Site, Site)| self.in_place.make(pair, IN_PLACE_AT_FIRST);
            // All of them count.
            if pairs.into_iter().filter(makes).count() > 0 {
                guarded = match guarded {
                    Some(other) if other != freed.block => Some(Guarded::All),
                    _ => Some(freed.block),
                };
            }
        }
        self.in_place.all += u32::from(guarded.is_some());
        guarded
    }

    /// Another execution begins, and what leads to those of the last one is known no more.
    pub(crate) fn forget(&mut self, replayed: usize) {
        self.uses.clear();
        self.frees.retain(|freed| freed.length <= replayed);
    }

    /// So many events of the execution are left.
    pub(crate) fn forget_after(&mut self, length: usize) {
        self.uses.retain(|raw| raw.length <= length);
        self.frees.retain(|freed| freed.length <= length);
    }

    /// Those that are to be tried, for who tries.
    pub(crate) fn take(&mut self) -> Vec<RawUse> {
        std::mem::take(&mut self.uses)
    }
}

impl Driver {
    /// Whether it is of interest here who may use what is freed.
    pub(crate) fn notes_raw_uses(&self) -> bool {
        // What is the same as in the execution before was looked at there. One that is made again
        // has that behind it, too.
        !self.was_asked() && self.executed().len() == self.trace.len() && self.may_note_raw_uses()
    }

    /// Whether it may be of interest in this execution.
    pub(crate) fn may_note_raw_uses(&self) -> bool {
        self.looks_for_raw_uses
            && self.stats.begun() < EXECUTIONS_MAX
            && (self.raw_uses.as_ref()).is_none_or(|uses| uses.looked < EVENTS_MAX)
    }

    /// `thread` has freed the block of so many bytes at this address, in which there are these
    /// objects, and which has been there since another thread had made so many events, as `made`
    /// says.
    pub(crate) fn note_raw_uses(
        &mut self,
        ((start, size), objects, is_counted): ((usize, usize), &[ObjectId], bool),
        made: Option<(ThreadId, u32)>,
        thread: ThreadId,
    ) {
        let Some(last) = self.last_of(thread) else {
            return;
        };
        let freed = self.trace.at(last).site;
        let block = made.map_or(Guarded::All, |(_, events)| Guarded::Like { size, events });
        let length = self.executed().len();
        let uses = self.raw_uses.get_or_insert_default();
        // Who has used what is in a block whose references are counted has given up one of them
        // since.
        if !is_counted && uses.frees.len() < FREES_MAX {
            uses.frees.push(Freed {
                site: freed,
                block,
                length,
            });
        }
        let mut from = 0;
        if rarely!(self.executed().len() > SHORT) {
            // Nobody has a pointer to a block before there is one.
            let Some((maker, events)) = made else {
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
        let may_show = |event: &Event| others(event) && (shows(event) || can_hold(event));
        self.compute_clocks();
        let is_known = |event: &Event| self.clocks.clock(last, event.thread) > event.index;
        let revoked = Revoked::since(from, self.executed(), is_known);
        // Who is to be held up behind how many events, where that is, and whether it has shown a
        // pointer.
        let mut found: Vec<(ThreadId, u32, Site, bool)> = Vec::new();
        // Whoever has come to know of something that the maker of the block has done since then may
        // have the pointer from what a lock protects, or from a message, or from the beginning; and
        // may use it because of what an atomic says.
        let may_know = |position: usize, event: &Event| {
            let knows = |&(maker, events): &(ThreadId, u32)| {
                self.clocks.clock(position as u32, maker) > events
            };
            made.as_ref().is_some_and(knows)
                && match event.operation.kind {
                    OpKind::Load { .. } => revoked.is_later(event.operation.object, position),
                    // Who frees the block may have waited for what another one has written.
                    ref kind => !kind.is_atomic() || is_known(event),
                }
        };
        let freeing = (thread, self.machine.events_of(thread));
        // A thread that was spawned since then may have it from the beginning and use it there,
        // which comes behind the free if its code begins then.
        for reader in (1..self.trace.threads() as u32).map(ThreadId) {
            let (Some((maker, events)), Some(spawn)) = (made, self.trace.spawn_of(reader)) else {
                continue;
            };
            let is_other = reader != maker && reader != thread;
            let may_have = is_other && self.clocks.clock(spawn, maker) > events;
            if may_have && self.clocks.clock(last, reader) == 0 {
                found.push((reader, 0, self.trace.at(spawn).site, false));
            }
        }
        let mut readers: Vec<(ThreadId, u32)> = Vec::new();
        for (at, event) in self.executed()[from..].iter().enumerate() {
            let is_found = readers.iter().any(|(reader, _)| *reader == event.thread);
            if !is_found && may_show(event) && (shows(event) || may_know(from + at, event)) {
                let known = self.clocks.clock(last, event.thread);
                readers.push((event.thread, known.max(event.index + 1)));
            }
        }
        for (reader, events) in readers {
            // That another thread has waited for its end says nothing, if the one that frees does
            // not know of that.
            let joins = OpKind::Join { child: reader };
            let mut since = self.executed()[from..].iter();
            let is_over = |event: &Event| event.operation.kind == joins && is_known(event);
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
            let has_shown =
                |event: &Event| event.thread == reader && event.index <= held.index && shows(event);
            let has_shown = self.executed()[from..].iter().any(has_shown);
            found.push((reader, held.index + 1, held.site, has_shown));
        }
        let uses = self.raw_uses.get_or_insert_default();
        for (thread, events, site, has_shown) in found {
            let (tries, at_first) = match has_shown {
                true => (&mut uses.showing, SHOWING_AT_FIRST),
                false => (&mut uses.others, 0),
            };
            if tries.make((site, freed), at_first) {
                tries.all += 1;
                uses.uses.push(RawUse {
                    thread,
                    events,
                    block,
                    freeing,
                    length,
                });
            }
        }
    }
}

/// The places of what comes behind a free, each with that of the free.
fn behind<'a>(freed: &'a Freed, trace: &'a Trace) -> impl Iterator<Item = (Site, Site)> + 'a {
    let later = trace.events().get(freed.length..).unwrap_or_default();
    let later = later.iter().take(BEHIND_MAX);
    let site = freed.site;
    std::iter::once((site, site)).chain(later.map(move |event| (event.site, site)))
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

/// Where each atomic was last written by what comes before a free: who has read it before, and goes
/// by what was there, may be late.
struct Revoked(FxHashMap<ObjectId, usize>);

impl Revoked {
    /// Of these events from that position on, where what comes before the free `is_known`.
    fn since(from: usize, events: &[Event], is_known: impl Fn(&Event) -> bool) -> Revoked {
        let mut last = FxHashMap::default();
        for (position, event) in events.iter().enumerate().skip(from) {
            let kind = &event.operation.kind;
            let writes = kind.is_atomic() && !matches!(kind, OpKind::Load { .. });
            if writes && is_known(event) {
                last.insert(event.operation.object, position);
            }
        }
        Revoked(last)
    }

    /// Whether that is behind this position.
    fn is_later(&self, object: ObjectId, position: usize) -> bool {
        self.0.get(&object).is_some_and(|&last| last > position)
    }
}

/// Whether a thread can be held up behind this event.
fn can_hold(event: &Event) -> bool {
    match event.operation.kind {
        OpKind::Spawn { .. }
        | OpKind::Unlock { .. }
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
