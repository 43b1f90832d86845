//! Which thread continues after an announcement?
//!
//! The decision is made where the operation is announced, on the coroutine's own stack. Mostly the
//! same thread continues, and no stack is switched; otherwise the coroutine suspends, and the loop
//! in `run.rs` resumes the coroutine of the thread that has made the step. No borrow of the runtime
//! is alive meanwhile.

use std::cell::RefMut;

use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::driver::Next;
use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::{Operation, Outcome};
use crate::rt::event::verdict::{End, Gone, Pruned};
use crate::rt::rare::{cold_path, rarely};
use crate::rt::shim::Target;

use super::context::{Inner, Repeated, Runtime, Stop};
use super::memory::may_be_pointer;
use crate::rt::coroutine::ROOM;
use crate::rt::coroutine::{Stretch, leave_room, suspend};
use crate::rt::statics::image::Image;

/// The most hints that a thread comes to before it looks again, in a round that leaves no event.
const HINTS_BEFORE_LOOK: u32 = 1_000_000;

/// The stacks of the threads, and the former stacks of threads that have ended.
type Stacks = [Option<(usize, usize)>];
type Ended = [(ThreadId, (usize, usize))];

impl Runtime {
    pub(super) fn is_unwinding(&self) -> bool {
        self.notice_a_silent_panic();
        self.unwinding.is(self.current.get())
    }

    /// Notes that the thread that runs begins to unwind. Each of its steps then checks whether the
    /// panic has been caught.
    pub(super) fn begin_to_unwind(&self) {
        self.unwinding.begin(self.current.get());
        self.roomy.take();
        self.in_vain.set(0);
    }

    /// Notes a panic without a hook call: `resume_unwind` calls no hook. But if no thread has begun
    /// to unwind and the OS thread counts a panic, the panic belongs to the current thread, which
    /// notes it here before another thread continues. Within an earlier panic of the OS thread the
    /// two cases cannot be told apart.
    #[inline]
    fn notice_a_silent_panic(&self) {
        let is_panicking = std::thread::panicking() && !self.within_panic;
        if rarely!(is_panicking) && self.unwinding.is_calm() && !self.stopping.get() {
            self.begin_to_unwind();
        }
    }

    /// Notes that the test has caught a panic. std calls no hook for that; but once the OS thread
    /// counts no panic, no thread unwinds.
    #[inline]
    pub(super) fn notice_a_catch(&self) {
        if !self.unwinding.is_calm() && !std::thread::panicking() {
            self.unwinding.reset();
            self.caught();
            self.failing.set(None);
            let inner = self.inner.borrow();
            if let Some(&Some(stack)) = inner.stacks.get(self.current.get().index()) {
                self.open_short_way(Stretch::above(stack, ROOM));
            }
        }
    }

    /// Whether an action may begin where the stack may be too small for it, or further state has to
    /// be checked. False if the execution is torn down.
    #[cold]
    pub(super) fn may_begin(&self) -> bool {
        if self.stopping.get() {
            self.count_in_vain();
            return false;
        }
        if rarely!(self.tries.get()) && !self.is_to_look() {
            self.leave_loop();
        }
        self.note_in_glue();
        self.notice_a_catch();
        if self.failing.get().is_some() && !self.bear_with_failing() {
            return false;
        }
        // A stack that ended within the runtime would leave the runtime borrowed for ever.
        if !self.roomy.get().is_here() {
            leave_room::<ROOM>();
        }
        true
    }

    /// The thread that runs has left the loop of which it only tried a round. Its stack is lost,
    /// with those of all threads of this execution: they may have left their states for ever.
    #[cold]
    pub(super) fn leave_loop(&self) -> ! {
        self.tries.set(false);
        self.repeats.set(false);
        self.hints.set(0);
        {
            let mut inner = self.inner.borrow_mut();
            inner.driver.leaves_loop(self.current.get());
            inner.next = None;
            inner.end = Some(End::Pruned(Pruned::LeftLoop));
        }
        loop {
            suspend();
        }
    }

