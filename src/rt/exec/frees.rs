//! May this memory be given up now?
//!
//! A thread gives up memory by a free, or with its stack when it has returned from its code. No
//! other thread may be about to use the memory, and all uses must happen before its end. A free
//! must also be of a block that is allocated.

use std::cell::LazyCell;

use super::context::{Inner, Runtime, with, with_any};
use super::memory::gone;
use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::ObjectKind;
use crate::rt::event::verdict::{Access, Block, DataRace, Effect, End, Gone, Wrong};
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::Fault;
use crate::rt::lifetime::delayed_use::Owned;
use crate::rt::lifetime::owners::Releases;
use crate::rt::race::is_known_of;
use crate::rt::rare::{Roomy, rarely};

impl Runtime {
    /// Takes the fault of a free of the thread that runs, or ran last.
    pub(crate) fn fault(&self) -> Option<End> {
        self.heap.take_fault().map(|fault| self.end_of(fault))
    }

    /// The end of an execution with this fault.
    #[cold]
    #[inline(never)]
    fn end_of(&self, fault: Fault) -> End {
        let (wrong, block) = match fault {
            Fault::Again(block) => (Wrong::FreedTwice, block),
            Fault::Layout(block, layout) => {
                let (size, align) = (layout.size(), layout.align());
                (Wrong::Layout { size, align }, block)
            }
            Fault::Inside(block, offset) => (Wrong::Inside { offset }, block),
        };
        self.bad_memory(wrong, gone(&block))
    }

    /// Handles the frees of the current thread since its last operation. `None` if the execution
    /// ends with one of them.
    #[inline]
    pub(super) fn hear_of_frees(&self) -> Option<()> {
        if self.heap.has_news() {
            self.hear_of_some_frees()
        } else {
            Some(())
        }
    }

    #[inline(never)]
    fn hear_of_some_frees(&self) -> Option<()> {
        let mut end = None;
        {
            let mut inner = self.inner.borrow_mut();
            self.heap.drain_freed(|start, length| {
                // A void exploration fails for no free.
                if end.is_none() && self.loud.get().is_none() {
                    end = self.freed(&mut inner, start, length);
                }
                let Inner { table, races, .. } = &mut *inner;
                table.forget(start, length);
                races.forget(start, length);
            });
            inner.glue_of = None;
        }
        match end {
            None => self.hear_of_a_fault(),
            Some(end) => self.fail(end),
        }
    }

    /// Handles the faults of the current thread's frees that need no look at objects. `None` if the
    /// execution ends with one of them.
    pub(super) fn hear_of_a_fault(&self) -> Option<()> {
        match self.fault() {
            None => Some(()),
            Some(end) => self.fail(end),
        }
    }

    /// The failure, if the current thread's free of this memory is one.
    fn freed(&self, inner: &mut Inner, start: usize, length: usize) -> Option<End> {
        let me = self.current.get();
        // The main thread frees what the closure owned, after it has joined the other threads.
        let is_alone = inner.driver.machine.is_alone(me);
        if is_alone && !self.has_raw_references.get() {
            return None;
        }
        // No object is known in the block.
        if !is_alone && self.heap.is_unasked(start) {
            self.note_raw_uses(inner, (start, length), &[], None);
            return None;
        }
        let mut objects = std::mem::take(&mut inner.inside);
        inner.table.find_inside(start, length, &mut objects);
        let end = if is_alone {
            self.wrong_with_last_free(inner, (start, length), &objects)
        } else {
            self.wrong_with_free(inner, (start, length), &objects)
        };
        objects.clear();
        inner.inside = objects;
        end
    }

