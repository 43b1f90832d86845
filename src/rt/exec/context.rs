//! How do shims and the loop talk to each other?
//!
//! The only file that names `scoped_tls`. The one thread-local points to the [`Runtime`] of the
//! exploration on this OS thread. A shim's operation is announced ([`announce`](super::announce)),
//! and the decision who goes on is taken right there, on the coroutine's stack: if it is the same
//! thread, nothing is switched. No borrow of the runtime is alive across a suspension.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

use crate::rt::engine::driver::Driver;
use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId, entry};
use crate::rt::event::operation::Outcome;
use crate::rt::event::verdict::{End, Made, Panic};
use crate::rt::race::Detector;
use crate::rt::rare::{mostly, rarely};
use crate::rt::shim::Answer;
use crate::rt::thread_main::ThreadMain;

use super::callers::Callers;
use super::locals::{Local, Locals};
use super::objects::Table;
use super::unwinding::Unwinding;
use crate::rt::coroutine::{Stretch, suspend};
use crate::rt::exec::crash_report::{AtEnd, Unshown};
use crate::rt::exec::recorded_outcome::RecordedOutcome;
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::Heap;
use crate::rt::process::raised::{Raised, Second};
use crate::rt::process::watchdog::{Pulse, Watchdog};

scoped_tls::scoped_thread_local!(static RUNTIME: Runtime);

thread_local! {
    /// What `RUNTIME` points to while an execution runs, or null: a step reads this once. The key
    /// of `scoped_tls` has to be asked twice, whether it is set and for what.
    static HERE: Cell<*const Runtime> = const { Cell::new(ptr::null()) };
}

/// The payload with which a thread of a given-up execution unwinds.
pub(crate) struct Stop;

