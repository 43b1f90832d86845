//! Is every access to plain memory ordered with the others?
//!
//! A consumer of events: the [`Detector`] is told every event and every access to a cell, and says
//! where two accesses of different threads, one of them a write, are not ordered by what the
//! language grants ([`sync`]). Vector clocks with epochs, as in FastTrack (Flanagan and Freund,
//! PLDI 2009): of the writes only the last has to be kept, of the reads one per thread since that
//! write.
//!
//! Accesses are neither events nor scheduling points. One execution per trace is enough to see
//! every race, because equal traces have equal synchronisation.
//!
//! Two more things are accesses. Giving a block back to the allocator conflicts with every use of
//! what is in it, cells and shims alike. And a shim's own memory can be read or written plainly
//! (`get_mut`, `unsync_load`), which conflicts with its operations.
//!
//! What a block holds is written when it has been allocated, by the same thread, and no shim is
//! told: `new` is a constant. So the allocation counts as a write of the whole block, and whoever
//! has the pointer by a store that publishes nothing may not use what it leads to, be it a cell or
//! an atomic. What is on the stack of a thread has been made there, too: at some time, of which
//! only the beginning of that thread is known to be earlier.
//!
//! Giving a block back is such a use as well, but only by who has got the pointer from an atomic:
//! whoever has it from elsewhere may have it by a lock or a channel that is not a shim
//! ([`flow::hands_over`]).

mod cells;
mod clock;
mod epoch;
mod fences;
mod flow;
mod sync;
mod weak;

use std::ptr;

use rustc_hash::FxHashMap;

use super::pooled::Empty;
use crate::rt::event::Event;
use crate::rt::event::Site;
use crate::rt::event::fence::{Fence, Past};
use crate::rt::event::id::{Names, ObjectId, Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{
    Access, Accessed, Block, DataRace, Effect, Lasts, TooWeak, ValueGone,
};
use cells::Cells;
use clock::Clock;
use epoch::Epoch;
use fences::Fences;
use sync::Knowledge;
pub(crate) use sync::{acquires, releases};
pub(crate) use weak::too_weak;

/// Watches the accesses to plain memory of one exploration.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    knowledge: Knowledge,
    cells: Cells,
    /// Shims whose memory is accessed plainly.
    mixed: FxHashMap<ObjectId, (usize, usize)>,
    /// Whether any cell was ever accessed in this exploration; until then events are not followed.
    active: bool,
    /// How many events [`Detector::sees_less`] has looked at, and what it has found.
    weaker: (usize, bool),
    aside: Aside,
}

/// What the threads know of each other where events are not followed, as far as that was asked for.
#[derive(Debug, Default)]
struct Aside {
    knowledge: Knowledge,
    /// So many events it has learnt of, and fences.
    seen: (usize, usize),
    /// So many values that are gone.
    gone: usize,
}

impl Aside {
    /// What they know after all that has happened so far, of which a part may have been learnt of
    /// before.
    fn after(&mut self, past: Past<'_>, gone: &[ValueGone]) -> &mut Knowledge {
        let now = (past.events.len(), past.fences.len());
        let since = std::mem::replace(&mut self.seen, now);
        let gone = &gone[std::mem::replace(&mut self.gone, gone.len())..];
        let events = &past.events[since.0..];
        // Who has done nothing since may have given a value up since.
        let late = gone.iter();
        let late = late.filter(|gone| !events.iter().any(|event| gone.is_behind(event)));
        late.for_each(|&gone| self.knowledge.value_is_gone(gone));
        self.knowledge.catch_up(past, since, gone);
        &mut self.knowledge
    }

    /// Another execution begins.
    #[inline]
    fn reset(&mut self) {
        if self.seen != (0, 0) {
            self.knowledge.reset();
            (self.seen, self.gone) = ((0, 0), 0);
        }
    }
}

