//! One exploration, from its first execution to its verdict.
//!
//! It runs executions until none is left to explore, as many executions have failed as were asked
//! for, or a limit is reached. Each failure is examined when it is found: whether it is a failure
//! at all, whether it is known, and which execution shows it best. The result is the failures, or a
//! report of the explored part.

mod alternate;
pub(crate) mod between_executions;
pub(crate) mod checkpoint_file;
pub(crate) mod first_waits;
pub(crate) mod further;
pub(crate) mod numbered_model;
pub(crate) mod progress;
pub(crate) mod regions;
pub(crate) mod replay_command;
pub(crate) mod report_dir;
pub(crate) mod said_once;
pub(crate) mod saved_failure;
mod shards;
pub(crate) mod strategy;
pub(crate) mod summary;
mod tasks;
pub(crate) mod workers;

use std::path::Path;
use std::time::Duration;

use crate::config::{Builder, FirstPass, Memory, Order, Shard};
use crate::diagnose::bounded_loop::no_one_step;
use crate::diagnose::reproduce::may_come_again;
use crate::exploration::first_waits::FirstWait;
use crate::verdict::failure::{Failure, FailureKind, failure, kind_of, place};

use crate::exploration::progress::{above, above_captured};
use crate::exploration::report_dir::ReportDir;

use crate::rt::Work;
use crate::rt::coroutine::Pool;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::expand_awaits::InFull;
use crate::rt::engine::replay::Replay;
use crate::rt::engine::{Coverage, Explorer};
use crate::rt::event::schedule::{Guarded, Schedule};
use crate::rt::event::verdict::End;
use crate::rt::event::{Site, Trace};
use crate::rt::exec::interrupts::{self, Exploring};
use crate::rt::exec::log::Log;
use crate::rt::exec::permitted::Behaviour;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::{Explored, Found, explore, stacks};
use crate::rt::exec::settings::Settings;
use crate::rt::exec::state_capture::StateCapture;
use crate::rt::exec::suppressed_races::{InOrder, SuppressedRaces};
use crate::rt::heap::CAN_LOCK;
use crate::rt::heap::MustFree;
use crate::rt::object::machine::{Awaits, Hintless, Learnt, Loud};
use crate::rt::rare::{cold_path, mostly, rarely};
use crate::rt::statics::rooted::Rooted;

use crate::diagnose::crash_report;
use crate::diagnose::minimize::{Budget, Looks, Probe, leads_to};
use crate::exploration::alternate::{Beside, Beyond, tell_of_beyond, turn};
use crate::exploration::between_executions::Watch;
use crate::verdict::report::{Bound, Passed, Verdict};
use crate::verdict::weak::WeakMemory;

/// The exploration of one closure.
struct Exploration<'a> {
    settings: &'a Builder,
    /// The place of the model's call.
    site: Site,
    seed: u64,
    /// The schedule that the exploration follows, if any.
    given: Option<Schedule>,
    /// Whether the schedule was also tried as one with fences among its steps.
    counted_fences: bool,
    main: &'a dyn Work,
    stacks: Pool,
    watch: Watch<'a>,
    /// The output of the program in an execution.
    log: Log,
    failures: Vec<Failure>,
    /// The failures before a restart. Most of them occur again.
    earlier: Vec<Failure>,
    /// Frees that look like data races and are known to be ordered.
    unseen: Vec<SuppressedRaces>,
    /// How leaks of blocks that a static reaches are judged.
    statics: Rooted,
    /// Sees each execution that has not failed.
    see: &'a mut dyn FnMut(&Trace),
    /// The bound of the settings, which an exploration beside another one does not have.
    bound: Option<Bound>,
    /// State of an exploration beside one within a bound.
    beside: Option<Beside>,
    /// Number of events before the last restart.
    spent: u64,
    /// Whether the exploration has paused between two executions.
    paused: bool,
    /// The part of the exploration that this one explores.
    shard: Option<Shard>,
    /// The task that this exploration is.
    task: Option<Task>,
    /// Number of executions begun at which the exploration pauses.
    until: u64,
    /// Whether an exploration of the same model has passed before, so that standard error says
    /// nothing about the part that this one explores.
    is_further: bool,
}

/// The task that an exploration is.
#[derive(Default)]
struct Task {
    /// The names of the further tasks.
    made: Vec<String>,
    /// Whether the exploration has begun anew, and has explored everything.
    is_whole: bool,
}

/// The result of running an execution that failed again, with each loop in full instead of as one
/// step.
enum Full {
    /// It fails. Contains the execution with loops as one step, if the failure is shown by another
    /// one.
    Taken(Option<Box<Found>>),
    /// The execution with loops in full does not fail.
    Passes,
}

/// Explores the closure with these settings, or follows the schedule that is `given`.
#[track_caller]
pub(crate) fn explored(
    settings: &Builder,
    main: &dyn Work,
    given: Option<Schedule>,
    site: Site,
) -> Result<Passed, Box<Failure>> {
    let without_bound = settings.without_bound(given.as_ref());
    explored_in_turns(
        settings,
        main,
        given,
        site,
        &mut |_| {},
        (without_bound, false),
    )
}

