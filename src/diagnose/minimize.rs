//! Which execution does the report show for a failure, and on which pair of operations does the
//! failure depend?
//!
//! The execution that failed is one of many with the same failure, and seldom the simplest. The
//! execution that is shown has been executed. It is the result of these attempts, in this order
//! (`fewest_switches.rs`). First, only the events that the failure depends on, in the order with
//! the fewest switches. Under C11, executions with fewer old values (`old_values.rs`). Then, if
//! still simpler, the simplest execution that a short search over executions with few preemptions
//! finds; the first such search lets loops without a hint make only a few rounds. If the search
//! finds none, executions in which two turns of a thread are merged. For a data race, the shown
//! execution depends on the orderings that the report suggests (`orderings.rs`). Then pairs of
//! operations are tried in the other order, until the test passes. All of this means something only
//! if the failure recurs from its own schedule (`reproduce.rs`).

use std::backtrace::Backtrace;
use std::mem::discriminant;
use std::ops::RangeInclusive;

use crate::config::Builder;
use crate::diagnose::orderings::suggest_orderings;
use crate::diagnose::reproduce::may_come_again;
use crate::rt::Work;
use crate::rt::coroutine::Pool;
use crate::rt::engine::Explorer;
use crate::rt::engine::critical::{candidates, lost};
use crate::rt::engine::driver::Driver;
use crate::rt::engine::replay::Replay;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::event::said::Said;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{Block, Blocked, End, Pair, Panic, Reproduction};
use crate::rt::event::{Event, Site, Trace};
use crate::rt::exec::callers::stands_nowhere;
use crate::rt::exec::log::Log;
use crate::rt::exec::over::try_out;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::{Explored, Found, LISTENER, explore_a_few};
use crate::rt::exec::settings::Settings;
use crate::rt::exec::suppressed_races::{InOrder, SuppressedRaces};
use crate::rt::heap::Watched;
use crate::rt::object::machine::Learnt;
use crate::rt::process::panic_hook;
use crate::rt::report::old_values::old_events;
use crate::rt::report::places::{self, Callers, Life};
use crate::verdict::failure::place;

/// The most pairs that are tried in the other order.
const PAIRS_MAX: usize = 64;

/// Number of events for each execution of the search for a simpler one (`Builder::simplify`): twice
/// the events of the execution that failed, at least and at most this. The product limits the
/// events of all attempts for one failure. If executions are longer, fewer of them run.
const EVENTS_EACH: RangeInclusive<u64> = 250..=1000;

/// How many times the events of the exploration may be spent on the attempts, if that is more.
const TIMES_FOUND: u64 = 2;

/// How many times the events of the execution that failed an execution may have that is tried in
/// its place, and how many events more. One that is still longer is not easier to read.
const TIMES_LONGER: usize = 2;
const EVENTS_LONGER: usize = 64;

/// Number of events that the attempts for one failure may spend.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Number of events that are left.
    left: u64,
    /// The most events of one execution.
    each: usize,
}

impl Budget {
    /// Creates the budget for a failure that was found after this number of events, in an execution
    /// with that `length`.
    fn of(simplify: u64, events: u64, length: u64) -> Budget {
        let each = (2 * length).clamp(*EVENTS_EACH.start(), *EVENTS_EACH.end());
        let fixed = each.saturating_mul(simplify);
        let left = fixed.max(TIMES_FOUND.saturating_mul(events));
        Budget {
            left,
            each: usize::try_from(left).unwrap_or(usize::MAX),
        }
    }

    /// Creates the budget for runs that establish facts, as opposed to runs that improve the
    /// report.
    pub(crate) fn unlimited() -> Budget {
        Budget {
            left: u64::MAX,
            each: usize::MAX,
        }
    }

    /// Whether no further attempt may begin.
    pub(crate) fn is_spent(self) -> bool {
        self.left == 0
    }

    /// Takes these events off the budget.
    fn spend(&mut self, events: u64) {
        self.left = self.left.saturating_sub(events);
    }
}