/// The making of the memory in this region, seen by who uses what is in it: the allocation of its
/// block, or the first that its thread did, behind which the variable has been made.
fn making(region: &Region, used: &Access, fences: &Fences) -> Option<Epoch> {
    match *region {
        Region::Heap { thread, events, .. } => {
            let time = Block::around(region).map_or(events, |block| fences.made(&block));
            Some(made((thread, events), time, used))
        }
        Region::Stack { thread, .. } => Some(made((thread, 0), 0, used)),
        _ => None,
    }
}

/// What this thread made at that time, when it had performed so many events, as a use of it sees
/// it.
fn made((thread, after): (ThreadId, u32), time: u32, used: &Access) -> Epoch {
    Epoch {
        access: Access {
            thread,
            effect: Effect::Make,
            site: used.site,
            after,
        },
        time,
        until: after,
    }
}

/// No access is known to be in order.
fn none(_: &Access) -> bool {
    false
}

/// Whether the event is an operation on an atomic that tells others less, or learns less from them,
/// than it comes after.
fn is_weak(event: &Event) -> bool {
    sync::reads(event).is_some_and(|order| !acquires(order))
        || sync::writes(event).is_some_and(|order| !releases(order))
}

/// Whether it is known that the thread of this event, which knows what is in `clock`, has learnt of
/// its object.
///
/// # Errors
///
/// The race, if it has not: another thread has allocated the block that the object is in, or has it
/// on its stack.
#[inline(never)]
fn has_learnt(
    event: &Event,
    names: &Names,
    clock: &Clock,
    fences: &Fences,
) -> Result<bool, Box<DataRace>> {
    // The token of a waker is in a block of the runtime's own, and a waker may come by a lock of
    // std's that nobody waits for: no event shows that it was learnt of.
    if matches!(event.operation.kind, OpKind::Park | OpKind::Unpark) {
        return Ok(false);
    }
    let region = names.place(event.operation.object).region;
    let access = sync::access(event);
    match making(&region, &access, fences) {
        Some(making) if making.races(&access, clock) => Err(Box::new(DataRace {
            first: making.access,
            second: access,
            lasts: Lasts::Until(making.until),
            time: making.time,
            weak: TooWeak::default(),
            block: Block::around(&region),
            written: None,
            publishes_no_more: false,
            counted: false,
            memory: Accessed::default(),
        })),
        _ => Ok(true),
    }
}

impl Empty for Detector {
    fn empty(&mut self) {
        // Otherwise nothing was noted.
        if self.active || self.aside.seen != (0, 0) {
            *self = Detector::default();
        }
        self.weaker = (0, false);
    }
}

impl Detector {
    /// Whether events have to be observed.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// The first cell of the exploration is met, after all of this, and these values are gone.
    pub(crate) fn activate(&mut self, past: Past<'_>, gone: &[ValueGone]) {
        self.active = true;
        self.knowledge.catch_up(past, (0, 0), gone);
    }

    /// A thread has made a fence.
    pub(crate) fn fence(&mut self, fence: &Fence) {
        if self.active {
            self.knowledge.fence(fence);
        }
    }

    /// A value is gone that there are weak references to.
    pub(crate) fn value_is_gone(&mut self, gone: ValueGone) {
        if self.active {
            self.knowledge.value_is_gone(gone);
        }
    }

    /// Whether some operation among these events, which are all so far, has an ordering by which it
    /// tells others less, or learns less from them, than it comes after.
    pub(crate) fn sees_less(&mut self, events: &[Event]) -> bool {
        let (known, less) = &mut self.weaker;
        *less = *less || events[(*known).min(events.len())..].iter().any(is_weak);
        *known = events.len();
        *less
    }

    /// An event has happened.
    ///
    /// # Errors
    ///
    /// The race, if it is not ordered with an earlier plain access to the memory of its object, or
    /// with the allocation of the block that its object is in.
    #[inline]
    pub(crate) fn observe(&mut self, event: &Event, names: &Names) -> Result<(), Box<DataRace>> {
        if !self.active {
            return Ok(());
        }
        (self.knowledge).observe(event, |clock, fences| {
            has_learnt(event, names, clock, fences)
        })?;
        let Some(memory) = self.mixed.get(&event.operation.object) else {
            return Ok(());
        };
        let Some(cell) = self.cells.get(*memory) else {
            return Ok(());
        };
        let access = sync::access(event);
        cell.check(&access, self.knowledge.of(event.thread), &none)
    }

