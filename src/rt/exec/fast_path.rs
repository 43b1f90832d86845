//! How are most operations performed?
//!
//! On a fast path. It serves an atomic, a reference count, a mutex or a park token that was met
//! before, in this execution or an earlier one, if the same thread continues. Each frequent kind of
//! operation has a function of its own, in which few checks are left. The function gets its
//! arguments in registers, and calls no other function until the step is made, so that all of its
//! values stay in registers, too. In particular it allocates nothing; so the recording of
//! allocations, which are the program's, stays on. If the fast path does not apply, nothing was
//! done, and [`announce::perform`](crate::rt::exec::announce::perform) comes next.
//!
//! The caller finds the runtime ([`context::with_any`](crate::rt::exec::context::with_any)),
//! because in a library the compiler treats an access to a thread-local as a call, and a function
//! has to save its arguments around a call.

use std::sync::atomic::Ordering;

use crate::rt::engine::driver::Short;
use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, ObjectKind, OpKind, Outcome, Rmw};
use crate::rt::object::machine::{AtHint, Noticed};
use crate::rt::rare::{cold_path, rarely};
use crate::rt::shim::Target;

use crate::rt::coroutine::Stretch;
use crate::rt::exec::context::{Inner, Runtime};
use crate::rt::exec::memory::published;

/// Why the fast path does not apply.
enum FastPathMiss {
    /// The object is not in front of the table: mostly this execution has not met it.
    Unmet,
    /// There is more to check.
    Asks,
}

