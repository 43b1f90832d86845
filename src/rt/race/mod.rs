//! Is every access to plain memory ordered with the others?
//!
//! The [`Detector`] consumes events: it observes every event and every access to a cell, and
//! reports two accesses of different threads, one of them a write, that the language's
//! happens-before ([`sync`]) does not order. It uses vector clocks with epochs, as FastTrack does
//! (Flanagan and Freund, PLDI 2009): of the writes it keeps only the last, of the reads one per
//! thread since that write.
//!
//! Accesses are neither events nor scheduling points. One execution per trace is enough to see
//! every race, because equal traces have equal synchronisation.
//!
//! Two more actions count as accesses. A free of a block conflicts with every use of its content,
//! cells and shims alike. And plain reads and writes of a shim's own memory (`get_mut`,
//! `unsync_load`) conflict with the operations of the shim.
//!
//! The content of a block is written after its allocation, by the same thread, and no shim
//! announces that write: `new` is a constant. So the allocation counts as a write of the whole
//! block. A thread that has the pointer from a store that publishes nothing may not use the
//! pointed-to memory, be it a cell or an atomic. The content of a thread's stack has been made by
//! that thread, too, at an unknown time: only the beginning of that thread is known to be earlier.
//!
//! A free is such a use as well, but only by a thread that has got the pointer from an atomic: a
//! thread that has the pointer from elsewhere may have it through a lock or a channel that is not a
//! shim ([`flow::hands_over`]).

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
use crate::rt::event::fence::{Fence, Part, Past};
use crate::rt::event::id::{Names, ObjectId, Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{Access, Block, DataRace, Effect, Lasts, ValueGone};
use cells::Cells;
use clock::Clock;
use epoch::Epoch;
use fences::Fences;
use sync::Knowledge;
pub(crate) use weak::{too_weak, too_weak_to_know};

/// Watches the accesses to plain memory of one exploration.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    knowledge: Knowledge,
    cells: Cells,
    /// The shims with plainly accessed memory.
    mixed: FxHashMap<ObjectId, (usize, usize)>,
    /// Whether any cell was accessed in this exploration. Before the first such access, the
    /// detector ignores events.
    active: bool,
    /// The number of events that [`Detector::sees_less`] has examined, and its answer for them.
    weaker: (usize, bool),
    aside: Aside,
}

/// The clocks of the threads while the detector is inactive, computed on demand.
#[derive(Debug, Default)]
struct Aside {
    knowledge: Knowledge,
    /// The number of events and the number of fences that `knowledge` contains.
    seen: (usize, usize),
    /// The number of given-up values that `knowledge` contains.
    gone: usize,
}

