//! How do shims and the run loop communicate?
//!
//! The only file that names `scoped_tls`. The one thread-local points to the [`Runtime`] of the
//! exploration on this OS thread. A shim announces its operation ([`announce`](super::announce)),
//! and the choice of the next thread is made right there, on the coroutine's stack: if the same
//! thread continues, no stack is switched. No borrow of the runtime is alive across a suspension.

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
use crate::rt::event::weakened::Weakened;
use crate::rt::race::Detector;
use crate::rt::rare::{mostly, rarely};
use crate::rt::shim::Answer;
use crate::rt::thread_main::ThreadMain;

use super::callers::Callers;
use super::clock::Clock;
use super::locals::{Local, Locals};
use super::objects::Table;
use super::quiet_glue::Glue;
use super::unwinding::Unwinding;
use crate::rt::coroutine::{Stretch, suspend};
use crate::rt::exec::crash_report::{AtEnd, Unshown};
use crate::rt::exec::permitted::{Behaviour, Permitted, Possible};
use crate::rt::exec::recorded_outcome::RecordedOutcome;
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::Heap;
use crate::rt::process::raised::{Raised, Second};
use crate::rt::process::watchdog::{Pulse, Watchdog};

scoped_tls::scoped_thread_local!(static RUNTIME: Runtime);

thread_local! {
    /// The pointer of `RUNTIME` while an execution runs, or null. A step reads this variable once.
    /// The key of `scoped_tls` would be read twice: whether it is set, and then its value.
    static HERE: Cell<*const Runtime> = const { Cell::new(ptr::null()) };
}

/// The payload with which a thread of an abandoned execution unwinds.
pub(crate) struct Stop;