    /// [`Runtime::freed`] if the current thread is the only one, and a thread may have given up a
    /// reference that it did not have. Then another reference may have been the last one, before
    /// the block was used or a reference was added.
    #[cold]
    fn wrong_with_last_free(
        &self,
        inner: &mut Inner,
        memory: (usize, usize),
        objects: &[ObjectId],
    ) -> Option<End> {
        if !objects.iter().any(|&object| inner.is_count(object)) {
            return None;
        }
        let block = || self.heap.find_gone(memory.0).map(|block| block.name());
        let free = (self.current.get(), Effect::Free);
        let race = inner.race_of_end(memory, objects, free, block);
        race.map(End::DataRace)
    }

    /// [`Runtime::freed`] of a block with these objects in it.
    fn wrong_with_free(
        &self,
        inner: &mut Inner,
        (start, length): (usize, usize),
        objects: &[ObjectId],
    ) -> Option<End> {
        let me = self.current.get();
        let block = || self.heap.find_gone(start);
        if let Some((thread, used)) = inner.about_to_use(objects, me) {
            return Some(inner.bad_memory(thread, used, gone(&block()?)));
        }
        let name = || block().map(|block| block.name());
        let memory = (start, length);
        let race = inner.race_of_end(memory, objects, (me, Effect::Free), name);
        if race.is_none() && !objects.iter().any(|&object| inner.is_internal(object)) {
            // Where references are counted, each thread that has used an object in the block had
            // one of them.
            let count = (objects.iter().copied()).find(|&object| inner.is_count(object));
            let objects = if count.is_some() { &[] } else { objects };
            self.note_raw_uses(inner, memory, objects, count);
        }
        race.map(End::DataRace)
    }

    /// Notes the threads that may use a block with these objects without an event that shows the
    /// use. The current thread has freed the block. The references to the block are counted by
    /// `count`, if by any.
    fn note_raw_uses(
        &self,
        inner: &mut Inner,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        count: Option<ObjectId>,
    ) {
        // An execution that is not explored has no clocks.
        if !self.unexplored.get() && inner.driver.notes_raw_uses() {
            let block = self.heap.find_gone(start);
            if block.is_some_and(|block| block.counted) {
                return;
            }
            let made = block.map(|block| (ThreadId(block.thread), block.events));
            let owned = match (count, inner.glue_of) {
                (Some(count), _) => Owned::Counted(count),
                (None, Some(count)) => Owned::ByCounted(count),
                (None, None) => Owned::Singly,
            };
            let block = ((start, length), objects, owned);
            (inner.driver).note_raw_uses(block, made, self.current.get());
        }
    }
}

impl Inner {
    /// Forgets the objects on the stack of a thread that has returned from its code. False if the
    /// execution ends with the thread, which is noted: another thread is about to use an object on
    /// the stack, or has used one and that use does not happen before the end.
    #[inline]
    pub(super) fn forget_stack(&mut self, thread: ThreadId) -> bool {
        let Some((bottom, top)) = self.stacks.get_mut(thread.index()).and_then(Option::take) else {
            return true;
        };
        let may_be_used = self.table.has_some_on_stacks() || self.races.is_active();
        let is_left = !may_be_used || self.forget_used_stack(thread, (bottom, top - bottom));
        if rarely!(self.driver.machine.has_live_children(thread)) {
            self.resting.push(thread);
        }
        self.ended.put((thread, (bottom, top)));
        is_left
    }

    /// [`Inner::forget_stack`] where there may be objects on the stack.
    #[inline(never)]
    fn forget_used_stack(&mut self, thread: ThreadId, memory: (usize, usize)) -> bool {
        let (start, length) = memory;
        let mut objects = std::mem::take(&mut self.inside);
        self.table.find_inside(start, length, &mut objects);
        if !objects.is_empty() || self.races.knows_in(start, length) {
            self.resting.push(thread);
        }
        let used = self.about_to_use(&objects, thread);
        let used = used.map(|(other, used)| self.bad_memory(other, used, Gone::Stack(thread)));
        let end = used.or_else(|| {
            // A thread that has joined all others comes after their accesses.
            if self.driver.machine.is_alone(thread) {
                return None;
            }
            objects.retain(|&object| !self.is_counted(object));
            let race = self.race_of_end(memory, &objects, (thread, Effect::End), || None);
            race.map(End::DataRace)
        });
        objects.clear();
        self.inside = objects;
        self.table.forget(start, length);
        self.races.forget(start, length);
        match end {
            None => true,
            end => {
                self.end = end;
                false
            }
        }
    }

