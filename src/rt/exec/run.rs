//! How does one closure run through all executions?
//!
//! [`explore`] is the root that resumes coroutines. It is only reached when another thread is to go
//! on than the one that has just announced an operation, and when a thread or an execution ends.

use std::any::Any;
use std::backtrace::Backtrace;
use std::mem::take;
use std::rc::Rc;
use std::time::Duration;

use crate::rt::explore::driver::{Driver, Next};
use crate::rt::pooled::{Empty, Pooled, empty_rows, pooled};
use crate::rt::trace::Site;
use crate::rt::trace::id::{ThreadId, entry};
use crate::rt::trace::said::Said;
use crate::rt::trace::verdict::{Block, End, Leaked, Panic, Pruned};
use crate::rt::{Body, Work};

use super::callers::Call;
use super::context::{Inner, Runtime, enter, here};
use super::coroutine::{self, Coroutine, Pool, Resumed};
use super::faults::{self, Fault};
use super::heap::{self, MustFree, Watched};
use super::hook;
use super::outsiders;
use super::put_back::put_back_statics;
use super::seat::Seated;
use super::unseen::InOrder;

/// An execution that failed, with everything that is needed to tell about it.
pub(crate) struct Found {
    pub(crate) end: End,
    pub(crate) driver: Seated,
    /// Names given to threads.
    pub(crate) names: Vec<(ThreadId, String)>,
    /// What the program said, to be filled in by who has listened.
    pub(crate) log: Vec<Said>,
    /// Where the program panicked, if it did.
    pub(crate) message: Option<Panic>,
    /// The panics before the failure: they were caught, or their threads still unwound.
    pub(crate) earlier: Vec<Panic>,
    /// Who has used memory that is not there.
    pub(crate) faulted: Option<Backtrace>,
    /// Where the panic began, if the environment asks for backtraces.
    pub(crate) raised: Option<Box<Backtrace>>,
    /// What was seen of the block that was to be watched.
    pub(crate) watched: Watched,
    /// The operations that stand nowhere in the program, if they were asked for.
    pub(crate) callers: Vec<Call>,
    pub(crate) payload: Option<Box<dyn Any + Send>>,
}

impl Found {
    /// This is what the program said, up to where the execution was cut.
    pub(crate) fn hear(&mut self, mut said: Vec<Said>) {
        let events = self.driver.trace.len();
        said.retain(|line| line.after <= events);
        self.log = said;
    }
}

/// How an exploration ended.
pub(crate) enum Explored {
    /// Nothing failed. Whether `go_on` left something out is the caller's to know; the driver knows
    /// the rest.
    Passed(Seated),
    /// This execution failed.
    Failed(Box<Found>),
}

/// How an exploration is run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// If a step does not come back within this time, a line on standard error says so.
    pub(crate) patience: Option<Duration>,
    /// Where the model begins.
    pub(crate) site: Site,
    /// Which blocks must be freed by the end of an execution.
    pub(crate) must_free: MustFree,
    /// The block whose allocation and frees are of interest.
    pub(crate) watch: Option<Block>,
    /// Whether it is of interest who has called the operations that stand nowhere in the program.
    pub(crate) callers: bool,
    /// The command that plays a schedule in the test of this name.
    pub(crate) replay: fn(&str, Option<&str>) -> String,
    /// Frees that are known to be in order.
    pub(crate) in_order: InOrder,
}

/// What is known between two executions.
pub(crate) struct Between<'a> {
    pub(crate) driver: &'a Driver,
    /// How the last execution ended, if there was one and it did not fail.
    pub(crate) end: Option<&'a End>,
    /// Names that it gave to threads.
    pub(crate) names: &'a [(ThreadId, String)],
    /// The operations of it that stand nowhere in the program, if they were asked for.
    pub(crate) callers: &'a [Call],
    /// Whether plain memory was used that is watched for races, which is no event.
    pub(crate) uses_cells: bool,
}