    /// The thread that runs comes to this hint, in a round that leaves no event. False if it makes
    /// no such round.
    #[cold]
    pub(super) fn comes_round(&self, hint: Site) -> bool {
        if !self.tries.get() {
            return false;
        }
        let me = self.current.get();
        let mut inner = self.inner.borrow_mut();
        let is_back = if !self.repeats.get() {
            inner.driver.machine.comes_round(me, hint)
        } else if let left @ 2.. = self.hints.get() {
            // Several hints in a row are one hint.
            self.hints.set(left - 1);
            return true;
        } else if self.hints.get() == 0 && self.repeated.get() == Repeated::Differs {
            self.hints.set(HINTS_BEFORE_LOOK);
            return true;
        } else {
            self.hints.get() == 0 && self.repeated.get() == Repeated::Same
        };
        if !is_back {
            drop(inner);
            self.leave_loop();
        }
        if self.repeats.take() {
            inner.driver.wait_behind_look();
        }
        self.tries.set(false);
        if let Some(&Some(stack)) = inner.stacks.get(me.index()) {
            self.open_short_way(Stretch::above(stack, ROOM));
        }
        true
    }

    /// The thread that runs comes to this hint. If it has looked in vain in a known loop, it waits
    /// there, once another round, which leaves no event, has left its state as it was. Returns
    /// whether it has looked in vain.
    #[cold]
    pub(super) fn waits_behind_look(&self, inner: &mut Inner, hint: Site) -> bool {
        let driver = &mut inner.driver;
        if driver.vain_look(self.current.get(), Some(hint)).is_none() {
            return false;
        }
        let is_captured = self.repeated.take() == Repeated::Captured;
        if driver.is_proven() {
            driver.wait_behind_look();
            return true;
        }
        self.tries.set(true);
        self.repeats.set(true);
        self.hints
            .set(if is_captured { HINTS_BEFORE_LOOK } else { 0 });
        self.roomy.take();
        true
    }

    /// Whether the thread that runs makes a round with a value that its atomic may not hold.
    pub(crate) fn tries_a_value(&self) -> bool {
        self.tries.get() && !self.repeats.get()
    }

    /// Whether the thread that runs repeats a round, and its look is still to come.
    pub(super) fn is_to_look(&self) -> bool {
        self.hints.get() > 0
    }

    /// The thread that runs does something other than to look. A round that only repeats the last
    /// one must not do so.
    pub(super) fn does_more_than_look(&self) {
        if rarely!(self.repeats.get()) {
            self.leave_loop();
        }
    }

    /// The thread that runs makes its look again, in a round that leaves no event.
    #[cold]
    fn looks_again(&self, inner: RefMut<'_, Inner>, operation: &Operation, site: Site) -> Outcome {
        match inner.driver.looks_again(operation) {
            Some(outcome) => {
                self.hints.set(0);
                self.pulse.beat(site);
                outcome
            }
            None => {
                drop(inner);
                self.leave_loop();
            }
        }
    }

    /// The object behind a shim, unless its memory is gone.
    #[inline(always)]
    pub(super) fn resolve(&self, inner: &mut Inner, target: &Target) -> Result<ObjectId, Gone> {
        if let Some(object) = inner.table.at_hand(target.address) {
            let state = inner.driver.machine.state(object);
            if state.may_be(target.kind, target.memory) {
                return Ok(object);
            }
        }
        self.meet(inner, target)
    }

    /// [`Runtime::resolve`] for an object that is not in front of the table.
    #[inline(never)]
    fn meet(&self, inner: &mut Inner, target: &Target) -> Result<ObjectId, Gone> {
        match self.meet_again(inner, target) {
            Some(object) => Ok(object),
            None => self.meet_anywhere(inner, target),
        }
    }

    /// [`Runtime::meet`] for an object that may be anywhere.
    #[inline(never)]
    fn meet_anywhere(&self, inner: &mut Inner, target: &Target) -> Result<ObjectId, Gone> {
        self.meet_in(inner, target, |stacks, ended| {
            self.locate(stacks, ended, target.address)
        })
    }