/// How an execution has failed: in a word, by which thread, and after how many events.
pub(crate) type Failed = (&'static str, Option<ThreadId>, usize);

/// A value that must be gone when the execution ends.
pub(crate) struct TrackedValue {
    number: u64,
    pub(crate) made: Made,
    pub(crate) gone: bool,
}

/// One exploration, as shims see it.
///
/// The fields lie in this order, because it shows: with `inner` in front of all others, where the
/// compiler puts it if its size happens to be a multiple of 32, the steps of `independent` take 6 %
/// longer, and those of `switch` 10 %.
#[repr(C)]
pub(crate) struct Runtime {
    pub(crate) locals: RefCell<Locals>,
    /// The values that must be gone when the execution ends, in the order of their numbers.
    pub(crate) tracked: RefCell<Vec<TrackedValue>>,
    /// All panics of this execution, the first one first, in case that one ends the process.
    pub(crate) panics: RefCell<Vec<Panic>>,
    /// How the execution has failed, if it has.
    pub(crate) failed: Cell<Option<Failed>>,
    /// The panics of this execution before that one.
    pub(crate) earlier: RefCell<Vec<Panic>>,
    /// What came of its step, until it asks.
    pub(crate) outcome: Cell<Option<Outcome>>,
    /// The part of its stack in which there is room for the runtime, and may be a step on the short
    /// way. It is empty where each step is to ask what else is going on.
    pub(crate) roomy: Cell<Stretch>,
    /// Who has used memory that is not there.
    pub(crate) faulted: Cell<Option<Backtrace>>,
    pub(crate) inner: RefCell<Inner>,
    pub(crate) heap: Heap,
    pub(crate) unwinding: Unwinding,
    /// The number of the next of them.
    pub(crate) next_tracked: Cell<u64>,
    /// Who has called the operations that stand nowhere in the program, if somebody wants to know.
    pub(crate) callers: Callers,
    /// What the panic hook kept of the last panic, and of those that were there then. In a box,
    /// because each execution hands on that there was none.
    pub(super) raised: Cell<Option<Box<Raised>>>,
    /// Whose panic fails the test, and after how many events of the execution it began. What comes
    /// after that are destructors, and what they wait for.
    pub(crate) failing: Cell<Option<(ThreadId, usize)>>,
    /// The panic that began in another thread meanwhile, and after how many events. The first one
    /// may still be caught.
    pub(super) second: Cell<Option<Box<Second>>>,
    /// What the watchdog looks at.
    pub(crate) pulse: Arc<Pulse>,
    /// The command that plays a schedule in the test of this name.
    pub(crate) replay: fn(&str, Option<&str>) -> String,
    /// The number of the model among those of its test.
    pub(super) nth: u64,
    /// The thread whose code runs.
    pub(crate) current: Cell<ThreadId>,
    /// Whether the code of a thread runs, and not only the loop.
    pub(crate) running: Cell<bool>,
    /// The execution is over; threads that still have frames unwind.
    pub(crate) stopping: Cell<bool>,
    /// References have been made of pointers, in this execution or an earlier one. Whose they are
    /// nobody knows.
    pub(crate) has_raw_references: Cell<bool>,
    /// The execution is given up, or has failed, and goes on only to its end.
    pub(crate) unexplored: Cell<bool>,
    /// How many operations were asked for in vain, because the execution is torn down.
    pub(super) in_vain: Cell<usize>,
    /// The stack that was suspended last is never to be resumed.
    pub(super) left: Cell<bool>,
    /// The code that runs is the program's and no part of the execution.
    pub(crate) aside: Cell<bool>,
    /// Whether a thread's panic is only its own end, as in std, and not a failure.
    pub(crate) catches_panics: bool,
    /// Whether the OS thread was panicking when the exploration began, as where a destructor runs a
    /// model.
    pub(crate) within_panic: bool,
    /// The OS thread that explores. At the end of the process it cannot be asked for any more.
    pub(crate) os_thread: std::thread::Thread,
    /// Who was where when the execution failed.
    pub(crate) failed_at: RefCell<Vec<(ThreadId, Site)>>,
    /// Whether an exploration has begun here and not ended.
    pub(crate) explores: bool,
    /// Who looks at the pulse, if somebody is to.
    pub(crate) watchdog: Option<Watchdog>,
    /// How the execution has failed, while what it leaves is unwound. In a box, because mostly
    /// there is none.
    pub(super) at_end: RefCell<Option<Box<AtEnd>>>,
    /// Who writes a report of that.
    pub(crate) report: fn(&Unshown<'_>) -> String,
    /// What there was to count in at the last hint, if the first ones are looked at
    /// (`own_state.rs`).
    pub(super) at_last_hint: RefCell<Vec<u8>>,
    /// What the test has said that this execution came to. In a box, because most tests say
    /// nothing.
    pub(super) recorded_outcome: Cell<Option<Box<RecordedOutcome>>>,
}

/// What the runtime works with between two steps.
pub(crate) struct Inner {
    pub(crate) driver: Driver,
    pub(crate) table: Table,
    pub(crate) races: Detector,
    /// Frees that are in order, although the detector cannot see why.
    pub(crate) in_order: InOrder,
    /// By thread the stack of one that has started and not ended: the lowest address, and the one
    /// behind the highest.
    pub(crate) stacks: Vec<Option<(usize, usize)>>,
    /// The stacks of threads that have ended in this execution.
    pub(crate) ended: Vec<(ThreadId, (usize, usize))>,
    /// Those of them whose stacks had something on them that was known of, or that a child may know
    /// of. Nobody else gets these stacks before the execution has ended, so whoever still uses what
    /// was there is found out.
    pub(crate) resting: Vec<ThreadId>,
    /// The thread whose coroutine is to be resumed next. What came of its step is in
    /// [`Runtime::outcome`].
    pub(crate) next: Option<ThreadId>,
    pub(crate) end: Option<End>,
    /// By thread the body of one that has been spawned and not started.
    pub(crate) bodies: Vec<Option<ThreadMain>>,
    /// The threads that have asked for a stack of so many bytes.
    pub(crate) asked: Vec<(ThreadId, usize)>,
    pub(crate) names: Vec<(ThreadId, String)>,
    /// Room for the objects in what is being freed; empty in between.
    pub(crate) inside: Vec<ObjectId>,
}

impl Inner {
    /// What a thread is to do that is spawned.
    #[inline]
    pub(super) fn put_body(&mut self, thread: ThreadId, body: ThreadMain) {
        *entry(&mut self.bodies, thread.index()) = Some(body);
    }

    /// What a thread is called that is spawned.
    #[inline(never)]
    pub(super) fn put_name(&mut self, thread: ThreadId, name: &str) {
        self.names.push((thread, name.to_owned()));
    }

    /// How many bytes of stack it has asked for.
    #[inline(never)]
    pub(super) fn put_stack(&mut self, thread: ThreadId, bytes: usize) {
        self.asked.push((thread, bytes));
    }

    /// How the execution ends, which has been noted.
    #[cold]
    pub(super) fn take_end(&mut self) -> End {
        self.end
            .take()
            .expect("dpor bug: the execution has not ended")
    }

    /// How many bytes of stack a thread has asked for, if it has.
    #[inline]
    pub(super) fn stack_asked_for(&self, thread: ThreadId) -> Option<usize> {
        // Mostly none has.
        if mostly!(self.asked.is_empty()) {
            return None;
        }
        let mut asked = self.asked.iter();
        let (_, bytes) = asked.find(|(t, _)| *t == thread)?;
        Some(*bytes)
    }

    /// The name that a thread was given.
    pub(super) fn name_of(&self, thread: ThreadId) -> Option<&str> {
        let mut names = self.names.iter();
        let (_, name) = names.find(|(t, _)| *t == thread)?;
        Some(name)
    }

    /// What a thread is called: its name, or else its path of births.
    pub(super) fn called(&self, thread: ThreadId) -> String {
        match self.name_of(thread) {
            Some(name) => name.to_owned(),
            None => self.driver.machine.names.path(thread),
        }
    }

    /// What a thread is to do that starts.
    #[inline]
    pub(super) fn take_body(&mut self, thread: ThreadId) -> Option<ThreadMain> {
        self.bodies.get_mut(thread.index())?.take()
    }

    /// What some thread is to do that has not started, if there is one.
    pub(super) fn take_some_body(&mut self) -> Option<ThreadMain> {
        self.bodies.iter_mut().find_map(Option::take)
    }
}

/// Runs `f` with `runtime` as the exploration of this OS thread.
pub(super) fn enter<R>(runtime: &Runtime, f: impl FnOnce() -> R) -> R {
    RUNTIME.set(runtime, f)
}

/// Runs `f`, which is an execution of the exploration that was [entered](enter).
#[inline(always)]
pub(super) fn execute<R>(f: impl FnOnce(&Runtime) -> R) -> R {
    struct Restore(*const Runtime);
    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let (runtime, outer) = RUNTIME.with(|runtime| (ptr::from_ref(runtime), HERE.replace(runtime)));
    let _restore = Restore(outer);
    // SAFETY: `enter` borrows it for as long as this is called.
    let runtime = unsafe { &*runtime };
    runtime.heap.attach(|| f(runtime))
}

/// Whether an execution runs on this OS thread.
pub(crate) fn inside() -> bool {
    !HERE.get().is_null()
}

/// Runs `f` on the runtime of this OS thread if there is one, whatever state it is in.
#[inline(always)]
pub(in crate::rt) fn with_any<R>(f: impl FnOnce(&Runtime) -> R) -> Option<R> {
    let here = HERE.get();
    if rarely!(here.is_null()) {
        return None;
    }
    // SAFETY: `execute` borrows the runtime for as long as the pointer is here.
    Some(f(unsafe { &*here }))
}

/// Runs `f` on the runtime of this OS thread, unless there is none or it is tearing down. What a
/// thread does while it unwinds from a panic is done like anything else.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Runtime) -> R) -> Result<R, Answer> {
    with_step(|runtime| Some(f(runtime)))
}

/// [`with`] for what may end with the execution: `None` if it does.
#[inline]
pub(super) fn with_step<R>(f: impl FnOnce(&Runtime) -> Option<R>) -> Result<R, Answer> {
    let result = with_any(|runtime| {
        // Where there is room, nothing else is going on.
        if !runtime.roomy.get().is_here() && !runtime.may_begin() {
            return None;
        }
        runtime.heap.record(false);
        let result = f(runtime);
        runtime.heap.record(true);
        result
    });
    match result {
        Some(result) => result.ok_or(Answer::Inert),
        None => Err(Answer::Outside),
    }
}

/// Tracks a value that is made at `site`.
pub(crate) fn track(site: Site) -> Option<u64> {
    with(|runtime| {
        let number = runtime.next_tracked.get();
        runtime.next_tracked.set(number + 1);
        let thread = runtime.current.get();
        let inner = runtime.inner.try_borrow();
        let events = inner.map_or(0, |inner| inner.driver.machine.events_of(thread));
        let made = Made {
            site,
            thread,
            events,
        };
        let gone = false;
        (runtime.tracked.borrow_mut()).push(TrackedValue { number, made, gone });
        number
    })
    .ok()
}

/// The value with this number is gone. If it was before, in this execution: who has made it, and
/// where.
pub(crate) fn untrack(number: u64) -> Option<String> {
    let again = |runtime: &Runtime| {
        let mut tracked = runtime.tracked.borrow_mut();
        let at = tracked.binary_search_by_key(&number, |value| value.number);
        let value = &mut tracked[at.ok()?];
        let was_gone = std::mem::replace(&mut value.gone, true);
        // What destructors do when an execution is over is nobody's mistake.
        if !was_gone || runtime.stopping.get() {
            return None;
        }
        let Made { site, thread, .. } = value.made;
        let inner = runtime.inner.try_borrow().ok()?;
        Some(format!("made by {} at {site}", inner.called(thread)))
    };
    with_any(again).flatten()
}

/// What is at this address, in so many bytes, has a name.
pub(crate) fn name_object(address: usize, size: usize, name: &str) {
    // Where no model runs, nobody reports.
    let _ = with(|runtime| {
        let mut inner = runtime.inner.borrow_mut();
        if let Ok(region) = runtime.locate(&inner.stacks, &inner.ended, address) {
            inner.driver.machine.names.label(region, size, name);
        }
    });
}

/// The block that holds this address is the model's.
pub(crate) fn note_block(address: usize) {
    let _ = with_any(|runtime| runtime.heap.find(address));
}

/// The block that holds this address must be freed before the execution ends.
pub(crate) fn must_free(address: usize) {
    // Where no model runs, nothing is expected to be freed.
    let _ = with(|runtime| runtime.heap.owe(address));
}

/// The block that holds this address may stay allocated when the execution ends.
pub(crate) fn may_leak(address: usize) {
    // Where no model runs, nothing is expected to be freed.
    let _ = with(|runtime| runtime.heap.forgive(address));
}

/// The block that holds this address is one of our own shims', and std counts the references to it.
/// So nobody uses it without one.
pub(crate) fn std_counts(address: usize) {
    // Where no model runs, nobody asks.
    let _ = with(|runtime| runtime.heap.note_counted(address));
}

/// Adds threads to a list in the reverse order of births
/// ([`Names::add_by_birth`](crate::rt::event::id::Names::add_by_birth)). False where no model runs,
/// or the execution has ended.
pub(crate) fn add_by_birth(list: &mut Vec<ThreadId>, new: &mut Vec<ThreadId>) -> bool {
    // The list is the program's memory. One that is empty changes places with the other.
    if !list.is_empty() {
        list.reserve(new.len());
    }
    let add = |runtime: &Runtime| {
        let names = &runtime.inner.borrow().driver.machine.names;
        names.add_by_birth(list, new);
    };
    with(add).is_ok()
}

/// How often two threads were compared by birth in this exploration.
#[cfg(test)]
pub(crate) fn compared() -> usize {
    let compared = |runtime: &Runtime| runtime.inner.borrow().driver.machine.names.compared.get();
    with(compared).expect("a model runs")
}

/// The modelled thread that runs here.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn current() -> Option<ThreadId> {
    with_any(|runtime| runtime.current.get())
}