/// [`explored`] with a function that sees each execution that has not failed.
#[track_caller]
pub(crate) fn explored_seeing(
    settings: &Builder,
    main: &dyn Work,
    given: Option<Schedule>,
    site: Site,
    see: &mut dyn FnMut(&Trace),
) -> Result<Passed, Box<Failure>> {
    explored_in_turns(settings, main, given, site, see, (None, false))
}

/// [`explored_seeing`] in a further pass.
#[track_caller]
fn explored_further(
    settings: &Builder,
    main: &dyn Work,
    site: Site,
) -> Result<Passed, Box<Failure>> {
    explored_in_turns(settings, main, None, site, &mut |_| {}, (None, true))
}

/// [`explored_seeing`] where an exploration `without_bound` may take turns with that of the
/// settings; in a first or in a further pass.
#[track_caller]
fn explored_in_turns(
    settings: &Builder,
    main: &dyn Work,
    given: Option<Schedule>,
    site: Site,
    see: &mut dyn FnMut(&Trace),
    (without_bound, is_further): (Option<Builder>, bool),
) -> Result<Passed, Box<Failure>> {
    let exploring = Exploring::begin();
    let mut ignore = |_: &Trace| {};
    let (mut exploration, mut driver) = Exploration::new(settings, main, given, site, see);
    exploration.is_further = is_further;
    let looking = StateCapture::at_first_waits();
    let mut beyond = None;
    match &without_bound {
        None if settings.is_in_parts() && exploration.given.is_none() => {
            cold_path();
            driver = exploration.search_of_part(driver);
        }
        None => driver = exploration.search(driver),
        Some(unbounded) => {
            cold_path();
            (exploration, driver, beyond) =
                exploration.search_in_turns(driver, unbounded, &mut ignore);
            exploration.tell_if_long(&driver);
        }
    }
    drop(looking);
    exploration.watch.end();
    // A failure from before a restart may not have occurred again: loops may have made too few
    // rounds, or a limit was reached first.
    if rarely!(!exploration.earlier.is_empty()) {
        let earlier = std::mem::take(&mut exploration.earlier);
        add_new(&mut exploration.failures, earlier, settings.max_failures);
    }
    let explored = if rarely!(!exploration.failures.is_empty()) {
        Err(exploration.failed(&driver))
    } else {
        Ok(exploration.passed(driver))
    };
    exploration.write_result(&explored);
    if let (Ok(_), Some(beyond)) = (&explored, beyond) {
        tell_of_beyond(settings, site, &beyond);
    }
    if rarely!(interrupts::asked()) {
        tell_of_interrupt(settings, &explored);
        exploring.end();
    }
    explored
}

/// [`explored`] in all passes that the settings ask for: the first one, and then those for the
/// behaviour that std permits.
#[track_caller]
pub(crate) fn explored_as_set(
    settings: &Builder,
    main: &dyn Work,
    given: Option<Schedule>,
    site: Site,
) -> Result<Passed, Box<Failure>> {
    let is_given = given.is_some();
    let passed = explored_under(settings, main, given, site)?;
    // The frequent case: the model has met no place at which std permits more.
    if mostly!(passed.met.is_empty()) || is_given {
        return Ok(passed);
    }
    further::explored(passed, settings, main, site)
}

/// [`explored`] under the memory model of the settings: under [`Memory::Auto`] first under
/// sequential consistency, and then under C11 if that has other executions.
#[track_caller]
fn explored_under(
    settings: &Builder,
    main: &dyn Work,
    given: Option<Schedule>,
    site: Site,
) -> Result<Passed, Box<Failure>> {
    let is_given = given.is_some();
    if let Some(first) = checkpoint_file::first_pass(settings, site).filter(|_| !is_given) {
        return explored_behind(first, settings, main, site, Duration::ZERO);
    }
    let unbounded = settings.without_bound(given.as_ref());
    let mut passed = explored(settings, main, given, site)?;
    if let Some(unbounded) = unbounded
        && passed.verdict == Verdict::Complete
        && passed.weak == WeakMemory::Unasked
        && unbounded.looks_out()
    {
        // The search within the bound has ended first, with every execution, and has not looked
        // for weak behaviour.
        let looked = explored(&unbounded, main, None, site);
        if let Some(looked) = unless_not_deterministic(looked)? {
            passed.ran += looked.ran;
            passed.weak = looked.weak;
        }
    }
    let operation = match &passed.weak {
        WeakMemory::Possible { operation } if !is_given => operation.clone(),
        _ => return Ok(passed),
    };
    if let Verdict::Shard(_) = passed.verdict {
        // Which part finds weak behaviour is chance, so it explores all executions under C11.
        let first = settings.first_pass_of(operation, &passed);
        let unkept = Builder {
            checkpoint_file: None,
            ..settings.clone()
        };
        let weak = explored_behind(first, &unkept, main, site, passed.elapsed)?;
        passed.ran += weak.ran;
        if weak.verdict == Verdict::Complete {
            passed.weak = weak.weak;
        }
        return Ok(passed);
    }
    if passed.verdict != Verdict::Complete {
        return Ok(passed);
    }
    let first = settings.first_pass_of(operation, &passed);
    let is_bounded = settings.bound().is_some();
    let weak = explored_behind(first, settings, main, site, passed.elapsed);
    let mut weak = if is_bounded {
        match unless_not_deterministic(weak)? {
            Some(weak) => weak,
            None => return Ok(passed),
        }
    } else {
        weak?
    };
    if is_bounded && weak.verdict != Verdict::Complete {
        // A bound promises less than every execution, and these came on top of the promise.
        passed.ran += weak.ran;
        return Ok(passed);
    }
    weak.unneeded = passed.unneeded;
    Ok(weak)
}

