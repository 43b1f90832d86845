//! Which blocks are freed while another thread has a pointer to them, and may use them without an
//! event?
//!
//! The model sees the code of a thread between two events only where it goes through shims and
//! cells. A read of a plain field through a raw pointer uses neither, so it goes unnoticed after
//! the free of the block. Such a read does not even happen after the free, because the code behind
//! an event runs at once. But a thread that has read a pointer to the block, or used an atomic in
//! it, can be delayed behind its last event before the free, and its use then comes after the free.
//! Also, of two independent events the engine explores only one order, and in that order the use
//! may come after the free: a second run of the execution with the block guarded shows it. This
//! file notes where either run is worth a try.

use rustc_hash::FxHashMap;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome, address_in};
use crate::rt::event::schedule::Guarded;
use crate::rt::event::{Event, Site, Trace};
use crate::rt::rare::rarely;

use crate::rt::engine::driver::Driver;

/// The most executions in which the search notes uses: most of them have the same few candidates.
const EXECUTIONS_MAX: u64 = 1000;

/// The number of tries without a limit for each pair of sites: where a thread has shown a pointer
/// to the block, and where no thread is delayed. A small test has few such tries, and the thread
/// may reach a use in one execution and not in another.
const SHOWING_AT_FIRST: u32 = 128;
const IN_PLACE_AT_FIRST: u32 = 16;

/// Beyond these, the most pairs of sites that are tried, and the most tries for each pair.
const PAIRS_MAX: usize = 64;
const TRIES_MAX: u32 = 4;

/// The number of events up to which the search examines all events, those from before the block
/// included.
const SHORT: usize = 1000;

/// The most events that the search examines in longer executions: one execution may have many
/// frees, and many events before each of them. That many events take some 30 ms.
const EVENTS_MAX: u64 = 10_000_000;

/// A free before which a thread with a pointer to the block can be delayed, in the execution that
/// has just ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawUse {
    /// The thread with the pointer, and the number of its events behind which it can be delayed;
    /// with 0, its code begins later.
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
    pub(crate) block: Guarded,
    /// The thread that frees the block with the number of its events at that moment, and the number
    /// of events of the execution.
    pub(crate) freeing: (ThreadId, u32),
    pub(crate) length: usize,
}

/// A free by a thread that is not the only one, in the current execution or the one that has just
/// ended.
#[derive(Clone, Copy, Debug)]
struct Freed {
    /// The site of the event before the free.
    site: Site,
    block: Guarded,
    length: usize,
}

/// The most frees of an execution that are noted, and the most events behind each of them that
/// provide sites.
const FREES_MAX: usize = 64;
const BEHIND_MAX: usize = 32;

/// The frees and the delayed uses of an exploration.
#[derive(Debug, Default)]
pub(crate) struct RawUses {
    /// The frees of the execution.
    frees: Vec<Freed>,
    /// The delayed uses that are still to be tried.
    uses: Vec<RawUse>,
    /// The tries with threads that had shown a pointer to the block, by the site of the delay and
    /// the site of the free.
    showing: Tries,
    /// The tries with threads that may have a pointer. They must not use up the tries of the
    /// threads that have shown one.
    others: Tries,
    /// The tries without a delay, by the site of an event behind a free and the site of the free.
    in_place: Tries,
    /// The number of events that the search has examined.
    looked: u64,
}

/// The number of tries in all, and for each pair of sites.
#[derive(Debug, Default)]
struct Tries {
    all: u32,
    pairs: Vec<((Site, Site), u32)>,
}