/// The name a thread was given when it was built.
pub(crate) fn name_of(thread: ThreadId) -> Option<String> {
    let name = |runtime: &Runtime| runtime.inner.borrow().name_of(thread).map(str::to_owned);
    with(name).ok().flatten()
}

/// Whether a wait of the current thread may still end for no reason.
pub(crate) fn may_wake_up() -> bool {
    with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow().driver.machine.may_wake_up(me)
    })
    .unwrap_or(false)
}

/// A wait of the current thread ends for no reason.
pub(crate) fn count_wakeup() {
    // Where no model runs nobody counts.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().driver.machine.count_wakeup(me);
    });
}

/// Switches exploration on or off from here on, where a model runs.
pub(crate) fn switch_exploration(on: bool) {
    let _ = with(|runtime| runtime.inner.borrow_mut().driver.switch_exploration(on));
}

/// Switches exploration off for the rest of this execution.
pub(crate) fn skip_rest() {
    let _ = with(|runtime| runtime.inner.borrow_mut().driver.skip_rest());
}

/// Whether a weak compare-exchange of the current thread on the atomic at this address may fail for
/// no reason.
pub(crate) fn may_fail_for_no_reason(address: usize) -> bool {
    with(|runtime| {
        let inner = runtime.inner.borrow();
        let (machine, me) = (&inner.driver.machine, runtime.current.get());
        let has_failed = |object| machine.has_failed_for_no_reason(me, object);
        machine.limits.spurious_failures && !inner.table.known(address).is_some_and(has_failed)
    })
    .unwrap_or(false)
}

