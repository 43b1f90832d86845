//! How does a block run as one step?
//!
//! Its beginning is the step: it is announced like any operation, and happens when the block may
//! run. From there to the end of the block the thread keeps the turn, and what it does changes the
//! objects without being an event. So the fast path is closed, and every operation comes here.

use std::cell::RefMut;

use crate::rt::coroutine::{ROOM, Stretch};
use crate::rt::event::fence::What;
use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{Choice, ObjectKind, OpKind, Operation, Outcome, Reason};
use crate::rt::event::verdict::End;
use crate::rt::event::{Event, Site};
use crate::rt::exec::context::{Inner, Runtime, with_any, with_step};
use crate::rt::object::machine::Outside;
use crate::rt::relation::independence::Footprint;
use crate::rt::shim::{Answer, Target};

/// Begins a block at `site` that touches these objects, and writes those with `true`; `None` for a
/// block that may touch everything. Returns when the block may run.
pub(crate) fn begin(targets: Option<&[(Target, bool)]>, site: Site) -> Answer {
    let done = with_step(|runtime| {
        runtime.is_no_block("another block", site);
        runtime.hear_of_frees()?;
        let mut inner = runtime.inner.borrow_mut();
        if inner.driver.is_weak() {
            drop(inner);
            runtime.refuse(&format!(
                "`dpor::atomically` at {site} under C11: its memory model has no step of several accesses. Use `Memory::Sc` (DPOR_MEMORY=sc), or `Memory::Auto`, which then is the same"
            ));
        }
        let mut objects = Vec::new();
        for (target, writes) in targets.unwrap_or_default() {
            match runtime.resolve(&mut inner, target) {
                Ok(object) => objects.push((object, *writes)),
                Err(gone) => {
                    drop(inner);
                    let kind = OpKind::Atomically { footprint: 0 };
                    return runtime.used_after_its_end(target, kind, gone, site);
                }
            }
        }
        // What C11 would allow is not known of a block, and the detector of data races has to see
        // all parts of it.
        inner.driver.look_out_no_more();
        inner.watch_races();
        let footprint = match targets {
            None => Footprint::Everything,
            Some(_) => Footprint::of(objects),
        };
        let touched = match &footprint {
            Footprint::Everything => vec![(None, true)],
            Footprint::Of(objects, writes) => {
                let all = objects.iter().zip(writes);
                all.map(|(&object, &writes)| (Some(object), writes))
                    .collect()
            }
        };
        let sets = &mut inner.driver.machine.sets;
        let footprint = sets.intern_footprint(footprint);
        let operation = Operation {
            object: ObjectId::NONE,
            kind: OpKind::Atomically { footprint },
        };
        let outcome = runtime.step(inner, &operation, site)?;
        runtime.block.set(Some(site));
        runtime.roomy.take();
        runtime.note_part(runtime.inner.borrow_mut(), What::Begins(touched), site)?;
        Some(outcome)
    });
    done.map_or_else(|answer| answer, Answer::Done)
}

/// Ends the block, if the thread is in one.
pub(crate) fn end(site: Site) {
    let _ = with_step(|runtime| {
        let block = runtime.block.get()?;
        if runtime.leave_block(site)?.is_some() {
            runtime.refuse(&format!(
                "the block at {block} takes or frees a lock that it does not leave as it found it: a block begins and ends without the guards of its footprint"
            ));
        }
        Some(())
    });
}

/// Ends the block, if the thread is in one, because it unwinds.
pub(crate) fn abandon(site: Site) {
    let _ = with_step(|runtime| {
        runtime.block.get()?;
        runtime.leave_block(site).map(|_| ())
    });
    // Where the execution is torn down the step is not made.
    let _ = with_any(|runtime| runtime.block.set(None));
}

impl Runtime {
    /// Ends the open block. Returns a lock that another thread could not have left so.
    fn leave_block(&self, site: Site) -> Option<Option<ObjectId>> {
        self.note_part(self.inner.borrow_mut(), What::Ends, site)?;
        let mut inner = self.inner.borrow_mut();
        let held = inner.driver.machine.end_block();
        self.block.set(None);
        if let Some(&Some(stack)) = inner.stacks.get(self.current.get().index()) {
            self.open_short_way(Stretch::above(stack, ROOM));
        }
        Some(held)
    }

    /// Fails the test if the thread is in a block: `what` is no part of one.
    #[inline]
    pub(super) fn is_no_block(&self, what: &str, site: Site) {
        if let Some(block) = self.block.get() {
            self.is_no_part(what, (block, site));
        }
    }

    #[cold]
    fn is_no_part(&self, what: &str, (block, site): (Site, Site)) {
        if std::thread::panicking() {
            return;
        }
        self.refuse(&format!(
            "{what} at {site} in the block at {block}: a block is one step, and this is no part of a step"
        ));
    }

