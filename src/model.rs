//! Exploring a closure, and what the closure can ask for while it is explored.

use std::collections::BTreeSet;
use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::config::Builder;
use crate::failure::{Failure, FailureKind, failure, kind_of, place, unfit};
use crate::progress::{above, above_captured};
use crate::report_dir::ReportDir;
use crate::rt::exec::heap::MustFree;
use crate::rt::exec::run::{Explored, Settings, explore, stacks};
use crate::rt::exec::unseen::{InOrder, Unseen};
use crate::rt::exec::{context, heap};
use crate::rt::explore::replay::Replay;
use crate::rt::explore::{Coverage, Explorer};
use crate::rt::report::text;
use crate::rt::trace::Site;
use crate::rt::trace::schedule::Schedule;
use crate::rt::{self, Answer, Outcome};
use crate::search::{Watch, fresh_seed};
use crate::shown::Body;
use crate::summary::{Passed, Report, Verdict};
use crate::{kept, nth, rerun};

/// Explores every trace of `f`, with the settings of the environment.
///
/// # Panics
///
/// At the first execution that fails: with the test's own panic, or with a sentence on what else went wrong. The
/// report goes to standard error. Also if an environment variable is malformed, and where [`Builder::explore`]
/// panics.
#[track_caller]
pub fn model<F>(f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    Builder::new().checked(f);
}

/// Runs the one execution of `f` that `schedule` describes.
///
/// # Panics
///
/// As for [`model`], and if the schedule is malformed or does not fit the program.
#[track_caller]
pub fn replay<F>(schedule: &str, f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    builder.checked(f);
}

/// Names `object` in reports.
///
/// `dpor::name(&*queue, "queue")` gives the name to everything that the object is made of. The name belongs to the
/// place in memory where the object is now, in this execution and all others. Outside a model this does nothing.
pub fn name<T: ?Sized>(object: &T, name: &str) {
    let address = (&raw const *object).addr();
    rt::name_object(address, size_of_val(object), name);
}