/// A number that the current thread has in every process.
pub(crate) fn order() -> u64 {
    with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow().driver.machine.names.order(me)
    })
    .unwrap_or_default()
}

/// The value of a thread-local variable in the current thread.
pub(crate) fn local(key: usize) -> Local {
    let get = |runtime: &Runtime| runtime.locals.borrow().get(runtime.current.get(), key);
    let local = match with(get) {
        Err(Answer::Inert) => with_any(get),
        local => local.ok(),
    };
    local.unwrap_or(Local::Outside)
}

/// Gives the current thread a value of a thread-local variable, which `drop` drops at its end.
pub(crate) fn set_local(key: usize, value: *mut u8, drop: unsafe fn(*mut u8), destructor: bool) {
    let set = with_any(|runtime| {
        let recorded = runtime.heap.record(false);
        let me = runtime.current.get();
        let mut locals = runtime.locals.borrow_mut();
        locals.set(me, key, value, (drop, destructor));
        runtime.heap.record(recorded);
    });
    assert!(set.is_some(), "dpor bug: a variable of no model");
}

/// Drops the thread-local variables of the current thread, the latest first.
#[inline]
pub(crate) fn drop_locals() {
    // Mostly there are none.
    let any = with_any(|runtime| !runtime.locals.borrow().is_empty());
    if rarely!(any == Some(true)) {
        drop_some_locals();
    }
}

