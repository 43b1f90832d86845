//! What does an operation tell other threads, and what does it learn from them?
//!
//! An operation *tells* its object what its thread knows: the clock of the thread joins that of the
//! object. It *learns* what the object has been told: the clock of the object joins that of the
//! thread. Together these operations compute the happens-before that the language grants to plain
//! memory, and nothing more: C++20's synchronises-with for atomics and fences ([atomics.order],
//! [atomics.fences]), and the promises of std's docs for its other objects ([`Grant`]). It is
//! weaker than the happens-before of `rt/relation/happens_before.rs`, which orders all conflicting
//! events so that executions can be told apart: there a relaxed load comes after the store it reads
//! from, here it learns nothing.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::clock::Clock;
use super::epoch::Epoch;
use super::fences::{Fences, OneFence};
use crate::rt::event::Event;
use crate::rt::event::fence::{Fence, Move, Part, Past, What};
use crate::rt::event::grant::Grant;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome, Touch};
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{Access, DataRace, Effect, Lasts, ValueGone};
use crate::rt::object::orders::Place;
use crate::rt::relation::independence::clash;

/// The clocks of all threads, and those of the objects they learn from.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    threads: Vec<Thread>,
    objects: Objects,
    fences: Fences,
    /// What blocks have told that read an object or write it, or touch everything.
    told_by_blocks: Vec<(Touched, Clock)>,
    /// The footprint of the block that is not over.
    open: Vec<Touched>,
    /// Whether memory is C11's. Then an event names the store that it reads or goes behind.
    is_weak: bool,
}

/// An object that a block touches, `None` for everything, and whether the block writes it.
type Touched = (Option<ObjectId>, bool);

/// Whether two blocks that touch these are ordered.
fn is_shared(one: Touched, other: Touched) -> bool {
    let meets = one.0.is_none() || other.0.is_none() || one.0 == other.0;
    meets && (one.1 || other.1)
}

/// The clocks of the objects. Objects keep their numbers from one execution to the next, and the
/// clocks of an object are cleared only when an execution meets the object again.
#[derive(Debug, Default)]
struct Objects {
    list: Vec<Object>,
    execution: u32,
}

impl Objects {
    fn get(&self, object: ObjectId) -> Option<&Object> {
        let object = self.list.get(object.index())?;
        (object.execution == self.execution).then_some(object)
    }

    #[inline]
    fn get_mut(&mut self, object: ObjectId) -> &mut Object {
        if self.list.len() <= object.index() {
            self.make_room(object);
        }
        let object = &mut self.list[object.index()];
        if object.execution != self.execution {
            object.begin(self.execution);
        }
        object
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, object: ObjectId) {
        self.list.resize_with(object.index() + 1, Object::default);
    }

    fn reset(&mut self) {
        self.execution = self.execution.wrapping_add(1);
    }

    #[cfg(test)]
    fn met(&self) -> impl Iterator<Item = &Object> {
        let met = |object: &&Object| object.execution == self.execution;
        self.list.iter().filter(met)
    }
}

#[derive(Debug, Default)]
struct Thread {
    clock: Clock,
    /// The clock of the thread at its last release fence: its relaxed stores tell that clock.
    released: Clock,
    /// The clocks that its relaxed loads have read, which the thread learns at an acquire fence.
    seen: Clock,
}

/// The clocks that threads may learn from an object.
#[derive(Debug, Default)]
struct Object {
    /// The execution that has told the rest.
    execution: u32,
    /// Of an atomic: learnt by a read of the current value with `Acquire`. Of a lock: by every
    /// locking thread. Of a channel: by a receiver that finds all senders gone. Of a thread: by the
    /// thread that joins it.
    told: Clock,
    /// Of an atomic of C11: for each store in modification order what its reader learns, the
    /// initial value first.
    stores: Vec<Clock>,
    /// Of an atomic: the thread that knows all of `told`, and the time of that thread when it told
    /// it.
    by: Option<(ThreadId, u32)>,
    /// Of a lock: learnt by writers only. Of a barrier: by the group that is gathering. Of a
    /// channel: by a sender that finds the receiver gone.
    told_some: Clock,
    /// Of a channel: by number, the clocks of the messages, each learnt by its receiver, and of the
    /// messages received, each learnt by the sender that waits for that. Of a barrier: `messages`
    /// by group, learnt by the threads that leave the group.
    messages: VecDeque<(u64, Clock)>,
    taken: VecDeque<(u64, Clock)>,
    /// Of an object with unknown contents: by the way of touching it, in order, what the threads
    /// knew that have touched it so. Learnt by those that may not be swapped with them.
    touched: Vec<(Touch, Clock)>,
    /// For each thread, its last operation that only reads, and its last one that does not.
    uses: Vec<Epoch>,
    /// A set, by a bit each, of the first threads that are known to have learnt of the object.
    met: u64,
}

