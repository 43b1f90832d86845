//! How does an exploration come from its first execution to its verdict?
//!
//! It searches until nothing is left to explore, an execution too many has failed, or a limit is
//! met. Each failure is looked at when it is found: whether it is one at all, whether it is known,
//! and how to show it. In the end there are failures, or something to be said of what was explored.

pub(crate) mod between_executions;
pub(crate) mod checkpoint_file;
pub(crate) mod first_waits;
pub(crate) mod numbered_model;
pub(crate) mod progress;
pub(crate) mod regions;
pub(crate) mod replay_command;
pub(crate) mod report_dir;
pub(crate) mod said_once;
pub(crate) mod saved_failure;
pub(crate) mod strategy;

use std::path::Path;

use crate::config::Builder;
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
use crate::rt::event::Site;
use crate::rt::event::schedule::{Guarded, Schedule};
use crate::rt::event::verdict::End;
use crate::rt::exec::interrupts::{self, Exploring};
use crate::rt::exec::log::Log;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::{Explored, Found, Settings, explore, stacks};
use crate::rt::exec::state_capture::StateCapture;
use crate::rt::exec::suppressed_races::{InOrder, SuppressedRaces};
use crate::rt::heap::CAN_LOCK;
use crate::rt::heap::MustFree;
use crate::rt::object::machine::{Awaits, Hintless, Learnt};
use crate::rt::rare::{cold_path, mostly, rarely};
use crate::rt::statics::rooted::Rooted;

use crate::diagnose::crash_report;
use crate::diagnose::minimize::{Budget, Looks, Probe, leads_to};
use crate::exploration::between_executions::Watch;
use crate::verdict::report::{Passed, Verdict};

/// The exploration of one closure.
struct Exploration<'a> {
    settings: &'a Builder,
    /// Where the model was called.
    site: Site,
    seed: u64,
    /// The schedule that is followed, if one is.
    given: Option<Schedule>,
    /// Whether it was tried to follow it as one that counts fences.
    counted_fences: bool,
    main: &'a dyn Work,
    stacks: Pool,
    watch: Watch<'a>,
    /// What the program says in an execution.
    log: Log,
    failures: Vec<Failure>,
    /// What had failed before the exploration began anew. It mostly fails again.
    earlier: Vec<Failure>,
    /// The frees that are known to be in order.
    unseen: Vec<SuppressedRaces>,
    /// What is made of blocks that hang from a static.
    statics: Rooted,
}

/// What has become of an execution that failed where loops were taken for one step.
enum Full {
    /// It is made in full. This is how it was, if that is something else.
    Taken(Option<Box<Found>>),
    /// It does not fail if it is made in full.
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
    let exploring = Exploring::begin();
    let seed = settings.seed_to_draw_with();
    let learnt = match &given {
        Some(schedule) => known_from(schedule),
        None => Learnt::default(),
    };
    let mut driver = settings.driver(settings.following(given.as_ref(), seed), learnt);
    driver.looks_for_raw_uses = tries_raw_uses(settings, given.as_ref());
    let watch = Watch::new(settings, &mut driver, site, given.is_some());
    let filter = settings.targets().unwrap_or_else(|error| panic!("{error}"));
    // Who looks at each execution, or at a single one, wants to read what it says.
    let log = Log::new(filter, settings.trace.is_some() || given.is_some());
    let mut exploration = Exploration {
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
    };
    let looking = StateCapture::at_first_waits();
    let driver = exploration.search(driver);
    drop(looking);
    exploration.watch.end();
    // A loop may have gone round too seldom since, or a limit was met before.
    if rarely!(!exploration.earlier.is_empty()) {
        let earlier = std::mem::take(&mut exploration.earlier);
        add_new(&mut exploration.failures, earlier, settings.max_failures);
    }
    let explored = match rarely!(!exploration.failures.is_empty()) {
        true => Err(exploration.failed()),
        false => Ok(exploration.passed(driver)),
    };
    if rarely!(interrupts::asked()) {
        tell_of_interrupt(settings, &explored);
        exploring.end();
    }
    explored
}