/// An exploration on top of the executions that a bound promises, or `None` if the program is not
/// deterministic in it.
///
/// The promised executions were deterministic. An epoch in a static of std's, which no execution
/// resets, may differ only in later ones, and only where these read old values.
fn unless_not_deterministic(
    beyond: Result<Passed, Box<Failure>>,
) -> Result<Option<Passed>, Box<Failure>> {
    match beyond {
        Err(failure) if failure.kind == FailureKind::NotDeterministic => Ok(None),
        beyond => beyond.map(Some),
    }
}

/// [`explored`] under C11, behind a first pass that has taken the `elapsed` time of this run.
#[track_caller]
fn explored_behind(
    first: FirstPass,
    settings: &Builder,
    main: &dyn Work,
    site: Site,
    elapsed: Duration,
) -> Result<Passed, Box<Failure>> {
    let left = |limit: Duration| limit.saturating_sub(elapsed);
    let is_bounded = settings.bound().is_some();
    let most = most_under_c11(first.executions);
    let under_c11 = Builder {
        memory: Memory::C11,
        max_duration: settings.max_duration.map(left),
        max_permutations: match settings.max_permutations {
            limit if !is_bounded => limit,
            limit => Some(limit.map_or(most, |limit| limit.min(most))),
        },
        order: Order::DepthFirst,
        stale_bound: settings.stale_bound,
        first_pass: Some(Box::new(first.clone())),
        ..settings.unbounded()
    };
    let mut weak = explored(&under_c11, main, None, site)?;
    weak.weak = WeakMemory::Explored {
        operation: first.operation,
        sequential: first.executions,
    };
    Ok(weak)
}

/// The most executions under C11 where a bound is set that was not needed, because the program has
/// no more than this number of executions under sequential consistency.
fn most_under_c11(sequential: u64) -> usize {
    const TIMES: u64 = 8;
    const FEW: u64 = 10_000;
    sequential.saturating_mul(TIMES).max(FEW) as usize
}

/// Prints the remaining lines when the user interrupts the process.
#[cold]
fn tell_of_interrupt(settings: &Builder, explored: &Result<Passed, Box<Failure>>) {
    if let Err(failure) = explored {
        above_captured(&format!("{failure}\n"));
    }
    above_captured(&match &settings.checkpoint_file {
        Some(file) => format!(
            "dpor: the checkpoint {} (DPOR_CHECKPOINT_FILE) holds what is left, if it can be kept; the same command goes on from there\n",
            file.display()
        ),
        None => {
            "dpor: nothing is kept of what was explored; DPOR_CHECKPOINT_FILE=<file> keeps it\n"
                .to_owned()
        }
    });
}

/// Whether the explorer delays threads to see whether they use freed memory. With `simplify = 0`
/// the closure runs for the exploration only.
fn tries_raw_uses(settings: &Builder, given: Option<&Schedule>) -> bool {
    // A block on pages of its own does not come again, and the first pass has tried them.
    CAN_LOCK && given.is_none() && settings.simplify > 0 && !settings.blocks_again
}

/// Returns the facts about a program that this schedule implies.
#[cold]
fn known_from(schedule: &Schedule) -> Learnt {
    Learnt {
        ends_are_events: schedule.has_ends(),
        hintless: if schedule.waits_soon() {
            Hintless::Soon
        } else {
            Hintless::Unknown
        },
        fair: schedule.is_fair(),
        patient: false,
        awaits: Awaits::default(),
        loud: Loud::default(),
        held: schedule.held().cloned(),
        guarded: schedule.guards().then_some(Guarded::All),
    }
}

/// The number of executions from which on the first drop glue that does more than free memory makes
/// all such glue explored: another restart would lose as many executions.
const LATE: u64 = 1000;