/// The stacks that executions run on, each of this size.
pub(crate) fn stacks(bytes: usize) -> Pool {
    Pool::new(bytes, run)
}

/// Explores the executions of `main` that the driver's explorer asks for, until one fails or `go_on`
/// says no.
pub(crate) fn explore(
    main: &Rc<dyn Work>,
    mut driver: Seated,
    pool: &mut Pool,
    settings: Settings,
    go_on: impl FnMut(&Between<'_>) -> bool,
) -> Explored {
    let Some(failed) = fails(main, driver.begin(&settings), pool, &settings, go_on) else {
        driver.end();
        return Explored::Passed(driver);
    };
    let Failed {
        end,
        events,
        panics: (message, earlier, raised),
        payload,
    } = failed;
    driver.cut(events);
    let runtime = driver.runtime();
    let names = take(&mut runtime.inner.get_mut().names);
    let (watched, faulted) = (runtime.heap.take_watched(), runtime.faulted.take());
    let callers = runtime.callers.take();
    driver.end();
    Explored::Failed(Box::new(Found {
        end,
        driver,
        names,
        log: Vec::new(),
        message: message.map(|message| *message),
        earlier,
        faulted,
        raised,
        watched,
        callers,
        payload,
    }))
}

/// The execution that has failed, as far as the runtime does not know of it.
struct Failed {
    end: End,
    /// How many events it had by then.
    events: usize,
    panics: Panics,
    payload: Option<Box<dyn Any + Send>>,
}

/// What is known of the panic that has failed an execution, of those before it, and of where it began.
type Panics = (Option<Box<Panic>>, Vec<Panic>, Option<Box<Backtrace>>);

/// Explores; gives the execution that fails, if one does.
fn fails(
    main: &Rc<dyn Work>,
    runtime: &Runtime,
    pool: &mut Pool,
    settings: &Settings,
    mut go_on: impl FnMut(&Between<'_>) -> bool,
) -> Option<Failed> {
    let Settings {
        site, must_free, ..
    } = *settings;
    hook::install();
    faults::prepare_thread();
    coroutine::prepare_thread();
    let _outsiders = outsiders::Watch::begin();
    let mut stacks = Stacks {
        pool,
        coroutines: Pooled::default(),
        resting: Vec::new(),
        in_use: 0,
    };
    let mut last: Option<End> = None;
    loop {
        let mut inner = runtime.inner.borrow_mut();
        let callers = runtime.callers.take();
        let between = Between {
            driver: &inner.driver,
            end: last.as_ref(),
            names: &inner.names,
            callers: &callers,
            uses_cells: inner.races.is_active(),
        };
        let more = go_on(&between);
        inner.names.clear();
        if !more || !inner.driver.begin(site) {
            return None;
        }
        drop(inner);
        let was_panicking = std::thread::panicking();
        let (end, events, panics, payload) = enter(runtime, || {
            let mut panicked = None;
            let mut end = execute(runtime, &mut stacks, main, &mut panicked);
            if let Some(outside) = runtime.used_from_outside(&end, stacks.pool.got_after()) {
                end = outside;
            }
            let mut ended_with = None;
            if let End::Pruned(Pruned::Asleep | Pruned::Rounds | Pruned::EndsAreSeen) = end {
                let mut inner = runtime.inner.borrow_mut();
                inner.driver.finish(&end);
                if let End::Pruned(Pruned::Rounds) = end {
                    // It may be shown.
                    ended_with = Some(inner.driver.machine.clone());
                }
                drop(inner);
                run_out(runtime, &mut stacks, &mut None);
            }
            // A panic is the end of an execution where it begins; what it waited for later is of no interest.
            let unwinds = end.has_panicked() || std::thread::panicking();
            let failing = runtime.failing.get().filter(|_| unwinds);
            let (failed, events) = failing.unzip();
            if let Some(thread) = failed {
                end = End::Panicked { thread };
            }
            if let Some(word) = end.in_a_word() {
                let executed = runtime.inner.borrow().driver.executed().len();
                let events = events.unwrap_or(executed).min(executed);
                runtime.failed.set(Some((word, end.thread(), events)));
                *runtime.failed_at.borrow_mut() = end.places();
            }
            let message = runtime.message.take();
            let raised = runtime.raised.take();
            let mut earlier = runtime.earlier.take();
            if let Some(message) = &message
                && !end.has_panicked()
                && runtime.failing.get().is_none()
            {
                earlier.push((**message).clone());
            }
            // Mostly the others have ended, and there is nothing left to keep from being unwound.
            if !matches!(end, End::Complete | End::Pruned(_)) && stacks.in_use > 0 {
                ended_with = Some(runtime.inner.borrow().driver.machine.clone());
                // It may have ended while the thread that has failed was unwinding.
                let mut late = None;
                run_out(runtime, &mut stacks, &mut late);
                panicked = panicked.or(late.filter(|_| failed.is_some()));
            }
            // Where every thread has finished there is nothing to unwind.
            if stacks.in_use > 0 || !matches!(end, End::Complete) {
                tear_down(runtime, &mut stacks, failed, &mut panicked);
            }
            runtime.forget_panics();
            runtime.locals.borrow_mut().reset();
            // Those that were spawned only now are unwound, too, so it is not put back before.
            if let Some(machine) = ended_with {
                let driver = &mut runtime.inner.borrow_mut().driver;
                let later = std::mem::replace(&mut driver.machine, machine);
                driver.machine.keep_names_of(later);
            }
            // A static that leads to blocks would have kept them.
            // Only an execution that came to its end asks for it. Of another one the machine may be that of where it
            // failed, which has not met what threads met while they were run out.
            let complete = matches!(end, End::Complete);
            let kept =
                complete && (runtime.heap.owes_nothing(must_free) || runtime.leads_somewhere());
            put_back_statics(runtime);
            let end = match end {
                End::Complete => runtime.fault().or_else(|| leaked(runtime, must_free, kept)),
                _ => None,
            }
            .unwrap_or(end);
            runtime.tracked.borrow_mut().clear();
            let events = events.unwrap_or(usize::MAX);
            (end, events, (message, earlier, raised), panicked)
        });
        // A stack that was lost while it unwound is still counted, and whatever asks who unwinds would be told so.
        while !was_panicking && std::thread::panicking() && coroutine::forget_panic() {}
        let mut inner = runtime.inner.borrow_mut();
        match inner.driver.unless_more_was_asked_for(end) {
            // What left it had finished it.
            end @ End::Pruned(Pruned::Asleep | Pruned::Rounds) => last = Some(end),
            End::Pruned(Pruned::EndsAreSeen) => return None,
            end @ (End::Complete | End::Pruned(Pruned::Assumed)) => {
                inner.driver.finish(&end);
                last = Some(end);
            }
            end => {
                return Some(Failed {
                    end,
                    events,
                    panics,
                    payload,
                });
            }
        }
    }
}

/// What a complete execution has not given back; blocks do not count if they may be `kept`.
fn leaked(runtime: &Runtime, must_free: MustFree, kept: bool) -> Option<End> {
    if runtime.tracked.borrow().is_empty() && (kept || runtime.heap.is_empty()) {
        return None;
    }
    let tracked = runtime.tracked.take();
    let blocks = match kept {
        true => Vec::new(),
        false => runtime.heap.left(must_free),
    };
    let leaked = Leaked {
        values: tracked.into_iter().map(|(_, made)| made).collect(),
        blocks: blocks.iter().map(heap::Block::name).collect(),
        owed: blocks.iter().any(|block| block.owed),
    };
    let nothing = leaked.values.is_empty() && leaked.blocks.is_empty();
    (!nothing).then_some(End::Leaked(leaked))
}

/// Runs one execution to its end.
fn execute(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    main: &Rc<dyn Work>,
    panicked: &mut Option<Box<dyn Any + Send>>,
) -> End {
    runtime.heap.reset();
    {
        let mut inner = runtime.inner.borrow_mut();
        inner.end = None;
        inner.next = None;
        inner.races.reset();
        inner.ended.clear();
        inner.resting.clear();
        stacks.rested();
        inner.asked.clear();
        inner.put_body(ThreadId::MAIN, main.clone().body());
        let next = inner.next();
        runtime.take(&mut inner, next);
    }
    go_on(runtime, stacks, panicked)
}

/// Lets the threads of an execution that is given up, or has failed, go on to their ends. To unwind them in the middle
/// of what they do would be cheaper, but then destructors find what no execution leads to, and one that panics
/// for that ends the process.
fn run_out(runtime: &Runtime, stacks: &mut Stacks<'_>, panicked: &mut Option<Box<dyn Any + Send>>) {
    let left = runtime.inner.borrow_mut().driver.leave(FURTHER);
    runtime.unexplored.set(true);
    // Each panic ends a thread, or leaves it in the middle of its unwinding.
    while let End::Panicked { .. } = go_on(runtime, stacks, panicked) {}
    runtime.unexplored.set(false);
    let mut inner = runtime.inner.borrow_mut();
    inner.driver.take_up(left);
    (inner.next, inner.end) = (None, None);
}

/// How many events an execution that is given up may still have. What is left of its threads after that unwinds.
const FURTHER: usize = 10_000;

/// Lets the threads of an execution go on until it ends.
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
        let coroutine = match stacks.of(thread) {
            Some(coroutine) => coroutine,
            None => {
                runtime.pulse.turn_to(thread, None);
                stacks.start(&mut inner, thread)
            }
        };
        drop(inner);
        match resume(runtime, thread, coroutine) {
            Resumed::Suspended => {}
            Resumed::Finished(Ok(())) => {
                let inner = runtime.inner.borrow();
                match !inner.resting.is_empty() && inner.resting.contains(&thread) {
                    true => stacks.rest(thread),
                    false => stacks.put_back(thread),
                }
            }
            Resumed::Finished(Err(payload)) => {
                stacks.end(thread);
                if runtime
                    .failing
                    .get()
                    .is_none_or(|(first, _)| first == thread)
                {
                    *panicked = Some(payload);
                }
                // What was wrong before comes first.
                return runtime.fault().unwrap_or(End::Panicked { thread });
            }
            Resumed::Overflowed => {
                stacks.end(thread);
                return End::StackOverflow { thread };
            }
            Resumed::Faulted(Fault { address, stack }) => {
                stacks.end(thread);
                if !runtime.unexplored.get() {
                    runtime.faulted.set(Some(stack));
                }
                // What was wrong before comes first.
                let fault = End::MemoryFault { thread, address };
                return runtime.fault().unwrap_or(fault);
            }
        }
    }
}

