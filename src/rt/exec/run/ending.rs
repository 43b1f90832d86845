//! What remains to be done when an execution has ended?
//!
//! Threads that have not ended run out or unwind, the failure is noted before they do, and the
//! memory that the execution has changed is put back.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::{End, Leaked, Panic, Pruned};
use crate::rt::rare::{cold_path, rarely};

use super::super::context::Runtime;
use super::stacks::Stacks;
use super::{go_further, resume};
use crate::rt::coroutine::Resumed;
use crate::rt::exec::crash_report::AtEnd;
use crate::rt::exec::restore::put_back_statics;
use crate::rt::heap;
use crate::rt::heap::MustFree;
use crate::rt::process::raised::{Raised, Second, words};
use crate::rt::process::watchdog::Phase;
use crate::rt::statics::rooted;
use crate::rt::statics::rooted::Rooted;

/// The end of an execution, with the data that the runtime does not keep.
pub(super) struct Ended {
    pub(super) end: End,
    /// The number of events at the failure.
    pub(super) events: usize,
    /// The panic that has failed the execution, and the panics before it.
    pub(super) panics: (Option<Box<Raised>>, Vec<Panic>),
    pub(super) payload: Option<Box<dyn Any + Send>>,
}

/// Completes an execution that has reached this end, and in which a thread that panicked has left
/// this payload.
#[inline]
pub(super) fn after(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    mut end: End,
    mut payload: Option<Box<dyn Any + Send>>,
    (must_free, statics): (MustFree, Rooted),
) -> Ended {
    if let Some(outside) = runtime.used_from_outside(&end, stacks.pool.got_after()) {
        cold_path();
        end = outside;
    }
    let mut ended_with = None;
    if let End::Pruned(Pruned::Asleep | Pruned::Rounds | Pruned::InVain | Pruned::EndsAreSeen) = end
    {
        cold_path();
        let mut inner = runtime.inner.borrow_mut();
        inner.driver.finish(&end);
        if let End::Pruned(Pruned::Rounds | Pruned::InVain) = end {
            // This execution may be reported.
            ended_with = Some(inner.driver.machine.clone());
        }
        drop(inner);
        run_out(runtime, stacks, &mut None);
    }
    if let End::Pruned(Pruned::LeftLoop) = end {
        cold_path();
        return abandon(runtime, stacks);
    }
    // A panic is the end of an execution where it begins; later waits of its thread do not matter.
    let unwinds = rarely!(end.has_panicked() || std::thread::panicking());
    let failing = runtime.failing.get().filter(|_| unwinds);
    let (mut failed, mut events) = failing.unzip();
    if let Some(thread) = failed {
        cold_path();
        let stuck = end.stuck().to_vec();
        end = End::Panicked { thread, stuck };
    }
    let mut raised = runtime.raised.take();
    let earlier = runtime.earlier.take();
    let is_caught = !end.has_panicked() && runtime.failing.get().is_none();
    settle(&mut raised, &mut events, failed, payload.as_deref());
    note(runtime, &end, events);
    if rarely!(runtime.failed.get().is_some()) && !runtime.pulse.knows() {
        let message = raised.as_ref().map(|raised| &raised.panic);
        let events = events.unwrap_or(usize::MAX);
        let earlier = before(earlier.clone(), raised.as_deref(), is_caught);
        runtime.make_known(&end, events, message, earlier);
    }
    // Mostly the other threads have ended, and no thread is left to run out instead of being
    // unwound.
    if rarely!(!matches!(end, End::Complete | End::Pruned(_))) && stacks.in_use > 0 {
        *runtime.at_end.borrow_mut() = Some(Box::new(AtEnd {
            end: end.clone(),
            machine: runtime.inner.borrow().driver.machine.clone(),
            message: raised.as_ref().map(|raised| raised.panic.clone()),
            earlier: before(earlier.clone(), raised.as_deref(), is_caught),
        }));
        // The execution may have ended while the thread that has failed was unwinding.
        let mut late = None;
        run_out(runtime, stacks, &mut late);
        payload = payload.or(late.filter(|_| failed.is_some()));
    }
    // Where every thread has finished there is no stack to unwind.
    if rarely!(stacks.in_use > 0 || !matches!(end, End::Complete)) {
        tear_down(runtime, stacks, failed, &mut payload);
        if let Some(at_end) = runtime.at_end.take() {
            ended_with = Some(at_end.machine);
        }
    }
    let second = runtime.second.take();
    if let Some(second) = second.filter(|second| second.payload.is_some())
        && let Some(first) = &raised
        && !is_of(&payload, &first.panic)
    {
        // The first panic has not ended its thread: the test has caught it.
        cold_path();
        let Second {
            raised: mut told,
            events: after,
            payload: with,
        } = *second;
        told.before = raised.take();
        let thread = told.panic.thread;
        (end, failed, events) = (End::panicked(thread), Some(thread), Some(after));
        (raised, payload) = (Some(told), with);
    }
    runtime.forget_panics();
    runtime.locals.borrow_mut().reset();
    // Threads that were spawned only now are unwound, too, so the machine is not put back before.
    if let Some(machine) = ended_with {
        cold_path();
        let driver = &mut runtime.inner.borrow_mut().driver;
        let later = std::mem::replace(&mut driver.machine, machine);
        driver.machine.keep_names_of(later);
    }
    // Blocks that a static leads to would have been kept. Only a complete execution checks this.
    // The machine of another execution may be the one at its failure, which has not met the objects
    // that threads met while they ran out.
    let complete = matches!(end, End::Complete);
    let kept = complete && (runtime.heap.owes_nothing(must_free) || runtime.leads_somewhere());
    put_back_statics(runtime);
    let end = match end {
        End::Complete => runtime
            .fault()
            .or_else(|| leaked(runtime, (must_free, statics), kept)),
        _ => None,
    }
    .unwrap_or(end);
    runtime.tracked.borrow_mut().clear();
    runtime.clock.borrow_mut().clear();
    // The payload may have been found while the thread that has failed was unwound.
    settle(&mut raised, &mut events, failed, payload.as_deref());
    let earlier = before(earlier, raised.as_deref(), is_caught);
    runtime.pulse.go_on();
    let events = events.unwrap_or(usize::MAX);
    Ended {
        end,
        events,
        panics: (raised, earlier),
        payload,
    }
}