/// Says what else there is to say where the user ends the process.
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

/// Whether it is tried if threads use what has been freed. Who has nothing simplified has the
/// closure run for nothing but the exploration.
fn tries_raw_uses(settings: &Builder, given: Option<&Schedule>) -> bool {
    CAN_LOCK && given.is_none() && settings.simplify > 0
}

/// What is known of a program before it runs, if this schedule is to be followed.
#[cold]
fn known_from(schedule: &Schedule) -> Learnt {
    Learnt {
        ends_are_events: schedule.has_ends(),
        hintless: match schedule.waits_soon() {
            true => Hintless::Soon,
            false => Hintless::Unknown,
        },
        fair: schedule.is_fair(),
        awaits: Awaits::default(),
        held: schedule.held().cloned(),
        guarded: schedule.guards().then_some(Guarded::All),
    }
}

impl Exploration<'_> {
    /// Explores until there is no more to be explored. What is known in the end is in the driver.
    fn search(&mut self, mut driver: PooledDriver) -> PooledDriver {
        loop {
            let running = Settings {
                statics: self.statics,
                ..self.settings.running(self.site, &self.unseen)
            };
            let (watch, log) = (&mut self.watch, &self.log);
            let explored = log.listen(|| {
                explore(self.main, driver, &mut self.stacks, running, |between| {
                    watch.go_on(between, log)
                })
            });
            driver = match explored {
                Explored::Passed(passed) if rarely!(passed.ends_are_seen()) => {
                    self.restart(&passed, |learnt| learnt.ends_are_events = true)
                }
                Explored::Passed(mut passed) => match self.watch.asks() {
                    None => return passed,
                    Some(_) if passed.machine.shows_hintless() => {
                        self.restart(&passed, |learnt| learnt.hintless = Hintless::Soon)
                    }
                    Some(asked) => match self.learns(&passed, &asked) {
                        Some(learnt) => self.restart(&passed, |before| *before = learnt),
                        None => match self.tries_raw_uses(&mut passed) {
                            true => passed,
                            false => return passed,
                        },
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

    /// Tries whether threads use what has been freed. False if that was the last failure to be
    /// found.
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

    /// Looks at what a try beside the exploration has found, if it has. False if that was the last
    /// failure to be found.
    fn looks_at_raw_use(&mut self, found: Option<Box<Found>>, driver: &Driver) -> bool {
        found.is_none_or(|mut found| {
            found.driver.stats = driver.stats;
            self.look_at(*found).is_ok()
        })
    }

    /// What is learnt of these loops, if that makes another exploration of it: that one without a
    /// hint gives up by itself, as far as that can be known, or that one with a hint does not, and
    /// may be taken for one step.
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

    /// What was learnt makes another exploration of it.
    fn restart(&mut self, driver: &Driver, learns: impl FnOnce(&mut Learnt)) -> PooledDriver {
        let before = &driver.machine.limits.learnt;
        let mut learnt = before.clone();
        learns(&mut learnt);
        self.watch.restart(&learnt, before);
        self.log.clear();
        self.unseen.clear();
        let failures = std::mem::take(&mut self.failures);
        add_new(&mut self.earlier, failures, self.settings.max_failures);
        let explorer = self.settings.following(self.given.as_ref(), self.seed);
        let mut driver = self.settings.driver(explorer, learnt);
        driver.looks_for_raw_uses = tries_raw_uses(self.settings, self.given.as_ref());
        driver
    }

    /// An execution has failed, or seems to have. Gives the driver to go on with, or as an error if
    /// that was the last one.
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
        if self.is_unfair(&found) {
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
        let follows = self.given.is_some();
        let mut body = self.body(&found.driver);
        if let Some(free) = body.is_in_order(&mut found) {
            self.unseen.push(free);
            let mut driver = taken.map_or(found, |taken| *taken).driver;
            driver.rerun();
            return Ok(driver);
        }
        let shown = body.minimize(&mut found, follows);
        if shown.simpler.is_none() {
            body.hear(&mut found);
        }
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
        match last || self.failures.len() >= self.settings.max_failures {
            true => Err(driver),
            false => learnt_from(driver, &end),
        }
    }

    /// The given schedule, if it does not fit and is to be followed otherwise: earlier versions of
    /// `dpor` counted fences among the steps. If it fits neither way, it is told how it does not as
    /// it stands.
    fn as_it_was_written(&mut self, found: &Found) -> Option<Schedule> {
        let given = self.given.as_ref()?;
        let has_fences = !found.driver.trace.fences().is_empty();
        if !matches!(found.end, End::Stale { .. }) || !has_fences {
            return None;
        }
        let was_tried = std::mem::replace(&mut self.counted_fences, true);
        (!was_tried || given.counts_fences()).then(|| given.counting_fences(!was_tried))
    }

    /// Whether there were too many events because a loop that changes something in each round has
    /// kept others from going on, which no scheduler of an operating system does for ever.
    fn is_unfair(&self, found: &Found) -> bool {
        let machine = &found.driver.machine;
        matches!(found.end, End::TooManyEvents { .. })
            && self.given.is_none()
            && !machine.limits.learnt.fair
            && machine.is_unfair()
    }

    /// If loops are taken for one step, makes the execution that has failed as it is where none is.
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
            // Those that looked in vain give up by themselves, and would have gone on.
            None if matches!(found.end, End::Livelock { .. }) => Full::Passes,
            None => Full::Taken(None),
        }
    }

    /// The closure, to be run again as this driver has run it.
    fn body(&mut self, driver: &Driver) -> Probe<'_> {
        Probe {
            settings: self.settings,
            main: self.main,
            stacks: &mut self.stacks,
            log: &self.log,
            site: self.site,
            unseen: &self.unseen,
            // What fails is shown as it is made if no loop is taken for one step.
            learnt: Learnt {
                awaits: Awaits::default(),
                ..driver.machine.limits.learnt.clone()
            },
            budget: Budget::unlimited(),
        }
    }

    /// The failures, as the first one with the others in it.
    fn failed(&mut self) -> Box<Failure> {
        if let Some(directory) = &self.settings.report_dir {
            write_reports(&mut self.failures, directory, self.site);
        }
        let mut first = self.failures.remove(0);
        first.others = std::mem::take(&mut self.failures);
        Box::new(first)
    }

    /// Nothing has failed. Says what there is to be said of that.
    fn passed(&mut self, driver: PooledDriver) -> Passed {
        let is_plain = mostly!(self.watch.is_plain(&driver));
        if !is_plain && let Some(line) = self.watch.vain(&driver) {
            above(|| eprintln!("{line}"));
        }
        let coverage = driver.coverage();
        let gives_up = match coverage {
            Coverage::Sampled | Coverage::Replayed => None,
            // Mostly no loop has waited.
            _ if self.watch.waits.is_empty() => None,
            _ => {
                let waits = self.watch.waits.all();
                self.body(&driver).gives_up(&waits)
            }
        };
        let verdict = Verdict::of(coverage, self.watch.stopped, &gives_up, self.seed);
        let could_await = match (coverage, &gives_up) {
            (Coverage::All, None) if rarely!(!self.watch.waits.is_empty()) => {
                self.watch.could_await()
            }
            _ => None,
        };
        let passed = Passed {
            driver,
            verdict,
            gives_up,
            could_await,
            outcomes: self.watch.outcomes.take(),
            elapsed: self.watch.start.elapsed(),
            before: self.watch.before,
            ran: self.stacks.executions,
        };
        if !matches!(verdict, Verdict::Stopped(_)) {
            // All that there is within what was asked for has been explored.
            self.watch.complete();
        }
        self.tell(&passed);
        if !is_plain {
            self.say_more(&passed.driver);
        }
        passed
    }

    /// Says what there is to be said behind that.
    #[cold]
    fn say_more(&self, driver: &Driver) {
        if let Some(line) = self.watch.unshown(driver) {
            above(|| eprintln!("{line}"));
        }
    }

    /// Says on standard error what was explored, if that is not all there is.
    fn tell(&self, passed: &Passed) {
        match passed.verdict {
            Verdict::Complete => {}
            Verdict::Replayed => {
                cold_path();
                let nothing = Schedule::default();
                let line = passed.followed(self.given.as_ref().unwrap_or(&nothing), &self.site);
                // Who plays a schedule by hand waits for an answer.
                match std::env::var("DPOR_REPLAY").is_ok_and(|text| !text.trim().is_empty()) {
                    true => above_captured(&line),
                    false => above(|| eprint!("{line}")),
                }
            }
            _ => {
                cold_path();
                let line = passed.report().cut_short(&self.site);
                match passed.verdict {
                    // A search that ended at a limit may have seen next to nothing, and looks like
                    // one that found nothing. And nobody has asked for leaving out what a loop does
                    // that gives up.
                    Verdict::Stopped(_)
                    | Verdict::Waits(_)
                    | Verdict::TimesOut(_)
                    | Verdict::Fair(_)
                        if interrupts::asked() || said_once::is_first(self.site.to_string()) =>
                    {
                        above_captured(&format!("{line}\n"));
                    }
                    // What lets no execution come to its end has seen nothing.
                    _ if passed.driver.stats.complete == 0 => {
                        above_captured(&format!("{line}\n"));
                    }
                    // Who sets a bound, or samples, has asked for part of it, in each test.
                    _ => above(|| eprintln!("{line}")),
                }
            }
        }
    }
}

impl Builder {
    /// The explorer that follows this schedule, or else the one that the settings ask for.
    #[track_caller]
    fn following(&self, given: Option<&Schedule>, seed: u64) -> Box<dyn Explorer> {
        match given {
            Some(schedule) => Box::new(Replay::new(schedule.clone())),
            None => self.explorer(seed),
        }
    }

    /// How executions of these settings are run, where these frees are known to be in order.
    pub(crate) fn running(&self, site: Site, unseen: &[SuppressedRaces]) -> Settings {
        Settings {
            patience: self.patience,
            site,
            must_free: match self.check_leaks {
                true => MustFree::Found,
                false => MustFree::Owed,
            },
            statics: Rooted::Stays,
            watch: None,
            callers: self.trace.is_some(),
            replay: replay_command::replay_of,
            nth: numbered_model::last(),
            report: crash_report::report,
            in_order: InOrder::These(unseen.to_vec()),
        }
    }
}

/// The driver once it has learnt from an execution that failed; as an error if the system has no
/// memory for that, in which case the failures that are known are all there will be.
fn learnt_from(mut driver: PooledDriver, end: &End) -> Result<PooledDriver, PooledDriver> {
    if driver.lacks_memory().is_some() {
        return Err(driver);
    }
    driver.finish(end);
    Ok(driver)
}

/// Whether one of these failures is of this kind, at this place.
fn is_known(failures: &[Failure], kind: FailureKind, place: &str) -> bool {
    (failures.iter()).any(|it| (it.kind, &*it.place) == (kind, place))
}

/// Adds to these failures those that are not among them, as long as there is room for at most so
/// many.
fn add_new(failures: &mut Vec<Failure>, more: Vec<Failure>, most: usize) {
    for failure in more {
        if failures.len() < most && !is_known(failures, failure.kind, &failure.place) {
            failures.push(failure);
        }
    }
}

/// Writes the failures to the directory, and where to in their reports.
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
