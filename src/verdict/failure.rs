//! What is known of an execution that failed, and how is it told?

use std::fmt;
use std::panic::Location;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::diagnose::minimize::{Minimized, leads_to};
use crate::exploration::replay_command;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{End, Panic, Wrong};
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::Found;
use crate::rt::report::execution::Execution;
use crate::rt::report::record::Record;
use crate::rt::report::{dot, html, json, log, places, text};

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A thread panicked.
    Panic,
    /// Threads wait for each other.
    Deadlock,
    /// Threads spin on values that nobody will change.
    Livelock,
    /// Two threads access the same plain memory, at least one of them writes, and nothing orders
    /// the two accesses.
    DataRace,
    /// Something was not released although every thread had finished.
    ///
    /// It is a [`Track`](crate::alloc::Track) that was not dropped, or a heap block of the model
    /// that was not freed; see [`Builder::check_leaks`](crate::Builder#structfield.check_leaks).
    Leak,
    /// A shim or a cell was used after its block was freed, or after the thread whose stack it was
    /// on had ended.
    UseAfterFree,
    /// A block was freed twice, with another layout than its own, or not from its beginning.
    WrongFree,
    /// An execution has more events or threads than
    /// [`Builder::max_branches`](crate::Builder::max_branches) or
    /// [`Builder::max_threads`](crate::Builder::max_threads) allows, or the system has no memory
    /// for the stack of one, or for the clocks of all events.
    Limit,
    /// A thread used more stack than it has.
    StackOverflow,
    /// A thread used memory that is not there, through a null pointer, say, or wrote to memory that
    /// may only be read.
    MemoryFault,
    /// A thread outside the model used an object of the model.
    ///
    /// The thread may be one of `std::thread`, say, where [`thread`](crate::thread) was meant.
    /// Nothing can be said about such a test.
    Outside,
    /// The closure did something else when it ran again with the same schedule.
    NotDeterministic,
    /// The schedule to replay is malformed or does not fit the program.
    Schedule,
}

/// An execution that failed.
pub struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) schedule: String,
    pub(crate) text: String,
    /// The part of the text that is the schedule as a test; empty if there is none.
    stub: String,
    pub(crate) payload: Option<std::sync::Mutex<Box<dyn std::any::Any + Send>>>,
    /// Where it failed; two failures of one kind at one place are the same.
    pub(crate) place: String,
    pub(crate) others: Vec<Failure>,
    /// The frames of the program when it panicked, if the environment asks for backtraces.
    pub(crate) backtrace: Option<String>,
    events: Vec<Event>,
    /// What was recorded; nothing if the schedule to follow was malformed.
    record: Option<Box<Record>>,
}

/// Whether a failure of this process was printed with its schedule as a test.
static STUB_TOLD: AtomicBool = AtomicBool::new(false);

/// An event of a failed execution, as the report shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The thread's given name, or its position in the tree of spawns, such as `main.1`.
    pub thread: String,
    /// What the thread did, with the values.
    pub what: String,
    /// Where in the program the operation is.
    ///
    /// For what std or a destructor calls, it is a place in std or in this crate; the report has
    /// the place that it found on the stack.
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
    /// The format has a version and is described in `docs/REPORTS.md`.
    pub fn json(&self) -> String {
        json::render(&self.execution())
    }

    /// Returns the execution as a graph in the language of Graphviz.
    ///
    /// It shows program order, which read sees which write, what else orders two threads, and what
    /// failed in red.
    pub fn dot(&self) -> String {
        dot::render(&self.execution())
    }

    /// Returns the execution as a page for a browser, which needs no other file and no network.
    ///
    /// The page has a lane per thread, a slider that steps through the events, and what each object
    /// holds at that point.
    pub fn html(&self) -> String {
        html::render(&self.execution())
    }

    /// The report, and for those after the first of this process without the test that is written
    /// out: in a suite whose failures have one cause, the lines of a test that says the same each
    /// time are most of what is printed.
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

    /// The execution as plain data, made anew each time.
    pub(crate) fn execution(&self) -> Execution {
        match &self.record {
            Some(record) => Execution::of(&record.view()),
            None => {
                let sentence = self.text.lines().next().unwrap_or_default();
                Execution::malformed(&self.schedule, sentence)
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
    /// For a schedule that was given and does not fit, it is that one. In `DPOR_REPLAY`, the
    /// schedule of a test's third model, say, needs the prefix `model 3: `, see
    /// [`Builder::replay`](crate::Builder#structfield.replay).
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

/// The failure of a schedule of which this can be said.
pub(crate) fn unfit(text: &str, what: &str) -> Box<Failure> {
    Box::new(Failure {
        events: Vec::new(),
        kind: FailureKind::Schedule,
        schedule: text.to_owned(),
        text: format!(
            "the schedule to replay {what}\n  schedule   {}",
            text::shown(text)
        ),
        stub: String::new(),
        payload: None,
        place: String::new(),
        others: Vec::new(),
        backtrace: None,
        record: None,
    })
}

/// The failure that was found, maybe along a `given` schedule; how its execution ended; and what
/// explores on.
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
    // What is raised is what the report shows.
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
    // A thread that never came to the end of its unwinding has left only the words.
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

/// A failure in words, without its payload.
fn told(found: &Found, executions: u64, shown: &Minimized, given: Option<&Schedule>) -> Failure {
    let kind = kind_of(&found.end);
    let schedule = match (&found.end, given) {
        // What was executed before something did not fit does not lead here again: it fits.
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
        replay: replay_command::replay(&schedule),
        schedule,
        test: test.name().map(str::to_owned),
        end: found.end.clone(),
    };
    let mut text = text::render(&record.view());
    let mut stub = text::stub(&record.view());
    if !text.ends_with(&stub) {
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
            Wrong::Operation(_, site) | Wrong::Access(_, site, _) => vec![site.to_string()],
            _ => vec![format!("{:?}", bad.memory)],
        },
        _ => Vec::new(),
    };
    places.sort();
    places.join(", ")
}
