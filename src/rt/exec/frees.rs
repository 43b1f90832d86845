//! May this memory be given up now?
//!
//! By a free, or with the stack of a thread whose code has returned. Nobody else may be about to
//! use it, and all uses before must come before. A free must be of a block that there is, too.

use std::cell::LazyCell;

use super::context::{Inner, Runtime, with, with_any};
use super::memory::gone;
use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::ObjectKind;
use crate::rt::event::verdict::{Access, Block, DataRace, Effect, End, Gone, Wrong};
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::Fault;
use crate::rt::lifetime::owners::Releases;
use crate::rt::race::is_known_of;
use crate::rt::rare::{Roomy, rarely};

impl Runtime {
    /// What was wrong with a free of the thread that runs, or ran last.
    pub(crate) fn fault(&self) -> Option<End> {
        self.heap.take_fault().map(|fault| self.end_of(fault))
    }

    /// How the execution ends with this fault.
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

    /// Learns of what the current thread has freed since its last operation. `None` if the
    /// execution ends with it.
    #[inline]
    pub(super) fn hear_of_frees(&self) -> Option<()> {
        match self.heap.has_news() {
            true => self.hear_of_some_frees(),
            false => Some(()),
        }
    }

    #[inline(never)]
    fn hear_of_some_frees(&self) -> Option<()> {
        let mut end = None;
        {
            let mut inner = self.inner.borrow_mut();
            self.heap.drain_freed(|start, length| {
                if end.is_none() {
                    end = self.freed(&mut inner, start, length);
                }
                let Inner { table, races, .. } = &mut *inner;
                table.forget(start, length);
                races.forget(start, length);
            });
        }
        match end {
            None => self.hear_of_a_fault(),
            Some(end) => self.fail(end),
        }
    }

    /// Learns what is wrong with the frees of the current thread that can be told without looking
    /// at objects. `None` if the execution ends with it.
    pub(super) fn hear_of_a_fault(&self) -> Option<()> {
        match self.fault() {
            None => Some(()),
            Some(end) => self.fail(end),
        }
    }

    /// What is wrong with it that the current thread has freed this memory.
    fn freed(&self, inner: &mut Inner, start: usize, length: usize) -> Option<End> {
        let me = self.current.get();
        // What a closure owned is freed by the main thread, after it has joined the others.
        let is_alone = inner.driver.machine.is_alone(me);
        if is_alone && !self.has_raw_references.get() {
            return None;
        }
        // Nothing is known to be in it.
        if !is_alone && self.heap.is_unasked(start) {
            self.note_raw_uses(inner, (start, length), &[], false);
            return None;
        }
        let mut objects = std::mem::take(&mut inner.inside);
        inner.table.find_inside(start, length, &mut objects);
        let end = match is_alone {
            true => self.wrong_with_last_free(inner, (start, length), &objects),
            false => self.wrong_with_free(inner, (start, length), &objects),
        };
        objects.clear();
        inner.inside = objects;
        end
    }

    /// [`Runtime::freed`] if the current thread is the only one, and references may have been given
    /// up by who had none: then another one may have been the last, before the block was used or a
    /// reference was added.
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
            // Where references are counted, who has used something in the block had one of them.
            let is_counted = objects.iter().any(|&object| inner.is_count(object));
            let objects = if is_counted { &[] } else { objects };
            self.note_raw_uses(inner, memory, objects, is_counted);
        }
        race.map(End::DataRace)
    }

    /// Notes who may use a block with these objects in it that the current thread has freed, and is
    /// not seen then.
    fn note_raw_uses(
        &self,
        inner: &mut Inner,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        is_counted: bool,
    ) {
        // What is not explored is not measured.
        if !self.unexplored.get() && inner.driver.notes_raw_uses() {
            let block = self.heap.find_gone(start);
            if block.is_some_and(|block| block.counted) {
                return;
            }
            let made = block.map(|block| (ThreadId(block.thread), block.events));
            let block = ((start, length), objects, is_counted);
            (inner.driver).note_raw_uses(block, made, self.current.get());
        }
    }
}

impl Inner {
    /// Forgets what was on the stack of a thread whose code has returned. False if the execution
    /// ends with it, which is noted: another thread is about to use something of it, or has used it
    /// and nothing orders that before.
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

    /// [`Inner::forget_stack`] where there may be something on it.
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
            // Whoever has joined all others comes after what they have done.
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

    /// Whether nobody asks any more which objects were in what this thread has freed, because its
    /// code has returned: nothing races with its frees, all objects of the execution are forgotten
    /// with it, and none is to be put back that may be gone.
    #[inline]
    pub(super) fn is_over_with(&self, thread: ThreadId) -> bool {
        self.driver.machine.is_alone(thread) && self.table.older.is_empty()
    }