impl Object {
    /// The current execution meets the object for the first time.
    fn begin(&mut self, execution: u32) {
        self.execution = execution;
        self.told.clear();
        self.by = None;
        self.stores.clear();
        self.told_some.clear();
        self.touched.clear();
        if !self.messages.is_empty() || !self.taken.is_empty() {
            self.messages.clear();
            self.taken.clear();
        }
        self.uses.clear();
        self.met = 0;
    }

    #[inline]
    fn note_use(&mut self, access: Access, time: u32) {
        let until = access.after;
        let known = self.uses.iter_mut().find(|known| {
            known.access.thread == access.thread && known.access.effect == access.effect
        });
        match known {
            Some(known) => {
                *known = Epoch {
                    access,
                    time,
                    until,
                };
            }
            None => self.uses.push(Epoch {
                access,
                time,
                until,
            }),
        }
    }
}

/// The bit of this thread in a set of the first threads. Zero if it is not one of them.
#[inline]
fn bit(thread: ThreadId) -> u64 {
    1_u64.checked_shl(thread.0).unwrap_or(0)
}

/// The access of an event to the memory of its object.
#[inline]
pub(super) fn access(event: &Event) -> Access {
    let reads = match event.operation.kind {
        OpKind::Load { .. } => true,
        OpKind::CompareExchange { .. } => !event.outcome.succeeded(),
        OpKind::Touch(touch) => touch.only_reads(),
        _ => false,
    };
    Access {
        thread: event.thread,
        effect: if reads {
            Effect::AtomicRead
        } else {
            Effect::AtomicWrite
        },
        site: event.site,
        after: event.index,
    }
}

impl Knowledge {
    /// Observes all events and fences since the given numbers of them, and the giving up of the
    /// values `gone`. It does not ask whether threads have learnt of their objects.
    pub(super) fn catch_up(&mut self, past: Past<'_>, since: (usize, usize), gone: &[ValueGone]) {
        for it in past.moves_since(since) {
            let event = match it {
                Move::Fence(fence) => {
                    self.fence(fence);
                    continue;
                }
                Move::Part(part) => {
                    let _ = self.part(part, |_, _| Ok(false));
                    continue;
                }
                Move::Event(_, event) => event,
            };
            let _ = self.observe(event, |_, _| Ok(false));
            let gone = gone.iter().filter(|gone| gone.is_behind(event));
            gone.for_each(|&gone| self.value_is_gone(gone));
        }
    }

    /// Whether memory is C11's in the executions that follow.
    pub(super) fn set_weak(&mut self, is_weak: bool) {
        self.is_weak = is_weak;
    }

    /// Observes a fence.
    pub(super) fn fence(&mut self, fence: &Fence) {
        let (me, order) = (fence.thread, fence.order);
        let thread = self.thread(me);
        let time = thread.clock.tick(me);
        if acquires(order) {
            thread.clock.join(&thread.seen);
        }
        if releases(order) {
            thread.released.clone_from(&thread.clock);
        }
        let one = OneFence {
            after: self.fences.events(me, time),
            behind: time + 1,
            made: fence.made.clone(),
        };
        self.fences.note(me, one);
    }

    /// The fences observed so far.
    pub(super) fn fences(&self) -> &Fences {
        &self.fences
    }

    /// [`Knowledge::of`] a thread, together with the fences.
    pub(super) fn of_with_fences(&mut self, thread: ThreadId) -> (&Clock, &Fences) {
        self.thread(thread);
        (&self.threads[thread.index()].clock, &self.fences)
    }

    /// The clock of `thread`: what it knows of itself and of the others.
    pub(super) fn of(&mut self, thread: ThreadId) -> &Clock {
        &self.thread(thread).clock
    }

    /// [`Knowledge::of`] a thread that has an entry already.
    pub(super) fn known_to(&self, thread: ThreadId) -> &Clock {
        &self.threads[thread.index()].clock
    }

    /// All clocks of threads and objects, for comparison.
    #[cfg(test)]
    pub(super) fn summary(&self) -> String {
        let mut objects: Vec<String> = (self.objects.met())
            .map(|o| {
                format!(
                    "{:?}",
                    (&o.told, &o.told_some, &o.messages, &o.taken, &o.touched)
                )
            })
            .collect();
        objects.sort();
        format!("{:?} {objects:?}", self.threads)
    }