/// The thread that goes on, for which everything but its stack is ready; how the execution has ended if none does.
#[inline]
fn next(runtime: &Runtime, inner: &mut Inner) -> Result<ThreadId, End> {
    // Whoever notes an end notes nobody who goes on.
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
                Next::Ended => return Err(inner.take_end()),
            },
        },
    };
    runtime.own(inner, thread);
    Ok(thread)
}

/// The stacks of one execution.
struct Stacks<'a> {
    pool: &'a mut Pool,
    coroutines: Pooled<Running>,
    /// Stacks that are not to be used again in this execution.
    resting: Vec<Coroutine>,
    /// How many threads have one.
    in_use: usize,
}

/// The stacks that threads run on, by thread.
#[derive(Default)]
struct Running(Vec<Option<Coroutine>>);

pooled!(Running);

impl Empty for Running {
    fn empty(&mut self) {
        empty_rows(&mut self.0);
    }
}

impl Stacks<'_> {
    #[inline]
    fn of(&mut self, thread: ThreadId) -> Option<&mut Coroutine> {
        self.coroutines.0.get_mut(thread.index())?.as_mut()
    }

    /// A stack for a thread that is about to start.
    #[inline]
    fn start(&mut self, inner: &mut Inner, thread: ThreadId) -> &mut Coroutine {
        let Some(body) = inner.take_body(thread) else {
            panic!("dpor bug: {thread:?} has neither a stack nor a body")
        };
        let coroutine = match inner.stack_asked_for(thread) {
            None => self.pool.start(body),
            Some(bytes) => self.pool.start_with(body, bytes),
        };
        *entry(&mut inner.stacks, thread.index()) = Some(coroutine.stack());
        self.in_use += 1;
        entry(&mut self.coroutines.0, thread.index()).insert(coroutine)
    }

    /// Takes back the stack of a thread that has ended, for the next execution.
    #[cold]
    fn rest(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.resting.push(coroutine);
        }
    }

    /// Another execution begins.
    #[inline]
    fn rested(&mut self) {
        for coroutine in self.resting.drain(..) {
            self.pool.recycle(coroutine);
        }
    }

    /// Takes back the stack of a thread whose code has returned.
    #[inline(always)]
    fn put_back(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.put_back(coroutine);
        }
    }

    /// Takes back the stack of a thread that has ended, one way or the other.
    fn end(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.recycle(coroutine);
        }
    }
}