    /// A new execution begins.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.weaker = (0, false);
        self.aside.reset();
        if self.active {
            self.forget_all();
        }
    }

    #[inline(never)]
    fn forget_all(&mut self) {
        self.knowledge.reset();
        self.cells.reset();
        self.mixed.clear();
    }

    /// Forgets the cells in memory that is used for something else from now on.
    #[inline]
    pub(crate) fn forget(&mut self, start: usize, length: usize) {
        if self.active {
            self.cells.forget(start, length);
        }
    }

    /// Whether there is something in this memory that the access by which it is freed may race
    /// with.
    pub(crate) fn knows_in(&self, start: usize, length: usize) -> bool {
        self.active && self.cells.any_within(start, length)
    }

    /// The memory is given back, with these objects and the cells in it. Some of the objects may be
    /// `counts` of its references: who gives it back has waited for all who have given theirs up.
    ///
    /// # Errors
    ///
    /// The race, if that is not ordered with a use of them, which is not known to be `in_order`.
    pub(crate) fn free(
        &mut self,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        counts: &[ObjectId],
        access: Access,
        is_in_order: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<DataRace>> {
        let clock = &self.knowledge.after_all(access.thread, counts);
        let used = objects.iter().filter(|&object| !counts.contains(object));
        let used = used.map(|&object| self.knowledge.check(object, &access, clock, is_in_order));
        let cells = self.cells.within(start, length);
        let cells = cells.map(|cell| cell.check(&access, clock, is_in_order));
        let mut races = used.chain(cells).filter_map(Result::err);
        let Some(race) = races.next() else {
            return Ok(());
        };
        // The last use of that thread: what orders that orders the others, too.
        let thread = race.first.thread;
        let its = races.filter(|other| other.first.thread == thread);
        Err(its.fold(race, |last, other| {
            match other.first.through() > last.first.through() {
                true => other,
                false => last,
            }
        }))
    }

    /// The race of the free of this block with its making: the thread that gives it back has got
    /// the pointer in a way that does not order the two. This has happened so far, and these values
    /// are gone.
    pub(crate) fn free_of_made(
        &mut self,
        (start, block): (usize, &Block),
        access: Access,
        past: Past<'_>,
        gone: &[ValueGone],
    ) -> Option<Box<DataRace>> {
        let (maker, after) = (block.thread, block.events);
        let events = past.events;
        if maker == access.thread || !self.sees_less(events) {
            return None;
        }
        // To follow all events from here on would find what nobody has asked for.
        let knowledge = match self.active {
            true => &mut self.knowledge,
            false => self.aside.after(past, gone),
        };
        let (clock, fences) = knowledge.of_with_fences(access.thread);
        let making = made((maker, after), fences.made(block), &access);
        if !making.races(&access, clock)
            || !flow::hands_over(events, (maker, after), (start, block.size), access.thread)
        {
            return None;
        }
        Some(Box::new(DataRace {
            first: making.access,
            second: access,
            lasts: Lasts::Until(making.until),
            time: making.time,
            weak: TooWeak::default(),
            block: Some(*block),
            written: None,
            publishes_no_more: false,
            counted: false,
            memory: Accessed::default(),
        }))
    }

    /// The race of an event on what is in a block with the free of that.
    pub(crate) fn late(&self, event: &Event, free: Access) -> Box<DataRace> {
        let first = sync::access(event);
        Box::new(DataRace {
            first,
            second: free,
            lasts: Lasts::Until(first.after),
            time: self.knowledge.fences().before(first.thread, first.after),
            weak: TooWeak::default(),
            block: None,
            written: None,
            publishes_no_more: false,
            counted: true,
            memory: Accessed::default(),
        })
    }

    /// Whether the memory of some shim was accessed plainly.
    #[inline]
    pub(crate) fn has_mixed(&self) -> bool {
        !self.mixed.is_empty()
    }

    /// There is another object now where this one was. If its memory was accessed plainly, which
    /// may be what has changed it, the operations on the other one must be ordered with that, too.
    pub(crate) fn is_followed(&mut self, object: ObjectId, by: ObjectId) {
        if let Some(&memory) = self.mixed.get(&object) {
            self.mixed.insert(by, memory);
        }
    }

    /// Whether this execution has met the cell at this address, of this size.
    pub(crate) fn knows(&self, memory: (usize, usize)) -> bool {
        self.cells.get(memory).is_some()
    }

    /// Begins an access to the cell at this address, of this size in bytes; it may be the memory of
    /// `object`. Where it is has to be said if the cell is not known.
    ///
    /// # Errors
    ///
    /// The race, if it is not ordered with an earlier access.
    pub(crate) fn begin(
        &mut self,
        memory: (usize, usize),
        object: Option<ObjectId>,
        region: Option<Region>,
        access: Access,
    ) -> Result<(), Box<DataRace>> {
        if let Some(object) = object {
            // There may be no room for what it knows.
            self.knowledge.of(access.thread);
            let clock = self.knowledge.known_to(access.thread);
            (self.knowledge).check(object, &access, clock, &none)?;
            self.mixed.insert(object, memory);
        }
        let clock = self.knowledge.of(access.thread);
        let epoch = Epoch {
            access,
            time: clock.get(access.thread),
            until: access.after,
        };
        let fences = self.knowledge.fences();
        let cell = self.cells.meet(memory, || {
            let made = region
                .as_ref()
                .and_then(|region| making(region, &access, fences));
            (made, region)
        });
        cell.check(&access, self.knowledge.known_to(access.thread), &none)?;
        cell.note(epoch);
        cell.open.push(epoch);
        Ok(())
    }

    /// The access to this cell that `thread` began last at `site` goes on.
    pub(crate) fn go_on(&mut self, memory: (usize, usize), thread: ThreadId, site: Site) {
        let time = self.knowledge.of(thread).get(thread);
        let until = self.knowledge.fences().events(thread, time);
        if let Some((cell, at)) = self.open(memory, thread, site) {
            (cell.open[at].time, cell.open[at].until) = (time, until);
            cell.note(cell.open[at]);
        }
    }

    /// Ends that access, which has lasted up to now, or else at least up to the last event of its
    /// thread.
    pub(crate) fn end(
        &mut self,
        memory: (usize, usize),
        thread: ThreadId,
        site: Site,
        up_to_now: bool,
    ) {
        let now = self.knowledge.of(thread).get(thread);
        let time = now.saturating_sub(u32::from(!up_to_now));
        let until = self.knowledge.fences().events(thread, time);
        if let Some((cell, at)) = self.open(memory, thread, site) {
            let began = cell.open.remove(at);
            // What has not lasted is noted.
            if time > began.time {
                cell.note(Epoch {
                    time,
                    until,
                    ..began
                });
            }
        }
    }

    fn open(
        &mut self,
        memory: (usize, usize),
        thread: ThreadId,
        site: Site,
    ) -> Option<(&mut cells::Cell, usize)> {
        let cell = self.cells.get_mut(memory)?;
        // Most often it is the same in memory, too.
        let there = |other: Site| ptr::eq(other, site) || other == site;
        let mine = |epoch: &Epoch| epoch.access.thread == thread && there(epoch.access.site);
        let at = cell.open.iter().rposition(mine)?;
        Some((cell, at))
    }
}

/// Whether the second thread has learnt of the first access, in whatever way: what orders the two
/// is too weak, or is nothing that the language orders by, but is there.
pub(crate) fn is_known_of(race: &DataRace, events: &[Event]) -> bool {
    let first = &race.first;
    let performed = match race.lasts {
        Lasts::Until(events) => events,
        // Up to when it has to be known, nobody can say: it counts what the first thread has told
        // since it began.
        Lasts::OnAndOn => first.after,
    };
    flow::reaches(events, (first.thread, performed), race.second.thread)
}

#[cfg(test)]
mod tests;