impl Aside {
    /// The clocks after all events and fences so far. The call adds those that came since the last
    /// call.
    fn after(&mut self, past: Past<'_>, gone: &[ValueGone]) -> &mut Knowledge {
        let now = (past.events.len(), past.fences.len());
        let since = std::mem::replace(&mut self.seen, now);
        let gone = &gone[std::mem::replace(&mut self.gone, gone.len())..];
        let events = &past.events[since.0..];
        // A thread without a new event may still have given a value up.
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

/// The making of the memory in this region, as a use of its content sees it: the allocation of the
/// block; or, for a variable on a stack, the first action of its thread, because the variable was
/// made at some time behind that action.
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

/// What this thread made at that time, when it had performed `after` events, as an access for
/// `used` to race with.
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

/// No earlier access is known to be in order.
fn none(_: &Access) -> bool {
    false
}

/// Whether the event is an operation on an atomic that publishes less, or learns less, than happens
/// before it in the trace.
fn is_weak(event: &Event) -> bool {
    sync::reads(event).is_some_and(|order| !acquires(order))
        || sync::writes(event).is_some_and(|order| !releases(order))
}

/// Whether the thread of this event, with the clock `clock`, is known to have learnt of the object
/// of the event.
///
/// # Errors
///
/// The race, if the thread has not learnt of it: another thread has allocated the block that
/// contains the object, or has the object on its stack.
#[inline(never)]
fn has_learnt(
    event: &Event,
    names: &Names,
    clock: &Clock,
    fences: &Fences,
) -> Result<bool, Box<DataRace>> {
    // The token of a waker is in a block of the runtime's own, and a waker may be passed on through
    // a lock of std on which no thread waits. So no event shows that the thread has learnt of the
    // token.
    if matches!(event.operation.kind, OpKind::Park | OpKind::Unpark) {
        return Ok(false);
    }
    let region = names.place(event.operation.object).region;
    let access = sync::access(event);
    match making(&region, &access, fences) {
        Some(making) if making.races(&access, clock) => {
            let lasts = Lasts::Until(making.until);
            Err(Box::new(DataRace {
                block: Block::around(&region),
                ..DataRace::between(making.access, access, lasts, making.time)
            }))
        }
        _ => Ok(true),
    }
}

impl Empty for Detector {
    fn empty(&mut self) {
        // Otherwise the detector has noted nothing.
        if self.active || self.aside.seen != (0, 0) {
            *self = Detector::default();
        }
        self.weaker = (0, false);
    }
}

impl Detector {
    /// Whether memory is C11's in the executions that follow.
    pub(crate) fn set_weak(&mut self, is_weak: bool) {
        self.knowledge.set_weak(is_weak);
        self.aside.knowledge.set_weak(is_weak);
    }

    /// Whether events have to be observed.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Activates the detector at the first cell of the exploration, after these events and fences,
    /// with these values given up.
    pub(crate) fn activate(&mut self, past: Past<'_>, gone: &[ValueGone]) {
        self.active = true;
        self.knowledge.catch_up(past, (0, 0), gone);
    }

    /// The last event is withdrawn: what its thread has learnt from it is forgotten. `past` and
    /// `gone` are the events and fences, and the given-up values, that are left.
    pub(crate) fn go_back(&mut self, past: Past<'_>, gone: &[ValueGone]) {
        self.weaker = (0, false);
        self.aside.reset();
        if self.active {
            self.knowledge.reset();
            self.knowledge.catch_up(past, (0, 0), gone);
        }
    }

    /// Observes a fence.
    pub(crate) fn fence(&mut self, fence: &Fence) {
        if self.active {
            self.knowledge.fence(fence);
        }
    }

    /// Observes that a value is given up while weak references to it remain.
    pub(crate) fn value_is_gone(&mut self, gone: ValueGone) {
        if self.active {
            self.knowledge.value_is_gone(gone);
        }
    }

    /// Whether one of these events, which are all events so far, is an operation on an atomic that
    /// publishes less, or learns less, than happens before it in the trace.
    pub(crate) fn sees_less(&mut self, events: &[Event]) -> bool {
        let (known, less) = &mut self.weaker;
        *less = *less || events[(*known).min(events.len())..].iter().any(is_weak);
        *known = events.len();
        *less
    }

    /// Observes an event.
    ///
    /// # Errors
    ///
    /// The race, if the event is not ordered with an earlier plain access to the memory of its
    /// object, or with the allocation of the block that contains its object.
    #[inline]
    pub(crate) fn observe(&mut self, event: &Event, names: &Names) -> Result<(), Box<DataRace>> {
        if !self.active {
            return Ok(());
        }
        (self.knowledge).observe(event, |clock, fences| {
            has_learnt(event, names, clock, fences)
        })?;
        self.check_mixed(event)
    }

    /// Observes a part of a block.
    ///
    /// # Errors
    ///
    /// As [`Detector::observe`].
    pub(crate) fn part(&mut self, part: &Part, names: &Names) -> Result<(), Box<DataRace>> {
        let Some(event) = part.operation() else {
            return self.knowledge.part(part, |_, _| Ok(false));
        };
        (self.knowledge).part(part, |clock, fences| {
            has_learnt(event, names, clock, fences)
        })?;
        self.check_mixed(event)
    }

    /// Whether the event is ordered with the plain accesses to the memory of its object.
    fn check_mixed(&mut self, event: &Event) -> Result<(), Box<DataRace>> {
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

    /// Removes the cells in memory that is reused from now on.
    #[inline]
    pub(crate) fn forget(&mut self, start: usize, length: usize) {
        if self.active {
            self.cells.forget(start, length);
        }
    }

    /// Whether this memory contains a cell that the free of the memory may race with.
    pub(crate) fn knows_in(&self, start: usize, length: usize) -> bool {
        self.active && self.cells.any_within(start, length)
    }

    /// The memory is freed, with these objects and the cells in it. Some of the objects may be
    /// `counts` of its references: the freeing thread has waited for all threads that have given
    /// their references up.
    ///
    /// # Errors
    ///
    /// The race, if the free is not ordered with a use of an object or a cell, and that use is not
    /// known to be `in_order`.
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
        // The last use of that thread: an operation that orders the last use orders the others,
        // too.
        let thread = race.first.thread;
        let its = races.filter(|other| other.first.thread == thread);
        Err(its.fold(race, |last, other| {
            if other.first.through() > last.first.through() {
                other
            } else {
                last
            }
        }))
    }

    /// The race of the free of this block with its making: the freeing thread has got the pointer
    /// in a way that does not order the two. The thread has waited for all threads that have given
    /// up a reference of the count `behind`. `past` and `gone` are the events and fences, and the
    /// given-up values, so far.
    pub(crate) fn free_of_made(
        &mut self,
        (start, block): (usize, &Block),
        access: Access,
        behind: Option<ObjectId>,
        (past, gone): (Past<'_>, &[ValueGone]),
    ) -> Option<Box<DataRace>> {
        let (maker, after) = (block.thread, block.events);
        let events = past.events;
        if maker == access.thread || !self.sees_less(events) {
            return None;
        }
        // The detector stays inactive: with all events observed from here on, it would report races
        // that the test has not asked for.
        let knowledge = if self.active {
            &mut self.knowledge
        } else {
            self.aside.after(past, gone)
        };
        let clock = &knowledge.after_all(access.thread, behind.as_slice());
        let (_, fences) = knowledge.of_with_fences(access.thread);
        let making = made((maker, after), fences.made(block), &access);
        if !making.races(&access, clock)
            || !flow::hands_over(events, (maker, after), (start, block.size), access.thread)
        {
            return None;
        }
        let lasts = Lasts::Until(making.until);
        Some(Box::new(DataRace {
            block: Some(*block),
            ..DataRace::between(making.access, access, lasts, making.time)
        }))
    }

    /// Whether `thread` has learnt, by operations that synchronise, of the event of another thread
    /// with this index. `past` and `gone` are the events and fences, and the given-up values, so
    /// far.
    pub(crate) fn has_learnt(
        &mut self,
        thread: ThreadId,
        (of, index): (ThreadId, u32),
        past: Past<'_>,
        gone: &[ValueGone],
    ) -> bool {
        let knowledge = if self.active {
            &mut self.knowledge
        } else {
            self.aside.after(past, gone)
        };
        let (clock, fences) = knowledge.of_with_fences(thread);
        clock.get(of) > fences.before(of, index)
    }

    /// The race of the free of a block with this event on an object in the block.
    pub(crate) fn late(&self, event: &Event, free: Access) -> Box<DataRace> {
        let first = sync::access(event);
        let time = self.knowledge.fences().before(first.thread, first.after);
        Box::new(DataRace {
            counted: true,
            ..DataRace::between(first, free, Lasts::Until(first.after), time)
        })
    }

    /// Whether the memory of some shim was accessed plainly.
    #[inline]
    pub(crate) fn has_mixed(&self) -> bool {
        !self.mixed.is_empty()
    }

    /// Another object now takes the place of this one. If the memory of the old object was accessed
    /// plainly, that access may be the change that made the new object. So the operations on the
    /// new object must be ordered with the access, too.
    pub(crate) fn is_followed(&mut self, object: ObjectId, by: ObjectId) {
        if let Some(&memory) = self.mixed.get(&object) {
            self.mixed.insert(by, memory);
        }
    }

    /// Whether this execution has met the cell at this address, of this size.
    pub(crate) fn knows(&self, memory: (usize, usize)) -> bool {
        self.cells.get(memory).is_some()
    }

    /// Begins an access to the cell at this address, of this size in bytes. The cell may be the
    /// memory of `object`. `region` is required if the cell is not known.
    ///
    /// # Errors
    ///
    /// The race, if the access is not ordered with an earlier one.
    pub(crate) fn begin(
        &mut self,
        memory: (usize, usize),
        object: Option<ObjectId>,
        region: Option<Region>,
        access: Access,
    ) -> Result<(), Box<DataRace>> {
        if let Some(object) = object {
            // Makes room for the clock of the thread.
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

    /// Extends the access to this cell that `thread` began last at `site`.
    pub(crate) fn go_on(&mut self, memory: (usize, usize), thread: ThreadId, site: Site) {
        let time = self.knowledge.of(thread).get(thread);
        let until = self.knowledge.fences().events(thread, time);
        if let Some((cell, at)) = self.open(memory, thread, site) {
            (cell.open[at].time, cell.open[at].until) = (time, until);
            cell.note(cell.open[at]);
        }
    }

    /// Ends that access. It has lasted up to now, or else at least up to the last event of its
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
            // An access that has not lasted is already noted.
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
        // Equal sites mostly have the same address.
        let there = |other: Site| ptr::eq(other, site) || other == site;
        let mine = |epoch: &Epoch| epoch.access.thread == thread && there(epoch.access.site);
        let at = cell.open.iter().rposition(mine)?;
        Some((cell, at))
    }
}

/// Whether the second thread has learnt of the first access in any way, by an operation that is too
/// weak to order the two, or by one that orders nothing in the language.
pub(crate) fn is_known_of(race: &DataRace, events: &[Event]) -> bool {
    let first = &race.first;
    let performed = match race.lasts {
        Lasts::Until(events) => events,
        // The end of the access is unknown, and so is the time up to which the second thread must
        // know of the first. Here all that the first thread has told since the beginning of the
        // access counts.
        Lasts::OnAndOn => first.after,
    };
    flow::reaches(events, (first.thread, performed), race.second.thread)
}

#[cfg(test)]
mod tests;