    pub(super) fn reset(&mut self) {
        for thread in &mut self.threads {
            thread.clock.clear();
            thread.released.clear();
            thread.seen.clear();
        }
        self.objects.reset();
        self.fences.clear();
        self.told_by_blocks.clear();
        self.open.clear();
    }

    #[inline]
    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        if self.threads.len() <= thread.index() {
            self.make_room(thread);
        }
        &mut self.threads[thread.index()]
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, thread: ThreadId) {
        self.threads
            .resize_with(thread.index() + 1, Thread::default);
    }

    /// Observes an event. If its thread is not known to have learnt of its object, the call asks
    /// `has_learnt` whether that is known now, with the clock of the thread and the fences so far.
    ///
    /// # Errors
    ///
    /// The error of `has_learnt`.
    #[inline]
    pub(super) fn observe(
        &mut self,
        event: &Event,
        has_learnt: impl FnOnce(&Clock, &Fences) -> Result<bool, Box<DataRace>>,
    ) -> Result<(), Box<DataRace>> {
        // Time passes: a thread that learns of this event knows the earlier actions of this thread,
        // and not the later ones.
        let time = self.thread(event.thread).clock.tick(event.thread);
        self.observe_at(event, time, has_learnt)
    }

    /// [`Knowledge::observe`] at this time of the event's thread.
    #[inline]
    fn observe_at(
        &mut self,
        event: &Event,
        time: u32,
        has_learnt: impl FnOnce(&Clock, &Fences) -> Result<bool, Box<DataRace>>,
    ) -> Result<(), Box<DataRace>> {
        let me = event.thread;
        if event.operation.object == ObjectId::NONE {
            self.observe_other(event);
            return Ok(());
        }
        let thread = &mut self.threads[me.index()];
        let object = self.objects.get_mut(event.operation.object);
        if object.met & bit(me) == 0 && has_learnt(&thread.clock, &self.fences)? {
            object.met |= bit(me);
        }
        object.note_use(access(event), time);
        if self.is_weak && event.operation.kind.is_atomic() {
            thread.use_store(object, event);
            return Ok(());
        }
        match event.operation.kind {
            OpKind::Load { order } => thread.load(object, order),
            OpKind::Store { order, .. } => thread.store(me, object, order),
            OpKind::Rmw {
                order, blind: true, ..
            } => thread.update(object, order),
            OpKind::Rmw { order, .. } => thread.read_modify_write(me, object, order),
            OpKind::CompareExchange {
                success, failure, ..
            } => {
                if event.outcome.succeeded() {
                    thread.read_modify_write(me, object, success)
                } else {
                    thread.load(object, failure)
                }
            }
            _ => self.observe_other(event),
        }
        Ok(())
    }

    /// Observes a part of a block. Blocks that may not be swapped are ordered as by a lock.
    ///
    /// # Errors
    ///
    /// The error of `has_learnt`, which [`Knowledge::observe`] calls for an operation.
    pub(super) fn part(
        &mut self,
        part: &Part,
        has_learnt: impl FnOnce(&Clock, &Fences) -> Result<bool, Box<DataRace>>,
    ) -> Result<(), Box<DataRace>> {
        let me = part.thread;
        let mut clock = std::mem::take(&mut self.thread(me).clock);
        let time = match part.takes_time() {
            true => clock.tick(me),
            false => 0,
        };
        if part.takes_time() {
            let one = OneFence {
                after: self.fences.events(me, time),
                behind: time + 1,
                made: part.made.clone(),
            };
            self.fences.note(me, one);
        }
        let mut event = None;
        match &part.what {
            What::Begins(touched) => {
                for (other, told) in &self.told_by_blocks {
                    if touched.iter().any(|own| is_shared(*own, *other)) {
                        clock.join(told);
                    }
                }
                self.open.clone_from(touched);
            }
            What::Operation(operation) => event = Some(operation),
            What::Ends => {
                for own in std::mem::take(&mut self.open) {
                    let mut all = self.told_by_blocks.iter_mut();
                    match all.find(|(known, _)| *known == own) {
                        Some((_, told)) => told.join(&clock),
                        None => self.told_by_blocks.push((own, clock.clone())),
                    }
                }
            }
        }
        self.thread(me).clock = clock;
        match event {
            Some(event) => self.observe_at(event, time, has_learnt),
            None => Ok(()),
        }
    }

    /// [`Knowledge::observe`] for operations that are not on atomics.
    #[inline(never)]
    fn observe_other(&mut self, event: &Event) {
        let me = event.thread;
        let object = event.operation.object;
        match Grant::of(&event.operation.kind, event.outcome, event.label.class()) {
            Grant::Nothing => {}
            Grant::Learn => self.learn(me, object),
            Grant::LearnSome => self.learn_some(me, object),
            Grant::LearnAll => self.learn_all(me, object),
            Grant::Tell => self.tell(me, object),
            Grant::TellSome => self.tell_some(me, object),
            Grant::TellAndLearn => {
                self.tell(me, object);
                self.learn(me, object);
            }
            Grant::Arrive { group } => {
                self.tell_some(me, object);
                if let Some(group) = group {
                    self.learn_some(me, object);
                    let object = self.object(object);
                    // The next group starts with no clock of this one.
                    let told = std::mem::take(&mut object.told_some);
                    object.messages.push_back((group, told));
                }
            }
            Grant::Leave { group } => {
                let groups = &self.object(object).messages;
                let at = groups.binary_search_by_key(&group, |&(group, _)| group);
                if let Some((_, clock)) = at.ok().and_then(|at| groups.get(at)) {
                    let clock = clock.clone();
                    self.thread(me).clock.join(&clock);
                }
            }
            Grant::Send { number } => {
                let clock = self.thread(me).clock.clone();
                self.object(object).messages.push_back((number, clock));
            }
            Grant::Receive { number } => {
                if let Some((_, clock)) = self.object(object).messages.pop_front() {
                    self.thread(me).clock.join(&clock);
                }
                let clock = self.thread(me).clock.clone();
                self.object(object).taken.push_back((number, clock));
            }
            Grant::Taken { number } => {
                let taken = &mut self.object(object).taken;
                let at = taken.iter().position(|&(i, _)| i == number);
                if let Some((_, clock)) = at.and_then(|at| taken.remove(at)) {
                    self.thread(me).clock.join(&clock);
                }
            }
            Grant::DropReceiver { discards } => {
                self.tell_some(me, object);
                if discards {
                    for (_, clock) in std::mem::take(&mut self.object(object).messages) {
                        self.thread(me).clock.join(&clock);
                    }
                }
            }
            Grant::Touch(touch) => self.touch(me, object, touch),
            Grant::Spawn { child } => {
                let clock = std::mem::take(&mut self.thread(me).clock);
                self.thread(child).clock.join(&clock);
                self.thread(me).clock = clock;
            }
            // The joining thread knows all that the child has done.
            Grant::Join { child } => {
                let mut clock = std::mem::take(&mut self.thread(child).clock);
                clock.tick(child);
                self.thread(me).clock.join(&clock);
                self.thread(child).clock = clock;
            }
        }
    }

    /// The thread touches an object with unknown contents.
    fn touch(&mut self, me: ThreadId, object: ObjectId, touch: Touch) {
        let mut clock = std::mem::take(&mut self.thread(me).clock);
        let touched = &mut self.object(object).touched;
        for (other, told) in touched.iter() {
            if clash(touch, *other) {
                clock.join(told);
            }
        }
        match touched.binary_search_by_key(&touch, |&(known, _)| known) {
            Ok(at) => touched[at].1.join(&clock),
            Err(at) => touched.insert(at, (touch, clock.clone())),
        }
        self.thread(me).clock = clock;
    }

    /// A value is given up, and with it the reference that stood for the value among the weak
    /// references. The thread that gives up the last weak reference comes after that.
    pub(super) fn value_is_gone(&mut self, gone: ValueGone) {
        let mut clock = self.thread(gone.thread).clock.clone();
        // The giving up comes behind the actions of the thread since its last event.
        clock.tick(gone.thread);
        self.object(gone.count).told_some.join(&clock);
    }

    /// The clock that `thread` has when it comes after all threads that have given up a reference
    /// that `counts` include.
    pub(super) fn after_all(&mut self, thread: ThreadId, counts: &[ObjectId]) -> Clock {
        let mut clock = self.thread(thread).clock.clone();
        for object in counts.iter().filter_map(|&count| self.objects.get(count)) {
            clock.join(&object.told);
            clock.join(&object.told_some);
        }
        clock
    }

    /// The race of a plain access to an object's memory, by a thread with this clock, with an
    /// operation on the object.
    pub(super) fn check(
        &self,
        object: ObjectId,
        access: &Access,
        clock: &Clock,
        is_in_order: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<DataRace>> {
        let races = |e: &&Epoch| e.races(access, clock) && !is_in_order(&e.access);
        let uses = self.objects.get(object).map(|object| &object.uses);
        // Of several operations of one thread, the last one: an operation that orders it orders the
        // others, too.
        let earlier = uses.and_then(|uses| {
            let mine = uses.iter().find(races)?.access.thread;
            let mine = uses.iter().filter(|e| e.access.thread == mine);
            mine.filter(races).max_by_key(|e| e.time)
        });
        match earlier {
            None => Ok(()),
            Some(earlier) => {
                let lasts = Lasts::Until(earlier.until);
                let race = DataRace::between(earlier.access, *access, lasts, earlier.time);
                Err(Box::new(race))
            }
        }
    }

    fn object(&mut self, object: ObjectId) -> &mut Object {
        self.objects.get_mut(object)
    }

    fn learn(&mut self, me: ThreadId, object: ObjectId) {
        if let Some(object) = self.objects.get(object) {
            self.threads[me.index()].clock.join(&object.told);
        }
    }

    fn learn_some(&mut self, me: ThreadId, object: ObjectId) {
        if let Some(object) = self.objects.get(object) {
            self.threads[me.index()].clock.join(&object.told_some);
        }
    }

    fn learn_all(&mut self, me: ThreadId, object: ObjectId) {
        self.learn(me, object);
        self.learn_some(me, object);
    }

    fn tell(&mut self, me: ThreadId, object: ObjectId) {
        let clock = &self.threads[me.index()].clock;
        self.objects.get_mut(object).told.join(clock);
    }

    fn tell_some(&mut self, me: ThreadId, object: ObjectId) {
        let clock = &self.threads[me.index()].clock;
        self.objects.get_mut(object).told_some.join(clock);
    }
}

