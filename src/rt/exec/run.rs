//! How does one closure run through all executions?
//!
//! [`explore`] is the root that resumes coroutines. Control returns to it only when another thread
//! continues than the thread that has just announced an operation, and when a thread or an
//! execution ends.

use std::any::Any;
use std::backtrace::Backtrace;
use std::mem::take;

use crate::rt::engine::driver::{Driver, Next};
use crate::rt::event::id::ThreadId;
use crate::rt::event::said::Said;
use crate::rt::event::verdict::{End, Panic, Pruned};
use crate::rt::pooled::Empty;
use crate::rt::rare::{cold_path, rarely};
use crate::rt::thread_main::Work;

use super::callers::{Call, Round, UnseenWaker};
use super::context::{self, Inner, Runtime, enter};
use super::faults;
use crate::rt::coroutine;
use crate::rt::coroutine::{Coroutine, Pool, Resumed};
use crate::rt::event::held::{Held, Touched};
use crate::rt::exec::interrupts;
use crate::rt::exec::panics::begun;
use crate::rt::exec::permitted::Permitted;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::process_exit;
use crate::rt::exec::recorded_outcome::RecordedOutcome;
use crate::rt::exec::settings::Settings;
use crate::rt::exec::state_capture;
use crate::rt::exec::thread_op;
use crate::rt::heap::Watched;
use crate::rt::process::outside_use;
use crate::rt::process::panic_hook::{self, Listener};
use crate::rt::process::raised;

mod ending;
mod stacks;

use ending::{Ended, after};
use stacks::Stacks;

/// An execution that failed, with all data for its report.
pub(crate) struct Found {
    pub(crate) end: End,
    pub(crate) driver: PooledDriver,
    /// Names given to threads.
    pub(crate) names: Vec<(ThreadId, String)>,
    /// The lines of the program's log, which the owner of the log fills in.
    pub(crate) log: Vec<Said>,
    /// Where the program panicked, if it did.
    pub(crate) message: Option<Panic>,
    /// The panics before the failure: they were caught, or their threads still unwound.
    pub(crate) earlier: Vec<Panic>,
    /// The stack of the thread that has used memory that is not mapped.
    pub(crate) faulted: Option<Backtrace>,
    /// Where the panic began, if the environment asks for backtraces.
    pub(crate) raised: Option<Box<Backtrace>>,
    /// The history of the block that was to be watched.
    pub(crate) watched: Watched,
    /// The operations with sites outside of the program's source, if they were asked for.
    pub(crate) callers: Vec<Call>,
    /// The data behind locks, if the callers were asked for.
    pub(crate) held: Vec<Held>,
    /// The accesses to plain memory, if the callers were asked for.
    pub(crate) touched: Vec<Touched>,
    /// Whether the execution, or one before it, has used plain memory that is watched.
    pub(crate) uses_cells: bool,
    pub(crate) payload: Option<Box<dyn Any + Send>>,
}

impl Found {
    /// Takes these lines of the program's log, up to the event at which the execution was cut.
    pub(crate) fn hear(&mut self, mut said: Vec<Said>) {
        let events = self.driver.trace.len();
        said.retain(|line| line.after <= events);
        self.log = said;
    }

    /// The text of the panic with which the execution ended, if its payload is text. No hook is
    /// called for a panic that is raised again, but its payload is kept if its thread has ended.
    pub(crate) fn said(&self) -> Option<&str> {
        let kept = || raised::text(self.payload.as_deref()?);
        let told = self.message.as_ref().map(|message| message.text.as_str());
        told.or_else(kept)
    }
}

/// How an exploration ended.
pub(crate) enum Explored {
    /// No execution failed. The caller knows whether `go_on` left executions out; the driver knows
    /// the rest.
    Passed(PooledDriver),
    /// This execution failed.
    Failed(Box<Found>),
}

