//! How do operations reach the runtime?
//!
//! A shim announces each operation and gets its outcome back once the operation has happened. Most
//! operations do not reach this file, because the fast path ([`fast_path`](super::fast_path))
//! performs them.

use std::sync::atomic::Ordering;

use crate::rt::engine::driver::Driver;
use crate::rt::event::Site;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::event::verdict::{End, Pruned};
use crate::rt::rare::{cold_path, mostly, rarely};
use crate::rt::shim::{Answer, Target};
use crate::rt::thread_main::ThreadMain;

use super::context;
use super::context::{Inner, with_step};
use super::outsiders;
use crate::rt::exec::restore::with_older;

/// Announces an operation on the object behind a shim; returns when it has happened.
pub(crate) fn perform(target: &Target, kind: &OpKind, site: Site) -> Answer {
    let done = with_step(|runtime| {
        let weakened;
        let kind = if rarely!(!runtime.weakened.is_empty()) {
            weakened = runtime.weakened.operation(*kind, site);
            &weakened
        } else {
            kind
        };
        runtime.hear_of_frees()?;
        let mut inner = runtime.inner.borrow_mut();
        let object = match runtime.resolve(&mut inner, target) {
            Ok(object) => object,
            Err(gone) => {
                drop(inner);
                return runtime.used_after_its_end(target, *kind, gone, site);
            }
        };
        let operation = Operation {
            object,
            kind: *kind,
        };
        let outcome = runtime.patiently(inner, &operation, site)?;
        runtime.note_pointer(target, kind);
        Some(outcome)
    });
    match done {
        Ok(outcome) => Answer::Done(outcome),
        Err(answer) => {
            match answer {
                Answer::Outside => outsiders::note(target.address, site),
                Answer::Inert => {
                    with_older(|runtime, inner| runtime.meet_at_end(inner, target));
                }
                Answer::Done(_) => {}
            }
            answer
        }
    }
}

/// Announces an operation that is made by `make` from the driver and the current thread.
#[inline(always)]
pub(crate) fn announce(
    site: Site,
    make: impl FnOnce(&mut Driver, ThreadId) -> Option<Operation>,
) -> Answer {
    let done = with_step(|runtime| {
        runtime.hear_of_frees()?;
        let me = runtime.current.get();
        let mut inner = runtime.inner.borrow_mut();
        match make(&mut inner.driver, me) {
            Some(operation) => runtime.patiently(inner, &operation, site),
            None => Some(Outcome::Done),
        }
    });
    match done {
        Ok(outcome) => Answer::Done(outcome),
        Err(answer) => answer,
    }
}

/// Notes a fence of the current thread ([`fence`](crate::rt::event::fence)).
pub(crate) fn fence(order: Ordering, site: Site) {
    // Without a model, and once the execution is over, no detector needs the fence.
    let _ = with_step(|runtime| {
        runtime.does_more_than_look();
        runtime.is_no_block("a fence", site);
        let order = runtime.weakened.fence(order, site)?;
        // Frees before the fence are handled first, so that they do not count as ordered behind the
        // events that the fence synchronises with.
        runtime.hear_of_frees()?;
        let me = runtime.current.get();
        let made = runtime.heap.made_since_event();
        let Inner { driver, races, .. } = &mut *runtime.inner.borrow_mut();
        if let Some(fence) = driver.note_fence(me, order, made, site) {
            races.fence(fence);
        }
        Some(())
    });
}

/// Announces a spin hint at which the fast path has not decided whether the thread continues.
pub(crate) fn hint(site: Site) -> Answer {
    if context::with_any(|runtime| runtime.comes_round(site)) == Some(true) {
        return Answer::Done(Outcome::Done);
    }
    let done = with_step(|runtime| {
        runtime.is_no_block("a spin hint", site);
        runtime.hear_of_frees()?;
        let me = runtime.current.get();
        let mut inner = runtime.inner.borrow_mut();
        if let Some(end) = inner.driver.count_hint() {
            inner.end = Some(end);
            drop(inner);
            return runtime.wait_for_turn(site);
        }
        if rarely!(inner.driver.proves_awaits()) && runtime.waits_behind_look(&mut inner, site) {
            return Some(Outcome::Done);
        }
        let looked = inner.driver.executed().len();
        let stops = inner.driver.hint(me, site);
        let Inner { driver, races, .. } = &mut *inner;
        if driver.executed().len() < looked {
            cold_path();
            races.go_back(driver.past(), driver.gone());
            let events = driver.machine.events_of(me);
            runtime.heap.withdraw(me.0, events);
        }
        match stops {
            Some(operation) => runtime.patiently(inner, &operation, site),
            None => Some(Outcome::Done),
        }
    });
    done.map_or_else(|answer| answer, Answer::Done)
}

