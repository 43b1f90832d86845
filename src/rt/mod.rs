//! Which services does the runtime offer to a shim?
//!
//! Shims (`sync`, `thread`, `hint`, ...) use this module, and [`doors`] for services that are no
//! operations, and nothing below it.
//!
//! The code of most operations is inlined into the program, unless this crate has debug assertions.
//! With debug assertions the program is most likely not optimised, and then the inlined code is not
//! either, even if this crate is.

pub(crate) mod coroutine;
pub(crate) mod doors;
pub(crate) mod engine;
pub(crate) mod event;
pub(crate) mod exec;
pub(crate) mod heap;
pub(crate) mod lifetime;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod plural;
pub(crate) mod pooled;
pub(crate) mod process;
pub(crate) mod race;
pub(crate) mod rare;
pub(crate) mod relation;
pub(crate) mod report;
mod shim;
pub(crate) mod statics;
pub(crate) mod thread_main;

use std::any::Any;
use std::sync::atomic::Ordering;

pub(crate) use crate::rt::thread_main::{Fate, ThreadMain, Work};
use exec::context::Runtime;

pub(crate) use crate::rt::doors::{
    Accessing, Datum, Tracked, access, access_shim, asks_for_data, begin_glue, bytes, contents,
    is_glue_loud, keep_pristine, may_leak, must_free, name_object, note_block, note_data,
    note_found, note_glue_seen, note_left, note_raw_reference, note_written, shown_data,
    std_counts, track, undo_at_end, value_is_gone,
};
use crate::rt::event::id::ObjectId;
pub(crate) use crate::rt::event::id::ThreadId;
pub(crate) use crate::rt::event::operation::{
    AtomicType, Key, ObjectKind, OpKind, Outcome, Rmw, TASK_AWAITED, TASK_DONE, Touch,
};
use crate::rt::event::operation::{Choice, Operation, Reason};
use crate::rt::exec::{delay, state_capture};
pub(crate) use crate::rt::statics::ONCE_RUNS;
use exec::current;
pub(crate) use exec::locals::Local;
pub(crate) use exec::updates;
use exec::{announce, aside, blocks, context, time};
pub(crate) use object::contents::{Digest, Effect, Update};
pub(crate) use object::count::{HEADER, WEAK};
use object::machine::AtHint;
use object::orders::InMemory;
pub(crate) use rare::{cold_path, mostly, rarely};
pub(crate) use shim::{Answer, Memory, Target};

/// Announces an operation and returns when it has happened. Reports show the caller's location, so
/// every shim on the way here is `#[track_caller]`.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn perform(target: Target, kind: OpKind) -> Answer {
    announce::perform(&target, &kind, context::here())
}

/// Whether the fast path ([`exec::fast_path`]) has executed the operation. Without a runtime it has
/// not. Usually it has. The compiler sees that only where the slow path begins, so each caller
/// marks that place ([`cold_path`]).
#[inline(always)]
fn try_fast(way: impl FnOnce(&Runtime) -> bool) -> bool {
    context::with_any(way) == Some(true)
}

/// [`perform`] for a load of an atomic. Loads, stores and modifications are most of the operations.
/// So their parts are passed one by one, and if the fast path suffices ([`try_fast`]), no operation
/// is built from them. Like the other operations on atomics, it returns how the shim applies the
/// operation to its memory.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn load(address: usize, ty: AtomicType, memory: u64, order: Ordering) -> Applied {
    let site = context::here();
    if try_fast(|runtime| runtime.load(address, ty, memory, order, site)) {
        return Applied::Plainly;
    }
    cold_path();
    let (_, applied) = look_slowly(address, ty, &OpKind::Load { order }, site);
    fill_below();
    applied
}

/// Announces an operation that may be a look of a loop that waits. The value of the atomic is read
/// here once more: where the caller kept it, the caller's frame would show which value there was
/// before the thread had to wait for its turn.
#[cold]
#[inline(never)]
fn look_slowly(
    address: usize,
    ty: AtomicType,
    kind: &OpKind,
    site: event::Site,
) -> (Answer, Applied) {
    let target = Target::atomic(address, ty, statics::value_at(address, ty));
    let answer = announce::perform(&target, kind, site);
    (answer, applied(answer))
}

/// How a shim applies an operation to its memory, once the operation has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Applied {
    Plainly,
    /// With [`apply_with_care`]: the thread is delayed, or memory is C11's.
    WithCare,
}