impl Thread {
    #[inline]
    fn load(&mut self, object: &Object, order: Ordering) {
        // A thread that knows the other one up to this time has learnt that from a clock of the
        // other at that time or later, which contains the same.
        if let Some((other, time)) = object.by
            && self.clock.get(other) >= time
        {
            return;
        }
        if acquires(order) {
            self.clock.join(&object.told)
        } else {
            self.seen.join(&object.told)
        }
    }

    /// An operation on an atomic of C11, which reads a store, or goes behind it.
    #[cold]
    fn use_store(&mut self, object: &mut Object, event: &Event) {
        if object.stores.is_empty() {
            object.stores.push(Clock::default());
        }
        let newer = Place::of(event.alternative).newer as usize;
        let at = object.stores.len().saturating_sub(1 + newer);
        if let Some(order) = reads(event) {
            let told = &object.stores[at];
            if acquires(order) {
                self.clock.join(told);
            } else {
                self.seen.join(told);
            }
        }
        if let Some(order) = writes(event) {
            let mut tells = self.tells(order).clone();
            if reads(event).is_some() {
                // The write continues the release sequence.
                tells.join(&object.stores[at]);
            }
            object.stores.insert(at + 1, tells);
        }
    }

    /// A store ends the release sequence that it overwrites.
    #[inline]
    fn store(&self, me: ThreadId, object: &mut Object, order: Ordering) {
        object.told.clone_from(self.tells(order));
        object.by = releases(order).then(|| (me, self.clock.get(me)));
    }