impl<'a> Exploration<'a> {
    /// Creates an exploration, and the driver of its first execution.
    #[track_caller]
    fn new(
        settings: &'a Builder,
        main: &'a dyn Work,
        given: Option<Schedule>,
        site: Site,
        see: &'a mut dyn FnMut(&Trace),
    ) -> (Exploration<'a>, PooledDriver) {
        let seed = settings.seed_to_draw_with();
        let learnt = match &given {
            Some(schedule) => known_from(schedule),
            None => Learnt::default(),
        };
        let mut driver = settings.driver(settings.following(given.as_ref(), seed), learnt);
        driver.looks_for_raw_uses = tries_raw_uses(settings, given.as_ref());
        let watch = Watch::new(settings, &mut driver, site, given.is_some());
        let filter = settings.targets().unwrap_or_else(|error| panic!("{error}"));
        // If executions are shown, or one schedule is followed, the user reads the program's
        // output, too.
        let log = Log::new(filter, settings.trace.is_some() || given.is_some());
        let exploration = Exploration {
            settings,
            site,
            seed,
            given,
            counted_fences: false,
            main,
            stacks: stacks(settings.stack_size),
            watch,
            log,
            failures: Vec::new(),
            earlier: Vec::new(),
            unseen: Vec::new(),
            statics: Rooted::Doubted,
            see,
            bound: settings.bound(),
            beside: None,
            spent: 0,
            paused: false,
            shard: None,
            task: None,
            until: u64::MAX,
            is_further: false,
        };
        (exploration, driver)
    }

    /// [`Exploration::search`] that takes turns with an exploration with the settings `unbounded`.
    /// Returns the exploration that has ended first, with its driver, and a failure that the other
    /// one has met.
    fn search_in_turns(
        mut self,
        mut driver: PooledDriver,
        unbounded: &'a Builder,
        ignore: &'a mut dyn FnMut(&Trace),
    ) -> (Exploration<'a>, PooledDriver, Option<Beyond>) {
        let (mut other, mut others) =
            Exploration::new(unbounded, self.main, None, self.site, ignore);
        other.beside = Some(Beside::default());
        other.bound = self.bound;
        let is_over = loop {
            let events = self.events(&driver);
            if other.events(&others) <= events {
                others = other.advance(others, turn(events));
                if other.has_explored_all(&others) {
                    self.watch.end();
                    other.watch.start = self.watch.start;
                    other.stacks.executions += self.stacks.executions;
                    return (other, others, None);
                }
                if !other.paused {
                    break false;
                }
            }
            driver = self.advance(driver, turn(other.events(&others)));
            if !self.paused {
                break true;
            }
            // A test with a failure is not explored in full, whichever search goes on.
            if !self.failures.is_empty() || !self.earlier.is_empty() {
                break false;
            }
        };
        self.stacks.executions += other.stacks.executions;
        drop(others);
        if !is_over {
            driver = self.search(driver);
        }
        let beyond = other.beside.and_then(|beside| beside.beyond);
        (self, driver, beyond)
    }

    /// Number of events so far, also before a restart.
    fn events(&self, driver: &PooledDriver) -> u64 {
        self.spent + driver.stats.events
    }

    /// Whether this exploration beside another one has ended, and has explored every trace.
    fn has_explored_all(&self, driver: &PooledDriver) -> bool {
        let is_void = self.beside.as_ref().is_none_or(|beside| beside.is_void);
        !self.paused
            && !is_void
            && self.watch.stopped.is_none()
            && driver.coverage() == Coverage::All
    }

    /// Ends this exploration beside another one, because of an execution that has failed or has to
    /// be explored in another way. `failure` is the kind of the failure and its place.
    #[cold]
    fn gives_up_beside(
        &mut self,
        found: Found,
        failure: Option<(FailureKind, String)>,
    ) -> Result<PooledDriver, PooledDriver> {
        let replay = || {
            let schedule = leads_to(&found).to_string();
            replay_command::replay(&schedule, &self.settings.weakenings())
        };
        self.beside = Some(Beside::ended_with(failure, replay));
        Err(found.driver)
    }
}

