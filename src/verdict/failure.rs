//! A failure: the execution that failed, its report, and its schedule.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::diagnose::minimize::{Minimized, leads_to};
use crate::exploration::replay_command;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{End, Panic, Wrong};
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::Found;
use crate::rt::report::execution::Execution;
use crate::rt::report::record::Record;
use crate::rt::report::{dot, log, places, text};

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A thread panicked.
    Panic,
    /// Threads wait for each other.
    Deadlock,
    /// Threads spin on values that no thread will change.
    Livelock,
    /// Two threads access the same plain memory, at least one of them writes, and happens-before
    /// (of C11) does not order the two accesses.
    DataRace,
    /// A block or a [`Track`](crate::alloc::Track) was not released although every thread had
    /// finished.
    ///
    /// A heap block of the model must be freed, a `Track` must be dropped; see
    /// [`Builder::check_leaks`](crate::Builder#structfield.check_leaks).
    Leak,
    /// A shim or a cell was used after its block was freed, or after the end of the thread that had
    /// it on its stack.
    UseAfterFree,
    /// A block was freed twice, with a layout other than its own, or from an address inside it.
    WrongFree,
    /// An execution has more events or threads than
    /// [`Builder::max_branches`](crate::Builder::max_branches) or
    /// [`Builder::max_threads`](crate::Builder::max_threads) allows, or the system has no memory
    /// for a thread's stack or for the clocks of all events.
    Limit,
    /// A thread used more stack than it has.
    StackOverflow,
    /// A thread used memory that is not mapped, for example through a null pointer, or wrote to
    /// read-only memory.
    MemoryFault,
    /// A thread outside the model used an object of the model.
    ///
    /// For example, the test spawned the thread with `std::thread` instead of
    /// [`thread`](crate::thread). The exploration of such a test proves nothing.
    Outside,
    /// The closure behaved differently when it ran again with the same schedule.
    NotDeterministic,
    /// The schedule to replay is malformed or does not fit the program.
    Schedule,
    /// No execution failed, and the exploration is not complete, which
    /// [`Builder::require_complete`](crate::Builder::require_complete) asks for.
    ///
    /// This failure has neither events nor a schedule.
    Incomplete,
}

/// An execution that failed.
pub struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) schedule: String,
    pub(crate) text: String,
    /// The part of the text that is a test with the schedule; empty if the text has none.
    stub: String,
    pub(crate) payload: Option<std::sync::Mutex<Box<dyn std::any::Any + Send>>>,
    /// The place of the failure. Two failures of one kind at one place count as the same.
    pub(crate) place: String,
    pub(crate) others: Vec<Failure>,
    /// The program's frames at the panic, if the environment asks for backtraces.
    pub(crate) backtrace: Option<String>,
    /// Number of executions that the exploration has run to their ends, number of those that it has
    /// pruned, and its duration. They are in the first failure of an exploration.
    pub(crate) executions: u64,
    pub(crate) pruned: u64,
    pub(crate) elapsed: Duration,
    events: Vec<Event>,
    /// The recorded execution; `None` if the failure is not one of an execution.
    record: Option<Box<Record>>,
}

/// Whether this process has printed a failure together with the test that replays it.
static STUB_TOLD: AtomicBool = AtomicBool::new(false);

/// An event of a failed execution, as the report shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The thread's given name, or its position in the tree of spawns, such as `main.1`.
    pub thread: String,
    /// The operation of the thread, with its values.
    pub what: String,
    /// Place of the operation in the program.
    ///
    /// For an operation that std or a destructor calls, this is a place in std or in this crate;
    /// the report has the caller's place, which it finds on the stack.
    pub place: &'static Location<'static>,
}

impl Failure {
    /// Returns the events of the execution, in their order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the execution as JSON: threads, objects, events with their values, clocks and links,
    /// races, outcome.
    ///
    /// The format has a version number and is described in `docs/REPORTS.md`.
    #[cfg(feature = "json")]
    pub fn json(&self) -> String {
        crate::rt::report::json::render(&self.execution())
    }

    /// Returns the execution as a graph in the language of Graphviz.
    ///
    /// The edges are program order, the reads-from relation, and the other events that order two
    /// threads. The failure is red.
    pub fn dot(&self) -> String {
        dot::render(&self.execution())
    }