/// The state between two executions.
pub(crate) struct Between<'a> {
    pub(crate) driver: &'a Driver,
    /// How the last execution ended, if there was one and it did not fail.
    pub(crate) end: Option<&'a End>,
    /// The names that the last execution gave to threads.
    pub(crate) names: &'a [(ThreadId, String)],
    /// The operations of the last execution with sites outside of the program's source, if they
    /// were asked for.
    pub(crate) callers: &'a [Call],
    /// The rounds of the loops without a hint that have waited since the exploration began, or was
    /// resumed.
    pub(crate) rounds: &'a [Round],
    /// Whether the program has used plain memory that is watched for races. Such a use is no event.
    pub(crate) uses_cells: bool,
    /// Whether an execution has met memory that is older than itself, as a static is.
    pub(crate) met_older: bool,
    /// The outcome that the test has recorded for the last execution, if any.
    pub(crate) recorded_outcome: Option<&'a RecordedOutcome>,
    /// The places at which std permits a behaviour that may not have been explored.
    pub(crate) permitted: &'a Permitted,
    /// The wakers that tasks of the last execution have put where no event shows them, if callers
    /// were asked for.
    pub(crate) unseen_wakers: &'a [UnseenWaker],
}

/// The stacks that executions run on, each of this size.
pub(crate) fn stacks(bytes: usize) -> Pool {
    prepare();
    Pool::new(bytes, &thread_op::ENDS)
}

/// The functions that the panic hook of the process calls.
pub(crate) const LISTENER: Listener = Listener { prepare, begun };

/// Installs the handlers that a process has once: those for signals, for the end of the process,
/// and those of `generator`.
pub(crate) fn prepare() {
    coroutine::prepare(|install_generator| {
        faults::install(install_generator);
        process_exit::install();
        interrupts::install();
    });
}