/// The result of minimising a failure.
pub(crate) struct Minimized {
    /// Another execution with the same failure, if a simpler one was found.
    pub(crate) simpler: Option<Box<Found>>,
    pub(crate) life: Life,
    /// The call sites of operations that have no place of their own in the program.
    pub(crate) callers: Callers,
    /// The pair of operations with which, in the other order, the test passes.
    pub(crate) pair: Option<Pair>,
    /// The result of running the failure again from its schedule.
    pub(crate) again: Reproduction,
    /// Whether the execution passes if `join` returns the panic of a spawned thread.
    pub(crate) is_handled: bool,
}

/// What a rerun of an execution records in addition.
#[derive(Clone, Copy, Default)]
pub(crate) struct Looks {
    /// Record the stacks of the allocation and of the free of this block.
    block: Option<Block>,
    /// Record the stacks of operations that have no place of their own in the program.
    callers: bool,
    /// Report only uses of freed memory: no free counts as a race with an earlier access.
    only_bad_memory: bool,
}

impl Looks {
    pub(crate) fn at_bad_memory() -> Looks {
        Looks {
            only_bad_memory: true,
            ..Looks::default()
        }
    }

    pub(crate) fn at_callers() -> Looks {
        Looks {
            callers: true,
            ..Looks::default()
        }
    }
}

/// Runs a test's closure again, with one question about a failure.
pub(crate) struct Probe<'a> {
    pub(crate) settings: &'a Builder,
    pub(crate) main: &'a dyn Work,
    pub(crate) stacks: &'a mut Pool,
    pub(crate) log: &'a Log,
    pub(crate) site: Site,
    /// Frees that look like data races and are known to be ordered.
    pub(crate) unseen: &'a [SuppressedRaces],
    pub(crate) learnt: Learnt,
    pub(crate) budget: Budget,
}