    /// Returns the execution as a page for a browser, which needs no other file and no network.
    ///
    /// The page has a lane per thread, a slider that steps through the events, and the value of
    /// each object at the selected event.
    #[cfg(feature = "page")]
    pub fn html(&self) -> String {
        crate::rt::report::html::render(&self.execution())
    }

    /// Returns the report to print. After the first failure of this process it leaves out the test
    /// that replays the schedule. If all failures of a suite have one cause, that test would be the
    /// same each time and most of the output.
    pub(crate) fn told(&self) -> String {
        let mut text = self.to_string();
        let failures = [self].into_iter().chain(&self.others);
        for failure in failures.filter(|it| !it.stub.is_empty()) {
            if STUB_TOLD.swap(true, Relaxed)
                && let Some(at) = text.rfind(&failure.stub)
            {
                text.replace_range(at - 1..at + failure.stub.len(), "");
            }
        }
        text
    }

    /// Returns the execution as plain data, computed at each call.
    pub(crate) fn execution(&self) -> Execution {
        match &self.record {
            Some(record) => Execution::of(&record.view()),
            None => {
                let sentence = self.text.lines().next().unwrap_or_default();
                let kind = match self.kind {
                    FailureKind::Incomplete => "incomplete",
                    _ => "schedule",
                };
                Execution::without_events(kind, &self.schedule, sentence)
            }
        }
    }

    /// Returns the kind of this failure.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the failures found after this one, if
    /// [`Builder::max_failures`](crate::Builder::max_failures) is above 1.
    pub fn others(&self) -> &[Failure] {
        &self.others
    }

    /// Returns the schedule that leads to this failure, for [`replay`](crate::replay) or
    /// `DPOR_REPLAY`.
    ///
    /// If the failure is that a given schedule does not fit, this is the given schedule. In
    /// `DPOR_REPLAY`, the schedule of a test's third model, for example, needs the prefix
    /// `model 3: `, see [`Builder::replay`](crate::Builder#structfield.replay).
    pub fn schedule(&self) -> &str {
        &self.schedule
    }
}

/// Prints the full report.
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

/// Returns the failure of a schedule that cannot be followed; `what` says why.
pub(crate) fn unfit(text: &str, what: &str) -> Box<Failure> {
    let told = format!(
        "the schedule to replay {what}\n  schedule   {}",
        text::shown(text)
    );
    without_execution(FailureKind::Schedule, text, told)
}

/// Returns the failure of an exploration that left something out; `why` is a sentence.
pub(crate) fn incomplete(why: String) -> Box<Failure> {
    without_execution(FailureKind::Incomplete, "", why)
}

/// Returns a failure that is not the failure of an execution.
fn without_execution(kind: FailureKind, schedule: &str, told: String) -> Box<Failure> {
    Box::new(Failure {
        events: Vec::new(),
        kind,
        schedule: schedule.to_owned(),
        text: told,
        stub: String::new(),
        payload: None,
        place: String::new(),
        others: Vec::new(),
        backtrace: None,
        executions: 0,
        pruned: 0,
        elapsed: Duration::ZERO,
        record: None,
    })
}

/// Returns the failure that was found, perhaps along a `given` schedule; the end of its execution;
/// and the driver with which the exploration continues.
pub(crate) fn failure(
    found: Found,
    shown: Minimized,
    given: Option<&Schedule>,
) -> (Failure, End, PooledDriver) {
    let executions = found.driver.stats.numbered() + 1;
    let mut failure = told(
        shown.simpler.as_deref().unwrap_or(&found),
        executions,
        &shown,
        given,
    );
    // The test panics with the panic that the report shows.
    let panicked = shown
        .simpler
        .as_ref()
        .map_or(&found.end, |simpler| &simpler.end);
    let panicked = panicked.has_panicked();
    let (payload, message, raised) = match shown.simpler {
        Some(simpler) => (simpler.payload, simpler.message, simpler.raised),
        None => (found.payload, found.message, found.raised),
    };
    let raised = raised.filter(|_| panicked);
    failure.backtrace = raised.and_then(|stack| places::of_panic(&stack));
    // If the unwinding of a thread never ended, it has left the message of its panic, but no
    // payload.
    let words = message.filter(|_| panicked);
    let words = words.map(|message| Box::new(message.text) as Box<dyn std::any::Any + Send>);
    failure.payload = payload.or(words).map(std::sync::Mutex::new);
    if shown.is_handled {
        failure.text.push_str(
            "\nhandled    with `Builder::catch_panics`, where `join` returns the panic of a spawned thread, this execution passes",
        );
    }
    (failure, found.end, found.driver)
}