/// How an execution has failed: the name of the failure, its thread, and the number of events
/// before it.
pub(crate) type Failed = (&'static str, Option<ThreadId>, usize);

/// A value that must be gone when the execution ends.
pub(crate) struct TrackedValue {
    number: u64,
    pub(crate) made: Made,
    pub(crate) gone: bool,
}

/// One exploration, as shims see it.
///
/// The order of the fields is deliberate, because it is measurable. The compiler puts `inner` in
/// front of all other fields if its size happens to be a multiple of 32; then the steps of
/// `independent` take 6 % longer, and those of `switch` 10 %.
#[repr(C)]
pub(crate) struct Runtime {
    pub(crate) locals: RefCell<Locals>,
    /// The values that must be gone when the execution ends, in the order of their numbers.
    pub(crate) tracked: RefCell<Vec<TrackedValue>>,
    /// All panics of this execution, the first one first, in case one of them ends the process.
    pub(crate) panics: RefCell<Vec<Panic>>,
    /// How the execution has failed, if it has.
    pub(crate) failed: Cell<Option<Failed>>,
    /// The panics of this execution before the one that failed it.
    pub(crate) earlier: RefCell<Vec<Panic>>,
    /// The outcome of the last step, until its thread takes it.
    pub(crate) outcome: Cell<Option<Outcome>>,
    /// The part of the running thread's stack that leaves room for the runtime. Only there may a
    /// step take the fast path. The part is empty where every step has to check the state of the
    /// runtime first.
    pub(crate) roomy: Cell<Stretch>,
    /// The stack of the thread that has used memory that is not mapped.
    pub(crate) faulted: Cell<Option<Backtrace>>,
    pub(crate) inner: RefCell<Inner>,
    pub(crate) heap: Heap,
    pub(crate) unwinding: Unwinding,
    /// The number of the next tracked value.
    pub(crate) next_tracked: Cell<u64>,
    /// The callers of the operations with sites outside of the program's source, if they are
    /// wanted.
    pub(crate) callers: Callers,
    /// The last panic that the panic hook kept, with the panics that had not ended then. Boxed,
    /// because each execution moves it out, and mostly there is none.
    pub(super) raised: Cell<Option<Box<Raised>>>,
    /// The thread with the panic that fails the test, and the number of events of the execution
    /// before that panic. The events behind it belong to destructors, and to threads that a
    /// destructor waits for.
    pub(crate) failing: Cell<Option<(ThreadId, usize)>>,
    /// The panic that began in another thread meanwhile, and the number of events before it. The
    /// first panic may still be caught.
    pub(super) second: Cell<Option<Box<Second>>>,
    /// The state that the watchdog reads.
    pub(crate) pulse: Arc<Pulse>,
    /// The orderings that are replaced.
    pub(super) weakened: Weakened,
    /// Builds the command that replays a schedule under these orderings in the test of this name.
    pub(crate) replay: fn(&str, &Weakened, Option<&str>) -> String,
    /// The number of the model among those of its test.
    pub(super) nth: u64,
    /// The thread that runs its code.
    pub(crate) current: Cell<ThreadId>,
    /// Whether the code of a thread runs, and not only the loop.
    pub(crate) running: Cell<bool>,
    /// The execution is over; threads that still have frames unwind.
    pub(crate) stopping: Cell<bool>,
    /// Memory is C11's. Then a shim takes its values from the step, and each step is announced.
    pub(crate) weak: Cell<bool>,
    /// The thread that runs only tries a round of its loop: its next action is to be the hint of
    /// the loop.
    pub(crate) tries: Cell<bool>,
    /// Whether such a round only repeats the last one, with the same value; and if so, the number
    /// of hints to which the thread may come before its look, zero behind the look.
    pub(super) repeats: Cell<bool>,
    pub(super) hints: Cell<u32>,
    /// The state of the thread at the hint to which it comes.
    pub(super) repeated: Cell<Repeated>,
    /// The states that were captured before such a round, and behind it.
    pub(super) before_round: RefCell<Vec<u8>>,
    pub(super) after_round: RefCell<Vec<u8>>,
    /// The place of the block that is one step, if the thread that runs is in one.
    pub(crate) block: Cell<Option<Site>>,
    /// The quiet drop glue that runs.
    pub(super) glue: Cell<Option<Glue>>,
    /// The place of a value behind an `Arc`, if the exploration is void because of its drop glue.
    pub(super) loud: Cell<Option<Site>>,
    /// References have been made from pointers, in this execution or an earlier one. The runtime
    /// does not know the owners of such references.
    pub(crate) has_raw_references: Cell<bool>,
    /// The execution is abandoned, or has failed, and its threads continue only to their ends.
    pub(crate) unexplored: Cell<bool>,
    /// The number of operations that were asked for after the execution was over, while it is torn
    /// down.
    pub(super) in_vain: Cell<usize>,
    /// The stack that was suspended last is never to be resumed.
    pub(super) left: Cell<bool>,
    /// The code that runs is the program's, but no part of the execution.
    pub(crate) aside: Cell<bool>,
    /// Whether a thread's panic only ends that thread, as in std, and is no failure.
    pub(crate) catches_panics: bool,
    /// Whether the OS thread was panicking when the exploration began, for example because a
    /// destructor runs a model.
    pub(crate) within_panic: bool,
    /// The OS thread that explores. At the end of the process std cannot return it any more.
    pub(crate) os_thread: std::thread::Thread,
    /// The site of each thread when the execution failed.
    pub(crate) failed_at: RefCell<Vec<(ThreadId, Site)>>,
    /// Whether an exploration has begun in this runtime and not ended.
    pub(crate) explores: bool,
    /// The watchdog that reads the pulse, if there is to be one.
    pub(crate) watchdog: Option<Watchdog>,
    /// How the execution has failed, while its threads unwind. Boxed, because mostly there is none.
    pub(super) at_end: RefCell<Option<Box<AtEnd>>>,
    /// Writes the report of that failure.
    pub(crate) report: fn(&Unshown<'_>) -> String,
    /// The captured state at the last hint, if the first hints are compared (`state_capture.rs`).
    pub(super) at_last_hint: RefCell<Vec<u8>>,
    /// The outcome that the test has recorded for this execution. Boxed, because most tests record
    /// none.
    pub(super) recorded_outcome: Cell<Option<Box<RecordedOutcome>>>,
    /// The places at which std permits a behaviour that may not have been explored.
    pub(super) permitted: Permitted,
    pub(super) clock: RefCell<Clock>,
}

/// The state of a thread at a hint, behind a round in vain or one that leaves no event.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Repeated {
    /// The state is not captured in full, or a round has changed it.
    #[default]
    Unknown,
    /// Captured before a round that leaves no event.
    Captured,
    /// The same as before that round.
    Same,
    /// Not the same. The round is made once more.
    Differs,
}

/// The state that the runtime works with between two steps.
pub(crate) struct Inner {
    pub(crate) driver: Driver,
    pub(crate) table: Table,
    pub(crate) races: Detector,
    /// Frees that are in order, although the detector cannot see why.
    pub(crate) in_order: InOrder,
    /// By thread the stack of each thread that has started and not ended: the lowest address, and
    /// the address behind the highest.
    pub(crate) stacks: Vec<Option<(usize, usize)>>,
    /// The stacks of threads that have ended in this execution.
    pub(crate) ended: Vec<(ThreadId, (usize, usize))>,
    /// The threads among these that had an object on their stack that the runtime knew of, or that
    /// a child may know of. No other thread gets such a stack before the execution has ended, so a
    /// late use of it is detected.
    pub(crate) resting: Vec<ThreadId>,
    /// The thread that the run loop resumes next. The outcome of its step is in
    /// [`Runtime::outcome`].
    pub(crate) next: Option<ThreadId>,
    pub(crate) end: Option<End>,
    /// By thread the body of each thread that has been spawned and not started.
    pub(crate) bodies: Vec<Option<ThreadMain>>,
    /// The threads that have asked for a stack of so many bytes.
    pub(crate) asked: Vec<(ThreadId, usize)>,
    pub(crate) names: Vec<(ThreadId, String)>,
    /// A buffer for the objects in a block that is being freed; empty in between.
    pub(crate) inside: Vec<ObjectId>,
    /// The count of the references to a value with quiet drop glue, while the frees of the glue are
    /// examined.
    pub(super) glue_of: Option<ObjectId>,
}

impl Inner {
    /// Keeps the body of a thread that is spawned.
    #[inline]
    pub(super) fn put_body(&mut self, thread: ThreadId, body: ThreadMain) {
        *entry(&mut self.bodies, thread.index()) = Some(body);
    }

    /// Keeps the name of a thread that is spawned.
    #[inline(never)]
    pub(super) fn put_name(&mut self, thread: ThreadId, name: &str) {
        self.names.push((thread, name.to_owned()));
    }

    /// Keeps the number of bytes of stack that the thread has asked for.
    #[inline(never)]
    pub(super) fn put_stack(&mut self, thread: ThreadId, bytes: usize) {
        self.asked.push((thread, bytes));
    }

    /// The end of the execution, which has been noted.
    #[cold]
    pub(super) fn take_end(&mut self) -> End {
        self.end
            .take()
            .expect("dpor bug: the execution has not ended")
    }

    /// The number of bytes of stack that a thread has asked for, if it has.
    #[inline]
    pub(super) fn stack_asked_for(&self, thread: ThreadId) -> Option<usize> {
        // Mostly no thread has.
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

    /// The name of a thread, or its path of births if it has none.
    pub(super) fn called(&self, thread: ThreadId) -> String {
        match self.name_of(thread) {
            Some(name) => name.to_owned(),
            None => self.driver.machine.names.path(thread),
        }
    }

    /// Takes the body of a thread that starts.
    #[inline]
    pub(super) fn take_body(&mut self, thread: ThreadId) -> Option<ThreadMain> {
        self.bodies.get_mut(thread.index())?.take()
    }

    /// Takes the body of any thread that has not started, if there is one.
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
    // SAFETY: `enter` borrows the runtime for as long as this function is called.
    let runtime = unsafe { &*runtime };
    runtime.heap.attach(|| f(runtime))
}

/// Whether an execution runs on this OS thread.
pub(crate) fn inside() -> bool {
    !HERE.get().is_null()
}

/// Runs `f` on the runtime of this OS thread if there is one, whatever its state.
#[inline(always)]
pub(in crate::rt) fn with_any<R>(f: impl FnOnce(&Runtime) -> R) -> Option<R> {
    let here = HERE.get();
    if rarely!(here.is_null()) {
        return None;
    }
    // SAFETY: `execute` borrows the runtime for as long as the pointer is here.
    Some(f(unsafe { &*here }))
}

/// Runs `f` on the runtime of this OS thread, unless there is none or it is tearing down.
/// Operations of a thread that unwinds from a panic are performed like any other.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Runtime) -> R) -> Result<R, Answer> {
    with_step(|runtime| Some(f(runtime)))
}

/// [`with`] for a function that may end the execution: `None` if it does.
#[inline]
pub(super) fn with_step<R>(f: impl FnOnce(&Runtime) -> Option<R>) -> Result<R, Answer> {
    let result = with_any(|runtime| {
        // Within the roomy part of the stack there is no other state to check.
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

/// Marks the value with this number as gone. If it was gone before, in this execution: the thread
/// that has made it, and the place.
pub(crate) fn untrack(number: u64) -> Option<String> {
    let again = |runtime: &Runtime| {
        let mut tracked = runtime.tracked.borrow_mut();
        let at = tracked.binary_search_by_key(&number, |value| value.number);
        let value = &mut tracked[at.ok()?];
        let was_gone = std::mem::replace(&mut value.gone, true);
        // A destructor that runs when the execution is over is no mistake of the program.
        if !was_gone || runtime.stopping.get() {
            return None;
        }
        let Made { site, thread, .. } = value.made;
        let inner = runtime.inner.try_borrow().ok()?;
        Some(format!("made by {} at {site}", inner.called(thread)))
    };
    with_any(again).flatten()
}

/// Gives a name to the object at this address, of so many bytes.
pub(crate) fn name_object(address: usize, size: usize, name: &str) {
    // Where no model runs, no report is written.
    let _ = with(|runtime| {
        let mut inner = runtime.inner.borrow_mut();
        if let Ok(region) = runtime.locate(&inner.stacks, &inner.ended, address) {
            inner.driver.machine.names.label(region, size, name);
        }
    });
}

/// Marks the block that holds this address as the model's.
pub(crate) fn note_block(address: usize) {
    let _ = with_any(|runtime| runtime.heap.find(address));
}

/// Notes that the block that holds this address must be freed before the execution ends.
pub(crate) fn must_free(address: usize) {
    // Where no model runs, no block is expected to be freed.
    let _ = with(|runtime| runtime.heap.owe(address));
}

/// Notes that the block that holds this address may stay allocated when the execution ends.
pub(crate) fn may_leak(address: usize) {
    // Where no model runs, no block is expected to be freed.
    let _ = with(|runtime| runtime.heap.forgive(address));
}

/// Notes that the block that holds this address belongs to one of dpor's own shims, and that std
/// counts the references to it. So no thread uses the block without a reference.
pub(crate) fn std_counts(address: usize) {
    // Where no model runs, no free is checked.
    let _ = with(|runtime| runtime.heap.note_counted(address));
}

/// Adds threads to a list in the reverse order of births
/// ([`Names::add_by_birth`](crate::rt::event::id::Names::add_by_birth)). False where no model runs,
/// or the execution has ended.
pub(crate) fn add_by_birth(list: &mut Vec<ThreadId>, new: &mut Vec<ThreadId>) -> bool {
    // The list is the program's memory. An empty list is swapped with the other one.
    if !list.is_empty() {
        list.reserve(new.len());
    }
    let add = |runtime: &Runtime| {
        let names = &runtime.inner.borrow().driver.machine.names;
        names.add_by_birth(list, new);
    };
    with(add).is_ok()
}

/// The number of comparisons of two threads by birth in this exploration.
#[cfg(test)]
pub(crate) fn compared() -> usize {
    let compared = |runtime: &Runtime| runtime.inner.borrow().driver.machine.names.compared.get();
    with(compared).expect("a model runs")
}

/// The modelled thread that runs on this OS thread.
#[cfg_attr(not(debug_assertions), inline)]
pub(crate) fn current() -> Option<ThreadId> {
    with_any(|runtime| {
        runtime.note_in_glue();
        runtime.current.get()
    })
}

/// The name a thread was given when it was built.
pub(crate) fn name_of(thread: ThreadId) -> Option<String> {
    let name = |runtime: &Runtime| runtime.inner.borrow().name_of(thread).map(str::to_owned);
    with(name).ok().flatten()
}

/// Whether the settings are known not to explore this behaviour at this place. The place is noted
/// then.
#[inline]
fn is_off(behaviour: Behaviour, site: Site) -> bool {
    with_any(|runtime| runtime.permitted.is_off(behaviour, site)) == Some(true)
}

/// Whether a wait of the current thread at this place may still end spuriously.
pub(crate) fn may_wake_up(site: Site) -> bool {
    !is_off(Behaviour::SpuriousWakeup, site) && may_wake_up_if_on(site)
}

/// Whether spurious wake-ups are those of std's waits alone.
pub(crate) fn wakeups_of_std_alone() -> bool {
    with(|runtime| {
        let inner = runtime.inner.borrow();
        inner.driver.machine.limits.wakeups_of_std_alone
    })
    .unwrap_or(false)
}

/// [`may_wake_up`] where spurious wake-ups may be explored. Notes the place.
#[cold]
fn may_wake_up_if_on(site: Site) -> bool {
    with(|runtime| {
        let me = runtime.current.get();
        let inner = runtime.inner.borrow();
        let machine = &inner.driver.machine;
        let explored = machine.may_wake_up(me);
        let possible = Possible {
            behaviour: Behaviour::SpuriousWakeup,
            site,
            explored,
        };
        (runtime.permitted).note(possible, machine.limits.spurious_wakeups == 0);
        explored
    })
    .unwrap_or(false)
}

/// Notes that the current thread clones the waker of the task that it polls. Returns the number of
/// events of the thread, if a model runs.
pub(crate) fn note_cloned_waker() -> Option<u32> {
    with(|runtime| {
        let me = runtime.current.get();
        let events = runtime.inner.borrow().driver.machine.events_of(me);
        if rarely!(runtime.callers.are_asked_for()) {
            runtime.callers.note_clone(me, events);
        }
        events
    })
    .ok()
}

/// Notes that a task, which is polled at this place, has put its waker where no event shows it, if
/// the current thread has made no event since it had this number of events.
pub(crate) fn note_unseen_waker(events: u32, site: Site) {
    // Where no model runs, there is no report.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        if runtime.inner.borrow().driver.machine.events_of(me) != events {
            return;
        }
        let possible = Possible {
            behaviour: Behaviour::UnseenWaker,
            site,
            explored: false,
        };
        runtime.permitted.note(possible, false);
        if rarely!(runtime.callers.are_asked_for()) {
            runtime.callers.note_unseen(me, events, site);
        }
    });
}

/// Counts a wait of the current thread that ends spuriously.
pub(crate) fn count_wakeup() {
    // Where no model runs, no wait is counted.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().driver.machine.count_wakeup(me);
    });
}