impl Exploration<'_> {
    /// Explores until nothing is left to explore. The driver that it returns has the final state.
    fn search(&mut self, driver: PooledDriver) -> PooledDriver {
        self.advance(driver, u64::MAX)
    }

    /// [`Exploration::search`] of a part, or by several workers.
    fn search_of_part(&mut self, mut driver: PooledDriver) -> PooledDriver {
        if let Some(task) = &self.settings.task
            && self.settings.not_shared_because().is_none()
        {
            return self.search_task(driver, task);
        }
        if let Some(shard) = self.settings.shard
            && self.settings.not_shared_because().is_none()
        {
            driver = self.begin_shard(driver, shard);
            if !self.paused && self.shard.is_none_or(|_| !driver.more()) {
                return driver;
            }
        }
        match self.settings.workers {
            Some(_) => self.search_shared(driver),
            None => self.search(driver),
        }
    }

    /// [`Exploration::search`] that pauses between two executions as soon as the exploration has
    /// made this many events, and then goes on with the driver that it returns.
    fn advance(&mut self, mut driver: PooledDriver, events: u64) -> PooledDriver {
        let mut resumes = std::mem::take(&mut self.paused);
        loop {
            let running = Settings {
                statics: self.statics,
                ..self.settings.running(self.site, &self.unseen)
            };
            let (watch, log, see) = (&mut self.watch, &self.log, &mut self.see);
            let (spent, until, paused) = (self.spent, self.until, &mut self.paused);
            let explored = log.listen(|| {
                explore(self.main, driver, &mut self.stacks, running, |between| {
                    // The work behind the last execution was done before the pause.
                    if rarely!(std::mem::take(&mut resumes)) {
                        return true;
                    }
                    if between.end.is_some() {
                        see(&between.driver.trace);
                    }
                    if !watch.go_on(between, log) {
                        return false;
                    }
                    let stats = &between.driver.stats;
                    let is_due = rarely!(spent + stats.events >= events || stats.begun() >= until);
                    // A search at its end needs no turn of the other one.
                    *paused = is_due && between.driver.more();
                    !*paused
                })
            });
            driver = match explored {
                Explored::Passed(passed) if rarely!(passed.machine.unfit.is_some()) => {
                    let unfit = passed.machine.unfit.as_ref();
                    panic!("{}", unfit.map_or_else(String::new, ToString::to_string))
                }
                Explored::Passed(passed) if rarely!(passed.refused().is_some()) => {
                    let refused = passed.refused().cloned();
                    let is_asked_for = self.settings.await_loops == Some(true);
                    if let Some(known) = refused.as_ref().filter(|_| is_asked_for) {
                        no_one_step(
                            &known.hint.to_string(),
                            "a thread does something else behind a look in vain than to look again",
                        );
                    }
                    self.restart(&passed, |learnt| {
                        let refused = refused.iter();
                        refused.for_each(|it| learnt.awaits = learnt.awaits.refusing(it));
                    })
                }
                Explored::Passed(passed) if rarely!(passed.loud_glue().is_some()) => {
                    let site = passed.loud_glue();
                    let late = passed.stats.begun() > LATE;
                    self.restart(&passed, |learnt| {
                        site.iter()
                            .for_each(|site| learnt.loud = learnt.loud.with(site, late));
                    })
                }
                Explored::Passed(passed) if rarely!(passed.ends_are_seen()) => {
                    self.restart(&passed, |learnt| learnt.ends_are_events = true)
                }
                Explored::Passed(passed) if rarely!(self.paused) => return passed,
                Explored::Passed(mut passed) => match self.watch.asks() {
                    None => return passed,
                    Some(_) if passed.machine.shows_hintless() => {
                        self.restart(&passed, |learnt| learnt.hintless = Hintless::Soon)
                    }
                    Some(asked) => match self.learns(&passed, &asked) {
                        Some(learnt) => self.restart(&passed, |before| *before = learnt),
                        None => {
                            if self.tries_raw_uses(&mut passed) {
                                passed
                            } else {
                                return passed;
                            }
                        }
                    },
                },
                Explored::Failed(found) => {
                    cold_path();
                    match self.look_at(*found) {
                        Ok(driver) => driver,
                        Err(driver) => return driver,
                    }
                }
            };
        }
    }

    /// Tries whether threads use freed memory. Returns false if the exploration ends with a failure
    /// found that way.
    fn tries_raw_uses(&mut self, driver: &mut Driver) -> bool {
        let uses = driver.raw_uses.as_mut().map(|uses| uses.take());
        for raw in uses.unwrap_or_default() {
            let found = self.body(driver).uses_after_free(driver, &raw);
            if !self.looks_at_raw_use(found, driver) {
                return false;
            }
        }
        let uses = driver.raw_uses.as_mut();
        let in_place = uses.and_then(|uses| uses.take_in_place(&driver.trace));
        let found = in_place.and_then(|which| self.body(driver).uses_in_place(driver, which));
        self.looks_at_raw_use(found, driver)
    }

    /// Examines the failure that a run outside the exploration has found, if any. Returns false if
    /// the exploration ends with it.
    fn looks_at_raw_use(&mut self, found: Option<Box<Found>>, driver: &Driver) -> bool {
        found.is_none_or(|mut found| {
            found.driver.stats = driver.stats;
            self.look_at(*found).is_ok()
        })
    }

    /// Returns the facts about these loops, if they change the exploration: a loop without a hint
    /// gives up by itself, as far as that can be known; or a loop with a hint does not, and may be
    /// explored as one step.
    fn learns(&mut self, driver: &Driver, asked: &[FirstWait]) -> Option<Learnt> {
        let machine = &driver.machine;
        let mut learnt = machine.limits.learnt.clone();
        let mut body = self.body(driver);
        if machine.waits_unknown() || body.any_bounded_loop(asked) {
            learnt.hintless = Hintless::BoundedLoop;
            return Some(learnt);
        }
        learnt.awaits = learnt.awaits.with(body.awaits(asked))?;
        Some(learnt)
    }

    /// Restarts the exploration with a fact that changes it.
    fn restart(&mut self, driver: &Driver, learns: impl FnOnce(&mut Learnt)) -> PooledDriver {
        let before = &driver.machine.limits.learnt;
        let mut learnt = before.clone();
        learns(&mut learnt);
        // The other parts are not those of an exploration that knows this.
        self.shard = None;
        self.until = u64::MAX;
        if let Some(task) = &mut self.task {
            task.is_whole = true;
        }
        self.watch.restart(&learnt, before);
        self.spent += driver.stats.events;
        self.log.clear();
        self.unseen.clear();
        let failures = std::mem::take(&mut self.failures);
        add_new(&mut self.earlier, failures, self.settings.max_failures);
        let explorer = self.settings.following(self.given.as_ref(), self.seed);
        let mut driver = self.settings.driver(explorer, learnt);
        driver.looks_for_raw_uses = tries_raw_uses(self.settings, self.given.as_ref());
        driver
    }

    /// Examines an execution that has failed or seems to have failed. Returns the driver with which
    /// the exploration continues, or as an error the driver with which it ends.
    fn look_at(&mut self, mut found: Found) -> Result<PooledDriver, PooledDriver> {
        if let Some(given) = self.as_it_was_written(&found) {
            self.given = Some(given);
            return Ok(self.restart(&found.driver, |_| {}));
        }
        if found.end.is_doubted() && self.body(&found.driver).hangs_from_a_static(&mut found) {
            self.statics = Rooted::Stays;
            let mut driver = found.driver;
            driver.rerun();
            return Ok(driver);
        }
        let later = found.driver.later();
        let is_unfair = self.is_unfair(&found);
        if is_unfair && self.beside.is_some() {
            return self.gives_up_beside(found, None);
        }
        if is_unfair {
            return Ok(self.restart(&found.driver, |learnt| learnt.fair = true));
        }
        let taken = match self.in_full(&mut found) {
            Full::Taken(taken) => taken,
            Full::Passes => {
                self.watch.take_no_loop_for_a_step();
                return Ok(self.restart(&found.driver, |learnt| learnt.awaits = Awaits::default()));
            }
        };
        self.body(&found.driver).ask(&mut found);
        let (kind, at) = (
            kind_of(&found.end),
            place(&found.end, found.message.as_ref()),
        );
        if is_known(&self.failures, kind, &at) {
            let Found { end, driver, .. } = taken.map_or(found, |taken| *taken);
            return learnt_from(driver, &end);
        }
        let ends_after_all = self.body(&found.driver).ends_after_all(&found);
        if ends_after_all && self.beside.is_some() {
            return self.gives_up_beside(found, None);
        }
        if ends_after_all {
            let driver = taken.map_or(found, |taken| *taken).driver;
            return Ok(self.restart(&driver, |learnt| learnt.patient = true));
        }
        let follows = self.given.is_some();
        let mut body = self.body(&found.driver);
        if let Some(free) = body.is_in_order(&mut found) {
            self.watch.note_free(free.site());
            self.unseen.push(free);
            let mut driver = taken.map_or(found, |taken| *taken).driver;
            driver.rerun();
            return Ok(driver);
        }
        if self.beside.is_some() {
            return self.gives_up_beside(found, Some((kind, at)));
        }
        let mut body = self.body(&found.driver);
        let shown = body.minimize(&mut found, follows);
        if shown.simpler.is_none() {
            body.hear(&mut found);
        }
        // A failure has the number that it has where one worker explores alone.
        let stats = found.driver.stats;
        let before = stats.since(&later);
        found.driver.stats = before;
        let (mut failure, mut end, mut driver) = failure(found, shown, self.given.as_ref());
        if let Some(taken) = taken {
            (end, driver) = (taken.end, taken.driver);
        }
        if driver.coverage() == Coverage::Sampled {
            failure.text.push_str(&format!(
                "\nfound by   DPOR_ALGORITHM={} DPOR_SEED={}",
                self.settings.algorithm.name(),
                self.seed
            ));
        }
        let last = matches!(
            failure.kind,
            FailureKind::NotDeterministic | FailureKind::Schedule
        );
        self.failures.push(failure);
        self.watch.failed();
        if last || self.failures.len() >= self.settings.max_failures {
            driver.stats = before;
            Err(driver)
        } else {
            driver.stats = stats;
            learnt_from(driver, &end)
        }
    }

    /// Returns the given schedule as another version of `dpor` would read it, if it does not fit:
    /// earlier versions counted fences among the steps. If it fits in neither reading, the report
    /// describes the mismatch of the schedule as it stands.
    fn as_it_was_written(&mut self, found: &Found) -> Option<Schedule> {
        let given = self.given.as_ref()?;
        let has_fences = !found.driver.trace.fences().is_empty();
        if !matches!(found.end, End::Stale { .. }) || !has_fences {
            return None;
        }
        let was_tried = std::mem::replace(&mut self.counted_fences, true);
        (!was_tried || given.counts_fences()).then(|| given.counting_fences(!was_tried))
    }

    /// Whether an execution had too many events because a loop that changes shared state in each
    /// round has kept other threads from running. No scheduler of an operating system does that for
    /// ever.
    fn is_unfair(&self, found: &Found) -> bool {
        let machine = &found.driver.machine;
        matches!(found.end, End::TooManyEvents { .. })
            && self.given.is_none()
            && !machine.limits.learnt.fair
            && machine.is_unfair()
    }

    /// If loops are explored as one step, runs the execution that has failed again with each loop
    /// in full.
    fn in_full(&mut self, found: &mut Found) -> Full {
        if found.driver.machine.limits.learnt.awaits.is_empty() || !may_come_again(&found.end) {
            return Full::Taken(None);
        }
        let again = Box::new(InFull::explorer(leads_to(found)));
        match self.body(&found.driver).fails(again, 1, Looks::default()) {
            Some(mut full) => {
                full.driver.stats = found.driver.stats;
                let taken = std::mem::replace(found, *full);
                Full::Taken(Some(Box::new(taken)))
            }
            // The loops that waited in the livelock give up by themselves, so their threads would
            // have continued.
            None if matches!(found.end, End::Livelock { .. }) => Full::Passes,
            None => Full::Taken(None),
        }
    }

    /// Returns a probe that runs the closure with the facts that this driver has.
    fn body(&mut self, driver: &Driver) -> Probe<'_> {
        Probe {
            settings: self.settings,
            main: self.main,
            stacks: &mut self.stacks,
            log: &self.log,
            site: self.site,
            unseen: &self.unseen,
            // The failing execution is shown with each loop in full.
            learnt: Learnt {
                awaits: Awaits::default(),
                ..driver.machine.limits.learnt.clone()
            },
            budget: Budget::unlimited(),
        }
    }

    /// Returns the failures: the first one, which contains the others.
    fn failed(&mut self, driver: &Driver) -> Box<Failure> {
        if let Some(directory) = &self.settings.report_dir {
            write_reports(&mut self.failures, directory, self.site);
        }
        let mut first = self.failures.remove(0);
        first.others = std::mem::take(&mut self.failures);
        first.executions = driver.stats.complete;
        first.pruned = driver.stats.given_up();
        first.elapsed = self.watch.start.elapsed();
        Box::new(first)
    }

    /// Prints and returns the result of an exploration without a failure.
    fn passed(&mut self, driver: PooledDriver) -> Passed {
        let is_plain = mostly!(self.watch.is_plain(&driver));
        if rarely!(!self.watch.unseen_wakers.is_empty()) {
            self.find_unseen_wakers(&driver);
        }
        let vacuous = self.watch.vacuous(&driver);
        if let Some(vacuous) = vacuous.filter(|_| !self.is_further) {
            self.watch.tell_of_vacuous(vacuous, &driver);
        }
        let coverage = driver.coverage();
        let gives_up = match coverage {
            Coverage::Sampled | Coverage::Replayed => None,
            // The frequent case: no loop has waited.
            _ if self.watch.waits.is_empty() => None,
            _ => {
                let waits = self.watch.waits.all();
                self.body(&driver).gives_up(&waits)
            }
        };
        let verdict = Verdict::of(coverage, self.watch.stopped, &gives_up, self.seed);
        let verdict = match (verdict, self.shard) {
            (Verdict::Complete, Some(shard)) => Verdict::Shard(shard),
            (Verdict::Complete, None) if self.task.as_ref().is_some_and(|it| !it.is_whole) => {
                Verdict::Task
            }
            (verdict, _) => verdict,
        };
        let could_await = match (coverage, &gives_up) {
            (Coverage::All, None) if rarely!(self.watch.has_waited()) => self.watch.could_await(),
            _ => None,
        };
        let is_all = matches!(
            verdict,
            Verdict::Complete | Verdict::Shard(_) | Verdict::Task
        );
        let found_before = self.watch.weak.take();
        let weak = match (self.settings.memory, driver.looked_out()) {
            (Memory::C11, _) => WeakMemory::Asked,
            _ if found_before.is_some() => WeakMemory::Possible {
                operation: found_before.unwrap_or_default(),
            },
            // What was not explored may have weak behaviour.
            (_, Some(None)) if !is_all => WeakMemory::Unasked,
            (_, Some(found)) => WeakMemory::of(found, &driver.machine.names),
            (_, None) => WeakMemory::Unasked,
        };
        let passed = Passed {
            driver,
            verdict,
            gives_up,
            could_await,
            unneeded: (self.bound).filter(|_| verdict == Verdict::Complete),
            weak,
            outcomes: self.watch.outcomes.take(),
            met: std::mem::take(&mut self.watch.met),
            vacuous,
            further: Vec::new(),
            shard: self.shard,
            elapsed: self.watch.start.elapsed(),
            before: self.watch.before,
            ran: self.stacks.executions,
        };
        if let (WeakMemory::Possible { operation }, Verdict::Complete) = (&passed.weak, verdict) {
            cold_path();
            let first = self.settings.first_pass_of(operation.clone(), &passed);
            self.watch.begin_second_pass(first);
        } else if !matches!(verdict, Verdict::Stopped(_)) {
            // All traces within the bound that was asked for have been explored.
            self.watch.complete();
        }
        if !self.is_further {
            self.tell(&passed);
            if !is_plain {
                self.say_more(&passed.driver);
            }
        }
        passed
    }

    /// Finds the places at which tasks have cloned wakers that they have put where no event shows
    /// them, and prints a line for each. With `simplify = 0` the closure runs for the exploration
    /// only.
    #[cold]
    fn find_unseen_wakers(&mut self, driver: &Driver) {
        for (polled, schedule) in std::mem::take(&mut self.watch.unseen_wakers) {
            let found = match self.settings.simplify {
                0 => None,
                _ => self.body(driver).clones_waker_at(schedule, polled),
            };
            let place = found.unwrap_or_else(|| polled.to_string());
            self.watch.tell_of_unseen_waker(&place);
            let kind = Behaviour::UnseenWaker.into();
            self.watch.met.replace(kind, polled, place);
        }
    }

    /// Prints the line about an execution that was to be shown and has not been run.
    #[cold]
    fn say_more(&self, driver: &Driver) {
        if let Some(line) = self.watch.unshown(driver) {
            above(|| eprintln!("{line}"));
        }
    }

    /// Prints on standard error which part was explored, unless it was all.
    fn tell(&self, passed: &Passed) {
        match passed.verdict {
            Verdict::Complete | Verdict::Shard(_) | Verdict::Task => {}
            Verdict::Replayed => {
                cold_path();
                let nothing = Schedule::default();
                let line = passed.followed(self.given.as_ref().unwrap_or(&nothing), &self.site);
                // With `DPOR_REPLAY` the user replays a schedule by hand and waits for an answer.
                if std::env::var("DPOR_REPLAY").is_ok_and(|text| !text.trim().is_empty()) {
                    above_captured(&line)
                } else {
                    above(|| eprint!("{line}"))
                }
            }
            _ => {
                cold_path();
                let line = passed.report().cut_short(&self.site);
                match passed.verdict {
                    // These lines are printed past the harness. A search that a limit stopped may
                    // have covered next to nothing, and its test passes like one that covered
                    // everything. And the user did not ask to leave out the code after a loop that
                    // gives up by itself.
                    Verdict::Stopped(_)
                    | Verdict::Waits(_)
                    | Verdict::TimesOut(_)
                    | Verdict::Fair(_)
                        if interrupts::asked() || said_once::is_first(self.site.to_string()) =>
                    {
                        above_captured(&format!("{line}\n"));
                    }
                    // Without a complete execution the exploration has checked nothing.
                    _ if passed.driver.stats.complete == 0 => {
                        above_captured(&format!("{line}\n"));
                    }
                    // With a bound or a sampling algorithm the user has asked for a part of the
                    // traces, in each test.
                    _ => above(|| eprintln!("{line}")),
                }
            }
        }
    }
}

