//! What happens when a test calls `model`?

use std::fmt;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

pub use crate::config::Builder;
use crate::kept;
use crate::progress::above;
use crate::report_dir::ReportDir;
use crate::rerun;
use crate::rt::exec::heap::MustFree;
use crate::rt::exec::run::{Explored, Found, Settings, explore, stacks};
use crate::rt::exec::unseen::Unseen;
use crate::rt::exec::{context, heap};
use crate::rt::explore::driver::Driver;
use crate::rt::explore::replay::Replay;
use crate::rt::explore::{Coverage, Explorer};
use crate::rt::report::execution::Execution;
use crate::rt::report::record::Record;
use crate::rt::report::{dot, html, json, log, text};
use crate::rt::trace::Site;
use crate::rt::trace::schedule::Schedule;
use crate::rt::trace::verdict::{End, Panic, Wrong};
use crate::rt::{self, Answer, Outcome};
use crate::search::{Watch, fresh_seed};
use crate::shown::{Body, Shown, leads_to};
use crate::summary::{Passed, Report, Verdict};

/// What kind of failure was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A thread panicked.
    Panic,
    /// Threads wait for each other.
    Deadlock,
    /// Threads spin on values that nobody will change.
    Livelock,
    /// Two threads access the same plain memory, at least one of them writes, and nothing orders the
    /// two.
    DataRace,
    /// A [`Track`](crate::alloc::Track) was not dropped, or a heap block of the model not freed, when
    /// every thread had finished; see [`Builder::check_leaks`].
    Leak,
    /// A shim or a cell was used whose block had been freed, or whose thread had ended.
    UseAfterFree,
    /// A block was freed twice, or with another layout than its own, or not from its beginning.
    WrongFree,
    /// An execution has more events, or more threads, than a limit allows.
    Limit,
    /// A thread used more stack than it has.
    StackOverflow,
    /// A thread that is none of the model's used what is: one of `std::thread`, say, where [`thread`](crate::thread) was
    /// meant. Nothing can be said of such a test.
    Outside,
    /// The closure did something else when it was run again with the same schedule.
    NotDeterministic,
    /// The schedule that was to be replayed is malformed or does not fit the program.
    Schedule,
}

/// An execution that failed.
pub struct Failure {
    kind: FailureKind,
    schedule: String,
    text: String,
    payload: Option<std::sync::Mutex<Box<dyn std::any::Any + Send>>>,
    /// Where it failed; two failures of one kind at one place are the same.
    place: String,
    others: Vec<Failure>,
    events: Vec<Event>,
    /// What was recorded; nothing if the schedule to follow was malformed.
    record: Option<Box<Record>>,
}

/// An event of a failed execution, as the report shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The thread's given name, or its path of births.
    pub thread: String,
    /// What it did, with the values.
    pub what: String,
    /// Where in the program. What std or a destructor calls has a place of theirs here; the report has what it
    /// found on the stack.
    pub place: &'static Location<'static>,
}

impl Failure {
    /// The events of the execution, in their order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The execution as JSON: threads, objects, events with their values, clocks and links, races,
    /// outcome. The format has a version and is described in `docs/REPORTS.md`.
    pub fn json(&self) -> String {
        json::render(&self.execution())
    }

    /// The execution as a graph in the language of Graphviz: program order, who reads from whom, what
    /// else orders two threads, and what failed in red.
    pub fn dot(&self) -> String {
        dot::render(&self.execution())
    }

    /// The execution as a page for a browser, which needs no other file and no network: a lane per thread,
    /// a slider that steps through the events, and what each object holds at that point.
    pub fn html(&self) -> String {
        html::render(&self.execution())
    }

    /// The execution as plain data, made anew each time.
    fn execution(&self) -> Execution {
        match &self.record {
            Some(record) => Execution::of(&record.view()),
            None => {
                let sentence = self.text.lines().next().unwrap_or_default();
                Execution::malformed(&self.schedule, sentence)
            }
        }
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The failures that were found after this one, with [`Builder::max_failures`] above 1.
    pub fn others(&self) -> &[Failure] {
        &self.others
    }

    /// The schedule that leads to it, for [`replay`] or `DPOR_REPLAY`; the one that was given if it does not
    /// fit.
    pub fn schedule(&self) -> &str {
        &self.schedule
    }
}

/// The full report.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (i, other) in self.others.iter().enumerate() {
            write!(f, "\n\nfailure {}: {}", i + 2, other.text)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Explores every trace of `f`, with the settings of the environment.
///
/// # Panics
///
/// With the test's own panic, or with a sentence on what else went wrong, at the first execution
/// that fails; the report goes to standard error. Also if a variable of the environment is malformed.
#[track_caller]
pub fn model<F>(f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    Builder::new().checked(f);
}

/// Runs the one execution that `schedule` describes.
///
/// # Panics
///
/// As [`model`], and if the schedule is malformed or does not fit the program.
#[track_caller]
pub fn replay<F>(schedule: &str, f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    builder.checked(f);
}

/// Gives what `object` is made of a name in reports: `dpor::name(&*queue, "queue")`. It belongs to the place
/// in memory where the object is now, in this execution and all others. Outside a model this does nothing.
pub fn name<T: ?Sized>(object: &T, name: &str) {
    let address = (&raw const *object).addr();
    rt::name_object(address, size_of_val(object), name);
}

impl Builder {
    /// Explores `f` and says what was done.
    ///
    /// # Panics
    ///
    /// As [`model`].
    #[cfg(not(any(loom, feature = "loom")))]
    #[track_caller]
    pub fn check<F>(&self, f: F) -> Report
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.checked(f).report()
    }

