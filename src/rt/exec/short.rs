//! How are most operations performed?
//!
//! On a short way: an atomic or a reference count that was met before, and a thread that goes on anyhow.
//! Each frequent kind of operation has a function of its own, in which little is left of what there is to
//! ask. It is handed what it has to know in registers, and it calls nearly nothing, so that all it works with stays
//! in registers, too. In particular it asks for no memory; so the recording of allocations, which are the
//! program's, stays on. Where the way is too short, nothing was done, and
//! [`context::perform`](super::context::perform) comes next.

use std::sync::atomic::Ordering;

use crate::rt::Target;
use crate::rt::trace::Site;
use crate::rt::trace::operation::{AtomicType, ObjectKind, OpKind, Outcome, Rmw};

use super::context::{Inner, Runtime, with_any};
use super::memory::published;

/// A reference count that holds `memory`.
#[inline(always)]
fn count(address: usize, observed: bool, memory: u64) -> Target {
    Target {
        address,
        kind: ObjectKind::Count { observed },
        memory,
    }
}

/// Performs a load of an atomic that holds `memory`. False if nothing was done.
pub(crate) fn load(
    address: usize,
    ty: AtomicType,
    memory: u64,
    order: Ordering,
    site: Site,
) -> bool {
    let (target, kind) = (Target::atomic(address, ty, memory), OpKind::Load { order });
    with_any(|runtime| runtime.shortly(target, &kind, site).is_some()) == Some(true)
}

/// Performs a store to an atomic that holds `memory`. False if nothing was done.
pub(crate) fn store(
    address: usize,
    ty: AtomicType,
    memory: u64,
    order: Ordering,
    value: u64,
    site: Site,
) -> bool {
    let (target, kind) = (
        Target::atomic(address, ty, memory),
        OpKind::Store { order, value },
    );
    with_any(|runtime| runtime.shortly(target, &kind, site).is_some()) == Some(true)
}

/// Performs a read-modify-write on an atomic that holds `memory`. False if nothing was done.
pub(crate) fn modify(
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
    };
    let target = Target::atomic(address, ty, memory);
    with_any(|runtime| runtime.shortly(target, &kind, site).is_some()) == Some(true)
}

/// Performs an operation of another kind on the object behind a shim. `None` if nothing was done.
#[inline(always)]
pub(super) fn another(
    runtime: &Runtime,
    target: Target,
    kind: OpKind,
    site: Site,
) -> Option<Outcome> {
    let Target {
        address, memory, ..
    } = target;
    match (target.kind, kind) {
        (ObjectKind::Atomic(ty), OpKind::CompareExchange { .. }) => {
            compare(runtime, address, ty, memory, &kind, site)
        }
        (ObjectKind::Count { observed }, OpKind::Retain) => {
            retain(runtime, address, observed, memory, site)
        }
        (ObjectKind::Count { observed }, OpKind::Release { told }) => {
            release(runtime, address, observed, memory, told, site)
        }
        _ => None,
    }
}

#[inline(never)]
fn compare(
    runtime: &Runtime,
    address: usize,
    ty: AtomicType,
    memory: u64,
    kind: &OpKind,
    site: Site,
) -> Option<Outcome> {
    match *kind {
        OpKind::CompareExchange { .. } => {
            runtime.shortly(Target::atomic(address, ty, memory), kind, site)
        }
        _ => None,
    }
}

#[inline(never)]
fn retain(
    runtime: &Runtime,
    address: usize,
    observed: bool,
    memory: u64,
    site: Site,
) -> Option<Outcome> {
    let target = count(address, observed, memory);
    runtime.shortly(target, &OpKind::Retain, site)
}

#[inline(never)]
fn release(
    runtime: &Runtime,
    address: usize,
    observed: bool,
    memory: u64,
    told: bool,
    site: Site,
) -> Option<Outcome> {
    let target = count(address, observed, memory);
    runtime.shortly(target, &OpKind::Release { told }, site)
}

impl Runtime {
    /// Performs an operation on an atomic or a reference count if that needs no decision and no switch, and no
    /// memory to be asked for. `None` if nothing was done.
    #[inline(always)]
    fn shortly(&self, target: Target, kind: &OpKind, site: Site) -> Option<Outcome> {
        if self.stopping.get()
            || !self.unwinding.is_calm()
            || self.heap.has_news()
            || !self.roomy.get().is_here()
        {
            return None;
        }
        let mut inner = self.inner.borrow_mut();
        let Inner { driver, table, .. } = &mut *inner;
        let object = table.at_hand(target.address)?;
        let me = self.current.get();
        let known = (target.kind, target.memory);
        let (outcome, events) = driver.shortly(me, (object, kind, site), known)?;
        let is_watched = inner.races.is_active();
        drop(inner);
        if is_watched && !self.tell() {
            return self.end_here(site);
        }
        if let Some(pointer) = published(target, kind, outcome) {
            self.note(pointer);
        }
        self.heap.set_thread(me.0, events);
        self.pulse.beat(me, site);
        Some(outcome)
    }

    /// Tells the step to who watches plain memory. False if the execution ends with it.
    #[inline(never)]
    fn tell(&self) -> bool {
        self.heap.record(false);
        let goes_on = self.inner.borrow_mut().watched();
        self.heap.record(true);
        goes_on
    }

    /// [`Runtime::note_pointer`] for this address.
    #[cold]
    #[inline(never)]
    fn note(&self, pointer: u64) {
        self.heap.record(false);
        self.heap.find(pointer as usize);
        self.heap.record(true);
    }

    /// The step was the last one of the execution.
    #[cold]
    #[inline(never)]
    fn end_here(&self, site: Site) -> Option<Outcome> {
        self.heap.record(false);
        self.wait_for_turn(site)
    }
}