impl Probe<'_> {
    /// Finds the execution to show for this failure. With `repeat` the schedule is the user's own,
    /// and no other execution is shown.
    pub(crate) fn minimize(&mut self, found: &mut Found, repeat: bool) -> Minimized {
        suggest_orderings(&mut found.end, &found.driver.trace);
        let length = found.driver.trace.len() as u64;
        let events = found.driver.stats.events + length;
        self.budget = Budget::of(self.settings.simplify, events, length);
        let told = !matches!(
            found.end,
            End::TooManyEvents { .. }
                | End::TooManyThreads { .. }
                | End::StackOverflow { .. }
                | End::NoStack { .. }
                | End::NoClocks { .. }
                | End::Stale { .. }
                | End::NotDeterministic(_)
                | End::Livelock { .. }
                | End::Outside(_)
        );
        // All attempts need clocks.
        let told_by_clocks = found.driver.lacks_clocks().is_none();
        let told = told && told_by_clocks;
        let again = if self.settings.simplify > 0 && may_come_again(&found.end) {
            self.again(found)
        } else {
            Reproduction::Same
        };
        if !told || self.settings.simplify == 0 || again != Reproduction::Same {
            // A livelock is not minimised. But it recurs from its schedule, so its pair and its
            // callers can be found.
            let again_now = self.settings.simplify > 0 && again == Reproduction::Same;
            let callers = again_now && matches!(found.end, End::Livelock { .. });
            let is_livelock = callers && told_by_clocks;
            let pair = if is_livelock {
                self.decisive(found)
            } else {
                None
            };
            let pair = pair.filter(|pair| self.hangs_on(pair));
            let (life, callers) = self.places(found, callers);
            return Minimized {
                simpler: None,
                life,
                callers,
                pair,
                again,
                is_handled: false,
            };
        }
        let mut simpler = None;
        if !repeat {
            let each = self.budget.each;
            let longest = TIMES_LONGER * found.driver.trace.len() + EVENTS_LONGER;
            self.budget.each = each.min(longest);
            simpler = self.reorder(found);
            let best = simpler.as_deref().unwrap_or(found);
            if let Some(mut better) = self.fewer_old_values(best) {
                simpler = Some(self.reorder(&mut better).unwrap_or(better));
            }
            let best = simpler.as_deref_mut().unwrap_or(found);
            let better = self.fail_earlier(best).or_else(|| self.searched(best));
            if let Some(better) = better.or_else(|| self.merge_turns(best)) {
                simpler = Some(better);
            }
            if let Some(simpler) = &mut simpler {
                suggest_orderings(&mut simpler.end, &simpler.driver.trace);
            }
            let best = simpler.as_deref_mut().unwrap_or(found);
            if let Some(better) = self.without_needless_races(best) {
                simpler = Some(better);
            }
            self.budget.each = each;
        }
        let shown = simpler.as_deref_mut().unwrap_or(found);
        self.find_publication_order(shown);
        let pair = match &shown.end {
            // The missing orderings are a better explanation than a pair.
            End::DataRace(race) if !race.weak.pairs.is_empty() => None,
            _ => self.decisive(shown),
        };
        // The execution that failed is known to recur.
        let again = match simpler.is_some() {
            true => self.again(simpler.as_deref().unwrap_or(found)),
            false => again,
        };
        let shown = simpler.as_deref_mut().unwrap_or(found);
        let pair = pair.filter(|pair| again == Reproduction::Same && self.hangs_on(pair));
        let (life, callers) = self.places(shown, true);
        let is_handled = again == Reproduction::Same && self.is_handled(shown);
        Minimized {
            life,
            callers,
            pair,
            again,
            is_handled,
            simpler,
        }
    }

    /// Whether the test would have passed if `join` returned the panic, as for std's threads
    /// (`Builder::catch_panics`).
    fn is_handled(&mut self, found: &Found) -> bool {
        let End::Panicked { thread, .. } = &found.end else {
            return false;
        };
        if *thread == ThreadId::MAIN || self.settings.catch_panics {
            return false;
        }
        let mut settings = self.settings.clone();
        settings.catch_panics = true;
        let mut body = Probe {
            settings: &settings,
            main: self.main,
            stacks: self.stacks,
            log: self.log,
            site: self.site,
            unseen: self.unseen,
            learnt: self.learnt.clone(),
            budget: self.budget,
        };
        // The threads that unwind may meet a destructor that panics, for which std ends the
        // process.
        try_out(|| body.passes(&leads_to(found)).is_some()) == Some(true)
    }

    /// Fills in the message and the place of a panic, if dpor's hook was not called for it. The
    /// program may have set a hook of its own, so the execution runs again under dpor's hook.
    /// (`resume_unwind` calls no hook.)
    pub(crate) fn ask(&mut self, found: &mut Found) {
        let End::Panicked { thread, .. } = found.end else {
            return;
        };
        if found.message.is_some() || !may_come_again(&found.end) {
            return;
        }
        panic_hook::set_above(LISTENER);
        let again = Box::new(Replay::new(leads_to(found)));
        let Some(again) = self.fails(again, 1, Looks::default()) else {
            return;
        };
        // The same threads may have other numbers.
        let path = |found: &Found, thread| found.driver.machine.names.path(thread);
        let is_same = matches!(again.end, End::Panicked { thread: theirs, .. } if path(&again, theirs) == path(found, thread));
        if let (Some(message), true) = (again.message, is_same) {
            found.message = Some(Panic { thread, ..message });
            found.raised = again.raised;
        }
    }

    /// Fills in the program's output in this execution. If no subscriber recorded it, the execution
    /// runs again; the output of that run counts as long as its events are the same.
    pub(crate) fn hear(&mut self, found: &mut Found) {
        if self.log.keeps() {
            return found.hear(self.log.lines());
        }
        if !self.log.was_missed() {
            return;
        }
        let (trace, names) = (&found.driver.trace, &found.driver.machine.names);
        let schedule = leads_to(found);
        let (again, log) = self.explored(Box::new(Replay::new(schedule)), 1, Looks::default());
        let again = match again {
            Explored::Failed(found) => found.driver,
            Explored::Passed(driver) => driver,
        };
        // The same threads may be met in another order, and then have other numbers.
        let theirs = &again.machine.names;
        let events = trace.events().iter().zip(again.trace.events());
        let same = events.take_while(|(one, other)| {
            one.site == other.site && names.path(one.thread) == theirs.path(other.thread)
        });
        let same = same.count();
        let lines = log.lines().into_iter().filter(|line| line.after <= same);
        let lines = lines.filter_map(|line| {
            let thread = names.find(&theirs.path(line.thread))?;
            Some(Said { thread, ..line })
        });
        let lines = lines.collect();
        found.hear(lines);
    }

    /// Creates a driver for this explorer.
    pub(crate) fn driver(&self, explorer: Box<dyn Explorer>) -> PooledDriver {
        let mut driver = self.settings.driver(explorer, self.learnt.clone());
        driver.limit_events(self.budget.each);
        driver
    }

    /// Runs the executions of this explorer, at most `most` of them; returns the first failure.
    pub(crate) fn fails(
        &mut self,
        explorer: Box<dyn Explorer>,
        most: u64,
        looks: Looks,
    ) -> Option<Box<Found>> {
        match self.explored(explorer, most, looks) {
            (Explored::Failed(mut found), log) => {
                found.hear(log.lines());
                Some(found)
            }
            (Explored::Passed(_), _) => None,
        }
    }

    /// [`Probe::fails`] that returns the driver in any case, with the program's output in the last
    /// execution.
    pub(crate) fn explored(
        &mut self,
        explorer: Box<dyn Explorer>,
        most: u64,
        looks: Looks,
    ) -> (Explored, Log) {
        self.goes_on(self.driver(explorer), most, looks)
    }

    /// Returns the settings of executions that look at these facts.
    pub(crate) fn looking(&self, looks: Looks) -> Settings {
        let mut settings = Settings {
            watch: looks.block,
            callers: looks.callers,
            ..self.settings.running(self.site, self.unseen)
        };
        if looks.only_bad_memory {
            settings.in_order = InOrder::All;
        }
        settings
    }

    /// [`Probe::explored`] with a driver that may have explored executions before.
    pub(crate) fn goes_on(
        &mut self,
        driver: PooledDriver,
        most: u64,
        looks: Looks,
    ) -> (Explored, Log) {
        let settings = self.looking(looks);
        let log = self.log.quiet();
        let before = driver.stats.events;
        let left = self.budget.left;
        let explored = log.listen(|| {
            explore_a_few(self.main, driver, self.stacks, settings, &mut |between| {
                let stats = between.driver.stats;
                let more =
                    stats.begun() < most && (stats.begun() == 0 || stats.events - before < left);
                if more {
                    log.clear();
                }
                more
            })
        });
        let after = match &explored {
            Explored::Passed(driver) => driver.stats.events,
            Explored::Failed(found) => found.driver.stats.events + found.driver.trace.len() as u64,
        };
        self.budget.spend(after.saturating_sub(before));
        (explored, log)
    }

    /// Returns the pair of operations that decides the failure. In an execution with old values it
    /// has an old one: no order of the events explains more.
    fn decisive(&mut self, found: &mut Found) -> Option<Pair> {
        match old_events(&found.driver.trace) {
            0 => self.pair(found),
            _ => self.old_pair(found),
        }
    }

    /// Returns the pair of operations with which, in the other order, the test passes.
    fn pair(&mut self, found: &mut Found) -> Option<Pair> {
        let end = found.end.clone();
        // While the threads of a livelock spin for ever, no event matters to its cause.
        let length = decided(found);
        let pairs = (found.driver).ended(&end, |run| candidates(run, length, PAIRS_MAX));
        pairs.into_iter().find_map(|mut pair| {
            let passed = self.passes_within_budget(&pair.reversed)?;
            pair.lost = lost(&end, &found.driver, &passed);
            Some(pair)
        })
    }

    /// [`Probe::passes`], unless that takes more events than the budget has left.
    pub(crate) fn passes_within_budget(&mut self, schedule: &Schedule) -> Option<PooledDriver> {
        if self.budget.is_spent() {
            return None;
        }
        let left = usize::try_from(self.budget.left).unwrap_or(usize::MAX);
        let each = std::mem::replace(&mut self.budget.each, left);
        let passed = self.passes(schedule);
        self.budget.each = each;
        passed
    }

    /// Returns the execution that begins with this schedule and continues freely, if it is complete
    /// without a failure.
    pub(crate) fn passes(&mut self, schedule: &Schedule) -> Option<PooledDriver> {
        let explorer = Box::new(Replay::new(schedule.clone()));
        let settings = self.settings.running(self.site, self.unseen);
        let driver = self.driver(explorer);
        match explore_a_few(self.main, driver, self.stacks, settings, &mut |_| true) {
            Explored::Failed(found) => {
                self.budget.spend(found.driver.trace.len() as u64);
                None
            }
            Explored::Passed(driver) => {
                self.budget.spend(driver.stats.events);
                (driver.stats.complete == 1).then_some(driver)
            }
        }
    }

    /// Returns the records of the block of this failure, from another run of the execution.
    /// Recording every block all the time would cost more than the exploration.
    pub(crate) fn watched(&mut self, found: &Found) -> Option<Watched> {
        let looks = Looks {
            block: Some(found.end.block()?),
            ..Looks::default()
        };
        let again = self.looked_at(found, looks)?;
        Some(again.watched)
    }

    /// Runs the same execution again, and records more of it.
    fn looked_at(&mut self, found: &Found, looks: Looks) -> Option<Box<Found>> {
        let schedule = leads_to(found);
        self.fails(Box::new(Replay::new(schedule)), 1, looks)
    }

    /// Returns the places where the failure's block was allocated and freed, and the call sites of
    /// operations that have no place of their own in the program, if `callers` asks for them. Both
    /// are unknown if the execution is not run again.
    fn places(&mut self, found: &Found, callers: bool) -> (Life, Callers) {
        let events = found.driver.trace.events().iter();
        let events = events.map(|event| (event.operation, event.site));
        let stuck = found.end.stuck().iter();
        let stuck = stuck.map(|waiting| (waiting.operation, waiting.site));
        let mut nowhere = events.chain(stuck);
        let looks = Looks {
            block: found.end.block().filter(|_| self.settings.simplify > 0),
            callers: callers
                && (found.uses_cells
                    || nowhere.any(|(operation, site)| {
                        stands_nowhere(&operation, site) || operation.kind.takes_lock()
                    })),
            only_bad_memory: false,
        };
        let is_looked_at = looks.block.is_some() || looks.callers;
        let again = is_looked_at.then(|| self.looked_at(found, looks));
        let faulted = found.faulted.as_ref();
        let mut life = Life {
            faulted: faulted.and_then(|stack| places::of_fault(stack, self.site)),
            ..Life::default()
        };
        let Some(again) = again.flatten() else {
            return (life, Callers::default());
        };
        let place = |stack: Option<Backtrace>| places::of(&stack?, self.site);
        life.allocated = place(again.watched.allocated);
        life.freed = place(again.watched.freed);
        life.again = place(again.watched.again);
        // The same threads may be met in another order, and then have other numbers.
        let (names, theirs) = (&found.driver.machine.names, &again.driver.machine.names);
        let called = again.callers.iter().filter_map(|call| {
            let thread = names.find(&theirs.path(call.thread))?;
            Some(((thread, call.index), &call.stack))
        });
        let mut callers = Callers::new(called, self.site);
        for held in again.held {
            if let Some(thread) = names.find(&theirs.path(held.thread)) {
                callers.add_data((thread, held.index), held.datum);
            }
        }
        let here = |thread| names.find(&theirs.path(thread));
        callers.set_touched(again.touched.into_iter().filter_map(|mut touched| {
            let is_shown = touched.events as usize <= found.driver.trace.len();
            touched.access.thread = here(touched.access.thread)?;
            touched.region = touched.region.with_thread(here)?;
            is_shown.then_some(touched)
        }));
        (life, callers)
    }
}