/// The kind of failure that an execution ended with.
pub(crate) fn kind_of(end: &End) -> FailureKind {
    match end {
        End::Panicked { .. } => FailureKind::Panic,
        End::Deadlock(_) => FailureKind::Deadlock,
        End::Livelock { .. } => FailureKind::Livelock,
        End::TooManyEvents { .. }
        | End::TooManyThreads { .. }
        | End::NoStack { .. }
        | End::NoClocks { .. } => FailureKind::Limit,
        End::StackOverflow { .. } => FailureKind::StackOverflow,
        End::MemoryFault { .. } => FailureKind::MemoryFault,
        End::NotDeterministic(_) => FailureKind::NotDeterministic,
        End::Stale { .. } => FailureKind::Schedule,
        End::DataRace(_) => FailureKind::DataRace,
        End::Leaked(_) => FailureKind::Leak,
        End::Outside(_) => FailureKind::Outside,
        End::BadMemory(bad) => match bad.wrong {
            Wrong::Operation(..) | Wrong::Access(..) | Wrong::Raw { .. } => {
                FailureKind::UseAfterFree
            }
            Wrong::FreedTwice | Wrong::Layout { .. } | Wrong::Inside { .. } => {
                FailureKind::WrongFree
            }
        },
        End::Complete | End::Pruned(_) => unreachable!("dpor bug: no failure"),
    }
}

/// Returns the failure with its report, without the payload of its panic.
fn told(found: &Found, executions: u64, shown: &Minimized, given: Option<&Schedule>) -> Failure {
    let kind = kind_of(&found.end);
    let schedule = match (&found.end, given) {
        // The executed steps of a schedule that does not fit do fit, so on their own they do not
        // lead to this failure.
        (End::Stale { .. }, Some(given)) => given.to_string(),
        _ => leads_to(found).to_string(),
    };
    let message = found.message.as_ref();
    let test = std::thread::current();
    let record = Record {
        trace: found.driver.trace.clone(),
        machine: found.driver.machine.clone(),
        given: found.names.clone(),
        message: (found.said().filter(|_| found.end.has_panicked())).map(str::to_owned),
        raised: message.and_then(|message| message.location.clone()),
        earlier: found.earlier.clone(),
        life: shown.life.clone(),
        callers: shown.callers.clone(),
        pair: shown.pair.clone(),
        again: shown.again,
        simplified: shown.simpler.is_some(),
        log: found.log.clone(),
        executions,
        replay: replay_command::replay(&schedule, found.driver.weakened()),
        schedule,
        test: test.name().map(str::to_owned),
        end: found.end.clone(),
    };
    let mut text = text::render(&record.view());
    let mut stub = text::stub(&record.view());
    if !text.ends_with(&stub) {
        stub.clear();
    }
    let weakened = found.driver.weakened();
    if !weakened.is_empty() {
        // The test would have the orderings of the source.
        let before = text.strip_suffix(&stub).unwrap_or(&text).trim_end();
        text = format!("{before}\nweakened   {weakened}: the source has other orderings there");
        stub.clear();
    }
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
        stub,
        schedule: record.schedule.clone(),
        payload: None,
        place: place(&found.end, found.message.as_ref()),
        others: Vec::new(),
        backtrace: None,
        executions: 0,
        pruned: 0,
        elapsed: Duration::ZERO,
        record: Some(Box::new(record)),
    }
}

/// Returns the place of a failure. It decides whether two failures are the same.
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
            Wrong::Operation(_, site) | Wrong::Access(_, site, _) => vec![site.to_string()],
            _ => vec![format!("{:?}", bad.memory)],
        },
        _ => Vec::new(),
    };
    places.sort();
    places.join(", ")
}