    /// Makes an operation as a part of the open block.
    #[cold]
    #[inline(never)]
    pub(super) fn inside(
        &self,
        mut inner: RefMut<'_, Inner>,
        operation: &Operation,
        (block, site): (Site, Site),
    ) -> Option<Outcome> {
        let machine = &mut inner.driver.machine;
        let Operation { object, ref kind } = *operation;
        let of = machine.kind(object);
        let before = of.and_then(|_| machine.state(object).pack());
        match machine.perform_inside(operation) {
            Ok((outcome, label)) => {
                let me = self.current.get();
                let event = Event {
                    thread: me,
                    index: machine.events_of(me).saturating_sub(1),
                    operation: *operation,
                    outcome,
                    label,
                    alternative: 0,
                    alternatives: 1,
                    before,
                    site,
                };
                self.note_part(inner, What::Operation(event), site)?;
                Some(outcome)
            }
            Err(_) if std::thread::panicking() => {
                // A destructor of a thread that unwinds: the execution has failed anyway.
                drop(inner);
                self.leave_block(site)?;
                self.step(self.inner.borrow_mut(), operation, site)
            }
            Err(outside) => {
                drop(inner);
                let what = words(kind, of);
                self.refuse(&match outside {
                    Outside::Footprint => format!(
                        "{what} at {site} is outside of the footprint of the block at {block}: declare the object with `Footprint::reads` or `Footprint::writes`"
                    ),
                    Outside::ReadOnly => format!(
                        "{what} at {site} may change an object that the block at {block} only reads: declare the object with `Footprint::writes`"
                    ),
                    Outside::Waits => format!(
                        "{what} at {site} would have to wait in the block at {block}, where no other thread runs: let the block wait before it begins, with `Footprint::when`"
                    ),
                    Outside::Kind => format!(
                        "{what} at {site} in the block at {block}: a block is one step, and this is no part of a step{}",
                        remedy(kind)
                    ),
                })
            }
        }
    }

    /// Notes a part of the open block. `None` if the execution ends with it.
    fn note_part(&self, mut inner: RefMut<'_, Inner>, what: What, site: Site) -> Option<()> {
        let made = self.heap.made_since_event();
        let Inner { driver, races, .. } = &mut *inner;
        driver.note_part(what, made);
        let raced = match driver.trace.parts().last() {
            Some(part) => races.part(part, &driver.machine.names),
            None => Ok(()),
        };
        if let Err(race) = raced {
            inner.end = Some(End::DataRace(race));
            drop(inner);
            return self.wait_for_turn(site).map(|_| ());
        }
        Some(())
    }

    /// Fails the test with this message.
    #[cold]
    fn refuse(&self, message: &str) -> ! {
        self.heap.record(true);
        panic!("{message}")
    }
}

/// The words for an operation on an object of this kind.
fn words(kind: &OpKind, of: Option<ObjectKind>) -> String {
    let verb = match kind {
        OpKind::Load { .. } => "a load",
        OpKind::Store { .. } => "a store",
        OpKind::Rmw { .. } => "a read-modify-write",
        OpKind::CompareExchange { .. } => "a compare-exchange",
        OpKind::Lock | OpKind::ReadLock | OpKind::WriteLock => "a lock",
        OpKind::TryLock | OpKind::TryRead | OpKind::TryWrite => "an attempt to lock",
        OpKind::Unlock { .. } | OpKind::UnlockRead | OpKind::UnlockWrite { .. } => "an unlock",
        OpKind::Retain | OpKind::RetainWeak | OpKind::RetainRaw => "a clone of a reference",
        OpKind::Release { .. } | OpKind::ReleaseWeak => "a drop of a reference",
        OpKind::Touch(_) => "an access",
        OpKind::Park | OpKind::ParkTimeout => "a park",
        OpKind::Unpark => "an unpark",
        OpKind::Choose {
            what: Choice::Value,
            ..
        } => "a choice",
        OpKind::Choose { .. } => "a read of the clock",
        OpKind::GiveUp {
            why: Reason::Stopped,
        } => "`stop`",
        OpKind::GiveUp { .. } => "`assume(false)`",
        OpKind::NotifyOne | OpKind::NotifyAll => "a notification",
        OpKind::Send | OpKind::TrySend => "a send",
        OpKind::Recv { .. } | OpKind::TryRecv => "a receive",
        _ => "an operation",
    };
    match of {
        Some(of) => format!("{verb} (of {} {})", article(of.name()), of.name()),
        None => verb.to_owned(),
    }
}

fn article(name: &str) -> &'static str {
    match name.starts_with(['A', 'O', 'o']) {
        true => "an",
        false => "a",
    }
}

/// What the program can do instead.
fn remedy(kind: &OpKind) -> &'static str {
    match kind {
        OpKind::Choose { .. } => ". Choose before the block: a choice commutes with everything",
        OpKind::GiveUp { .. } => ". Do so behind the block",
        kind if kind.counts() => ". Clone and drop references outside of it",
        _ => "",
    }
}