impl Builder {
    /// Explores `f` and returns a report.
    ///
    /// # Panics
    ///
    /// As for [`model`].
    #[cfg(not(any(loom, feature = "loom")))]
    #[track_caller]
    pub fn check<F>(&self, f: F) -> Report
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.checked(f).report()
    }

    /// Explores `f`.
    ///
    /// As in loom, this returns no report; [`Builder::explore`] does.
    ///
    /// # Panics
    ///
    /// As for [`model`].
    #[cfg(any(loom, feature = "loom"))]
    #[track_caller]
    pub fn check<F>(&self, f: F)
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.checked(f);
    }

    /// [`Builder::check`], whosesoever its signature is, for who may want a report.
    #[track_caller]
    pub(crate) fn checked<F>(&self, f: F) -> Passed
    where
        F: Fn() + Send + Sync + 'static,
    {
        let failure = match self.explored(f) {
            Ok(passed) => return passed,
            Err(failure) => failure,
        };
        above(|| eprintln!("{failure}"));
        if failure.kind != FailureKind::Schedule {
            let test = std::thread::current();
            let schedule = &failure.schedule;
            let kept = kept::keep(schedule, test.name(), Location::caller());
            let line = match (kept, text::is_long(schedule)) {
                (Some(path), false) => {
                    format!("kept       in {0} (DPOR_REPLAY=@{0})", path.display())
                }
                (Some(path), true) => {
                    let replay = rerun::replay_from(&path);
                    format!("kept       in {}\nreplay     {replay}", path.display())
                }
                // Otherwise it would be lost.
                (None, true) => format!("all of it  {schedule}"),
                (None, false) => String::new(),
            };
            if !line.is_empty() {
                above(|| eprintln!("{line}"));
            }
        }
        match failure.payload {
            Some(payload) => {
                let payload = payload.into_inner();
                let payload = payload.unwrap_or_else(PoisonError::into_inner);
                std::panic::resume_unwind(payload)
            }
            None => {
                let first = failure.text.lines().next().unwrap_or_default();
                std::panic::resume_unwind(Box::new(first.to_owned()))
            }
        }
    }

    /// Explores `f` and returns a failure instead of panicking with it.
    ///
    /// # Errors
    ///
    /// The first execution that failed.
    ///
    /// # Panics
    ///
    /// If a model is started inside a model, if no [tracking allocator](crate::alloc) is in place, if a setting has a
    /// value that it cannot have, if settings contradict each other, or if a checkpoint cannot be resumed.
    #[track_caller]
    pub fn explore<F>(&self, f: F) -> Result<Report, Box<Failure>>
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.explored(f).map(|passed| passed.report())
    }

    /// [`Builder::explore`] without a report, which few ask for.
    #[track_caller]
    fn explored<F>(&self, f: F) -> Result<Passed, Box<Failure>>
    where
        F: Fn() + Send + Sync + 'static,
    {
        assert!(
            !context::inside(),
            "a model was started inside a model; explore the two one after the other"
        );
        assert!(
            heap::installed(),
            "dpor's allocator is not in place, so objects on the heap would have no stable names: \
             use the feature `allocator`, or wrap your own allocator in `dpor::alloc::Tracking`"
        );
        if let Err(error) = self.check_values() {
            panic!("{error}");
        }
        let seed = self.seed.unwrap_or_else(fresh_seed);
        nth::begin();
        let given = match &self.replay {
            Some(text) => given(text)?,
            None => None,
        };
        let site = Location::caller();
        let has_ends = given.as_ref().is_some_and(Schedule::has_ends);
        let mut driver = self.driver(self.following(given.as_ref(), seed), has_ends);
        let mut watch = match Watch::new(self, &mut driver, site, given.is_some()) {
            Ok(watch) => watch,
            Err(error) => panic!("{error}"),
        };
        let body = Arc::new(f);
        let mut stacks = stacks(self.stack_size);
        let mut failures: Vec<Failure> = Vec::new();
        let mut unseen: Vec<Unseen> = Vec::new();
        let driver = loop {
            let log = watch.log.clone();
            let explored = log.listen(|| {
                let running = self.running(site, &unseen);
                explore(body.clone(), driver, &mut stacks, running, |between| {
                    watch.go_on(between)
                })
            });
            let mut found = match explored {
                Explored::Passed(passed) if passed.ends_are_seen() => {
                    driver = self.driver(self.following(given.as_ref(), seed), true);
                    watch.begin_anew();
                    (failures, unseen) = (Vec::new(), Vec::new());
                    continue;
                }
                Explored::Passed(driver) => break driver,
                Explored::Failed(found) => *found,
            };
            let key = (
                kind_of(&found.end),
                place(&found.end, found.message.as_ref()),
            );
            let known = |other: &Failure| (other.kind, &other.place) == (key.0, &key.1);
            if failures.iter().any(known) {
                driver = found.driver;
                driver.finish(&found.end);
                continue;
            }
            let mut body = Body {
                settings: self,
                body: body.clone(),
                stacks: &mut stacks,
                log: &log,
                site,
                unseen: &unseen,
                ends_are_events: found.driver.machine.limits.ends_are_events,
            };
            if let Some(free) = body.is_in_order(&mut found) {
                unseen.push(free);
                driver = found.driver;
                driver.make_again();
                continue;
            }
            let shown = body.shown(&mut found, given.is_some());
            if shown.simpler.is_none() {
                body.hear(&mut found);
            }
            let (mut failure, end, rest) = failure(found, shown, given.as_ref());
            if rest.coverage() == Coverage::Sampled {
                failure.text.push_str(&format!(
                    "\nfound by   DPOR_ALGORITHM={} DPOR_SEED={seed}",
                    self.algorithm.name()
                ));
            }
            let last = matches!(
                failure.kind,
                FailureKind::NotDeterministic | FailureKind::Schedule
            );
            failures.push(failure);
            watch.failed();
            driver = rest;
            driver.finish(&end);
            if last || failures.len() >= self.max_failures {
                break Box::new(driver);
            }
        };
        watch.end();
        if !failures.is_empty() {
            if let Some(directory) = &self.report_dir {
                write_reports(&mut failures, directory, site);
            }
            let mut first = failures.remove(0);
            first.others = failures;
            return Err(Box::new(first));
        }
        if let Some(line) = watch.vain(&driver) {
            above(|| eprintln!("{line}"));
        }
        let waits = watch.waits();
        let gives_up = match driver.coverage() {
            Coverage::Sampled | Coverage::Replayed => None,
            _ => {
                let log = watch.log.clone();
                let mut body = Body {
                    settings: self,
                    body: body.clone(),
                    stacks: &mut stacks,
                    log: &log,
                    site,
                    unseen: &unseen,
                    ends_are_events: driver.machine.limits.ends_are_events,
                };
                body.gives_up(&waits)
            }
        };
        let passed = Passed {
            driver,
            gives_up,
            stopped: watch.stopped,
            seed,
            elapsed: watch.start.elapsed(),
        };
        let verdict = passed.verdict();
        if !matches!(verdict, Verdict::Stopped(_)) {
            // All that there is within what was asked for has been explored.
            watch.complete();
        }
        match verdict {
            Verdict::Complete => {}
            Verdict::Replayed => {
                let line = passed.followed(&given.unwrap_or_default(), &site);
                // Who plays a schedule by hand waits for an answer.
                match std::env::var("DPOR_REPLAY").is_ok_and(|text| !text.trim().is_empty()) {
                    true => above_captured(&line),
                    false => above(|| eprint!("{line}")),
                }
            }
            _ => {
                let line = passed.report().cut_short(&site);
                match verdict {
                    // A search that ended at a limit may have seen next to nothing, and looks like one that found nothing.
                    Verdict::Stopped(_) if is_first(site) => above_captured(&format!("{line}\n")),
                    // Who sets a bound, or samples, has asked for part of it, in each test.
                    _ => above(|| eprintln!("{line}")),
                }
            }
        }
        if let Some(line) = watch.unshown(&passed.driver) {
            above(|| eprintln!("{line}"));
        }
        Ok(passed)
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
    pub(crate) fn running(&self, site: Site, unseen: &[Unseen]) -> Settings {
        Settings {
            patience: self.patience,
            site,
            must_free: match self.check_leaks {
                true => MustFree::Found,
                false => MustFree::Owed,
            },
            watch: None,
            callers: self.trace.is_some(),
            replay: rerun::replay,
            in_order: InOrder::These(unseen.to_vec()),
        }
    }
}