    /// [`Runtime::meet`] for an object that is not certainly at the place where an earlier
    /// execution had it, if the object is the model's own: in a live block of this execution or on
    /// the stack of a thread. `None` if it is not, and nothing was done.
    ///
    /// Idempotent until the thread's next step: resolving an object of the model has no side
    /// effects. The object is met with the value that the shim has found, and its memory holds that
    /// value. So meeting it writes nothing to memory and waits for no other exploration, and no
    /// other thread runs meanwhile.
    ///
    /// Objects that are older than the execution are excluded. The first meeting of such an object
    /// may have to wait for another exploration that uses it, and that exploration then restores a
    /// value that differs from the one that the shim has found. A second call with the shim's value
    /// would return another generation. If such an object was met before, that wait is over.
    #[inline(never)]
    pub(super) fn meet_own(&self, inner: &mut Inner, target: &Target) -> Option<ObjectId> {
        let address = target.address;
        // This check comes first because it is cheap, and a search that finds nothing is not.
        if Image.number(address).is_some() || inner.table.was_elsewhere(address) {
            return None;
        }
        let locate = |stacks: &Stacks, _: &Ended| self.locate_own(stacks, address).ok_or(());
        self.meet_in(inner, target, locate).ok()
    }

    /// [`Runtime::meet`] for an object at a place that is not certain; `locate` gives the place
    /// from the stacks of the threads and of those that have ended. If it gives none, nothing was
    /// done.
    #[inline(always)]
    fn meet_in<E>(
        &self,
        inner: &mut Inner,
        target: &Target,
        locate: impl FnOnce(&Stacks, &Ended) -> Result<Region, E>,
    ) -> Result<ObjectId, E> {
        let machine = &mut inner.driver.machine;
        let began = machine.first_spawn();
        let mut to_be_told = false;
        let before = if inner.races.has_mixed() {
            cold_path();
            inner.table.known(target.address)
        } else {
            None
        };
        let object = inner.table.object(machine, target, || {
            let region = locate(&inner.stacks, &inner.ended)?;
            to_be_told = !is_known_to_all(&region, began);
            Ok(region)
        })?;
        if let Some(before) = before {
            cold_path();
            inner.races.is_followed(before, object);
        }
        self.has_met(inner, target, to_be_told);
        Ok(object)
    }

    /// [`Runtime::meet`] for an object that is certainly at the place where an earlier execution
    /// had it.
    #[inline(always)]
    pub(super) fn meet_again(&self, inner: &mut Inner, target: &Target) -> Option<ObjectId> {
        let machine = &mut inner.driver.machine;
        let began = machine.first_spawn();
        let mut to_be_told = false;
        let object = inner.table.meet_again(machine, target, |region| {
            to_be_told = !is_known_to_all(region, began);
            self.is_still(&inner.stacks, region, target.address)
        })?;
        self.has_met(inner, target, to_be_told);
        Some(object)
    }

    /// Completes the meeting of an object; `to_be_told` if other threads have to learn of it.
    #[inline(always)]
    fn has_met(&self, inner: &mut Inner, target: &Target, to_be_told: bool) {
        if rarely!(may_be_pointer(target.kind, target.memory)) {
            // A pointer that the object was made with is published like a pointer that is stored to
            // it.
            self.note_published(inner, target.memory, false);
        }
        if rarely!(to_be_told) {
            // The detector has to watch whether the threads that use the object have learnt of it.
            inner.watch_races();
        }
    }

    /// Unwinds the present stack, because the execution is over. `None` if the thread is unwinding
    /// already.
    #[cold]
    fn stop<T>(&self) -> Option<T> {
        if self.is_unwinding() {
            return None;
        }
        self.heap.record(true);
        std::panic::resume_unwind(Box::new(Stop))
    }