    /// Whether the objects in this thread's freed blocks are of no use any more, because its code
    /// has returned: no thread races with its frees, all objects of the execution are forgotten at
    /// its end, and no object that may be gone is to be put back.
    #[inline]
    pub(super) fn is_over_with(&self, thread: ThreadId) -> bool {
        self.driver.machine.is_alone(thread) && self.table.older.is_empty()
    }

    /// Whether the object lies in a block with references that our own shims count.
    fn is_counted(&self, object: ObjectId) -> bool {
        self.is_count(object) || self.is_internal(object)
    }

    /// Whether the object counts the references to a block.
    fn is_count(&self, object: ObjectId) -> bool {
        let kind = self.driver.machine.state(object).kind();
        matches!(kind, ObjectKind::Count { .. })
    }

    /// Whether the object lies in a block to which only our own shims have a pointer.
    fn is_internal(&self, object: ObjectId) -> bool {
        let kind = self.driver.machine.state(object).kind();
        matches!(kind, ObjectKind::Channel | ObjectKind::Token)
    }

    /// Another thread that has announced an operation on one of these objects, which are gone now,
    /// with that operation. The thread performs it however the execution continues.
    fn about_to_use(&self, objects: &[ObjectId], me: ThreadId) -> Option<(ThreadId, Wrong)> {
        let machine = &self.driver.machine;
        let mut others = machine.live().iter().filter(|&&thread| thread != me);
        others.find_map(|&thread| {
            let pending = machine.pending(thread)?;
            let used = Wrong::Operation(pending.operation, pending.site);
            (objects.contains(&pending.operation.object)).then_some((thread, used))
        })
    }

    /// The race of the end of this memory, which has these objects in it, with a use of the memory,
    /// or with the making of the block. The thread gives the memory up with this effect.
    fn race_of_end(
        &mut self,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        (thread, effect): (ThreadId, Effect),
        block: impl FnOnce() -> Option<Block>,
    ) -> Option<Box<DataRace>> {
        if let InOrder::All = self.in_order {
            return None;
        }
        // Only the runtime uses the pointers to its own blocks.
        if objects.iter().any(|&object| self.is_internal(object)) {
            return None;
        }
        let last = self.driver.last_of(thread)?;
        let access = Access {
            thread,
            effect,
            site: self.driver.trace.at(last).site,
            after: self.driver.machine.events_of(thread),
        };
        let block = LazyCell::new(block);
        let is_used = !objects.is_empty() || self.races.knows_in(start, length);
        let with_use = is_used
            .then(|| self.race_with_use((start, length), objects, access, || *block))
            .flatten();
        with_use.or_else(|| match effect {
            // A thread that has a reference comes after the making of the block.
            Effect::Free if !objects.iter().any(|&object| self.is_count(object)) => {
                self.race_with_making(start, access, (*block)?)
            }
            _ => None,
        })
    }

    /// The race of a free with the making of the block, if the freeing thread has learnt of nothing
    /// but the pointer.
    fn race_with_making(
        &mut self,
        start: usize,
        access: Access,
        block: Block,
    ) -> Option<Box<DataRace>> {
        let (past, gone) = (self.driver.past(), self.driver.gone());
        let behind = self.glue_of;
        let race = (self.races).free_of_made((start, &block), access, behind, (past, gone))?;
        let is_in_order = (self.in_order).has(race.first.site, &access, Some(block));
        (!is_in_order).then_some(race)
    }