/// [`drop_locals`] where there may be some.
fn drop_some_locals() {
    // Reports say of which events a destructor of such a variable is the cause.
    with_any(|runtime| {
        if !runtime.stopping.get()
            && let Ok(mut inner) = runtime.inner.try_borrow_mut()
        {
            let me = runtime.current.get();
            inner.driver.note_locals_dropped(me);
        }
    });
    loop {
        let next = with_any(|runtime| {
            let me = runtime.current.get();
            runtime.locals.borrow_mut().next_to_drop(me)
        });
        let Some((value, drop)) = next.flatten() else {
            return;
        };
        // SAFETY: the shim gave this function for this value, and it is handed out once.
        unsafe { drop(value) };
    }
}

/// In a torn-down execution: lets the other threads unwind before this one goes on.
pub(crate) fn yield_to_teardown() {
    let waits = with_any(|runtime| {
        if runtime.aside.get() {
            std::panic::resume_unwind(Box::new(Stop));
        }
        if !runtime.stopping.get() {
            // A destructor of a panicking thread waits: the execution has failed, and the others
            // have to go first.
            let thread = runtime.current.get();
            runtime.inner.borrow_mut().end = Some(End::panicked(thread));
        }
    });
    match waits {
        Some(()) => suspend(),
        None => std::thread::yield_now(),
    }
}

/// The caller's place in the program.
#[track_caller]
#[inline]
pub(crate) fn here() -> Site {
    Location::caller()
}

/// What the watchdog would say now.
#[cfg(all(test, not(feature = "loom")))]
pub(crate) fn hangs() -> Option<String> {
    let hangs = |runtime: &Runtime| {
        let recorded = runtime.heap.record(false);
        let text = runtime.pulse.describe(std::time::Duration::ZERO);
        runtime.heap.record(recorded);
        text
    };
    with_any(hangs).flatten()
}