    /// Ends the execution. `None` if the current thread is unwinding already.
    #[cold]
    pub(super) fn fail<T>(&self, end: End) -> Option<T> {
        self.inner.borrow_mut().end = Some(end);
        self.given_up()
    }

    /// [`Runtime::fail`] where the end of the execution has been noted.
    #[cold]
    pub(super) fn given_up<T>(&self) -> Option<T> {
        suspend();
        self.stop()
    }

    /// [`Runtime::step`] for a spawn, a join or the end of a thread: the outcome is always the
    /// same.
    #[inline(always)]
    pub(super) fn thread_op<'a>(
        &'a self,
        mut inner: RefMut<'a, Inner>,
        operation: &Operation,
        site: Site,
    ) -> Option<()> {
        let me = self.current.get();
        if rarely!(self.is_to_look()) {
            drop(inner);
            self.leave_loop();
        }
        if rarely!(self.block.get().is_some()) {
            return self.patiently(inner, operation, site).map(|_| ());
        }
        let is_watched =
            inner.races.is_active() || self.callers.are_asked_for() || self.loud.get().is_some();
        let events = if is_watched {
            cold_path();
            None
        } else {
            inner.driver.step_thread_op(me, operation, site)
        };
        let Some(events) = events else {
            return self.step(inner, operation, site).map(|_| ());
        };
        self.heap.set_thread(me.0, events);
        self.pulse.beat(site);
        Some(())
    }

    /// [`Runtime::step`], after a wait for a change if the thread only repeats its round.
    #[inline(always)]
    pub(super) fn patiently<'a>(
        &'a self,
        mut inner: RefMut<'a, Inner>,
        operation: &Operation,
        site: Site,
    ) -> Option<Outcome> {
        if rarely!(self.is_to_look()) {
            return Some(self.looks_again(inner, operation, site));
        }
        let me = self.current.get();
        if let Some(block) = self.block.get() {
            return self.inside(inner, operation, (block, site));
        }
        let wait = inner.driver.machine.wait_before(me, operation, site);
        if let Some(wait) = wait {
            self.wait_first(inner, &wait, site)?;
            inner = self.inner.borrow_mut();
        }
        self.step(inner, operation, site)
    }

    /// [`Runtime::step`] for a wait, which is rare.
    #[cold]
    #[inline(never)]
    fn wait_first<'a>(
        &'a self,
        inner: RefMut<'a, Inner>,
        wait: &Operation,
        site: Site,
    ) -> Option<Outcome> {
        if inner.driver.machine.hintless().contains(&site) {
            self.callers.note_round(site);
        }
        self.step(inner, wait, site)
    }

    /// Announces `operation` for the current thread, and returns when it has happened. `None` if
    /// the execution has ended meanwhile and the thread is unwinding already.
    ///
    /// A processor predicts return addresses from the calls that it has seen, which after a switch
    /// are those of another stack. So a thread suspends at the smallest possible depth of calls,
    /// and this function is inlined.
    #[inline(always)]
    pub(super) fn step<'a>(
        &'a self,
        inner: RefMut<'a, Inner>,
        operation: &Operation,
        site: Site,
    ) -> Option<Outcome> {
        match self.go_on(inner, operation, site) {
            Some(outcome) => Some(outcome),
            None => self.wait_for_turn(site),
        }
    }

    /// Announces `operation` for the current thread, and makes the step if this thread continues.
    /// `None` if another thread is to continue, or the execution has ended.
    #[inline(never)]
    fn go_on<'a>(
        &'a self,
        mut inner: RefMut<'a, Inner>,
        operation: &Operation,
        site: Site,
    ) -> Option<Outcome> {
        let me = self.current.get();
        if self.callers.are_asked_for() {
            cold_path();
            let index = inner.driver.machine.events_of(me);
            self.callers.note((me, index), operation, site);
        }
        let is_void = self.is_void(&mut inner);
        if is_void || inner.driver.breaks_off(me, Some((operation, site))) {
            cold_path();
            inner.driver.machine.announce(me, operation, site);
            inner.end = Some(End::Pruned(Pruned::EndsAreSeen));
            return None;
        }
        let outcome = match inner.driver.at_once(me, operation, site) {
            // If `watched` returns false, it has noted the end.
            Ok(Some(outcome)) => inner.watched().then_some(outcome),
            Ok(None) => {
                inner.driver.machine.announce(me, operation, site);
                match inner.next() {
                    Next::Ran(thread, outcome) if thread == me => Some(outcome),
                    Next::Tries(thread, outcome) if thread == me => {
                        self.tries.set(true);
                        self.roomy.take();
                        Some(outcome)
                    }
                    next => {
                        self.take(&mut inner, next);
                        None
                    }
                }
            }
            Err(end) => {
                cold_path();
                inner.end = Some(*end);
                None
            }
        }?;
        self.own(&inner, me);
        self.pulse.beat(site);
        Some(outcome)
    }

    /// Lets another thread continue, and returns when the announced operation of this thread has
    /// happened.
    #[inline(always)]
    pub(super) fn wait_for_turn(&self, site: Site) -> Option<Outcome> {
        self.notice_a_silent_panic();
        suspend();
        if rarely!(self.stopping.get()) {
            return self.stop();
        }
        let me = self.current.get();
        self.pulse.turn_to(me, Some(site));
        let outcome = self.outcome.take();
        assert!(
            outcome.is_some(),
            "dpor bug: {me:?} was resumed without an outcome"
        );
        outcome
    }

    /// Notes the next action for the loop that resumes coroutines.
    #[inline(always)]
    pub(crate) fn take(&self, inner: &mut Inner, next: Next) {
        match next {
            Next::Ran(thread, outcome) => {
                self.outcome.set(Some(outcome));
                inner.next = Some(thread);
            }
            Next::Tries(thread, outcome) => {
                self.tries.set(true);
                self.outcome.set(Some(outcome));
                inner.next = Some(thread);
            }
            Next::Begins(thread) => inner.next = Some(thread),
            Next::Ended => {}
        }
    }

    /// Notes that the current thread has performed another event: new blocks belong to the code
    /// behind it.
    #[inline]
    pub(crate) fn own(&self, inner: &Inner, thread: ThreadId) {
        let events = inner.driver.machine.events_of(thread);
        self.heap.set_thread(thread.0, events);
    }
}