/// Abandons an execution in which a thread has left its loop with a value that it only tried. The
/// stacks are lost: the thread may be in a state in which the others must not find it.
#[cold]
fn abandon(runtime: &Runtime, stacks: &mut Stacks<'_>) -> Ended {
    let end = End::Pruned(Pruned::LeftLoop);
    runtime.inner.borrow_mut().driver.finish(&end);
    stacks.abandon();
    {
        let mut inner = runtime.inner.borrow_mut();
        inner.stacks.clear();
        while let Some(body) = inner.take_some_body() {
            std::mem::forget(body);
        }
        (inner.next, inner.end) = (None, None);
    }
    runtime.forget_panics();
    runtime.failing.set(None);
    drop(runtime.raised.take());
    drop(runtime.second.take());
    runtime.locals.borrow_mut().reset();
    put_back_statics(runtime);
    runtime.tracked.borrow_mut().clear();
    runtime.pulse.go_on();
    Ended {
        end,
        events: usize::MAX,
        panics: (None, Vec::new()),
        payload: None,
    }
}

/// Makes the panic with this payload the panic that is reported, after so many events, if the
/// payload belongs to the thread that `failed`.
#[inline]
fn settle(
    raised: &mut Option<Box<Raised>>,
    events: &mut Option<usize>,
    failed: Option<ThreadId>,
    payload: Option<&(dyn Any + Send)>,
) {
    let (Some(thread), Some(payload)) = (failed, payload) else {
        return;
    };
    cold_path();
    let Some(last) = raised.take() else {
        return;
    };
    let after = last.panic.after;
    let it = last.of(thread, payload);
    if it.panic.after < after {
        *events = Some(it.panic.after);
    }
    *raised = Some(it);
}

/// Whether this payload, with which a thread has ended, is that of this panic.
fn is_of(payload: &Option<Box<dyn Any + Send>>, panic: &Panic) -> bool {
    payload
        .as_deref()
        .is_some_and(|payload| words(payload) == panic.text)
}

/// The panics before the reported one, after those that were caught earlier; with the reported one,
/// if it `is_caught`, too.
#[inline]
fn before(mut earlier: Vec<Panic>, raised: Option<&Raised>, is_caught: bool) -> Vec<Panic> {
    if let Some(raised) = raised {
        cold_path();
        let mut panics = raised.panics();
        if !is_caught {
            panics.pop();
        }
        earlier.extend(panics);
    }
    earlier
}

/// Notes a failure, after so many events if that is known: a destructor may end the process while
/// the threads unwind.
#[inline]
fn note(runtime: &Runtime, end: &End, events: Option<usize>) {
    let Some(word) = end.in_a_word() else {
        return;
    };
    cold_path();
    let executed = runtime.inner.borrow().driver.executed().len();
    let events = events.unwrap_or(executed).min(executed);
    runtime.failed.set(Some((word, end.thread(), events)));
    *runtime.failed_at.borrow_mut() = end.places();
}

/// The values and blocks that a complete execution has leaked; blocks do not count if they may be
/// `kept`.
#[inline]
fn leaked(runtime: &Runtime, (must_free, statics): (MustFree, Rooted), kept: bool) -> Option<End> {
    // Mostly there are none.
    let tracked = runtime.tracked.borrow();
    if tracked.iter().all(|value| value.gone) && (kept || runtime.heap.is_empty()) {
        return None;
    }
    drop(tracked);
    left_behind(runtime, (must_free, statics), kept)
}