    #[inline]
    fn read_modify_write(&mut self, me: ThreadId, object: &mut Object, order: Ordering) {
        self.load(object, order);
        if acquires(order) && releases(order) {
            // The thread knows all that the object has told, so its store tells all of that again.
            return self.store(me, object, order);
        }
        // The write continues the release sequence.
        object.told.join(self.tells(order));
        object.by = None;
    }

    /// A read-modify-write of which the thread learns nothing, not even by a fence behind it.
    fn update(&mut self, object: &mut Object, order: Ordering) {
        object.told.join(self.tells(order));
        object.by = None;
    }

    /// The clock that a store of this ordering publishes.
    #[inline]
    fn tells(&self, order: Ordering) -> &Clock {
        if releases(order) {
            &self.clock
        } else {
            &self.released
        }
    }
}

/// The ordering with which an event writes to an atomic, if it does.
pub(super) fn writes(event: &Event) -> Option<Ordering> {
    match event.operation.kind {
        OpKind::Store { order, .. } | OpKind::Rmw { order, .. } => Some(order),
        OpKind::CompareExchange { success, .. } if event.outcome.succeeded() => Some(success),
        _ => None,
    }
}

/// The ordering with which an event reads an atomic, if it does.
pub(super) fn reads(event: &Event) -> Option<Ordering> {
    let order = match event.operation.kind {
        OpKind::Rmw { blind: true, .. } => return None,
        OpKind::Load { order } | OpKind::Rmw { order, .. } => order,
        OpKind::CompareExchange { success, .. } if event.outcome.succeeded() => success,
        OpKind::CompareExchange { failure, .. } => failure,
        _ => return None,
    };
    debug_assert_ne!(event.outcome, Outcome::Done);
    Some(order)
}