/// How the shim applies an operation that was answered so.
#[inline]
fn applied(answer: Answer) -> Applied {
    // Where the thread repeats a round, the atomic holds the value that the round finds.
    let is_weak = || {
        matches!(answer, Answer::Done(_))
            && context::with_any(|runtime| runtime.weak.get() || runtime.tries_a_value())
                == Some(true)
    };
    if is_delayed() || rarely!(is_weak()) {
        Applied::WithCare
    } else {
        Applied::Plainly
    }
}

/// Whether the thread is delayed behind the operation that it has just made.
#[inline]
fn is_delayed() -> bool {
    rarely!(delay::is_any_delayed()) && context::with_any(Runtime::is_delayed) == Some(true)
}

/// Applies the operation on an atomic that the thread has just made. If memory is C11's, the atomic
/// holds the value that the operation reads while it is applied, and the last value of the
/// modification order afterwards. If the thread is delayed, it is delayed behind that; the end of
/// the delay is a step of its own.
#[cold]
#[track_caller]
pub(crate) fn apply_with_care<R>(target: Target, make: impl FnOnce() -> R) -> R {
    let is_weak = |runtime: &Runtime| {
        let ObjectKind::Atomic(ty) = target.kind else {
            return None;
        };
        let is_weak = (runtime.weak.get() || runtime.tries_a_value()) && !runtime.stopping.get();
        let made = is_weak.then(|| runtime.in_memory()).flatten()?;
        Some((ty, made))
    };
    let made = match context::with_any(is_weak).flatten() {
        Some((ty, InMemory { before, last })) => {
            overwrite(target.address, ty, before);
            let made = make();
            overwrite(target.address, ty, last);
            made
        }
        None => make(),
    };
    if is_delayed() {
        resume(context::here());
    }
    made
}

/// Writes this value to the memory of an atomic of this type.
fn overwrite(address: usize, ty: AtomicType, value: u64) {
    use std::ptr::{with_exposed_provenance as at, with_exposed_provenance_mut as to};
    use std::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed,
    };
    // SAFETY: a shim that is borrowed while this function runs lies at the address. It is a
    // transparent wrapper of std's atomic of this type, and those of one width have one layout.
    unsafe {
        match ty {
            AtomicType::Ptr => (*at::<AtomicPtr<()>>(address)).store(to(value as usize), Relaxed),
            _ => match ty.bits() {
                8 => (*at::<AtomicU8>(address)).store(value as u8, Relaxed),
                16 => (*at::<AtomicU16>(address)).store(value as u16, Relaxed),
                32 => (*at::<AtomicU32>(address)).store(value as u32, Relaxed),
                _ => (*at::<AtomicU64>(address)).store(value, Relaxed),
            },
        }
    }
}

/// The shim has completed the operation that it has just made. The thread is delayed behind it, if
/// the execution says so.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn is_done(site: event::Site) {
    if is_delayed() {
        resume(site);
    }
}

/// Ends the delay of the thread. That is a step of its own.
#[cold]
pub(crate) fn resume(site: event::Site) {
    nowhere_at(OpKind::Resume, site);
}

/// [`perform`] for a store to an atomic.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn store(
    address: usize,
    ty: AtomicType,
    memory: u64,
    order: Ordering,
    value: u64,
) -> (Answer, Applied) {
    let site = context::here();
    if try_fast(|runtime| runtime.store(address, ty, memory, order, value, site)) {
        return (Answer::Done(Outcome::Done), Applied::Plainly);
    }
    cold_path();
    let target = Target::atomic(address, ty, memory);
    let answer = announce::perform(&target, &OpKind::Store { order, value }, site);
    (answer, applied(answer))
}

/// [`perform`] for a read-modify-write on an atomic.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn modify(
    address: usize,
    ty: AtomicType,
    memory: u64,
    order: Ordering,
    (rmw, operand): (Rmw, u64),
) -> Applied {
    let site = context::here();
    if try_fast(|runtime| runtime.modify(address, ty, memory, order, (rmw, operand), site)) {
        return Applied::Plainly;
    }
    cold_path();
    let kind = OpKind::Rmw {
        order,
        rmw,
        operand,
        blind: false,
    };
    let (_, applied) = look_slowly(address, ty, &kind, site);
    fill_below();
    applied
}

/// [`perform`] for an update of an atomic, of which the thread learns nothing.
#[track_caller]
pub(crate) fn update(target: Target, (rmw, operand): (Rmw, u64)) -> Applied {
    let kind = OpKind::Rmw {
        order: Ordering::Release,
        rmw,
        operand,
        blind: true,
    };
    applied(perform(target, kind))
}