/// Switches exploration on or off from this point on, where a model runs.
pub(crate) fn switch_exploration(on: bool) {
    let _ = with(|runtime| runtime.inner.borrow_mut().driver.switch_exploration(on));
}

/// Switches exploration off for the rest of this execution.
pub(crate) fn skip_rest() {
    let _ = with(|runtime| runtime.inner.borrow_mut().driver.skip_rest());
}

/// Whether a weak compare-exchange of the current thread at this place, on the atomic at this
/// address, may fail spuriously.
pub(crate) fn may_fail_for_no_reason(address: usize, site: Site) -> bool {
    !is_off(Behaviour::SpuriousFailure, site) && may_fail_if_on(address, site)
}

/// [`may_fail_for_no_reason`] where spurious failures may be explored. Notes the place.
#[cold]
fn may_fail_if_on(address: usize, site: Site) -> bool {
    with(|runtime| {
        let inner = runtime.inner.borrow();
        let (machine, me) = (&inner.driver.machine, runtime.current.get());
        let has_failed = |object| machine.has_failed_for_no_reason(me, object);
        let is_on = machine.limits.spurious_failures;
        let may_fail = is_on && machine.may_fail_again(me);
        let explored = may_fail && !inner.table.known(address).is_some_and(has_failed);
        let possible = Possible {
            behaviour: Behaviour::SpuriousFailure,
            site,
            explored,
        };
        runtime.permitted.note(possible, !is_on);
        explored
    })
    .unwrap_or(false)
}

