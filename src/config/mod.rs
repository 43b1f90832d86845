//! The settings and limits of an exploration: their units, their defaults and the environment
//! variables that set them.
//!
//! Every setting is a field of [`Builder`]; the environment sets its first value. A variable that
//! does not parse is an error that names the variable, its value and the expected form
//! (`environment.rs`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::config::environment::{Environment, variable};
use crate::rt::coroutine::largest_stack;
use crate::rt::event::weakened::Weakened;
use crate::rt::exec::log::Filter;

/// Whether this build has loom's signatures, and with them loom's notion of a leak, where loom and
/// std disagree. Items with another type in the two builds use `cfg` directly.
pub(crate) const LOOM: bool = cfg!(any(loom, feature = "loom"));

/// Algorithm that decides which executions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Optimal-DPOR: explores every trace exactly once and nothing else.
    #[default]
    Optimal,
    /// Parsimonious Optimal-DPOR (CAV 2024): explores every trace exactly once, and keeps no list
    /// of the traces that it has planned.
    ///
    /// Its memory grows with the length of an execution, and that of `Optimal` may grow with the
    /// number of traces. A step may take longer than one of `Optimal`
    /// (`docs/BIG_STATE_SPACES.md`). A few programs with reader-writer locks make it begin an
    /// execution and then prune it. Only for sequential consistency, depth-first and without a
    /// bound.
    Parsimonious,
    /// Source-DPOR: explores every trace; begins some executions and then prunes them.
    Source,
    /// Flanagan and Godefroid's DPOR with sleep sets: explores every trace; mostly begins and then
    /// prunes more executions than `Source`.
    Classic,
    /// Context-sensitive DPOR (*Context-Sensitive Dynamic Partial Order Reduction*, CAV 2017,
    /// section 5; `docs/ALGORITHMS.md` says what differs): reaches every final state, and not every
    /// trace. Two orders that lead to the same state need one execution.
    ///
    /// Tests that assert something about the final state, or about what a thread has read, lose
    /// nothing. Data races, leaks and uses after a free may hang on the order and not on the state:
    /// they are not excluded, and the detector of data races is off. The
    /// [verdict](crate::Verdict::FinalStates) says so.
    ///
    /// The state has to be known: threads may share atomics, [`Shared`](crate::Shared), `Arc` and
    /// channels of `std::sync::mpsc`, and be spawned and joined. Another object is an error that
    /// names it. Only for sequential consistency and without a bound; it keeps no checkpoint, and
    /// its work is not shared among workers.
    FinalStates,
    /// Sleep sets alone: explores every trace; begins many executions and then prunes them.
    SleepSets,
    /// Explores every interleaving.
    Naive,
    /// Explores every trace that needs at most [`Builder::preemption_bound`] preemptions (or
    /// [`Builder::switch_bound`] switches, or [`Builder::delay_bound`] delays).
    ///
    /// Traces that need fewer come first. Without a bound it explores all traces, ordered by the
    /// number of preemptions that they need. It begins some executions and then prunes them, and
    /// its memory grows with the number of prefixes. Set by name, it takes no turns with a search
    /// without the bound, as [the bounds](Builder::preemption_bound) do by default.
    Bounded,
    /// Samples [`Builder::iterations`] executions by a random walk, uniform over the enabled
    /// threads.
    Random,
    /// Samples [`Builder::iterations`] executions with random thread priorities, which change at
    /// `pct_depth - 1` random moments ([`Builder::pct_depth`]; Burckhardt et al., ASPLOS 2010).
    Pct,
    /// Samples [`Builder::iterations`] executions with random priorities of events, drawn again for
    /// events that lost a race (Yuan et al., CAV 2018).
    Pos,
}

/// The values of `DPOR_ALGORITHM`.
const ALGORITHMS: [(&str, Algorithm); 11] = [
    ("optimal", Algorithm::Optimal),
    ("parsimonious", Algorithm::Parsimonious),
    ("source", Algorithm::Source),
    ("classic", Algorithm::Classic),
    ("final_states", Algorithm::FinalStates),
    ("sleep_sets", Algorithm::SleepSets),
    ("naive", Algorithm::Naive),
    ("bounded", Algorithm::Bounded),
    ("random", Algorithm::Random),
    ("pct", Algorithm::Pct),
    ("pos", Algorithm::Pos),
];

impl Algorithm {
    /// Returns the value of `DPOR_ALGORITHM` that selects this algorithm.
    pub(crate) fn name(self) -> &'static str {
        let found = ALGORITHMS.iter().find(|(_, algorithm)| *algorithm == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Memory model of an exploration.
///
/// `docs/WEAK_MEMORY.md` describes the two models and what they leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// Sequential consistency first, and then C11 if it has other executions.
    ///
    /// Each execution under sequential consistency is checked for operations that may have another
    /// outcome under C11. If there is none, the program has no weak behaviour, and the exploration
    /// is over ([`WeakMemory::Impossible`](crate::WeakMemory::Impossible)). Otherwise the
    /// executions under C11 are explored next.
    #[default]
    Auto,
    /// Sequential consistency: a load reads the last store.
    ///
    /// Orderings count for data races on plain memory, and for nothing else.
    Sc,
    /// C11, with C++20's release sequences: a load reads any store that its thread may still see.
    ///
    /// Explores each execution graph once: which store each load reads, and the order of the stores
    /// of each atomic. Not explored are load buffering and values out of thin air (Lahav et al.,
    /// *Repairing Sequential Consistency in C/C++11*, PLDI 2017).
    C11,
}

/// The values of `DPOR_MEMORY`.
const MEMORIES: [(&str, Memory); 3] = [
    ("auto", Memory::Auto),
    ("sc", Memory::Sc),
    ("c11", Memory::C11),
];

impl Memory {
    /// Returns the value of `DPOR_MEMORY` that selects this model.
    pub(crate) fn name(self) -> &'static str {
        let found = MEMORIES.iter().find(|(_, memory)| *memory == self);
        found.map_or("", |(name, _)| name)
    }
}