/// Whether the memory of this region was made before there were threads besides the main one, which
/// has spawned the first of them after so many events.
fn is_known_to_all(region: &Region, began: Option<u32>) -> bool {
    match *region {
        Region::Heap { thread, events, .. } => {
            thread == ThreadId::MAIN && began.is_none_or(|began| events <= began)
        }
        // The time at which a variable was made is not known, but its thread had begun by then.
        Region::Stack { thread, .. } => thread == ThreadId::MAIN,
        _ => true,
    }
}

impl Inner {
    /// Makes the next step, or notes how the execution has ended.
    #[inline(never)]
    pub(crate) fn next(&mut self) -> Next {
        match self.driver.next() {
            Next::Ran(thread, outcome) if self.watched() => Next::Ran(thread, outcome),
            Next::Ran(..) => Next::Ended,
            next @ (Next::Tries(..) | Next::Begins(_)) => next,
            Next::Ended => {
                self.end = Some(self.driver.take_end());
                Next::Ended
            }
        }
    }

    /// Reports the last step to the detector that watches plain memory, if it does. False if the
    /// execution ends with the step, which is noted.
    #[inline(always)]
    pub(super) fn watched(&mut self) -> bool {
        if rarely!(self.races.is_active()) {
            return self.observed();
        }
        true
    }

    /// [`Inner::watched`] if plain memory is watched.
    #[cold]
    #[inline(never)]
    fn observed(&mut self) -> bool {
        if let Some(event) = self.driver.executed().last()
            && let Err(race) = self.races.observe(event, &self.driver.machine.names)
        {
            self.end = Some(End::DataRace(race));
            return false;
        }
        true
    }
}