    /// Explores `f`. As in loom there is no report; [`Builder::explore`] gives one.
    ///
    /// # Panics
    ///
    /// As [`model`].
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
            let kept = kept::keep(&failure.schedule, test.name(), Location::caller());
            if let Some(line) = kept {
                above(|| eprintln!("kept       {line}"));
            }
        }
        match failure.payload {
            Some(payload) => {
                let payload = payload.into_inner();
                let payload = payload.unwrap_or_else(std::sync::PoisonError::into_inner);
                std::panic::resume_unwind(payload)
            }
            None => {
                let first = failure.text.lines().next().unwrap_or_default();
                std::panic::resume_unwind(Box::new(first.to_owned()))
            }
        }
    }

    /// Explores `f`; a failure is returned instead of raised.
    ///
    /// # Errors
    ///
    /// The first execution that failed.
    ///
    /// # Panics
    ///
    /// If a model is started inside a model, if no [tracking allocator](crate::alloc) is in place, if a
    /// setting has a value that it cannot have, if settings contradict each other, or if a checkpoint cannot
    /// be taken up.
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
        let given = self.replay.as_deref().map(given).transpose()?;
        let explorer: Box<dyn Explorer> = match &given {
            Some(schedule) => Box::new(Replay::new(schedule.clone())),
            None => self.explorer(seed),
        };
        let site = Location::caller();
        let mut driver = self.driver(explorer);
        let mut watch = match Watch::new(self, &mut driver, site) {
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
            };
            if let Some(free) = body.is_in_order(&mut found) {
                unseen.push(free);
                driver = found.driver;
                driver.make_again();
                continue;
            }
            let shown = body.shown(&mut found, self.replay.is_some());
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
        let passed = Passed {
            driver,
            stopped: watch.stopped,
            seed,
            elapsed: watch.start.elapsed(),
        };
        match passed.verdict() {
            Verdict::Complete => watch.complete(),
            Verdict::Replayed => {
                let line = passed.followed(&given.unwrap_or_default(), &site);
                // Who plays a schedule by hand waits for an answer; what a test prints that passes is not shown.
                match std::env::var_os("DPOR_REPLAY") {
                    Some(_) => above(|| drop(std::io::stderr().write_all(line.as_bytes()))),
                    None => above(|| eprint!("{line}")),
                }
            }
            verdict => {
                if let Verdict::Rounds(_) = verdict {
                    // All that there is within the bound has been explored.
                    watch.complete();
                }
                above(|| eprintln!("{}", passed.report().cut_short(&site)));
            }
        }
        if let Some(line) = watch.hintless(&passed.driver) {
            above(|| eprintln!("{line}"));
        }
        Ok(passed)
    }
}