    /// Whether the object lies in a block that our own shims count the references to.
    fn is_counted(&self, object: ObjectId) -> bool {
        self.is_count(object) || self.is_internal(object)
    }

    /// Whether it is what counts the references to a block.
    fn is_count(&self, object: ObjectId) -> bool {
        let kind = self.driver.machine.state(object).kind();
        matches!(kind, ObjectKind::Count { .. })
    }

    /// Whether it lies in a block that nobody but our own shims has a pointer to.
    fn is_internal(&self, object: ObjectId) -> bool {
        let kind = self.driver.machine.state(object).kind();
        matches!(kind, ObjectKind::Channel | ObjectKind::Token)
    }

    /// Another thread that has announced an operation on one of these objects, which are gone now.
    /// Nothing can keep it from that.
    fn about_to_use(&self, objects: &[ObjectId], me: ThreadId) -> Option<(ThreadId, Wrong)> {
        let machine = &self.driver.machine;
        let mut others = machine.live().iter().filter(|&&thread| thread != me);
        others.find_map(|&thread| {
            let pending = machine.pending(thread)?;
            let used = Wrong::Operation(pending.operation, pending.site);
            (objects.contains(&pending.operation.object)).then_some((thread, used))
        })
    }

    /// A thread has given up this memory, with this effect, and these objects in it: the race of
    /// that with a use of it, or with the making of the block.
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
        // What leads to the runtime's own blocks is only the runtime's.
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
            // Whoever has a reference has learnt of what it leads to.
            Effect::Free if !objects.iter().any(|&object| self.is_count(object)) => {
                self.race_with_making(start, access, (*block)?)
            }
            _ => None,
        })
    }

    /// The race of a free with the making of the block, of which the thread that frees knows
    /// nothing but the pointer.
    fn race_with_making(
        &mut self,
        start: usize,
        access: Access,
        block: Block,
    ) -> Option<Box<DataRace>> {
        let (past, gone) = (self.driver.past(), self.driver.gone());
        let race = (self.races).free_of_made((start, &block), access, past, gone)?;
        let is_in_order = (self.in_order).has(race.first.site, &access, Some(block));
        (!is_in_order).then_some(race)
    }

    /// The race of the access by which a thread gives up this memory, with these objects in it,
    /// with a use of it.
    fn race_with_use(
        &mut self,
        (start, length): (usize, usize),
        objects: &[ObjectId],
        access: Access,
        block: impl Fn() -> Option<Block>,
    ) -> Option<Box<DataRace>> {
        let thread = access.thread;
        let Counted {
            counts,
            releases,
            late,
        } = self.counted(objects, thread)?;
        self.watch_races();
        // Those that come before the free whatever happens.
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
            // What came before in each order of these events, and not because the thread that frees
            // has learnt of it in a way that is too weak, is free to come later in another
            // execution, where it is found out whether it does.
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

/// What is known of the owners of a block that was freed.
#[derive(Default)]
struct Counted {
    /// What counts the references to it.
    counts: Vec<ObjectId>,
    /// What other threads have done to it, if there is one count and they have.
    releases: Option<Releases>,
    /// Uses that can come after the free.
    late: Vec<Event>,
}

impl Inner {
    /// The owners of a block with these objects in it, which this thread has freed. `None` if
    /// nothing has to be compared with the free: the counts say that all comes before, or it was
    /// done in the execution before.
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
        // Plain memory is watched only if somebody has used some, or if the language may order less
        // than counts do.
        let is_used = counted.releases.is_some() && objects.len() > counts.len();
        let matters = self.races.is_active()
            || !counted.late.is_empty()
            || is_used && self.races.sees_less(self.driver.executed());
        matters.then_some(counted)
    }

    /// [`value_is_gone`], which this thread had.
    fn value_is_gone(&mut self, thread: ThreadId, address: usize) {
        // What was done before all others were joined is known to whoever is spawned after that.
        if !self.driver.machine.is_alone(thread)
            && let Some(count) = self.table.known(address)
        {
            let gone = self.driver.note_gone(count, thread);
            self.races.value_is_gone(gone);
        }
    }
}

/// The value whose references are counted at this address is gone, while there are weak references
/// to it.
pub(crate) fn value_is_gone(address: usize) {
    // Where no model runs, nobody asks who had it.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().value_is_gone(me, address);
    });
}

/// A reference has been made of a pointer. Whoever has made it may not have had it.
#[inline]
pub(crate) fn note_raw_reference() {
    // Where no model runs, nobody asks.
    let _ = with_any(|runtime| runtime.has_raw_references.set(true));
}