impl Runtime {
    /// Performs a load of an atomic that holds `memory`. False if nothing was done.
    #[inline(never)]
    pub(crate) fn load(
        &self,
        address: usize,
        ty: AtomicType,
        memory: u64,
        order: Ordering,
        site: Site,
    ) -> bool {
        let target = Target::atomic(address, ty, memory);
        let kind = OpKind::Load { order };
        match self.try_fast(target, &kind, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Atomic(ty), memory);
                self.with_known_object(address, found, move || {
                    self.load(address, ty, memory, order, site)
                })
            }
            made => made.is_ok(),
        }
    }

    /// Performs a store to an atomic that holds `memory`. False if nothing was done.
    #[inline(never)]
    pub(crate) fn store(
        &self,
        address: usize,
        ty: AtomicType,
        memory: u64,
        order: Ordering,
        value: u64,
        site: Site,
    ) -> bool {
        let target = Target::atomic(address, ty, memory);
        let kind = OpKind::Store { order, value };
        match self.try_fast(target, &kind, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Atomic(ty), memory);
                let again = move || self.store(address, ty, memory, order, value, site);
                self.with_known_object(address, found, again)
            }
            made => made.is_ok(),
        }
    }

    /// Performs a read-modify-write on an atomic that holds `memory`. False if nothing was done.
    #[inline(never)]
    pub(crate) fn modify(
        &self,
        address: usize,
        ty: AtomicType,
        memory: u64,
        order: Ordering,
        (rmw, operand): (Rmw, u64),
        site: Site,
    ) -> bool {
        let kind = OpKind::Rmw {
            order,
            rmw,
            operand,
            blind: false,
        };
        let target = Target::atomic(address, ty, memory);
        match self.try_fast(target, &kind, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Atomic(ty), memory);
                let again = move || self.modify(address, ty, memory, order, (rmw, operand), site);
                self.with_known_object(address, found, again)
            }
            made => made.is_ok(),
        }
    }

    /// Performs a compare-exchange, which `kind` is, on an atomic that holds `memory`. `None` if
    /// nothing was done.
    #[inline(never)]
    pub(crate) fn compare(
        &self,
        address: usize,
        ty: AtomicType,
        memory: u64,
        kind: &OpKind,
        site: Site,
    ) -> Option<Outcome> {
        // With the kind in sight, the compiler drops most code for the other kinds.
        let OpKind::CompareExchange { .. } = *kind else {
            return None;
        };
        let target = Target::atomic(address, ty, memory);
        match self.try_fast(target, kind, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Atomic(ty), memory);
                self.with_known_object(address, found, move || {
                    self.compare(address, ty, memory, kind, site)
                })
            }
            made => made.ok(),
        }
    }

    /// Adds a reference to those that `memory` counts. `None` if nothing was done.
    #[inline(never)]
    pub(crate) fn retain(
        &self,
        address: usize,
        observed: bool,
        memory: u64,
        site: Site,
    ) -> Option<Outcome> {
        let target = Target::count(address, observed, memory);
        match self.try_fast(target, &OpKind::Retain, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Count { observed }, memory);
                self.with_known_object(address, found, move || {
                    self.retain(address, observed, memory, site)
                })
            }
            made => made.ok(),
        }
    }

    /// Gives up one of the references that `memory` counts. False if nothing was done.
    #[inline(never)]
    pub(crate) fn release(&self, address: usize, observed: bool, memory: u64, site: Site) -> bool {
        let target = Target::count(address, observed, memory);
        let kind = OpKind::Release { told: false };
        self.try_fast(target, &kind, site).is_ok()
    }

    /// Locks a mutex; its memory says whether it is held. False if nothing was done.
    #[inline(never)]
    pub(crate) fn lock(&self, address: usize, held: bool, site: Site) -> bool {
        let target = Target::mutex(address, held);
        match self.try_fast(target, &OpKind::Lock, site) {
            Err(FastPathMiss::Unmet) => {
                let found = (ObjectKind::Mutex, held as u64);
                self.with_known_object(address, found, move || self.lock(address, held, site))
            }
            made => made.is_ok(),
        }
    }

    /// Unlocks a mutex; its memory says whether it is held. False if nothing was done.
    #[inline(never)]
    pub(crate) fn unlock(&self, address: usize, held: bool, changed: bool, site: Site) -> bool {
        let target = Target::mutex(address, held);
        let kind = OpKind::Unlock { changed };
        self.try_fast(target, &kind, site).is_ok()
    }

    /// Makes the token of `thread` available. False if nothing was done.
    #[inline(never)]
    pub(crate) fn unpark(&self, thread: ThreadId, site: Site) -> bool {
        let token = |inner: &Inner| inner.driver.machine.known_token(thread);
        let done = self.shortly_on(token, Target::token(), &OpKind::Unpark, site);
        done.is_ok()
    }

    /// Processes a spin hint, and returns how the thread continues. `None` if nothing was done at
    /// all.
    #[inline(never)]
    pub(crate) fn hint(&self, site: Site) -> Option<AtHint> {
        if self.heap.has_news() || !self.roomy.get().is_here() {
            return None;
        }
        let driver = &mut self.inner.borrow_mut().driver;
        // The slow path checks whether the hint exceeds the limit of events.
        if driver.hints_count() {
            return None;
        }
        let machine = &mut driver.machine;
        // The slow path also checks whether an await has read in vain at this hint.
        if !machine.limits.learnt.awaits.is_empty() {
            return None;
        }
        self.heap.record(false);
        let at = machine.come_to_hint(self.current.get(), site);
        self.heap.record(true);
        Some(at)
    }

    /// Opens the fast path to the thread that runs, on the part of its stack where there is so much
    /// [`ROOM`](crate::rt::coroutine::ROOM). Keeps the fast path closed if each step has to check
    /// further state: callers that are to be noted, an execution that is over, threads that unwind,
    /// or orderings that are replaced.
    #[inline]
    pub(super) fn open_short_way(&self, roomy: Stretch) {
        let asks = self.callers.are_asked_for()
            || self.stopping.get()
            || !self.unwinding.is_calm()
            || self.tries.get()
            || self.block.get().is_some()
            || self.loud.get().is_some()
            || !self.weakened.is_empty();
        self.roomy.set(if rarely!(asks) {
            Stretch::default()
        } else {
            roomy
        });
    }

    /// Performs an operation on an atomic, a reference count or a mutex if that needs no decision,
    /// no switch, and no allocation. Otherwise nothing was done.
    #[inline(always)]
    fn try_fast(&self, target: Target, kind: &OpKind, site: Site) -> Result<Outcome, FastPathMiss> {
        let at_hand = |inner: &Inner| inner.table.at_hand(target.address);
        self.shortly_on(at_hand, target, kind, site)
    }

    /// [`Runtime::try_fast`] for the object that is `found`.
    #[inline(always)]
    fn shortly_on(
        &self,
        found: impl FnOnce(&Inner) -> Option<ObjectId>,
        target: Target,
        kind: &OpKind,
        site: Site,
    ) -> Result<Outcome, FastPathMiss> {
        if rarely!(self.heap.has_news()) || rarely!(!self.roomy.get().is_here()) {
            return Err(FastPathMiss::Asks);
        }
        debug_assert!(!self.stopping.get() && self.unwinding.is_calm());
        let mut inner = self.inner.borrow_mut();
        let Some(object) = found(&inner) else {
            cold_path();
            return Err(FastPathMiss::Unmet);
        };
        let me = self.current.get();
        let known = (target.kind, target.memory);
        let Short {
            outcome,
            events,
            noted,
        } = match inner.driver.try_fast(me, (object, kind, site), known) {
            Some(made) => made,
            None => {
                cold_path();
                return Err(FastPathMiss::Asks);
            }
        };
        let is_watched = inner.races.is_active();
        drop(inner);
        self.heap.set_events(me.0, events);
        self.pulse.beat(site);
        let published = published(&target, kind).unwrap_or(0);
        // The call comes last, so that no register has to be saved around it.
        let Noticed { all, found, left } = noted;
        let is_over = !is_watched & all & (published == 0);
        if rarely!(!is_over) && !self.follow_up(object, all, (found, left), published, site) {
            return Err(FastPathMiss::Asks);
        }
        Ok(outcome)
    }

    /// Takes the fast path again for an object that is the model's own and not in front of the
    /// table, if the thread continues. The slow path meets any other object, because the value of
    /// that one may differ from the value that the shim has found ([`Runtime::meet_own`]). The
    /// object is passed as single values: a struct would be passed in memory, and the caller would
    /// write it there before its other work.
    #[cold]
    #[inline(never)]
    fn with_known_object<T: Default>(
        &self,
        address: usize,
        (kind, memory): (ObjectKind, u64),
        again: impl FnOnce() -> T,
    ) -> T {
        if self.meets(address, kind, memory) {
            again()
        } else {
            T::default()
        }
    }

    /// Meets such an object if the thread continues. False if nothing was done.
    #[inline(never)]
    fn meets(&self, address: usize, kind: ObjectKind, memory: u64) -> bool {
        let mut inner = self.inner.borrow_mut();
        if !inner.driver.goes_on(self.current.get()) {
            return false;
        }
        let target = Target {
            address,
            kind,
            memory,
        };
        self.heap.record(false);
        let known = self.meet_again(&mut inner, &target);
        let met = known.or_else(|| self.meet_own(&mut inner, &target));
        self.heap.record(true);
        met.is_some()
    }

    /// The rare work behind a step on the fast path: the step has `published` a pointer that is not
    /// null, not `all` of the step is noted, or plain memory is watched. False if the execution
    /// ends with the step.
    #[cold]
    #[inline(never)]
    fn follow_up(
        &self,
        object: ObjectId,
        all: bool,
        (found, left): (u64, u64),
        published: u64,
        site: Site,
    ) -> bool {
        self.heap.record(false);
        let mut inner = self.inner.borrow_mut();
        let noted = Noticed { all, found, left };
        (inner.driver.machine).note_more(self.current.get(), object, noted);
        if !inner.watched() {
            drop(inner);
            return self.wait_for_turn(site).is_some();
        }
        if published != 0 {
            self.note_published(&mut inner, published, true);
        }
        drop(inner);
        self.heap.record(true);
        true
    }
}