/// Replaces a thread without events by its spawn. Returns the replaced threads that have begun to
/// run.
pub(crate) fn begin_with_spawns(trace: &Trace, of: &mut [(ThreadId, u32)]) -> Vec<ThreadId> {
    let mut began = Vec::new();
    for it in of {
        if let (thread, 0) = *it
            && let Some(spawn) = trace.spawn_of(thread)
        {
            if trace.has_begun(thread) {
                began.push(thread);
            }
            let spawn = trace.at(spawn);
            *it = (spawn.thread, spawn.index + 1);
        }
    }
    began
}

/// Returns, in order, those of the first `length` events that do not depend on the events of this
/// thread from index `from` on.
pub(crate) fn without(driver: &Driver, (thread, from): (ThreadId, u32), length: usize) -> Vec<u32> {
    let is_left = |&at: &u32| driver.clocks.clock(at, thread) < from;
    (0..length as u32).filter(is_left).collect()
}

/// Returns the schedule of these events in this order, after which the code of the threads in
/// `began` begins.
pub(crate) fn schedule(order: &[u32], began: &[ThreadId], driver: &Driver) -> Schedule {
    let names = &driver.machine.names;
    let step = |&at: &u32| {
        let event = driver.trace.at(at);
        (names.path(event.thread), event.alternative)
    };
    let mut schedule: Schedule = order.iter().map(step).collect();
    for &thread in began {
        schedule.begin(names.path(thread));
    }
    schedule
}