    /// The race of the access by which a thread gives up this memory, with these objects in it,
    /// with a use of the memory.
    fn race_with_use(
        &mut self,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        access: Access,
        block: impl Fn() -> Option<Block>,
    ) -> Option<Box<DataRace>> {
        let thread = access.thread;
        let Counted {
            mut counts,
            releases,
            late,
        } = self.counted(objects, thread)?;
        counts.extend(self.glue_of);
        self.watch_races();
        // The accesses that come before the free in every order.
        let mut before: Vec<(ThreadId, u32)> = Vec::new();
        loop {
            let is_in_order = |first: &Access| {
                before.contains(&(first.thread, first.after))
                    || self.in_order.has(first.site, &access, block())
            };
            let late = late.iter().map(|late| self.races.late(late, access));
            let mut late = late.filter(|race| !is_in_order(&race.first));
            let mut race = match late.next() {
                Some(race) => race,
                None => {
                    let memory = (start, length);
                    let free = (self.races).free(memory, objects, &counts, access, &is_in_order);
                    free.err()?
                }
            };
            // Two kinds of access are races: an access that does not come before the free in every
            // order of these events, and one that the freeing thread has learnt of by too weak an
            // ordering. Any other access may come after the free in another execution, and that
            // execution shows the race.
            let comes_before = match &releases {
                Some(releases) => !self.driver.can_come_later(&race.first, releases),
                None => self.driver.comes_before(&race.first, thread),
            };
            if !comes_before || is_known_of(&race, self.driver.executed()) {
                race.block = race.block.or_else(&block);
                return Some(race);
            }
            before.push((race.first.thread, race.first.after));
        }
    }
}

/// The owners of a block that was freed.
#[derive(Default)]
struct Counted {
    /// The objects that count the references to the block.
    counts: Vec<ObjectId>,
    /// The uses of the block by other threads, if there is one count and there are such uses.
    releases: Option<Releases>,
    /// Uses that can come after the free.
    late: Vec<Event>,
}

impl Inner {
    /// The owners of a block with these objects in it, which this thread has freed. `None` if no
    /// use has to be compared with the free: the counts say that all uses come before, or the
    /// execution before has compared them.
    fn counted(&mut self, objects: &[ObjectId], thread: ThreadId) -> Option<Counted> {
        let counts = objects.iter().copied();
        let mut counted = Counted {
            counts: counts.filter(|&object| self.is_count(object)).collect(),
            ..Counted::default()
        };
        let counts = &*counted.counts;
        if counts.is_empty() {
            return Some(counted);
        }
        if self.driver.was_asked() {
            return None;
        }
        if let &[count] = counts {
            counted.releases = self.driver.releases(count, objects, thread);
        }
        if let Some(releases) = &counted.releases {
            counted.late = self.driver.late_uses(releases);
        }
        // Plain memory is watched only if a thread has used some, or if the language may order less
        // than counts do.
        let is_used = counted.releases.is_some() && objects.len() > counts.len();
        let matters = self.races.is_active()
            || !counted.late.is_empty()
            || is_used && self.races.sees_less(self.driver.executed());
        matters.then_some(counted)
    }

    /// [`value_is_gone`] for this thread, which had the value.
    fn value_is_gone(&mut self, thread: ThreadId, address: usize) {
        // A thread that is spawned after all others were joined comes after their events.
        if !self.driver.machine.is_alone(thread)
            && let Some(count) = self.table.known(address)
        {
            let gone = self.driver.note_gone(count, thread);
            self.races.value_is_gone(gone);
        }
    }
}

/// Notes that the value with the reference count at this address is gone, while there are weak
/// references to it.
pub(crate) fn value_is_gone(address: usize) {
    // Where no model runs, no owner is noted.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().value_is_gone(me, address);
    });
}

/// Notes that a reference has been made from a pointer. The thread that has made it may not have
/// owned it.
#[inline]
pub(crate) fn note_raw_reference() {
    // Where no model runs, no free is checked.
    let _ = with_any(|runtime| runtime.has_raw_references.set(true));
}
