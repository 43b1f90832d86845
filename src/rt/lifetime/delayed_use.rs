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

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::event::schedule::Guarded;
use crate::rt::event::{Event, NOWHERE, Site, Trace};
use crate::rt::lifetime::shown::Shown;
use crate::rt::rare::rarely;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::driver::Driver;

/// The most tries for an execution that differ only in the block, if the execution is short; else
/// there is one. The last of them stands for all further ones: there all blocks are guarded.
const LIKE_MAX: usize = 4;

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

/// What owns a block that is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owned {
    Singly,
    /// The references to the block are counted by this object.
    Counted(ObjectId),
    /// A value that any of the threads with a reference may drop, and that are counted by this
    /// object. The exploration has the drops in one order.
    ByCounted(ObjectId),
}

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
    /// The site of the event before the free.
    freed: Site,
}

impl RawUse {
    /// Whether the two differ only in the block. Up to the next event of the delayed thread, the
    /// execution with the later free then shows the uses of both blocks.
    fn is_like(&self, other: &RawUse) -> bool {
        (self.thread, self.events, self.freed) == (other.thread, other.events, other.freed)
            && self.freeing.0 == other.freeing.0
    }
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
    shown: Shown,
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
        self.shown.clear();
        self.frees.retain(|freed| freed.length <= replayed);
    }

    /// Drops the uses and frees behind the first `length` events of the execution.
    pub(crate) fn forget_after(&mut self, length: usize) {
        self.uses.retain(|raw| raw.length <= length);
        if self.shown.len() > length {
            self.shown.clear();
        }
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
        ((start, size), objects, owned): ((usize, usize), &[ObjectId], Owned),
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
        if !matches!(owned, Owned::Counted(_)) && uses.frees.len() < FREES_MAX {
            uses.frees.push(Freed {
                site: freed,
                block,
                length,
            });
        }
        self.compute_clocks();
        let is_long = length > SHORT;
        let mut from = 0;
        if rarely!(is_long) {
            // No thread has a pointer to a block before the block exists.
            let Some((maker, events)) = made else {
                return;
            };
            let before = events.checked_sub(1);
            let before = before.and_then(|before| self.trace.nth_of(maker, before));
            from = before.map_or(0, |before| before as usize + 1);
        }
        let uses = self.raw_uses.get_or_insert_default();
        uses.shown.extend(&self.trace.events()[..length]);
        let drops = match owned {
            Owned::Singly => Vec::new(),
            Owned::Counted(count) | Owned::ByCounted(count) => {
                uses.shown.drops_of(count, &self.trace)
            }
        };
        let free = Free {
            memory: (start, size),
            objects,
            made,
            thread,
            last,
            drops: &drops,
            holds_at_drops: matches!(owned, Owned::ByCounted(_)),
            from,
        };
        let freeing = (thread, self.machine.events_of(thread));
        let (found, looked) = free.readers(&self.trace, &self.clocks, &uses.shown);
        if is_long {
            uses.looked += looked;
        }
        for reader in found {
            let Reader {
                thread,
                events,
                site,
                has_shown,
            } = reader;
            let (tries, at_first) = if has_shown {
                (&mut uses.showing, SHOWING_AT_FIRST)
            } else {
                (&mut uses.others, 0)
            };
            let raw = RawUse {
                thread,
                events,
                block,
                freeing,
                length,
                freed,
            };
            let most = if is_long { 1 } else { LIKE_MAX };
            let mut like = uses.uses.iter_mut().rev().filter(|it| it.is_like(&raw));
            if let Some(last) = like.next()
                && like.count() + 1 >= most
            {
                *last = RawUse {
                    block: Guarded::All,
                    ..raw
                };
            } else if tries.make((site, freed), at_first) {
                tries.all += 1;
                uses.uses.push(raw);
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

/// A free of a block that other threads may use afterwards, by the events before the free.
pub(crate) struct Free<'a> {
    /// The start and the size of the block.
    pub(crate) memory: (usize, usize),
    /// The objects in the block.
    pub(crate) objects: &'a [ObjectId],
    /// The block was allocated after this number of events of this thread.
    pub(crate) made: Option<(ThreadId, u32)>,
    /// The thread that frees the block, and the position of its last event.
    pub(crate) thread: ThreadId,
    pub(crate) last: u32,
    /// The positions of the drops of references behind which the block is freed. The thread that
    /// frees the block made the last of them, and another thread might have made it.
    pub(crate) drops: &'a [u32],
    /// Whether a thread can be delayed behind its drop.
    pub(crate) holds_at_drops: bool,
    /// The position from which on events count.
    pub(crate) from: usize,
}

/// A thread that may have a pointer to a block that is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reader {
    pub(crate) thread: ThreadId,
    /// The number of its events behind which it can be delayed, and the site of the last of them.
    pub(crate) events: u32,
    pub(crate) site: Site,
    /// Whether it has shown a pointer to the block.
    pub(crate) has_shown: bool,
}

impl Free<'_> {
    /// The threads that may use the block after this free, and the number of events that were
    /// examined.
    pub(crate) fn readers(
        &self,
        trace: &Trace,
        clocks: &HappensBefore,
        shown: &Shown,
    ) -> (Vec<Reader>, u64) {
        let mut found = self.unbegun_readers(trace, clocks);
        let mut looked = 0;
        // By thread, its first event that shows a pointer.
        let mut showing = vec![NOWHERE; trace.threads()];
        shown.each_that_shows((self.objects, self.memory), self.from, |at| {
            looked += 1;
            let first = &mut showing[trace.at(at).thread.index()];
            *first = at.min(*first);
        });
        let mut revoked = Revoked(Vec::new());
        let mut first: Vec<u32> = Vec::new();
        let others = (0..trace.threads() as u32).map(ThreadId);
        for reader in others.filter(|&reader| reader != self.thread) {
            let shows = showing[reader.index()];
            let known = self.known(clocks, reader);
            let mut may_know = self.since_the_making(reader, trace, clocks).iter();
            let may_know = may_know.find(|&&at| {
                looked += 1;
                at >= shows || {
                    let event = trace.at(at);
                    can_hold(event)
                        && match event.operation.kind {
                            OpKind::Load { .. } => {
                                let object = event.operation.object;
                                revoked.is_later((object, at), self, (trace, clocks, shown))
                            }
                            // The thread that frees the block may have waited for a write of
                            // another thread.
                            ref kind => !kind.is_atomic() || event.index < known,
                        }
                }
            });
            let at = may_know.map_or(shows, |&at| at.min(shows));
            if at != NOWHERE {
                first.push(at);
            }
        }
        first.sort_unstable();
        let readers = first.into_iter().filter_map(|at| {
            let Event { thread, index, .. } = *trace.at(at);
            let known = self.known(clocks, thread);
            // A join by another thread proves nothing unless it happens before the free.
            let joins = OpKind::Join { child: thread };
            let is_over =
                |&at: &u32| trace.at(at).operation.kind == joins && self.comes_after(clocks, at);
            if shown.joins_since(self.from).iter().any(is_over) {
                return None;
            }
            // That event of the thread, or the next one behind which the thread can be delayed.
            let positions = trace.positions_of(thread);
            let mut later = positions[known.max(index + 1) as usize - 1..].iter();
            let can_hold = |at: &u32| {
                can_hold(trace.at(*at)) || self.holds_at_drops && self.drops.contains(at)
            };
            let held = trace.at(*later.find(|&at| can_hold(at))?);
            Some(Reader {
                thread,
                events: held.index + 1,
                site: held.site,
                has_shown: showing[thread.index()] <= positions[held.index as usize],
            })
        });
        found.extend(readers);
        (found, looked)
    }

    /// The number of events of this thread that happen before the free.
    fn known(&self, clocks: &HappensBefore, thread: ThreadId) -> u32 {
        let before = |&at: &u32| clocks.clock(at, thread);
        let drops = self.drops.iter().map(before).max().unwrap_or_default();
        drops.max(before(&self.last))
    }

    /// Whether the free happens after this event.
    fn comes_after(&self, clocks: &HappensBefore, at: u32) -> bool {
        let is_behind = |&drop: &u32| drop == at || clocks.before(at, drop);
        clocks.before(at, self.last) || self.drops.iter().any(is_behind)
    }

    /// The threads that were spawned since the block was made and have no event before the free. A
    /// thread may have the pointer from the beginning and use it there. This use comes behind the
    /// free if the thread's code begins then.
    fn unbegun_readers(&self, trace: &Trace, clocks: &HappensBefore) -> Vec<Reader> {
        let Some((maker, events)) = self.made else {
            return Vec::new();
        };
        let others = (1..trace.threads() as u32).map(ThreadId);
        let others = others.filter(|&reader| reader != maker && reader != self.thread);
        let reader = |thread: ThreadId| {
            let spawn = trace.spawn_of(thread)?;
            let may_have = clocks.clock(spawn, maker) > events;
            (may_have && self.known(clocks, thread) == 0).then(|| Reader {
                thread,
                events: 0,
                site: trace.at(spawn).site,
                has_shown: false,
            })
        };
        others.filter_map(reader).collect()
    }

    /// The positions of the events of this thread that happen after a later event of the block's
    /// maker. There the thread may have the pointer: from data behind a lock, from a message, or
    /// from its spawn. It may use the pointer because of the value of an atomic.
    fn since_the_making<'a>(
        &self,
        reader: ThreadId,
        trace: &'a Trace,
        clocks: &HappensBefore,
    ) -> &'a [u32] {
        let Some((maker, events)) = self.made else {
            return &[];
        };
        let positions = trace.positions_of(reader);
        let is_before = |&at: &u32| (at as usize) < self.from || clocks.clock(at, maker) <= events;
        // Most threads have learnt nothing.
        if positions.last().is_none_or(is_before) {
            return &[];
        }
        &positions[positions.partition_point(is_before)..]
    }
}

/// The position of the last write to each of some atomics before a free: a thread that has read the
/// atomic before this write, and acts on the old value, may be late.
struct Revoked(Vec<(ObjectId, u32)>);

impl Revoked {
    /// Whether the last write to the object before this free is behind this position.
    fn is_later(
        &mut self,
        (object, position): (ObjectId, u32),
        free: &Free<'_>,
        (trace, clocks, shown): (&Trace, &HappensBefore, &Shown),
    ) -> bool {
        let known = self.0.iter().find(|(known, _)| *known == object);
        let last = known.map(|&(_, last)| last).unwrap_or_else(|| {
            let mut all = shown.events_on(object, free.from);
            let writes = |&at: &u32| {
                let kind = &trace.at(at).operation.kind;
                let writes = kind.is_atomic() && !matches!(kind, OpKind::Load { .. });
                writes && free.comes_after(clocks, at)
            };
            // No event comes before the first one.
            let last = all.find(writes).unwrap_or(0);
            self.0.push((object, last));
            last
        });
        last > position
    }
}

/// Whether a thread can be delayed behind this event.
pub(crate) fn can_hold(event: &Event) -> bool {
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