/// Returns the schedule that leads to a failure.
pub(crate) fn leads_to(found: &Found) -> Schedule {
    let Driver { trace, machine, .. } = &*found.driver;
    machine.leading_to(found.end.thread(), trace, decided(found))
}

/// Returns the number of events of a failing execution that its schedule decides.
pub(crate) fn decided(found: &Found) -> usize {
    let trace = &found.driver.trace;
    match &found.end {
        // Once the threads only spin, the execution continues without a schedule.
        End::Livelock { stuck, .. } => {
            let spins = spins_from(trace, stuck).max(found.driver.planned());
            spins.min(trace.len())
        }
        _ => trace.len(),
    }
}

/// Returns the number of events after which an execution with a livelock consists only of the last
/// rounds of the spinning threads, over and over, counted up to the first release of one of them.
fn spins_from(trace: &Trace, stuck: &[Blocked]) -> usize {
    let events = trace.events();
    let let_go = |event: &&Event| event.outcome.is_released();
    let mut rounds: Vec<(ThreadId, Site)> = Vec::new();
    let spin = |it: &&Blocked| matches!(it.operation.kind, OpKind::Wait { .. });
    for Blocked { thread, .. } in stuck.iter().filter(spin) {
        let mut theirs = trace.positions_of(*thread).iter().rev();
        let mut waits = 0;
        while waits < 2
            && let Some(&position) = theirs.next()
        {
            let event = trace.at(position);
            waits += u32::from(let_go(&event));
            rounds.push((*thread, event.site));
        }
    }
    let is_of_a_round = |event: &Event| rounds.contains(&(event.thread, event.site));
    let last_other = events.iter().rposition(|event| !is_of_a_round(event));
    let from = last_other.map_or(0, |last| last + 1);
    let first = events[from..].iter().position(|event| let_go(&event));
    from + first.unwrap_or(events.len() - from)
}

/// Whether two executions failed in the same way.
pub(crate) fn same(one: &Found, other: &Found) -> bool {
    let place = |found: &Found| place(&found.end, found.message.as_ref());
    discriminant(&one.end) == discriminant(&other.end)
        && place(one) == place(other)
        && gist(one) == gist(other)
}

/// Returns the message of a panic, if it has one, without the values in it: numbers, and the
/// further lines of `assert_eq`.
fn gist(found: &Found) -> Option<String> {
    let first = found.said()?.lines().next().unwrap_or_default();
    Some(first.chars().filter(|c| !c.is_numeric()).collect())
}