/// [`perform`] for a compare-exchange, which `kind` is, on an atomic.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn compare(
    address: usize,
    ty: AtomicType,
    memory: u64,
    kind: OpKind,
) -> (Answer, Applied) {
    let site = context::here();
    match context::with_any(|runtime| runtime.compare(address, ty, memory, &kind, site)).flatten() {
        Some(outcome) => (Answer::Done(outcome), Applied::Plainly),
        None => {
            cold_path();
            let made = look_slowly(address, ty, &kind, site);
            fill_below();
            made
        }
    }
}

/// [`perform`] for an added reference.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn retain(address: usize, observed: bool, memory: u64) -> Answer {
    let site = context::here();
    match context::with_any(|runtime| runtime.retain(address, observed, memory, site)).flatten() {
        Some(outcome) => Answer::Done(outcome),
        None => {
            cold_path();
            let target = Target::count(address, observed, memory);
            announce::perform(&target, &OpKind::Retain, site)
        }
    }
}

/// [`perform_at`] for a dropped reference.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn release(address: usize, observed: bool, memory: u64, site: event::Site) {
    if !try_fast(|runtime| runtime.release(address, observed, memory, site)) {
        cold_path();
        let target = Target::count(address, observed, memory);
        announce::perform(&target, &OpKind::Release { told: false }, site);
    }
}

/// [`perform`] for locking a mutex. `data` tells what is behind it.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn lock(address: usize, held: bool, data: impl FnOnce() -> Option<Datum>) -> Answer {
    let site = context::here();
    if try_fast(|runtime| runtime.lock(address, held, site)) {
        Answer::Done(Outcome::Done)
    } else {
        cold_path();
        let answer = announce::perform(&Target::mutex(address, held), &OpKind::Lock, site);
        // An execution that is run to be reported takes no fast path.
        if asks_for_data() && matches!(answer, Answer::Done(_)) {
            note_data(data());
        }
        answer
    }
}

/// [`perform_at`] for unlocking a mutex. Returns whether the thread is delayed behind it, and has
/// to [`resume`]. `data` tells what is behind the mutex.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn unlock(
    (address, held): (usize, bool),
    changed: bool,
    site: event::Site,
    data: impl FnOnce() -> Option<Datum>,
) -> bool {
    if try_fast(|runtime| runtime.unlock(address, held, changed, site)) {
        return false;
    }
    cold_path();
    let kind = OpKind::Unlock { changed };
    // Behind the event another thread may change the data.
    let data = data();
    let answer = announce::perform(&Target::mutex(address, held), &kind, site);
    if let Answer::Done(_) = answer {
        note_data(data);
    }
    is_delayed()
}

/// [`perform`] for an operation with a given place in the source: a guard that is dropped shows the
/// place where it was made.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn perform_at(target: Target, kind: OpKind, site: event::Site) -> Answer {
    announce::perform(&target, &kind, site)
}

/// The result of an operation that waits. If the execution is over, the operation has not waited,
/// and a destructor that waits like this may depend on another thread.
pub(crate) fn waited(answer: Answer) -> Answer {
    if let Answer::Inert = answer {
        context::yield_to_teardown();
    }
    answer
}

pub(crate) use exec::state_capture::fill_below;

/// Announces a spin hint.
#[track_caller]
pub(crate) fn hint() -> Answer {
    hint_at(context::here())
}

/// [`hint`] for a place in the source that is given.
pub(crate) fn hint_at(site: event::Site) -> Answer {
    state_capture::at_hint();
    match context::with_any(|runtime| runtime.hint(site)).flatten() {
        Some(AtHint::GoesOn) => Answer::Done(Outcome::Done),
        at => stop_at_hint(site, at),
    }
}

/// [`hint_at`] for a thread that does not continue. `at` is `None` if that is still to be decided.
#[cold]
fn stop_at_hint(site: event::Site, at: Option<AtHint>) -> Answer {
    waited(match at {
        Some(at) => announce::announce(site, |driver, me| {
            Some(driver.machine.stop_at_hint(me, site, at))
        }),
        None => announce::hint(site),
    })
}

/// Reports a memory fence, which is no event.
#[track_caller]
pub(crate) fn fence(order: std::sync::atomic::Ordering) {
    announce::fence(order, context::here());
}

/// Announces a choice between `options` values.
#[track_caller]
pub(crate) fn choose(options: u32) -> Answer {
    nowhere(OpKind::Choose {
        options,
        what: Choice::Value,
    })
}

/// Begins a block that is one step ([`exec::blocks`]).
#[track_caller]
pub(crate) fn begin_block(targets: Option<&[(Target, bool)]>) -> Answer {
    blocks::begin(targets, context::here())
}

/// Ends the block.
#[track_caller]
pub(crate) fn end_block() {
    blocks::end(context::here());
}