impl Builder {
    /// Returns the explorer that follows this schedule, or else the explorer that the settings
    /// name.
    #[track_caller]
    fn following(&self, given: Option<&Schedule>, seed: u64) -> Box<dyn Explorer> {
        match given {
            Some(schedule) => Box::new(Replay::new(schedule.clone())),
            None => self.explorer(seed),
        }
    }

    /// Returns what a complete pass under sequential consistency has found: this operation may be
    /// weak.
    fn first_pass_of(&self, operation: String, passed: &Passed) -> FirstPass {
        FirstPass {
            operation,
            executions: passed.driver.stats.complete,
            order: self.order,
        }
    }

    /// Returns how executions of these settings run, with these frees known to be ordered.
    pub(crate) fn running(&self, site: Site, unseen: &[SuppressedRaces]) -> Settings {
        Settings {
            patience: self.patience,
            site,
            must_free: if self.check_leaks {
                MustFree::Found
            } else {
                MustFree::Owed
            },
            statics: Rooted::Stays,
            watch: None,
            weakened: self.weakenings(),
            callers: self.trace.is_some(),
            replay: replay_command::replay_of,
            nth: numbered_model::last(),
            report: crash_report::report,
            is_shared: false,
            in_order: InOrder::These(unseen.to_vec()),
        }
    }
}