impl Builder {
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
            command: || rerun::command(std::thread::current().name()),
            unseen: unseen.to_vec(),
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

/// The schedule that is to be followed.
fn given(text: &str) -> Result<Schedule, Box<Failure>> {
    let read = kept::read(text).and_then(|text| Schedule::parse(&text));
    read.map_err(|error| malformed(text, &error))
}

fn malformed(text: &str, error: &str) -> Box<Failure> {
    Box::new(Failure {
        events: Vec::new(),
        kind: FailureKind::Schedule,
        schedule: text.to_owned(),
        text: format!("the schedule to replay is malformed: {error}\n  schedule   {text}"),
        payload: None,
        place: String::new(),
        others: Vec::new(),
        record: None,
    })
}

/// The failure that was found, maybe along a `given` schedule; how its execution ended; and what explores on.
fn failure(found: Found, shown: Shown, given: Option<&Schedule>) -> (Failure, End, Driver) {
    let executions = found.driver.stats.complete + found.driver.stats.assumed + 1;
    let mut failure = told(
        shown.simpler.as_deref().unwrap_or(&found),
        executions,
        &shown,
        given,
    );
    // What is raised is what the report shows.
    let payload = match shown.simpler {
        Some(simpler) => simpler.payload,
        None => found.payload,
    };
    failure.payload = payload.map(std::sync::Mutex::new);
    (failure, found.end, found.driver)
}

/// The kind of failure that an execution ended with.
fn kind_of(end: &End) -> FailureKind {
    match end {
        End::Panicked { .. } => FailureKind::Panic,
        End::Deadlock(_) => FailureKind::Deadlock,
        End::Livelock { .. } => FailureKind::Livelock,
        End::TooManyEvents { .. } | End::TooManyThreads { .. } => FailureKind::Limit,
        End::StackOverflow { .. } => FailureKind::StackOverflow,
        End::NotDeterministic(_) => FailureKind::NotDeterministic,
        End::Stale { .. } => FailureKind::Schedule,
        End::DataRace(_) => FailureKind::DataRace,
        End::Leaked(_) => FailureKind::Leak,
        End::Outside(_) => FailureKind::Outside,
        End::BadMemory(bad) => match bad.wrong {
            Wrong::Operation(..) | Wrong::Access(..) => FailureKind::UseAfterFree,
            Wrong::FreedTwice | Wrong::Layout { .. } | Wrong::Inside { .. } => {
                FailureKind::WrongFree
            }
        },
        End::Complete | End::Pruned(_) => unreachable!("dpor bug: no failure"),
    }
}

/// A failure in words, without its payload.
fn told(found: &Found, executions: u64, shown: &Shown, given: Option<&Schedule>) -> Failure {
    let kind = kind_of(&found.end);
    let schedule = match (&found.end, given) {
        // What was executed before something did not fit does not lead here again: it fits.
        (End::Stale { .. }, Some(given)) => given.clone(),
        _ => leads_to(found),
    };
    let message = found.message.as_ref();
    let test = std::thread::current();
    let record = Record {
        trace: found.driver.trace.clone(),
        machine: found.driver.machine.clone(),
        given: found.names.clone(),
        message: message.map(|message| message.text.clone()),
        raised: message.and_then(|message| message.location.clone()),
        earlier: found.earlier.clone(),
        life: shown.life.clone(),
        callers: shown.callers.clone(),
        pair: shown.pair.clone(),
        again: shown.again,
        simplified: shown.simpler.is_some(),
        log: found.log.clone(),
        executions,
        schedule: schedule.to_string(),
        command: rerun::command(test.name()),
        test: test.name().map(str::to_owned),
        end: found.end.clone(),
    };
    let mut text = text::render(&record.view());
    let said = log::render(&record.view());
    if !said.is_empty() {
        text = format!("{text}\n\n{}", said.trim_end());
    }
    let told = text::events(&record.view()).into_iter();
    let events = told.map(|(thread, what, place)| Event {
        thread,
        what,
        place,
    });
    Failure {
        events: events.collect(),
        kind,
        text,
        schedule: record.schedule.clone(),
        payload: None,
        place: place(&found.end, found.message.as_ref()),
        others: Vec::new(),
        record: Some(Box::new(record)),
    }
}

/// Where an execution failed, to tell whether two failures are the same.
pub(crate) fn place(end: &End, message: Option<&Panic>) -> String {
    if let Some(Some((file, line, column))) = message.map(|message| &message.location) {
        return format!("{file}:{line}:{column}");
    }
    let mut places: Vec<String> = match end {
        End::Deadlock(stuck) | End::Livelock { stuck, .. } => stuck
            .iter()
            .map(|blocked| blocked.site.to_string())
            .collect(),
        End::DataRace(race) => vec![race.first.site.to_string(), race.second.site.to_string()],
        End::BadMemory(bad) => match bad.wrong {
            Wrong::Operation(_, site) | Wrong::Access(_, site) => vec![site.to_string()],
            _ => vec![format!("{:?}", bad.memory)],
        },
        _ => Vec::new(),
    };
    places.sort();
    places.join(", ")
}

/// A value below `options`; every one of them is explored. Outside a model it is 0.
///
/// # Panics
///
/// If `options` is 0 or does not fit in 32 bits.
#[track_caller]
pub fn choose(options: usize) -> usize {
    assert!(options > 0, "choose(0) has nothing to choose from");
    let Ok(options) = u32::try_from(options) else {
        panic!("choose({options}) has more values than can be explored")
    };
    match rt::choose(options) {
        Answer::Done(Outcome::Value(value)) => value as usize,
        _ => 0,
    }
}

/// A type all of whose values can be explored.
pub trait Any: sealed::Sealed {
    /// One of the values; every one of them is explored.
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

/// Any value of `T`; every one of them is explored.
#[track_caller]
pub fn any<T: Any>() -> T {
    T::any()
}

/// Gives the execution up if `condition` is false; it counts as pruned. Outside a model this does
/// nothing.
#[track_caller]
pub fn assume(condition: bool) {
    if !condition {
        rt::give_up();
    }
}