/// Ends the block, if there is still one, because its thread unwinds.
#[track_caller]
pub(crate) fn abandon_block() {
    blocks::abandon(context::here());
}

/// Gives this execution up; returns only outside of an execution.
#[track_caller]
pub(crate) fn give_up() -> Answer {
    nowhere(OpKind::GiveUp {
        why: Reason::Assumed,
    })
}

/// Ends this execution, which counts; returns only outside of an execution.
#[track_caller]
pub(crate) fn stop() -> Answer {
    nowhere(OpKind::GiveUp {
        why: Reason::Stopped,
    })
}

#[track_caller]
fn nowhere(kind: OpKind) -> Answer {
    nowhere_at(kind, context::here())
}

fn nowhere_at(kind: OpKind, site: event::Site) -> Answer {
    let object = ObjectId::NONE;
    announce::announce(site, |_, _| Some(Operation { object, kind }))
}

/// Spawns a thread with at least this number of bytes of stack; `None` outside of a model, or if
/// the execution has ended.
#[track_caller]
pub(crate) fn spawn(
    name: Option<&str>,
    body: ThreadMain,
    stack_bytes: Option<usize>,
) -> Option<ThreadId> {
    let site = context::here();
    let child = announce::spawn(name, body, stack_bytes, site);
    is_done(site);
    child
}

/// Announces at this place that the thread waits for another thread's end. Returns false outside of
/// a model, or if the execution has ended.
pub(crate) fn join(thread: ThreadId, site: event::Site) -> bool {
    announce::join(thread, site)
}

/// Moves threads to a list in which each comes behind its children, and the children come in the
/// reverse order of their spawns. Returns false outside of a model, or if the execution has ended:
/// then nothing was moved.
pub(crate) fn add_by_birth(list: &mut Vec<ThreadId>, new: &mut Vec<ThreadId>) -> bool {
    context::add_by_birth(list, new)
}

#[cfg(test)]
pub(crate) use context::compared;

/// Announces the question whether another thread has finished.
#[track_caller]
pub(crate) fn is_finished(thread: ThreadId) -> Answer {
    announce::is_finished(thread, context::here())
}

/// Announces an operation that makes a thread's park token available.
#[track_caller]
pub(crate) fn unpark(thread: ThreadId) {
    let site = context::here();
    if !try_fast(|runtime| runtime.unpark(thread, site)) {
        cold_path();
        on_token(thread, OpKind::Unpark);
        is_done(site);
    }
}

/// Announces an operation on a thread's park token.
#[track_caller]
pub(crate) fn on_token(thread: ThreadId, kind: OpKind) -> Answer {
    announce::announce(context::here(), |driver, _| {
        let object = driver.machine.token_object(thread);
        Some(Operation { object, kind })
    })
}

/// The modelled thread that runs here, if any.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn current() -> Option<ThreadId> {
    context::current()
}

/// The name that a modelled thread was given when it was built.
pub(crate) fn name_of(thread: ThreadId) -> Option<String> {
    context::name_of(thread)
}

/// Whether the wait that the current thread begins ends spuriously. Both cases are explored, as
/// long as the thread has had fewer such waits than the limit. A wait that ends spuriously is not
/// also ended by another thread, since that happens if the wait does not end spuriously: it would
/// be the same trace.
pub(crate) fn wakes_up(site: event::Site) -> bool {
    choose_wakeup(Choice::MayWakeUp, site, 2)
}

/// Whether the timed wait of the current thread, which no other thread has ended, ended spuriously
/// and not because of the time; as [`wakes_up`].
pub(crate) fn has_woken_up(site: event::Site) -> bool {
    choose_wakeup(Choice::HasWokenUp, site, 2)
}

fn choose_wakeup(what: Choice, site: event::Site, options: u32) -> bool {
    if !context::may_wake_up(site) {
        return false;
    }
    let kind = OpKind::Choose { options, what };
    let answer = nowhere_at(kind, site);
    let may = matches!(answer, Answer::Done(Outcome::Value(1)));
    if may {
        context::count_wakeup();
    }
    may
}

/// Reads the clock, in nanoseconds since it began; `None` outside of a model. Each time that the
/// read may find is explored.
pub(crate) fn read_clock(site: event::Site) -> Option<u64> {
    let Some(asked) = time::ask(site) else {
        return time::at_the_end();
    };
    match nowhere_at(asked.operation(), site) {
        Answer::Done(Outcome::Value(outcome)) => time::tell(&asked, outcome as u32, site),
        _ => time::at_the_end(),
    }
}