/// Whether this test has not called the model at this place before, as one does that explores it in many parts.
fn is_first(site: Site) -> bool {
    static SEEN: Mutex<BTreeSet<(Option<String>, String)>> = Mutex::new(BTreeSet::new());
    let test = std::thread::current();
    let model = (test.name().map(str::to_owned), site.to_string());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(model)
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

/// The schedule that is to be followed; `None`, and a line that says so, if this model is not the one that the text is
/// for. What the program gives itself is for the model that it gives it to.
fn given(text: &str) -> Result<Option<Schedule>, Box<Failure>> {
    let by_program = !std::env::var("DPOR_REPLAY").is_ok_and(|variable| variable == text);
    let parse = |text: &str| {
        let (schedule, nth) = nth::unnumbered(text)?;
        // An error counts the bytes of the whole text.
        let before = text.len() - schedule.len();
        let schedule = Schedule::parse(&format!("{:before$}{schedule}", ""))?;
        let last = nth::last();
        if by_program || nth == last {
            return Ok(Some(schedule));
        }
        let told = format!(
            "dpor: the schedule of DPOR_REPLAY is for model {nth} of the test; this is model {last}, which is explored as \
             usual\n"
        );
        above_captured(&told);
        Ok(None)
    };
    match kept::read(text) {
        Err(error) => Err(unfit(text, &format!("cannot be read: {error}"))),
        Ok(read) => {
            parse(&read).map_err(|error: String| unfit(text, &format!("is malformed: {error}")))
        }
    }
}

/// How many values one choice may have. Those that are planned take some 30 bytes each.
const OPTIONS_MAX: usize = 1 << 24;

/// Returns a value below `options`; every one of them is explored.
///
/// Outside a model it is 0.
///
/// # Panics
///
/// If `options` is 0 or more than 2^24, since each is an execution of its own, and all are planned.
#[track_caller]
pub fn choose(options: usize) -> usize {
    assert!(options > 0, "choose(0) has nothing to choose from");
    assert!(
        options <= OPTIONS_MAX,
        "choose({options}) has more values than can be explored: {OPTIONS_MAX} at most, each an execution of its own"
    );
    match rt::choose(options as u32) {
        Answer::Done(Outcome::Value(value)) => value as usize,
        _ => 0,
    }
}

/// A type all of whose values can be explored.
pub trait Any: sealed::Sealed {
    /// Returns one of the values; every one of them is explored.
    #[track_caller]
    fn any() -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for bool {}
    impl Sealed for u8 {}
}

impl Any for bool {
    fn any() -> bool {
        choose(2) == 1
    }
}

impl Any for u8 {
    fn any() -> u8 {
        choose(256) as u8
    }
}

/// Returns any value of `T`; every one of them is explored.
#[track_caller]
pub fn any<T: Any>() -> T {
    T::any()
}

/// Gives up the execution if `condition` is false.
///
/// The execution counts as [pruned](Report::pruned). Outside a model this does nothing.
#[track_caller]
pub fn assume(condition: bool) {
    if !condition {
        rt::give_up();
    }
}