impl Drop for Stacks<'_> {
    /// Nothing uses the stacks of an exploration that is over, so none has to rest any longer.
    fn drop(&mut self) {
        self.rested();
    }
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

/// Runs the code of a thread.
fn run(body: Body) {
    /// Drops the thread's variables, also if its body unwinds.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            super::context::drop_locals();
        }
    }
    let end = End;
    body.run();
    drop(end);
    super::context::exit(here());
}

/// How often destructors of an execution that is torn down may wait while no thread comes to its end.
const WAITS: usize = 100;

/// Unwinds every stack that still has frames. If the thread that `failed` had to wait for others in
/// the middle of its unwinding, its payload is found only now.
fn tear_down(
    runtime: &Runtime,
    stacks: &mut Stacks<'_>,
    failed: Option<ThreadId>,
    panicked: &mut Option<Box<dyn Any + Send>>,
) {
    runtime.stopping.set(true);
    // Mostly each thread has begun.
    loop {
        let Some(body) = runtime.inner.borrow_mut().take_some_body() else {
            break;
        };
        // What it owns may ask for the runtime.
        drop(body);
    }
    // A destructor may have to wait for what another thread holds, or only wait a while.
    let mut idle = 0;
    while stacks.in_use > 0 && idle < WAITS {
        idle += 1;
        for index in 0..stacks.coroutines.0.len() {
            let thread = ThreadId(index as u32);
            let Some(coroutine) = stacks.of(thread) else {
                continue;
            };
            runtime.own(&runtime.inner.borrow(), thread);
            match resume(runtime, thread, coroutine) {
                Resumed::Suspended => continue,
                // Whether it unwound to the end or a destructor panicked makes no difference: the
                // failure that ended the execution has been found before.
                Resumed::Finished(ended) => {
                    if failed == Some(thread)
                        && let Err(payload) = ended
                    {
                        *panicked = Some(payload);
                    }
                }
                Resumed::Overflowed | Resumed::Faulted(_) => {}
            }
            stacks.end(thread);
            runtime.inner.borrow_mut().stacks[index] = None;
            idle = 0;
        }
    }
    // What still waits will wait for ever; its stack is lost, which is better than hanging.
    if stacks.in_use > 0 {
        stacks.in_use = 0;
        for coroutine in stacks.coroutines.0.drain(..).flatten() {
            coroutine.abandon();
        }
        runtime.inner.borrow_mut().stacks.clear();
    }
    runtime.stopping.set(false);
}

#[cfg(test)]
mod tests;