/// The pass under sequential consistency of an exploration by [`Memory::Auto`], for the pass under
/// C11 that comes behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstPass {
    /// The operation that may have another outcome under C11.
    pub(crate) operation: String,
    /// Number of executions.
    pub(crate) executions: u64,
    /// The order that the settings name.
    pub(crate) order: Order,
}

/// Order in which [`Algorithm::Optimal`] runs the executions it has planned.
///
/// Every order explores every trace exactly once. The orders differ in which traces come early, and
/// in memory: every branch that is begun and not finished is kept. A planned execution diverges
/// from an earlier one at some depth. *Tree order* puts the executions that diverge latest from the
/// first execution first, then those that diverge earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The first planned execution in tree order.
    ///
    /// Needs the least memory, and the least work for each execution: most of an execution repeats
    /// the one before.
    #[default]
    DepthFirst,
    /// The planned execution at 1/2 of tree order, then at 1/4, 3/4, 1/8, 5/8, and so on (the van
    /// der Corput sequence).
    BitReversal,
    /// Takes turns between the depths at which executions diverge.
    ///
    /// The next depth is the one that had its last turn the longest time ago; depths that have had
    /// no turn come first, the smallest first. Within a depth, the execution that was planned last
    /// comes first.
    RoundRobin,
    /// Moves on in tree order by the square root of the number of planned executions, wrapping
    /// around at the end.
    Stride,
    /// Reverses the pair of places in the program that was reversed least often so far.
    ///
    /// If several pairs were reversed equally often, the pair that stands first in the program
    /// comes first; within a pair, the execution that was planned last.
    ConflictFirst,
}

/// The values of `DPOR_ORDER`.
const ORDERS: [(&str, Order); 5] = [
    ("depth_first", Order::DepthFirst),
    ("bit_reversal", Order::BitReversal),
    ("round_robin", Order::RoundRobin),
    ("stride", Order::Stride),
    ("conflict_first", Order::ConflictFirst),
];

impl Order {
    /// Returns the value of `DPOR_ORDER` that selects this order.
    pub(crate) fn name(self) -> &'static str {
        let found = ORDERS.iter().find(|(_, order)| *order == self);
        found.map_or("", |(name, _)| name)
    }
}

/// How far the behaviour is explored that std permits and that programs seldom meet.
///
/// Such behaviour is a wait that ends spuriously, a weak compare-exchange that fails spuriously, or
/// an `RwLock` that lets a waiting writer go before a new reader. After a model has passed in full,
/// a further pass for each kind explores what the first pass has left out at places that the model
/// has met ([`Report::further`](crate::Report::further)). In a pass each thread meets spurious
/// behaviour once at most in an execution, and memory is sequentially consistent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thorough {
    /// Within a budget: the further passes together run no more executions than the first pass, or
    /// than 1,000 if that is more. Instead of 1,000 it is fewer if these could have more than
    /// 250,000 events.
    ///
    /// A pass that the budget cuts short has taken its executions from all over its tree.
    #[default]
    Bounded,
    /// All of it, without that budget.
    Full,
    /// None of it.
    Off,
}

/// Part of an exploration, for one of several processes that share no memory.
///
/// `Display` writes it as `DPOR_SHARD` has it: `3/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// Number of the part, counted from 1.
    pub index: usize,
    /// Number of parts.
    pub of: usize,
}

impl Shard {
    /// Returns the part with the number `index`, counted from 1, of `of` parts; `None` if there is
    /// no such part.
    #[must_use]
    pub fn new(index: usize, of: usize) -> Option<Shard> {
        (1..=of).contains(&index).then_some(Shard { index, of })
    }