impl Tries {
    /// Whether a try is due for this pair of sites. Each pair is due until `at_first` tries were
    /// made in all.
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
    /// Whether there are delayed uses to try.
    pub(crate) fn are_some(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Whether the events behind a free of this execution are due for a second run, with the blocks
    /// guarded.
    pub(crate) fn are_some_in_place(&self, trace: &Trace) -> bool {
        let is_due = |pair| self.in_place.is_due(pair, IN_PLACE_AT_FIRST);
        let is_due = |freed| behind(freed, trace).any(is_due);
        self.frees.iter().any(is_due)
    }

    /// Counts this run as a try, and returns the blocks to guard.
    pub(crate) fn take_in_place(&mut self, trace: &Trace) -> Option<Guarded> {
        let mut guarded = None;
        for freed in &self.frees {
            let mut pairs: Vec<(Site, Site)> = behind(freed, trace).collect();
            pairs.sort_unstable_by_key(|&(site, _)| std::ptr::from_ref(site));
            pairs.dedup();
            let makes = |&pair: &(Site, Site)| self.in_place.make(pair, IN_PLACE_AT_FIRST);
            // Every pair counts as a try.
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

    /// Another execution begins, and the schedule of the last one is no longer known.
    pub(crate) fn forget(&mut self, replayed: usize) {
        self.uses.clear();
        self.frees.retain(|freed| freed.length <= replayed);
    }

    /// Drops the uses and frees behind the first `length` events of the execution.
    pub(crate) fn forget_after(&mut self, length: usize) {
        self.uses.retain(|raw| raw.length <= length);
        self.frees.retain(|freed| freed.length <= length);
    }

    /// The delayed uses to try; the caller tries them.
    pub(crate) fn take(&mut self) -> Vec<RawUse> {
        std::mem::take(&mut self.uses)
    }
}

impl Driver {
    /// Whether the driver notes the possible uses of a block that is freed here.
    pub(crate) fn notes_raw_uses(&self) -> bool {
        // The events of the common prefix were examined in the execution before. For an execution
        // that is made again, so were the events behind that prefix.
        !self.was_asked() && self.executed().len() == self.trace.len() && self.may_note_raw_uses()
    }

    /// Whether the driver may note possible uses in this execution.
    pub(crate) fn may_note_raw_uses(&self) -> bool {
        self.looks_for_raw_uses
            && self.stats.begun() < EXECUTIONS_MAX
            && (self.raw_uses.as_ref()).is_none_or(|uses| uses.looked < EVENTS_MAX)
    }

    /// `thread` has freed the block of this size at this address, which contains these objects. The
    /// block was allocated after the number of events of another thread that `made` gives.
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
        // A thread that has used the contents of a block with counted references has released one
        // of the references since.
        if !is_counted && uses.frees.len() < FREES_MAX {
            uses.frees.push(Freed {
                site: freed,
                block,
                length,
            });
        }
        let mut from = 0;
        if rarely!(self.executed().len() > SHORT) {
            // No thread has a pointer to a block before the block exists.
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
        // The thread to delay and the number of its events, the site of the delay, and whether the
        // thread has shown a pointer.
        let mut found: Vec<(ThreadId, u32, Site, bool)> = Vec::new();
        // A thread with an event that happens after a later event of the block's maker may have the
        // pointer: from data behind a lock, from a message, or from its spawn. It may use the
        // pointer because of the value of an atomic.
        let may_know = |position: usize, event: &Event| {
            let knows = |&(maker, events): &(ThreadId, u32)| {
                self.clocks.clock(position as u32, maker) > events
            };
            made.as_ref().is_some_and(knows)
                && match event.operation.kind {
                    OpKind::Load { .. } => revoked.is_later(event.operation.object, position),
                    // The thread that frees the block may have waited for a write of another
                    // thread.
                    ref kind => !kind.is_atomic() || is_known(event),
                }
        };
        let freeing = (thread, self.machine.events_of(thread));
        // A thread that was spawned since then may have the pointer from the beginning and use it
        // there. This use comes behind the free if the thread's code begins then.
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
            // A join by another thread proves nothing unless it happens before the free.
            let joins = OpKind::Join { child: reader };
            let mut since = self.executed()[from..].iter();
            let is_over = |event: &Event| event.operation.kind == joins && is_known(event);
            if since.any(is_over) {
                continue;
            }
            // That event of the thread, or the next one behind which the thread can be delayed.
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
            let (tries, at_first) = if has_shown {
                (&mut uses.showing, SHOWING_AT_FIRST)
            } else {
                (&mut uses.others, 0)
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

/// The sites of the events behind a free, each with the site of the free.
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

/// The position of the last write to each atomic before a free: a thread that has read the atomic
/// before this write, and acts on the old value, may be late.
struct Revoked(FxHashMap<ObjectId, usize>);

impl Revoked {
    /// The last writes among these events from the position `from` on. `is_known` says whether an
    /// event happens before the free.
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

    /// Whether the last write to the object is behind this position.
    fn is_later(&self, object: ObjectId, position: usize) -> bool {
        self.0.get(&object).is_some_and(|&last| last > position)
    }
}

/// Whether a thread can be delayed behind this event.
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
        // Its shim has more to do if other threads have yet to reach the barrier.
        OpKind::Arrive => matches!(event.outcome, Outcome::Value(value) if value as u32 == 1),
        OpKind::Send | OpKind::TrySend | OpKind::Taken { .. } => event.outcome.succeeded(),
        ref kind => kind.is_atomic(),
    }
}