/// Notes that the current thread has computed this deadline, in nanoseconds since the clock began.
pub(crate) fn note_deadline(nanoseconds: u64) {
    time::note_deadline(nanoseconds);
}

/// The current thread has waited for this time.
#[inline]
pub(crate) fn let_time_pass(duration: std::time::Duration) {
    time::pass(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
}

/// Waits until the current thread's own token is available, and takes the token. Returns false
/// outside of a model.
#[track_caller]
pub(crate) fn park_here() -> bool {
    let site = context::here();
    // Usually no wait ends spuriously, and then this is the only question.
    let may_wake_up = context::may_wake_up(site);
    let answer = waited(announce::announce(site, |driver, me| {
        let object = driver.machine.token_object(me);
        let kind = OpKind::Park;
        (!may_wake_up).then_some(Operation { object, kind })
    }));
    if may_wake_up && let Some(me) = current() {
        waited(on_token(me, park(site, 2)));
    }
    !matches!(answer, Answer::Outside)
}

/// The operation with which the current thread waits for the token of loom's `Notify` at this
/// place. Loom's own tests count on it that such a wait ends for a notification.
pub(crate) fn wait_for_notification(site: event::Site) -> OpKind {
    let options = if context::wakeups_of_std_alone() {
        1
    } else {
        2
    };
    park(site, options)
}

/// The operation with which the current thread waits for a token at this place.
fn park(site: event::Site, options: u32) -> OpKind {
    if choose_wakeup(Choice::MayWakeUp, site, options) {
        OpKind::EndForNoReason
    } else {
        OpKind::Park
    }
}

/// Switches exploration on or off from this point on, inside a model.
pub(crate) fn switch_exploration(on: bool) {
    context::switch_exploration(on);
}

/// Switches exploration off for the rest of this execution.
pub(crate) fn skip_rest() {
    context::skip_rest();
}

/// Whether a weak compare-exchange of the current thread on the atomic at this address may fail
/// spuriously.
#[track_caller]
pub(crate) fn may_fail_for_no_reason(address: usize) -> bool {
    context::may_fail_for_no_reason(address, context::here())
}

/// Whether locks prefer writers, for a `read`. `others_read` says whether the lock is held for
/// reading.
#[track_caller]
pub(crate) fn prefers_writers(others_read: bool) -> bool {
    context::prefers_writers(others_read, context::here())
}

/// Whether locks prefer writers, for a `write`.
pub(crate) fn prefers_writers_to_write() -> bool {
    context::prefers_writers_to_write()
}

/// Notes that the current thread clones the waker of the task that it polls. Returns the number of
/// events that the thread has made; `None` outside of a model, or if the execution has ended.
pub(crate) fn note_cloned_waker() -> Option<u32> {
    context::note_cloned_waker()
}

/// Notes that a task, which is polled at this place, has put its waker where no event shows it, if
/// the thread has made no more events than this number.
pub(crate) fn note_unseen_waker(events: u32, site: event::Site) {
    context::note_unseen_waker(events, site);
}

/// The value of a thread-local variable in the current thread. `key` is the variable's address.
pub(crate) fn local(key: usize) -> Local {
    context::local(key)
}

/// Gives the current modelled thread a value of a thread-local variable. `drop` drops the value at
/// the end of the thread; after all others if the value has no destructor.
pub(crate) fn set_local(key: usize, value: *mut u8, drop: unsafe fn(*mut u8), destructor: bool) {
    context::set_local(key, value, drop, destructor);
}

/// Notes that a modelled thread has been caught unwinding with this payload. Returns the payload,
/// which is the thread's result if the panic is its own.
pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
    current::caught(payload)
}

/// Whether the panic of a thread ends only this thread in the running model, if there is one.
pub(crate) fn catches_panics() -> bool {
    current::catches_panics()
}

/// Whether the thread that runs here is unwinding from a panic.
#[inline]
pub(crate) fn panicking() -> bool {
    current::panicking()
}

/// Whether the execution is being torn down, so that no wait will be ended by another thread.
pub(crate) fn ending() -> bool {
    current::ending()
}

/// In an execution that is torn down: lets the other threads unwind first, because this thread
/// needs a resource that one of them holds. Returns when the thread may try again.
pub(crate) fn yield_to_teardown() {
    context::yield_to_teardown();
}

/// A number of the current thread that is the same in every process, to sort threads by.
pub(crate) fn order() -> u64 {
    context::order()
}

/// Runs `f` outside of the execution, as if it was no part of the program. `None` if `f` would have
/// had to wait for another thread.
pub(crate) fn aside<R>(f: impl FnOnce() -> R) -> Option<R> {
    aside::apart(f)
}