/// Returns the driver after it has learnt from an execution that failed. It is an error if the
/// system has no memory for that: the exploration then ends with the known failures.
fn learnt_from(mut driver: PooledDriver, end: &End) -> Result<PooledDriver, PooledDriver> {
    if driver.lacks_memory().is_some() {
        return Err(driver);
    }
    driver.finish(end);
    Ok(driver)
}

/// Whether one of these failures has this kind and this place.
fn is_known(failures: &[Failure], kind: FailureKind, place: &str) -> bool {
    (failures.iter()).any(|it| (it.kind, &*it.place) == (kind, place))
}

/// Adds to these failures those that are not among them, up to `most` failures.
fn add_new(failures: &mut Vec<Failure>, more: Vec<Failure>, most: usize) {
    for failure in more {
        if failures.len() < most && !is_known(failures, failure.kind, &failure.place) {
            failures.push(failure);
        }
    }
}

/// Writes the failures to the directory, and adds the names of the files to their reports.
fn write_reports(failures: &mut [Failure], directory: &Path, site: Site) {
    let test = std::thread::current();
    let directory = ReportDir::new(directory, test.name(), site);
    for (index, failure) in failures.iter_mut().enumerate() {
        let suffix = match index {
            0 => String::new(),
            _ => format!("-{}", index + 1),
        };
        let line = directory.write(&suffix, &failure.execution());
        failure.text.push_str(&format!("\nreport     {line}"));
    }
}
