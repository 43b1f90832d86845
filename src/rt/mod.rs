//! What may a shim ask of the runtime?
//!
//! Shims (`sync`, `thread`, `hint`, ...) see this page and nothing below it.

pub(crate) mod exec;
pub(crate) mod explore;
pub(crate) mod object;
pub(crate) mod report;
pub(crate) mod trace;

use exec::context;
pub(crate) use exec::heap;
use trace::id::ObjectId;
pub(crate) use trace::id::ThreadId;
use trace::operation::Operation;
pub(crate) use trace::operation::{AtomicType, ObjectKind, OpKind, Outcome, Rmw};

/// What a thread runs.
pub(crate) type Body = Box<dyn FnOnce()>;

/// The object of an operation, as a shim knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The address of the shim. It is the object's identity while the execution lasts.
    pub(crate) address: usize,
    pub(crate) kind: ObjectKind,
    /// What the shim's own memory holds: the value of an atomic, the number of references of a
    /// count, 1 for a mutex that is held and 0 for one that is not. Memory is the truth: if it
    /// differs from what the runtime remembers, somebody wrote through `&mut` or made a new object
    /// in the same place.
    pub(crate) memory: u64,
}

/// What became of an announced operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// No exploration runs on this OS thread: behave as std does.
    Outside,
    /// The execution is being torn down: do what std does, but never block.
    Inert,
    /// It is this thread's turn, and the operation had this outcome. The shim now does the same to
    /// its own memory; no other thread runs before it announces its next operation.
    Done(Outcome),
}

/// Announces an operation and returns when it has happened. The caller's location is what reports
/// show, so every shim on the way here is `#[track_caller]`.
#[track_caller]
#[inline]
pub(crate) fn perform(target: Target, kind: OpKind) -> Answer {
    context::perform(target, kind, context::here())
}

/// [`perform`] for an operation whose place in the program is known otherwise: a guard that is
/// dropped shows the place where it was made.
#[inline]
pub(crate) fn perform_at(target: Target, kind: OpKind, site: trace::Site) -> Answer {
    context::perform(target, kind, site)
}

/// Announces a spin hint.
#[track_caller]
pub(crate) fn hint() -> Answer {
    let site = context::here();
    context::announce(site, |machine, me| machine.hint(me, site))
}

/// Announces a memory fence.
#[track_caller]
pub(crate) fn fence(order: std::sync::atomic::Ordering) -> Answer {
    nowhere(OpKind::Fence { order })
}

/// Announces a choice between `options` values.
#[track_caller]
pub(crate) fn choose(options: u32) -> Answer {
    nowhere(OpKind::Choose { options })
}

/// Gives this execution up; returns only where there is none.
#[track_caller]
pub(crate) fn give_up() -> Answer {
    nowhere(OpKind::GiveUp)
}

#[track_caller]
fn nowhere(kind: OpKind) -> Answer {
    let object = ObjectId::NONE;
    context::announce(context::here(), |_, _| Some(Operation { object, kind }))
}

/// Spawns a thread; `Err` gives the body back where no model runs.
#[track_caller]
pub(crate) fn spawn(name: Option<String>, body: Body) -> Result<ThreadId, (Answer, Body)> {
    context::spawn(name, body, context::here())
}

/// Announces an operation on another thread's end: a join, or a look whether it has finished.
#[track_caller]
pub(crate) fn on_thread(thread: ThreadId, kind: OpKind) -> Answer {
    context::announce(context::here(), |machine, _| {
        let object = machine.thread_object(thread);
        Some(Operation { object, kind })
    })
}

/// Announces an operation on a thread's park token.
#[track_caller]
pub(crate) fn on_token(thread: ThreadId, kind: OpKind) -> Answer {
    context::announce(context::here(), |machine, _| {
        let object = machine.token_object(thread);
        Some(Operation { object, kind })
    })
}

/// The modelled thread that runs here, if any.
pub(crate) fn current() -> Option<ThreadId> {
    context::current()
}

/// The name a modelled thread was given when it was built.
pub(crate) fn name_of(thread: ThreadId) -> Option<String> {
    context::name_of(thread)
}

/// Whether spurious failures of weak compare-exchanges are explored by the running model.
pub(crate) fn spurious_failures() -> bool {
    context::spurious_failures()
}

/// In a torn-down execution: lets the other threads unwind first, because this one needs something
/// that one of them holds. Returns when it may try again.
pub(crate) fn yield_to_teardown() {
    context::yield_to_teardown();
}

/// Keeps the bytes of a shim that is older than the execution, to put them back at its end. `object`
/// is the address it is known by; `drops` says that its data owns something.
#[track_caller]
pub(crate) fn keep_pristine(object: usize, start: *const u8, size: usize, drops: bool) {
    context::keep_pristine(object, start, size, drops);
}