/// [`leaked`] where there may be some.
#[cold]
#[inline(never)]
fn left_behind(
    runtime: &Runtime,
    (must_free, statics): (MustFree, Rooted),
    kept: bool,
) -> Option<End> {
    let mut tracked = runtime.tracked.take();
    tracked.retain(|value| !value.gone);
    let mut blocks = if kept {
        Vec::new()
    } else {
        runtime.heap.left(must_free)
    };
    let rooted = rooted::take_out(&mut blocks, &runtime.heap);
    // These blocks count only where there is no other leak.
    let doubted = tracked.is_empty() && blocks.is_empty() && statics == Rooted::Doubted;
    if doubted {
        blocks = rooted;
    }
    let leaked = Leaked {
        doubted,
        values: tracked.into_iter().map(|value| value.made).collect(),
        blocks: blocks.iter().map(heap::Block::name).collect(),
        owed: blocks.iter().any(|block| block.owed),
    };
    let nothing = leaked.values.is_empty() && leaked.blocks.is_empty();
    (!nothing).then_some(End::Leaked(leaked))
}

/// Lets the threads of an execution that is abandoned, or has failed, continue to their ends. To
/// unwind the threads where they are would be cheaper, but then destructors run in states that no
/// execution reaches, and a destructor that panics because of that ends the process.
fn run_out(runtime: &Runtime, stacks: &mut Stacks<'_>, panicked: &mut Option<Box<dyn Any + Send>>) {
    let left = runtime.inner.borrow_mut().driver.detach(FURTHER);
    runtime.unexplored.set(true);
    runtime.pulse.go_into(Phase::RunsOut);
    // Each panic ends a thread, or leaves it in the middle of its unwinding.
    while let End::Panicked { .. } = go_further(runtime, stacks, panicked) {}
    runtime.unexplored.set(false);
    let mut inner = runtime.inner.borrow_mut();
    inner.driver.reattach(left);
    (inner.next, inner.end) = (None, None);
}

/// The most events of an abandoned execution from that point on. The threads that are left after
/// that unwind.
const FURTHER: usize = 10_000;

/// The most waits of destructors in an execution that is torn down while no thread ends.
const WAITS: usize = 100;

/// The most bytes below a frame of the root that the destructor of a closure takes. The stack of an
/// OS thread has at least as many left there.
const FRAMES: usize = 512 * 1024;

/// Unwinds every stack that still has frames. If the thread that `failed` had to wait for other
/// threads in the middle of its unwinding, its payload is found only now.
fn tear_down(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    failed: Option<ThreadId>,
    panicked: &mut Option<Box<dyn Any + Send>>,
) {
    runtime.stopping.set(true);
    runtime.pulse.go_into(Phase::Unwinds);
    // Its address is in the frame of this function.
    let recent = std::hint::black_box(0_u8);
    // Mostly each thread has begun.
    loop {
        let Some(body) = runtime.inner.borrow_mut().take_some_body() else {
            break;
        };
        runtime.in_vain.set(0);
        // The destructor of the body may call the runtime. The failure that ended the execution has
        // been found before.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
        // The value was dropped on this stack, in frames that are gone by now. An atomic in it
        // looked like memory that is older than the execution; to put back its value would
        // overwrite other frames.
        let here = (&raw const recent).addr();
        let frames = here.saturating_sub(FRAMES)..here;
        runtime.inner.borrow_mut().table.older.forget(frames);
    }
    // A destructor may have to wait for a lock that another thread holds, or only wait a while.
    let mut idle = 0;
    while stacks.in_use > 0 && idle < WAITS {
        idle += 1;
        for index in 0..stacks.threads() {
            let thread = ThreadId(index as u32);
            let Some(coroutine) = stacks.get(thread) else {
                continue;
            };
            runtime.own(&runtime.inner.borrow(), thread);
            runtime.in_vain.set(0);
            runtime.pulse.turn_to(thread, None);
            match resume(runtime, thread, coroutine) {
                Resumed::Suspended if runtime.left.take() => {}
                Resumed::Suspended => continue,
                // A thread that unwound to its end and one with a destructor that panicked are
                // treated alike: the failure that ended the execution has been found before.
                Resumed::Finished(ended) => {
                    if failed == Some(thread)
                        && let Err(payload) = ended
                    {
                        *panicked = Some(payload);
                    }
                }
                Resumed::Overflowed | Resumed::Faulted(_) | Resumed::Aborted => {}
            }
            stacks.end(thread);
            runtime.inner.borrow_mut().stacks[index] = None;
            idle = 0;
        }
    }
    // A thread that still waits will wait for ever; its stack is lost, which is better than a hang.
    if stacks.in_use > 0 {
        stacks.abandon();
        runtime.inner.borrow_mut().stacks.clear();
    }
    runtime.stopping.set(false);
    runtime.block.set(None);
}