/// [`explore`] for few executions. Most of the inlined code of this crate is in the function that
/// runs executions. Each caller of that function has a copy of it, which takes as long to compile
/// as many a module; the callers of this function share one copy.
#[inline(never)]
pub(crate) fn explore_a_few(
    main: &dyn Work,
    driver: PooledDriver,
    pool: &mut Pool,
    settings: Settings,
    go_on: &mut dyn FnMut(&Between<'_>) -> bool,
) -> Explored {
    explore(main, driver, pool, settings, go_on)
}

/// Explores the executions of `main` that the driver's explorer asks for, until one fails or
/// `go_on` returns false.
pub(crate) fn explore(
    main: &dyn Work,
    mut driver: PooledDriver,
    pool: &mut Pool,
    settings: Settings,
    go_on: impl FnMut(&Between<'_>) -> bool,
) -> Explored {
    let runtime = driver.begin(&settings);
    let Some(failed) = enter(runtime, || fails(main, runtime, pool, &settings, go_on)) else {
        driver.end();
        return Explored::Passed(driver);
    };
    let Ended {
        end,
        events,
        panics: (raised, earlier),
        payload,
    } = failed;
    let (message, raised) = raised.map(|raised| (raised.panic, raised.stack)).unzip();
    driver.hide_suffix(events);
    let runtime = driver.runtime();
    let names = take(&mut runtime.inner.get_mut().names);
    let (watched, faulted) = (runtime.heap.take_watched(), runtime.faulted.take());
    let callers = runtime.callers.take();
    let held = runtime.callers.take_held();
    let touched = runtime.callers.take_touched();
    let uses_cells = runtime.inner.get_mut().races.is_active();
    driver.end();
    Explored::Failed(Box::new(Found {
        end,
        driver,
        names,
        log: Vec::new(),
        message,
        earlier,
        faulted,
        raised: raised.flatten(),
        watched,
        callers,
        held,
        touched,
        uses_cells,
        payload,
    }))
}

/// Explores; returns the execution that fails, if one does.
fn fails(
    main: &dyn Work,
    runtime: &Runtime,
    pool: &mut Pool,
    settings: &Settings,
    mut go_on: impl FnMut(&Between<'_>) -> bool,
) -> Option<Ended> {
    let Settings {
        site,
        must_free,
        statics,
        ..
    } = *settings;
    panic_hook::install(LISTENER);
    faults::prepare_thread();
    coroutine::prepare_thread();
    let _outsiders = outside_use::Watch::begin();
    let mut stacks = Stacks::of(pool);
    let mut last: Option<End> = None;
    let mut made_again = false;
    loop {
        let mut inner = runtime.inner.borrow_mut();
        let callers = runtime.callers.take();
        drop((runtime.callers.take_held(), runtime.callers.take_touched()));
        let unseen_wakers = runtime.callers.take_unseen();
        let rounds = runtime.callers.rounds();
        let recorded_outcome = runtime.recorded_outcome.take();
        let between = Between {
            driver: &inner.driver,
            end: last.as_ref(),
            names: &inner.names,
            callers: &callers,
            rounds: &rounds,
            uses_cells: inner.races.is_active(),
            met_older: inner.table.has_met_older(),
            recorded_outcome: recorded_outcome.as_deref(),
            permitted: &runtime.permitted,
            unseen_wakers: &unseen_wakers,
        };
        // An execution that is made again has not ended: nothing is left behind it.
        let more = rarely!(take(&mut made_again)) || go_on(&between);
        inner.names.clear();
        runtime.pulse.count_executions(inner.driver.stats.begun());
        if !more || !inner.driver.begin(site) {
            return None;
        }
        drop((inner, rounds));
        stacks.pool.executions += 1;
        let was_panicking = std::thread::panicking();
        let ended = context::execute(|runtime| {
            let mut payload = None;
            let end = execute(runtime, &mut stacks, main, &mut payload);
            after(runtime, &mut stacks, end, payload, (must_free, statics))
        });
        // The OS thread still counts the panic of a stack that was lost while it unwound. Code that
        // asks whether the OS thread panics would see that panic.
        while !was_panicking && rarely!(std::thread::panicking()) && coroutine::forget_panic() {}
        let mut inner = runtime.inner.borrow_mut();
        match inner.driver.unless_more_was_asked_for(ended.end) {
            // `after` has already called `finish` for these ends.
            end @ End::Pruned(Pruned::Asleep | Pruned::Rounds | Pruned::InVain) => last = Some(end),
            End::Pruned(Pruned::EndsAreSeen) => return None,
            End::Pruned(Pruned::LeftLoop) if inner.driver.refused().is_some() => return None,
            End::Pruned(Pruned::LeftLoop) => made_again = true,
            end @ (End::Complete | End::Pruned(Pruned::Assumed | Pruned::Stopped)) => {
                if let Some(bytes) = inner.driver.lacks_memory() {
                    cold_path();
                    let end = End::NoClocks { bytes };
                    let events = inner.driver.executed().len();
                    return Some(Ended {
                        end,
                        events,
                        ..ended
                    });
                }
                inner.driver.finish(&end);
                last = Some(end);
            }
            end => {
                cold_path();
                return Some(Ended { end, ..ended });
            }
        }
    }
}

/// Runs one execution to its end.
#[inline(always)]
fn execute(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    main: &dyn Work,
    panicked: &mut Option<Box<dyn Any + Send>>,
) -> End {
    runtime.heap.reset();
    {
        let mut inner = runtime.inner.borrow_mut();
        (runtime.heap).tell_all(inner.driver.may_note_raw_uses());
        let is_weak = inner.driver.is_weak();
        runtime.weak.set(is_weak);
        state_capture::repeat_rounds(inner.driver.proves_awaits());
        inner.races.set_weak(is_weak);
        inner.end.empty();
        inner.next = None;
        inner.races.reset();
        inner.ended.clear();
        inner.resting.clear();
        stacks.rested();
        inner.asked.clear();
        // SAFETY: the closure is borrowed until the exploration ends. A thread that has not ended
        // by then has a stack that is lost, and does not run again.
        inner.put_body(ThreadId::MAIN, unsafe { main.body() });
        let next = inner.next();
        runtime.take(&mut inner, next);
    }
    go_on(runtime, stacks, panicked)
}

/// Runs the threads of an execution until it ends.
#[inline(always)]
fn go_on(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    panicked: &mut Option<Box<dyn Any + Send>>,
) -> End {
    loop {
        let mut inner = runtime.inner.borrow_mut();
        let thread = match next(runtime, &mut inner) {
            Ok(thread) => thread,
            Err(end) => return end,
        };
        let coroutine = match stacks.get(thread) {
            Some(coroutine) => coroutine,
            None => {
                runtime.pulse.turn_to(thread, None);
                match stacks.start(&mut inner, thread) {
                    Some(coroutine) => coroutine,
                    None => {
                        cold_path();
                        let bytes = stacks.bytes_of(&inner, thread);
                        return End::NoStack { thread, bytes };
                    }
                }
            }
        };
        drop(inner);
        let resumed = resume(runtime, thread, coroutine);
        if rarely!(runtime.tries.get()) && !matches!(resumed, Resumed::Suspended) {
            // The thread has ended in a way that no announcement shows.
            cold_path();
            runtime.tries.set(false);
            let mut inner = runtime.inner.borrow_mut();
            runtime.repeats.set(false);
            runtime.hints.set(0);
            inner.driver.leaves_loop(thread);
            return End::Pruned(Pruned::LeftLoop);
        }
        match resumed {
            Resumed::Suspended => {}
            Resumed::Finished(Ok(())) => {
                let inner = runtime.inner.borrow();
                if rarely!(!inner.resting.is_empty()) && inner.resting.contains(&thread) {
                    stacks.rest(thread)
                } else {
                    stacks.put_back(thread)
                }
            }
            Resumed::Finished(Err(payload)) => {
                cold_path();
                stacks.end(thread);
                if runtime
                    .failing
                    .get()
                    .is_none_or(|(first, _)| first == thread)
                {
                    *panicked = Some(payload);
                } else if let Some(mut second) = runtime.second.take() {
                    if second.raised.panic.thread == thread && !runtime.unexplored.get() {
                        second.payload = Some(payload);
                    }
                    runtime.second.set(Some(second));
                }
                // An earlier fault takes precedence.
                return runtime.fault().unwrap_or_else(|| End::panicked(thread));
            }
            // The stack was abandoned after an abort: this is the end of its thread, as a panic is.
            Resumed::Aborted => {
                cold_path();
                stacks.end(thread);
                return End::panicked(thread);
            }
            Resumed::Overflowed => {
                cold_path();
                stacks.end(thread);
                return End::StackOverflow { thread };
            }
            Resumed::Faulted(fault) => {
                cold_path();
                stacks.end(thread);
                // An earlier fault takes precedence.
                let end = runtime
                    .fault()
                    .unwrap_or_else(|| runtime.end_of_use(thread, &fault));
                if !runtime.unexplored.get() {
                    runtime.faulted.set(Some(fault.stack));
                }
                return end;
            }
        }
    }
}

/// [`go_on`] for rare callers, not inlined.
#[inline(never)]
fn go_further(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    panicked: &mut Option<Box<dyn Any + Send>>,
) -> End {
    go_on(runtime, stacks, panicked)
}

/// The thread that makes the next step, for which everything but its stack is ready; the end of the
/// execution if there is none.
#[inline]
fn next(runtime: &Runtime, inner: &mut Inner) -> Result<ThreadId, End> {
    // A function that notes an end notes no next thread.
    let thread = match inner.next.take() {
        Some(thread) => thread,
        None => match inner.end.take() {
            Some(end) => return Err(end),
            // The last step was the end of a thread.
            None => match inner.next() {
                Next::Begins(thread) => thread,
                Next::Ran(thread, outcome) => {
                    runtime.outcome.set(Some(outcome));
                    thread
                }
                Next::Tries(thread, outcome) => {
                    runtime.tries.set(true);
                    runtime.outcome.set(Some(outcome));
                    thread
                }
                Next::Ended => return Err(inner.take_end()),
            },
        },
    };
    runtime.own(inner, thread);
    Ok(thread)
}

/// Runs the code of `thread` until it suspends or ends.
#[inline(always)]
fn resume(runtime: &Runtime, thread: ThreadId, coroutine: &mut Coroutine) -> Resumed {
    runtime.open_short_way(coroutine.roomy());
    runtime.current.set(thread);
    runtime.running.set(true);
    runtime.heap.record(true);
    coroutine.run_on();
    runtime.heap.record(false);
    runtime.running.set(false);
    coroutine.came_back()
}

#[cfg(test)]
mod tests;