    /// Parses `3/8`.
    pub(crate) fn parse(text: &str) -> Option<Shard> {
        let (index, of) = text.split_once('/')?;
        Shard::new(index.trim().parse().ok()?, of.trim().parse().ok()?)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Executions that are shown although they did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executions {
    /// Every execution.
    All,
    /// The execution with this number, counted from 1 as in a report.
    ///
    /// Executions that were pruned because other executions cover them do not count.
    Only(u64),
}

/// File that gets a line about each exploration.
///
/// `docs/SUMMARY.md` describes the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Summary {
    /// `dpor/summary.json` in the target directory in which the running program lies. No file, if
    /// it lies in none.
    ///
    /// The file begins anew with each run of the tests, such as a `cargo test`.
    #[default]
    Target,
    /// This file, which only grows. A relative path is relative to the working directory of the
    /// test.
    File(PathBuf),
    /// No file.
    Nothing,
}

/// Settings of an exploration.
///
/// Each field has a default, which its environment variable overrides. A variable that is empty
/// counts as not set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Builder {
    /// Algorithm that decides which executions to run.
    ///
    /// Environment: `DPOR_ALGORITHM`, one of `optimal`, `parsimonious`, `source`, `classic`,
    /// `final_states`, `sleep_sets`, `naive`, `bounded`, `random`, `pct`, `pos`. Default:
    /// [`Algorithm::Optimal`].
    pub algorithm: Algorithm,
    /// Order in which planned executions are run, for [`Algorithm::Optimal`] only.
    ///
    /// With another algorithm or with a bound, only the default is accepted.
    ///
    /// Environment: `DPOR_ORDER`, one of `depth_first`, `bit_reversal`, `round_robin`, `stride`,
    /// `conflict_first`. Default: [`Order::DepthFirst`].
    pub order: Order,
    /// Memory model of the executions.
    ///
    /// [`Memory::C11`] is explored by [`Algorithm::Optimal`], by [`Algorithm::Bounded`], and by
    /// the algorithms that sample; a checkpoint is kept depth-first only. [`Memory::Auto`]
    /// is the same as [`Memory::Sc`] with another algorithm than `Optimal`, within a bound that
    /// was needed, with [`Builder::await_loops`], and with a block of
    /// [`atomically`](crate::atomically()). Replaying a schedule ([`Builder::replay`])
    /// uses the model that the schedule names.
    ///
    /// Environment: `DPOR_MEMORY`, one of `auto`, `sc`, `c11`. Default: [`Memory::Auto`].
    pub memory: Memory,
    /// Maximum number of threads alive at once, main included; more are a
    /// [failure](crate::FailureKind::Limit).
    ///
    /// With this limit a test that spawns without end fails with a report, before the system runs
    /// out of memory for another stack.
    ///
    /// Environment: `DPOR_MAX_THREADS`. Default: 1000.
    pub max_threads: usize,
    /// Maximum number of events in one execution; more are a [failure](crate::FailureKind::Limit).
    ///
    /// After its execution has failed or ended, a thread is unwound. While it unwinds it may
    /// perform at most a tenth of this number of operations, or 1,000 if that is more. Further
    /// operations are not performed, for example those of a destructor that never ends.
    ///
    /// With loom's signatures each spin hint, such as [`yield_now`](crate::thread::yield_now),
    /// counts as an event.
    ///
    /// Environment: `DPOR_MAX_BRANCHES`. Default: 100,000.
    pub max_branches: usize,
    /// Maximum number of executions, after which the exploration stops; at least 1.
    ///
    /// Pruned executions count, executions from before a checkpoint do not.
    ///
    /// Environment: `DPOR_MAX_PERMUTATIONS`. Default: `None`, no limit.
    pub max_permutations: Option<usize>,
    /// Maximum duration of the exploration, more than 0. The exploration stops at the first
    /// execution that ends after it.
    ///
    /// Environment: `DPOR_MAX_DURATION`, in seconds, or with a unit: `500ms`, `1.5`, `10s`, `2m`,
    /// `1h`. Default: `None`, no limit.
    pub max_duration: Option<Duration>,
    /// Whether an exploration that is not [complete](crate::Report::complete) is a
    /// [failure](crate::FailureKind::Incomplete).
    ///
    /// An exploration is not complete if a limit stopped it, if a bound or a sampling algorithm
    /// left traces out, if the test excluded a part, or for another reason in
    /// [`Verdict`](crate::Verdict). With this setting it also fails if no execution ran to its end.
    /// The failure names the reason and the way to remove it. The replay of a single schedule does
    /// not fail.
    ///
    /// Environment: `DPOR_REQUIRE_COMPLETE`, 0 or 1. Default: `false`.
    pub require_complete: bool,
    /// Maximum memory for planned executions, in bytes; the exploration stops when planned
    /// executions need more.
    ///
    /// The memory of the test itself does not count.
    ///
    /// Environment: `DPOR_MAX_MEMORY`. Default: `None`, no limit.
    pub max_memory: Option<usize>,
    /// Maximum number of preemptions: switches away from a thread that is enabled and has not just
    /// reached a hint, such as [`yield_now`](crate::thread::yield_now).
    ///
    /// Every trace that can be executed with at most this many preemptions is explored.
    /// [`Algorithm::Bounded`] explores them, whatever exhaustive algorithm is set; standard error
    /// says so if the set algorithm is neither `Bounded` nor the default. A sampling algorithm
    /// takes no bound. At most one of the three bounds can be set.
    ///
    /// With the default algorithm, a search without the bound takes turns with `Bounded`, each with
    /// the same number of events. If it is the first to end, every trace was explored. Its
    /// executions count in the report only then; otherwise they are among the
    /// [`reruns`](crate::Report::reruns). It ends at an execution that fails, without a failure of
    /// the test. `Bounded`, set by name, takes no turns. Nor does it with [`Builder::trace`] or
    /// [`Builder::log`].
    ///
    /// Environment: `DPOR_MAX_PREEMPTIONS`. Default: `None`, no bound.
    pub preemption_bound: Option<usize>,
    /// Maximum number of context switches.
    ///
    /// Every switch from one thread to another counts, also away from a thread that is blocked or
    /// has ended. The start of a thread does not count. Neither does a switch to a thread in a spin
    /// loop that reads again because no other thread is enabled. Otherwise like
    /// [`Builder::preemption_bound`].
    ///
    /// Environment: `DPOR_MAX_SWITCHES`. Default: `None`, no bound.
    pub switch_bound: Option<usize>,
    /// Maximum number of delays: deviations from a deterministic scheduler.
    ///
    /// That scheduler continues with the thread that ran last. If that thread is not enabled, or
    /// has reached a hint such as [`yield_now`](crate::thread::yield_now), the scheduler continues
    /// with the next enabled thread. Passing over one thread is one delay. Threads are ordered by
    /// the tree of spawns: main, its first child, the children of that child, main's second child,
    /// and so on. Otherwise like [`Builder::preemption_bound`].
    ///
    /// Environment: `DPOR_MAX_DELAYS`. Default: `None`, no bound.
    pub delay_bound: Option<usize>,
    /// Maximum number of old values under C11.
    ///
    /// A step counts if it reads a value although a newer store of the atomic has happened, or if
    /// it is a store that goes behind such a one. The exploration visits each execution graph that
    /// has an order of its events with at most so many of these steps, those with fewer first. 0
    /// leaves the executions under sequential consistency. Most bugs of weak memory need one or
    /// two.
    ///
    /// Under [`Memory::Auto`] the bound holds for the part under C11, under [`Memory::Sc`] it
    /// changes nothing. Together with another bound it cannot be set under [`Memory::C11`].
    /// Otherwise like [`Builder::preemption_bound`].
    ///
    /// Environment: `DPOR_STALE_BOUND`. Default: `None`, no bound.
    pub stale_bound: Option<usize>,
    /// Whether a `try_lock` of a mutex may fail by the past under C11.
    ///
    /// std's is a relaxed load of the lock's word where it fails. So it may fail although the mutex
    /// has been unlocked, if its thread does not know of that: nothing that happened before the
    /// call happened after the unlock. It learns nothing from that. With `false` it fails only if
    /// the mutex is held in the order of execution, as under sequential consistency, where this
    /// setting changes nothing.
    ///
    /// Environment: `DPOR_STALE_TRY_LOCK`, 0 or 1. Default: `true`.
    pub stale_try_lock: bool,
    /// Maximum number of times in an execution that a thread reaches one spin hint after it has
    /// changed shared state.
    ///
    /// Spin hints are [`yield_now`](crate::thread::yield_now) and
    /// [`spin_loop`](crate::hint::spin_loop). Only a change that the thread itself has made since
    /// its last hint counts. An execution in which a thread would reach the hint once more is
    /// pruned, as with [`assume`](crate::assume). This limit is for loops that make progress in
    /// every round until another thread acts: they have infinitely many executions. If any
    /// executions were left out, the report is not complete
    /// ([`Verdict::Rounds`](crate::Verdict::Rounds)). At least 1.
    ///
    /// Environment: `DPOR_MAX_ROUNDS`. Default: `None`, no limit.
    pub max_rounds: Option<usize>,
    /// Number of OS threads that share the exploration, at least 1.
    ///
    /// With this setting [`Algorithm::Optimal`] explores under sequential consistency as
    /// [`Algorithm::Parsimonious`] does, also with one worker: the work of that can be shared.
    /// Executions, events, outcomes, the verdict, and the first failure with its number are the
    /// same for every number of workers. The closure runs on several OS threads at once. One worker
    /// goes on alone, and standard error says why, under [`Memory::C11`], with another algorithm,
    /// order or a bound, with [`Builder::await_loops`], with [`Builder::trace`] or
    /// [`Builder::log`], and where the model uses shared memory that is older than itself, such as
    /// a static. A short exploration has one worker.
    ///
    /// Environment: `DPOR_WORKERS`, a number or `auto` for the number of processors. Default:
    /// `None`.
    pub workers: Option<usize>,
    /// Part of the exploration that this process explores.
    ///
    /// All parts together are the whole exploration, and each trace is in one of them. Where the
    /// parts begin follows from the program and the settings alone. A process with one part
    /// explores the first executions of the model as every other one does, and they count in the
    /// first part. The verdict is then [`Verdict::Shard`](crate::Verdict::Shard), and the
    /// [summary](Builder::summary) says which part it was; `cargo dpor merge` adds the parts up. A
    /// model that is over before there are parts is explored in full by each process, and so is one
    /// for which [`Builder::workers`] would have no effect. No further pass ([`Builder::thorough`])
    /// follows a part.
    ///
    /// Environment: `DPOR_SHARD`, such as `3/8` for the third of eight parts. Default: `None`, the
    /// whole exploration.
    pub shard: Option<Shard>,
    /// Task that this process explores: a file that an earlier task has made, or `root` for the
    /// first one, which is the whole exploration.
    ///
    /// A task ends behind [`task_executions`](Builder#structfield.task_executions) executions. What
    /// is left then are further tasks, as files beside the [`result`](Builder#structfield.result).
    /// The sum of all results is the whole exploration. A task of another build, test, model or
    /// setting is refused. With several models in a process, `root` is the first one of them, and a
    /// file is for its own; the others are explored as usual. A task has one worker, and needs
    /// settings with which [`Builder::workers`] would have an effect. `docs/PARALLEL.md` has the
    /// form of a result.
    ///
    /// Environment: `DPOR_TASK`. Default: `None`.
    pub task: Option<PathBuf>,
    /// File that the result of the [`task`](Builder#structfield.task) is written to. It is complete
    /// once it is there.
    ///
    /// Environment: `DPOR_RESULT`. Default: `None`.
    pub result: Option<PathBuf>,
    /// Number of executions of a [`task`](Builder#structfield.task), at least 1.
    ///
    /// Environment: `DPOR_TASK_EXECUTIONS`. Default: 100,000.
    pub task_executions: u64,
    /// Whether standard error shows the progress of the exploration.
    ///
    /// On a terminal the progress is a bar, elsewhere a line every few seconds. `None` shows it
    /// unless the test harness captures the output of tests. If the harness captures it, the
    /// progress is a single line after a minute, and no line if
    /// [`max_duration`](Builder#structfield.max_duration) is set.
    ///
    /// Environment: `DPOR_PROGRESS`, 0 or 1. Default: `None`.
    pub progress: Option<bool>,
    /// Whether standard error shows the schedule of each execution.
    ///
    /// Environment: `DPOR_LOG`, 0 or 1. Default: `false`.
    pub log: bool,
    /// Filter for the test's `tracing` events that standard error shows in every execution.
    ///
    /// Each event is shown with the modelled thread and the number of the last operation. A filter
    /// is, for example, `debug` or `my_crate=trace,other=warn`, in the syntax of
    /// [`Targets`](https://docs.rs/tracing-subscriber/0.3/tracing_subscriber/filter/struct.Targets.html).
    /// With `None`, only the report of a failure shows events, and it shows all of them. If the
    /// test has a `tracing` subscriber of its own, that subscriber gets every event and this
    /// setting has no effect.
    ///
    /// Environment: `DPOR_LOG`, any value but 0 and 1. Default: `None`.
    pub log_filter: Option<String>,
    /// No effect; exists for users of loom. Source locations cost nothing here, so reports always
    /// have them.
    ///
    /// Environment: `DPOR_LOCATION`, 0 or 1. Default: `true`.
    pub location: bool,
    /// Whether exploration is off until the test calls [`explore`](crate::explore).
    ///
    /// Environment: none. Default: `false`.
    pub expect_explicit_explore: bool,
    /// File that keeps an unfinished exploration.
    ///
    /// If the file exists, the exploration resumes from it; once everything is explored, the file
    /// is removed. One file serves one test at a time, and only [`Algorithm::Optimal`] and
    /// [`Algorithm::Parsimonious`] without a bound can keep one. In a test
    /// with several models the file serves one model at a time: while
    /// it belongs to one model, the others are explored without a file, and standard error says so.
    /// The position in an [`Order`] is not kept: after a resume the order starts from its
    /// beginning. The values that closures return are not kept either, so [`Builder::outcomes`]
    /// explores without the file.
    ///
    /// Environment: `DPOR_CHECKPOINT_FILE`. Default: `None`, nothing is kept.
    pub checkpoint_file: Option<PathBuf>,
    /// Number of executions between two writes of the checkpoint file, at least 1.
    ///
    /// The file is also written when a limit stops the exploration.
    ///
    /// Environment: `DPOR_CHECKPOINT_INTERVAL`. Default: 20,000.
    pub checkpoint_interval: usize,
    /// Number of failures to collect before the exploration ends, at least 1.
    ///
    /// Two failures of one kind at one place in the program count once. An execution that fails is
    /// not continued, so the explorer finds no races with the later operations of its threads: with
    /// more than one failure, the search is not exhaustive.
    ///
    /// Environment: `DPOR_MAX_FAILURES`. Default: 1.
    pub max_failures: usize,
    /// Directory that failures are written to, as `<test>.json`, `<test>.dot` and `<test>.html`.
    ///
    /// The three files are for programs, for Graphviz and for a browser. A relative path is
    /// relative to the working directory of the test, and files of the same names are replaced. The
    /// report names the files.
    ///
    /// Environment: `DPOR_REPORT_DIR`. Default: `None`, nothing is written.
    pub report_dir: Option<PathBuf>,
    /// File that gets a line of JSON about the explorations at each place: verdict, executions,
    /// seconds, assumptions.
    ///
    /// A file that cannot be written is left out silently.
    ///
    /// Environment: `DPOR_SUMMARY`, the name of a file, or 0 for none. Default:
    /// [`Summary::Target`].
    pub summary: Summary,
    /// Executions to show although they did not fail.
    ///
    /// Standard error shows each of them with the table of a report. If [`Builder::report_dir`] is
    /// set, each is also written there, as `<test>-execution-<number>`.
    ///
    /// Environment: `DPOR_TRACE`, `all` or a number. Default: `None`, none are shown.
    pub trace: Option<Executions>,
    /// Number of executions that a sampling algorithm draws, at least 1.
    ///
    /// Environment: `DPOR_ITERATIONS`. Default: 1000.
    pub iterations: u64,
    /// Seed from which a sampling algorithm draws executions. The report and a failure contain the
    /// seed.
    ///
    /// Environment: `DPOR_SEED`. Default: `None`, another seed each time.
    pub seed: Option<u64>,
    /// Number of ordering constraints in the bugs that [`Algorithm::Pct`] looks for, at least 1.
    ///
    /// A value above the number of steps of the longest execution has the effect of that number.
    ///
    /// Environment: `DPOR_PCT_DEPTH`. Default: 3.
    pub pct_depth: usize,
    /// Number of idle rounds that a spin loop makes before its hint waits for a change.
    ///
    /// In an idle round the thread reads the same values as in the round before and changes no
    /// shared state. A loop that gives up by itself after more idle rounds than this is explored in
    /// full only if this number is raised ([`Verdict::Waits`](crate::Verdict::Waits)).
    ///
    /// Environment: `DPOR_SPIN_BOUND`. Default: 1.
    pub spin_bound: u32,
    /// Whether a loop that waits at a hint counts as one step, which is enabled once the value that
    /// the loop reads lets it end.
    ///
    /// With `Some(false)`, a round of such a loop may read a value that does not let the loop end,
    /// and the loop makes another round after a change. With `None`, only the first of several such
    /// rounds with the same value is part of an execution, if the rounds of the loop are one read
    /// and if a further round leaves the registers and the stack of the thread and the heap as they
    /// were. Nothing is lost by that.
    ///
    /// With `Some(true)`, no such round is part of an execution; where it reads several atomics, an
    /// execution with such a round is pruned, because another execution covers it: one in which the
    /// loop reads only after the change. This assumes that the code after the loop depends neither
    /// on the number of rounds nor on the values that the earlier rounds read.
    ///
    /// The setting concerns loops that only read in their rounds. Once such a loop has waited at
    /// its hint, and does not give up by itself, the exploration restarts. If no other thread can
    /// change the values any more, the loop is released as without this setting, so that livelocks
    /// are found. No effect on [`Algorithm::Bounded`], with a sampling algorithm and in a replay;
    /// `None` has an effect with [`Algorithm::Optimal`] on one worker.
    ///
    /// Environment: `DPOR_AWAIT_LOOPS`. Default: `None`.
    pub await_loops: Option<bool>,
    /// Whether weak compare-exchanges may fail spuriously.
    ///
    /// After such a failure, compare-exchanges of the same thread on the same atomic do not fail
    /// spuriously again until one of them succeeds. Without this rule a retry loop would have
    /// infinitely many executions. Without this setting a further pass ([`Builder::thorough`])
    /// explores one failure for each thread and execution.
    ///
    /// Environment: `DPOR_SPURIOUS_FAILURES`, 0 or 1. Default: `false`.
    pub spurious_failures: bool,
    /// Maximum number of a thread's waits, in each execution, that may end spuriously.
    ///
    /// The waits are those on a condition variable (a timed wait then ends before its time), in
    /// [`park`](crate::thread::park), in [`Notify::wait`](crate::sync::Notify::wait) and of a task.
    /// Every choice of the waits that end spuriously is explored, and also that none does. With 1,
    /// [`block_on`](crate::future::block_on) polls as often as loom's does. With 0, a further pass
    /// ([`Builder::thorough`]) explores one for each thread and execution.
    ///
    /// Environment: `DPOR_SPURIOUS_WAKEUPS`. Default: 0.
    pub spurious_wakeups: u32,
    /// How far the behaviour is explored, after a pass, that std permits and that this pass has
    /// left out.
    ///
    /// Further passes run only if the first one was [complete](crate::Report::complete), was one of
    /// [`Algorithm::Optimal`] without a bound or a checkpoint, and has met a place at which std
    /// permits such behaviour. A setting that explores a kind itself, such as
    /// [`Builder::spurious_wakeups`], leaves no further pass for this kind. The counts of a report
    /// are those of the first pass. [`outcomes`](crate::outcomes()) and
    /// [`orderings`](crate::orderings()) run no further pass.
    ///
    /// Environment: `DPOR_THOROUGH`, 0 for [`Thorough::Off`] or 1 for [`Thorough::Full`]. Default:
    /// [`Thorough::Bounded`]; with loom's signatures, [`Thorough::Off`], because loom has none of
    /// this behaviour.
    pub thorough: Thorough,
    /// Maximum number of times in a row that a wait at one place in the program times out.
    ///
    /// The waits are `wait_timeout`, `park_timeout` and `recv_timeout`. After that many timeouts
    /// the wait lasts until a change occurs or no other thread is enabled, so that a loop around
    /// the wait ends. A loop that gives up by itself after more timeouts is explored in full only
    /// if this number is raised ([`Verdict::TimesOut`](crate::Verdict::TimesOut)).
    ///
    /// If it is more than 20, it is also the number of reads of an
    /// [`Instant`](crate::time::Instant) in a row at one place that may find that no time has
    /// passed.
    ///
    /// Environment: `DPOR_TIMEOUT_BOUND`. Default: 2.
    pub timeout_bound: u32,
    /// Whether the panic of a spawned thread ends only that thread, as in std.
    ///
    /// If `true`, `join` returns the panic and locks are poisoned. If `false`, the panic fails the
    /// test at once. A panic of the closure itself always fails the test.
    ///
    /// Environment: `DPOR_CATCH_PANICS`, 0 or 1. Default: `false`.
    pub catch_panics: bool,
    /// Whether threads may still be blocked at the end of an execution, once the closure has
    /// returned.
    ///
    /// If `false`, an execution that ends with blocked threads is a deadlock, or a livelock if one
    /// of them waits in a loop. If `true`, it is complete, and the blocked threads are unwound. Set
    /// this for a test with threads that serve in the background until the process ends. The
    /// setting also allows such threads to wait for each other. It has no effect while the closure
    /// has not returned.
    ///
    /// Environment: `DPOR_DETACHED_MAY_BLOCK`, 0 or 1. Default: `false`.
    pub detached_may_block: bool,
    /// Whether heap blocks of the model that are still allocated at the end of an execution are a
    /// failure.
    ///
    /// Only blocks that the model knows to be shared count: blocks in which a shim or a cell was
    /// used; blocks that an `AtomicPtr` has pointed to, or that a compare-exchange on an
    /// `AtomicPtr` has tried to store; and blocks with an address that has been in an `AtomicUsize`
    /// or `AtomicU64`. Other blocks may hold what the test collects.
    /// [`may_leak`](crate::alloc::may_leak) exempts a single block. A
    /// [`Track`](crate::alloc::Track) that is not dropped is a failure regardless of this setting.
    ///
    /// With [loom's signatures](crate#looms-signatures) this is off by default, because loom does
    /// not check such blocks. There, blocks of an [`Arc`](crate::sync::Arc), of
    /// [`alloc`](crate::alloc::alloc()) and of the wakers of [`block_on`](crate::future::block_on)
    /// are a failure regardless of this setting, as a `Track` is.
    ///
    /// Environment: `DPOR_CHECK_LEAKS`, 0 or 1. Default: `true`; with loom's signatures, `false`.
    pub check_leaks: bool,
    /// Maximum number of executions to search, after a failure, for a simpler one that fails in the
    /// same way.
    ///
    /// Two executions fail in the same way if they fail at the same place with the same message,
    /// apart from numbers in it. The report shows the simpler execution, and the test panics with
    /// the panic of that execution. The search covers executions with few preemptions. If it finds
    /// none, as many executions again may be tried, each with one switch less.
    ///
    /// With 0, the report shows the execution that failed as it was. No pair of operations is tried
    /// in the other order, the failure is not replayed from its schedule, no thread is delayed to
    /// see whether it uses freed memory, and the report does not say where a block was allocated
    /// and freed. The closure then runs once for each execution, and once more in two cases only.
    /// The first case: a second run decides whether there is a failure at all (a free that looks
    /// like a data race, a block that looks leaked, a loop that `await_loops` counted as one step).
    /// The second case: the report needs it (a panic that only a hook of the program has seen, and
    /// the `tracing` events of the execution).
    ///
    /// Where executions are long, fewer are run. All attempts for one failure together are limited
    /// to twice the events of the execution that failed for each of these executions, at least 250
    /// and at most 1000, or to twice the events of the exploration up to the failure if that is
    /// more. An attempt ends behind twice the events of the execution that
    /// failed and 64 more: an execution that is longer is not easier to read. Beyond that limit,
    /// the failure and what the report says of it are confirmed by about ten replays.
    ///
    /// Environment: `DPOR_SIMPLIFY`. Default: 200.
    pub simplify: u64,
    /// Size of each thread's stack, in bytes.
    ///
    /// At most 1 GiB, and at most what the system allows. A thread may ask for a larger stack with
    /// its own [`Builder`](crate::thread::Builder::stack_size).
    ///
    /// Environment: `DPOR_STACK_SIZE`. Default: 262,144.
    pub stack_size: usize,
    /// Time after which standard error says that a step has not finished.
    ///
    /// A step is a visible operation and the code up to the next visible operation. The message may
    /// appear after up to twice this time. `None` means never.
    ///
    /// Environment: `DPOR_PATIENCE`, in seconds or with a unit as [`Builder::max_duration`], 0 for
    /// never. Default: 10 s.
    pub patience: Option<Duration>,
    /// Schedule of one execution to run instead of exploring, or `@` and the name of a file that
    /// contains the schedule.
    ///
    /// The variable applies to one of a test's models: the model that the schedule names
    /// (`model 3: v2 ..`), otherwise the first. The other models are explored as usual, and
    /// standard error says so.
    ///
    /// Environment: `DPOR_REPLAY`. Default: `None`, which explores.
    pub replay: Option<String>,
    /// Orderings to replace. Under sequential consistency orderings count for data races alone.
    ///
    /// An entry is a place and the ordering that the operations there have instead of the one in
    /// the source: `src/queue.rs:30=Relaxed`. Entries are separated by commas. A column, and
    /// `load`, `store`, `rmw` or `fence` behind it, say which operation of the line is meant:
    /// `src/queue.rs:30:14:load=Acquire`. A compare-exchange has the ordering `rmw` if it succeeds
    /// and `load` if it fails. `none` leaves out a fence. An entry without these is for each
    /// operation on the line that can have the ordering.
    ///
    /// The reports of [`orderings`](crate::orderings()) print such entries.
    ///
    /// Environment: `DPOR_WEAKEN`. Default: `None`.
    pub weakened: Option<String>,
    /// Whether [`model`](crate::model()) and [`Builder::check`] also look for the weakest orderings
    /// with which the test passes, as [`Builder::orderings`] does, once it has passed.
    ///
    /// Standard error shows the result, and a line of JSON is appended to
    /// `target/dpor/orderings.jsonl`. The test fails if it fails under [`Memory::C11`] as it is.
    /// There is no search with a schedule to replay, or with a setting that does not fit C11.
    ///
    /// Environment: `DPOR_ORDERINGS`, 0 or 1. Default: `false`.
    pub weakest_orderings: bool,
    /// Maximum number of weak compare-exchanges of a thread, in each execution, that may fail
    /// spuriously, if any may. A further pass ([`Builder::thorough`]) has 1.
    pub(crate) spurious_failures_max: u32,
    /// Whether spurious wake-ups are those of std's waits alone, and not of loom's `Notify`.
    pub(crate) wakeups_of_std_alone: bool,
    /// Whether a reader of a lock waits until the writers that wait have had their turn. A further
    /// pass and a schedule of such a pass switch this on.
    pub(crate) writers_first: bool,
    /// The first pass, in the second one.
    pub(crate) first_pass: Option<Box<FirstPass>>,
    /// Whether a thread gets the memory again of the blocks that it has freed. A further pass and a
    /// schedule of such a pass switch this on.
    pub(crate) blocks_again: bool,
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Creates a builder with the defaults, overridden by the environment.
    ///
    /// The environment is read once in a process, by the first builder. Reading some thirty
    /// variables takes as long as two executions of a small test.
    ///
    /// # Panics
    ///
    /// If an environment variable does not parse.
    #[track_caller]
    pub fn new() -> Builder {
        static READ: OnceLock<Result<Builder, String>> = OnceLock::new();
        let read = READ.get_or_init(|| {
            unknown_variables::tell(Builder::variables);
            Builder::from(&Environment { get: &variable })
        });
        match read {
            Ok(builder) => builder.clone(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sets the field [`checkpoint_file`](Builder#structfield.checkpoint_file), as in loom.
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Returns the names of the variables that set a field: those that `from` asks for.
    fn variables() -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        let get = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            Ok(None)
        };
        // With no variable set, `from` cannot fail.
        let _ = Builder::from(&Environment { get: &get });
        asked.into_inner()
    }

    fn from(env: &Environment<'_>) -> Result<Builder, String> {
        let either = |name| env.either(name);
        let log = env.log(either("DPOR_LOG"))?;
        Ok(Builder {
            algorithm: env.one_of("DPOR_ALGORITHM", &ALGORITHMS)?,
            order: env.one_of("DPOR_ORDER", &ORDERS)?,
            memory: env.one_of("DPOR_MEMORY", &MEMORIES)?,
            max_threads: env.size("DPOR_MAX_THREADS", "threads")?.unwrap_or(1000),
            max_branches: env
                .size(either("DPOR_MAX_BRANCHES"), "events")?
                .unwrap_or(100_000),
            max_permutations: env.size(either("DPOR_MAX_PERMUTATIONS"), "executions")?,
            max_duration: env.duration(either("DPOR_MAX_DURATION"))?,
            require_complete: env.switch("DPOR_REQUIRE_COMPLETE")?.unwrap_or(false),
            max_memory: env.size("DPOR_MAX_MEMORY", "bytes")?,
            preemption_bound: env.size(either("DPOR_MAX_PREEMPTIONS"), "preemptions")?,
            switch_bound: env.size("DPOR_MAX_SWITCHES", "context switches")?,
            delay_bound: env.size("DPOR_MAX_DELAYS", "delays")?,
            stale_bound: env.size("DPOR_STALE_BOUND", "old values")?,
            stale_try_lock: env.switch("DPOR_STALE_TRY_LOCK")?.unwrap_or(true),
            max_rounds: env.size("DPOR_MAX_ROUNDS", "rounds")?,
            max_failures: env.size("DPOR_MAX_FAILURES", "failures")?.unwrap_or(1),
            checkpoint_file: env.path(either("DPOR_CHECKPOINT_FILE"))?,
            checkpoint_interval: env
                .size(either("DPOR_CHECKPOINT_INTERVAL"), "executions")?
                .unwrap_or(20_000),
            report_dir: env.path("DPOR_REPORT_DIR")?,
            summary: match env.path("DPOR_SUMMARY")? {
                None => Summary::Target,
                Some(file) if file.as_os_str() == "0" => Summary::Nothing,
                Some(file) => Summary::File(file),
            },
            trace: env.executions("DPOR_TRACE")?,
            workers: env.workers("DPOR_WORKERS")?,
            shard: env.shard("DPOR_SHARD")?,
            task: env.path("DPOR_TASK")?,
            result: env.path("DPOR_RESULT")?,
            task_executions: env
                .number("DPOR_TASK_EXECUTIONS", "executions")?
                .unwrap_or(100_000),
            progress: env.switch("DPOR_PROGRESS")?,
            log: log == Some(Ok(true)),
            log_filter: log.and_then(Result::err),
            location: env.switch(either("DPOR_LOCATION"))?.unwrap_or(true),
            expect_explicit_explore: false,
            iterations: env.number("DPOR_ITERATIONS", "executions")?.unwrap_or(1000),
            seed: env.parse("DPOR_SEED", "a number below 2^64")?,
            pct_depth: env
                .size("DPOR_PCT_DEPTH", "ordering constraints")?
                .unwrap_or(3),
            spin_bound: env
                .parse("DPOR_SPIN_BOUND", "a number of rounds below 2^32")?
                .unwrap_or(1),
            await_loops: env.switch("DPOR_AWAIT_LOOPS")?,
            spurious_failures: env.switch("DPOR_SPURIOUS_FAILURES")?.unwrap_or(false),
            spurious_wakeups: env
                .parse("DPOR_SPURIOUS_WAKEUPS", "a number of waits below 2^32")?
                .unwrap_or(0),
            thorough: match env.switch("DPOR_THOROUGH")? {
                // Loom has none of this behaviour, and its tests must pass as they are.
                None if LOOM => Thorough::Off,
                None => Thorough::Bounded,
                Some(false) => Thorough::Off,
                Some(true) => Thorough::Full,
            },
            timeout_bound: env
                .parse("DPOR_TIMEOUT_BOUND", "a number of timeouts below 2^32")?
                .unwrap_or(2),
            catch_panics: env.switch("DPOR_CATCH_PANICS")?.unwrap_or(false),
            detached_may_block: env.switch("DPOR_DETACHED_MAY_BLOCK")?.unwrap_or(false),
            simplify: env.number("DPOR_SIMPLIFY", "executions")?.unwrap_or(200),
            check_leaks: env.switch("DPOR_CHECK_LEAKS")?.unwrap_or(!LOOM),
            stack_size: env.size("DPOR_STACK_SIZE", "bytes")?.unwrap_or(256 * 1024),
            patience: match env.duration("DPOR_PATIENCE")? {
                None => Some(Duration::from_secs(10)),
                Some(time) => (!time.is_zero()).then_some(time),
            },
            replay: env.text("DPOR_REPLAY")?,
            weakened: env.text("DPOR_WEAKEN")?,
            weakest_orderings: env.switch("DPOR_ORDERINGS")?.unwrap_or(false),
            spurious_failures_max: u32::MAX,
            wakeups_of_std_alone: false,
            writers_first: false,
            first_pass: None,
            blocks_again: false,
        })
    }
}

impl Builder {
    /// Checks that each setting has a valid value. An error names the setting, its value and the
    /// valid values.
    pub(crate) fn check_values(&self) -> Result<(), String> {
        features::check(self)?;
        let largest = largest_stack();
        if self.stack_size > largest {
            return Err(format!(
                "stack_size = {} bytes (DPOR_STACK_SIZE): a thread's stack has at most {largest} bytes here",
                self.stack_size
            ));
        }
        if self.pct_depth == 0 {
            return Err(
                "pct_depth = 0 (DPOR_PCT_DEPTH): a bug needs at least 1 ordering constraint, with which \
                 priorities never change"
                    .to_owned(),
            );
        }
        if self.max_permutations == Some(0) {
            return Err(
                "max_permutations = 0 (DPOR_MAX_PERMUTATIONS): an exploration has at least 1 execution; leave the \
                 limit out to have no limit"
                    .to_owned(),
            );
        }
        if self.max_duration.is_some_and(|most| most.is_zero()) {
            return Err(
                "max_duration = 0 s (DPOR_MAX_DURATION): no execution would be run; leave the limit out to have \
                 no limit"
                    .to_owned(),
            );
        }
        if self.workers == Some(0) {
            return Err(
                "workers = 0 (DPOR_WORKERS): an exploration has at least 1 worker; leave the setting out to \
                 explore on one OS thread"
                    .to_owned(),
            );
        }
        if self.task_executions == 0 {
            return Err(
                "task_executions = 0 (DPOR_TASK_EXECUTIONS): a task has at least 1 execution"
                    .to_owned(),
            );
        }
        if let (Some(task), None) = (&self.task, &self.result) {
            return Err(format!(
                "task = {} (DPOR_TASK): its result has no file; name one (DPOR_RESULT)",
                task.display()
            ));
        }
        if let (Some(task), Some(why)) = (&self.task, self.not_shared_because()) {
            return Err(format!(
                "task = {} (DPOR_TASK): the exploration has no tasks, because {why}; unset one of the two",
                task.display()
            ));
        }
        if self.max_rounds == Some(0) {
            return Err("max_rounds = 0 (DPOR_MAX_ROUNDS): a loop has at least 1 round".to_owned());
        }
        if self.max_failures == 0 {
            return Err(
                "max_failures = 0 (DPOR_MAX_FAILURES): an exploration ends with at least 1 failure, or with none"
                    .to_owned(),
            );
        }
        if self.checkpoint_interval == 0 {
            return Err(
                "checkpoint_interval = 0 (DPOR_CHECKPOINT_INTERVAL): there is at least 1 execution between two \
                 writes of the file"
                    .to_owned(),
            );
        }
        if let Err(error) = self.parsed_weakenings() {
            return Err(format!("weakened (DPOR_WEAKEN): {error}"));
        }
        if self.iterations == 0 {
            return Err(
                "iterations = 0 (DPOR_ITERATIONS): an algorithm that samples draws at least 1 execution"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn parsed_weakenings(&self) -> Result<Weakened, String> {
        Weakened::parse(self.weakened.as_deref().unwrap_or_default())
    }

    /// Returns the orderings to replace; none if they are malformed.
    pub(crate) fn weakenings(&self) -> Weakened {
        self.parsed_weakenings().unwrap_or_default()
    }

    /// Returns the filter for the test's log, which is shown in every execution.
    pub(crate) fn targets(&self) -> Result<Option<Filter>, String> {
        let Some(text) = &self.log_filter else {
            return Ok(None);
        };
        let filter = Filter::parse(text).map_err(|error| {
            format!(
                "log_filter = `{text}` (DPOR_LOG): expected something such as `debug` or \
                 `my_crate=trace,other=warn`: {error}"
            )
        });
        filter.map(Some)
    }
}

pub(crate) mod environment;
pub(crate) mod features;
#[cfg(test)]
mod tests;
pub(crate) mod unknown_variables;