/// Whether locks prefer writers, for a `read` at this place. `others_read` says whether the lock is
/// held for reading. Notes the place.
#[inline]
pub(crate) fn prefers_writers(others_read: bool, site: Site) -> bool {
    let at_once = with_any(|runtime| runtime.permitted.reads_at_once(others_read));
    at_once == Some(false) && prefers_writers_if_on(others_read, site)
}

/// [`prefers_writers`] where locks may prefer writers, or the place may have to be noted.
#[cold]
fn prefers_writers_if_on(others_read: bool, site: Site) -> bool {
    with(|runtime| {
        let explored = (runtime.inner.borrow().driver.machine.limits).writers_first;
        let may_meet = others_read && runtime.permitted.has_writes();
        if rarely!(may_meet) && !runtime.permitted.is_off(Behaviour::WriterFirst, site) {
            let behaviour = Behaviour::WriterFirst;
            let possible = Possible {
                behaviour,
                site,
                explored,
            };
            runtime.permitted.note(possible, !explored);
        }
        explored
    })
    .unwrap_or(false)
}

/// Whether locks prefer writers, for a `write`, which is noted.
pub(crate) fn prefers_writers_to_write() -> bool {
    with(|runtime| {
        runtime.permitted.note_write();
        (runtime.inner.borrow().driver.machine.limits).writers_first
    })
    .unwrap_or(false)
}

/// A number of the current thread that is the same in every process.
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

/// Gives the current thread a value of a thread-local variable. `drop` drops the value at the end
/// of the thread.
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
        // SAFETY: the shim gave this function for this value, and the table hands each value out
        // once.
        unsafe { drop(value) };
    }
}

/// In a torn-down execution: lets the other threads unwind before this thread continues.
pub(crate) fn yield_to_teardown() {
    let waits = with_any(|runtime| {
        if runtime.aside.get() {
            std::panic::resume_unwind(Box::new(Stop));
        }
        if !runtime.stopping.get() {
            // A destructor of a panicking thread waits. The execution has failed, and the other
            // threads have to unwind first.
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