/// Spawns a thread with this body, and at least so many bytes of stack. `None` where no thread can
/// be spawned, or if the execution ends with this step.
pub(crate) fn spawn(
    name: Option<&str>,
    body: ThreadMain,
    stack_bytes: Option<usize>,
    site: Site,
) -> Option<ThreadId> {
    let spawned = with_step(|runtime| {
        runtime.is_no_block("a spawn", site);
        runtime.hear_of_frees()?;
        let me = runtime.current.get();
        let mut inner = runtime.inner.borrow_mut();
        let child = inner.driver.machine.next_child(me);
        inner.put_body(child, body);
        if let Some(name) = name {
            inner.put_name(child, name);
        }
        if let Some(bytes) = stack_bytes {
            inner.put_stack(child, bytes);
        }
        runtime.heap.note_others(true);
        let object = inner.driver.machine.new_thread_object(child);
        let kind = OpKind::Spawn { child };
        runtime.thread_op(inner, &Operation { object, kind }, site)?;
        Some(child)
    });
    spawned.ok()
}

/// Announces a join of `thread`. False where no model runs, or the execution has ended.
pub(crate) fn join(thread: ThreadId, site: Site) -> bool {
    let joined = with_step(|runtime| {
        runtime.is_no_block("a join", site);
        runtime.hear_of_frees()?;
        let mut inner = runtime.inner.borrow_mut();
        let object = inner.driver.machine.thread_object(thread);
        let kind = OpKind::Join { child: thread };
        runtime.thread_op(inner, &Operation { object, kind }, site)?;
        let machine = &runtime.inner.borrow().driver.machine;
        runtime
            .heap
            .note_others(!machine.is_alone(runtime.current.get()));
        Some(())
    });
    joined.is_ok()
}

/// Announces the check whether `thread` has finished.
pub(crate) fn is_finished(thread: ThreadId, site: Site) -> Answer {
    let looked = with_step(|runtime| {
        runtime.is_no_block("`is_finished`", site);
        runtime.hear_of_frees()?;
        let me = runtime.current.get();
        let mut inner = runtime.inner.borrow_mut();
        let machine = &mut inner.driver.machine;
        let object = machine.thread_object(thread);
        let kind = OpKind::IsFinished;
        let operation = Operation { object, kind };
        if machine.limits.learnt.ends_are_events || runtime.unexplored.get() {
            return runtime.patiently(inner, &operation, site);
        }
        machine.announce(me, &operation, site);
        inner.end = Some(End::Pruned(Pruned::EndsAreSeen));
        drop(inner);
        runtime.wait_for_turn(site)
    });
    looked.map_or_else(|answer| answer, Answer::Done)
}

/// Ends the current thread, which has returned from its code. Announces this end if it is an event.
#[inline(always)]
pub(crate) fn exit(site: Site) {
    // In an execution that is torn down the end of a thread is not announced.
    let _ = with_step(|runtime| {
        let me = runtime.current.get();
        let mut inner = runtime.inner.borrow_mut();
        // The program's data on this stack is gone, although frames of the runtime are still on it.
        if rarely!(!inner.forget_stack(me)) {
            drop(inner);
            return runtime.given_up();
        }
        if runtime.heap.has_news() {
            let is_over = !runtime.has_raw_references.get() && inner.is_over_with(me);
            drop(inner);
            if is_over {
                runtime.hear_of_a_fault()?
            } else {
                runtime.hear_of_frees()?
            }
            inner = runtime.inner.borrow_mut();
        }
        let is_void = runtime.is_void(&mut inner) | inner.driver.breaks_off(me, None);
        let machine = &mut inner.driver.machine;
        if mostly!(!machine.limits.learnt.ends_are_events) {
            machine.end(me);
            if is_void {
                inner.end = Some(End::Pruned(Pruned::EndsAreSeen));
            }
            // The next thread is chosen when this thread's stack has been left.
            return Some(());
        }
        let object = machine.thread_object(me);
        let kind = OpKind::Exit;
        runtime.thread_op(inner, &Operation { object, kind }, site)
    });
}
