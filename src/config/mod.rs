//! Which settings and limits exist, where do they come from, and in which unit?
//!
//! Every setting is a field of [`Builder`]; the environment sets its first value. A variable that
//! does not parse is an error that names it, its value and what was expected (`environment.rs`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::filter::Targets;

use crate::config::environment::{Environment, variable};
use crate::rt::coroutine::largest_stack;

/// Whether this build has loom's signatures, and with them its notion of a leak, where loom and std
/// disagree. What differs by its type says `cfg` itself.
pub(crate) const LOOM: bool = cfg!(any(loom, feature = "loom"));

/// Algorithm that decides which executions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Optimal-DPOR: explores every trace exactly once and nothing else.
    #[default]
    Optimal,
    /// Source-DPOR: explores every trace; some executions are begun and then pruned.
    Source,
    /// Flanagan and Godefroid's DPOR with sleep sets; mostly more executions are begun and then
    /// pruned than by `Source`.
    Classic,
    /// Sleep sets alone: explores every trace; many executions are begun and then pruned.
    SleepSets,
    /// Explores every interleaving.
    Naive,
    /// Explores every trace that needs at most [`Builder::preemption_bound`] preemptions (or
    /// [`Builder::switch_bound`] switches, or [`Builder::delay_bound`] delays).
    ///
    /// Traces that need fewer come first. Without a bound it explores all traces, in the order of
    /// the preemptions they need. Some executions are begun and then pruned, and memory grows with
    /// the number of prefixes.
    Bounded,
    /// Samples [`Builder::iterations`] executions by a random walk, uniform over the enabled
    /// threads.
    Random,
    /// Samples [`Builder::iterations`] executions with random thread priorities, which change at
    /// `pct_depth - 1` random moments ([`Builder::pct_depth`]; Burckhardt et al., ASPLOS 2010).
    Pct,
    /// Samples [`Builder::iterations`] executions with random priorities of events, drawn anew for
    /// events that lost a race (Yuan et al., CAV 2018).
    Pos,
}

/// The names that `DPOR_ALGORITHM` takes.
const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("optimal", Algorithm::Optimal),
    ("source", Algorithm::Source),
    ("classic", Algorithm::Classic),
    ("sleep_sets", Algorithm::SleepSets),
    ("naive", Algorithm::Naive),
    ("bounded", Algorithm::Bounded),
    ("random", Algorithm::Random),
    ("pct", Algorithm::Pct),
    ("pos", Algorithm::Pos),
];

impl Algorithm {
    /// What `DPOR_ALGORITHM` calls it.
    pub(crate) fn name(self) -> &'static str {
        let found = ALGORITHMS.iter().find(|(_, algorithm)| *algorithm == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Order in which [`Algorithm::Optimal`] runs the executions it has planned.
///
/// Every order explores every trace exactly once. They differ in which traces come early, and in
/// memory: whatever has been begun and is not finished is kept. A planned execution diverges from
/// an earlier one at some depth. *Tree order* puts those that diverge latest from the first
/// execution first, then those that diverge earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The first planned execution in tree order.
    ///
    /// Needs the least memory, and the least work for each execution: it repeats most of the one
    /// before.
    #[default]
    DepthFirst,
    /// The planned execution at 1/2 of tree order, then at 1/4, 3/4, 1/8, 5/8, and so on (the van
    /// der Corput sequence).
    BitReversal,
    /// Takes turns between the depths at which executions diverge.
    ///
    /// Next is the depth whose last turn was longest ago; depths that have had no turn come first,
    /// the smallest first. Within a depth it is the execution that was planned last.
    RoundRobin,
    /// Moves on in tree order by the square root of the number of planned executions, wrapping
    /// around at the end.
    Stride,
    /// Reverses the pair of places in the program that was reversed least often so far.
    ///
    /// Of several such pairs, the one that stands first in the program; within a pair, the
    /// execution that was planned last.
    ConflictFirst,
}

/// The names that `DPOR_ORDER` takes.
const ORDERS: [(&str, Order); 5] = [
    ("depth_first", Order::DepthFirst),
    ("bit_reversal", Order::BitReversal),
    ("round_robin", Order::RoundRobin),
    ("stride", Order::Stride),
    ("conflict_first", Order::ConflictFirst),
];

impl Order {
    /// What `DPOR_ORDER` calls it.
    pub(crate) fn name(self) -> &'static str {
        let found = ORDERS.iter().find(|(_, order)| *order == self);
        found.map_or("", |(name, _)| name)
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
    /// Executions that were pruned because another one covers them do not count.
    Only(u64),
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
    /// Environment: `DPOR_ALGORITHM`, one of `optimal`, `source`, `classic`, `sleep_sets`, `naive`,
    /// `bounded`, `random`, `pct`, `pos`. Default: [`Algorithm::Optimal`].
    pub algorithm: Algorithm,
    /// Order in which planned executions are run, for [`Algorithm::Optimal`] only.
    ///
    /// With another algorithm or with a bound, only the default is accepted.
    ///
    /// Environment: `DPOR_ORDER`, one of `depth_first`, `bit_reversal`, `round_robin`, `stride`,
    /// `conflict_first`. Default: [`Order::DepthFirst`].
    pub order: Order,
    /// Maximum number of threads alive at once, main included; more are a
    /// [failure](crate::FailureKind::Limit).
    ///
    /// Who spawns without end is told so by it, instead of by a system that has no memory for
    /// another stack.
    ///
    /// Environment: `DPOR_MAX_THREADS`. Default: 1000.
    pub max_threads: usize,
    /// Maximum number of events in one execution; more are a [failure](crate::FailureKind::Limit).
    ///
    /// A thread that is unwound because its execution has failed or is over may make a tenth as
    /// many operations. What it would do after that, as destructors do that come to no end, is not
    /// done.
    ///
    /// With loom's signatures each spin hint, such as [`yield_now`](crate::thread::yield_now),
    /// counts as an event.
    ///
    /// Environment: `DPOR_MAX_BRANCHES`. Default: 100,000.
    pub max_branches: usize,
    /// Maximum number of executions, after which the exploration stops.
    ///
    /// Pruned executions count, those of a checkpoint do not.
    ///
    /// Environment: `DPOR_MAX_PERMUTATIONS`. Default: `None`, no limit.
    pub max_permutations: Option<usize>,
    /// Maximum duration of the exploration, which stops at the first execution that ends after it.
    ///
    /// Environment: `DPOR_MAX_DURATION`, in seconds, or with a unit: `500ms`, `1.5`, `10s`, `2m`,
    /// `1h`. Default: `None`, no limit.
    pub max_duration: Option<Duration>,
    /// Maximum memory for planned executions, in bytes; the exploration stops when they need more.
    ///
    /// The memory of the test itself does not count.
    ///
    /// Environment: `DPOR_MAX_MEMORY`. Default: `None`, no limit.
    pub max_memory: Option<usize>,
    /// Maximum number of preemptions: switches away from a thread that could go on and has not just
    /// come to a hint, such as [`yield_now`](crate::thread::yield_now).
    ///
    /// Every trace that can be executed with at most this many is explored. [`Algorithm::Bounded`]
    /// does that, whatever exhaustive algorithm is set; standard error says so if the one set is
    /// neither that nor the default. A sampling algorithm takes no bound. At most one of the three
    /// bounds can be set.
    ///
    /// Environment: `DPOR_MAX_PREEMPTIONS`. Default: `None`, no bound.
    pub preemption_bound: Option<usize>,
    /// Maximum number of context switches.
    ///
    /// Every switch from one thread to another counts, also away from a thread that is blocked or
    /// has ended; the start of a thread does not, nor a switch to one that looks again in a spin
    /// loop because nobody else can go on. Otherwise like [`Builder::preemption_bound`].
    ///
    /// Environment: `DPOR_MAX_SWITCHES`. Default: `None`, no bound.
    pub switch_bound: Option<usize>,
    /// Maximum number of delays: deviations from a scheduler that has no choice.
    ///
    /// That scheduler goes on with the thread that ran last, or else, and where that one has come
    /// to a hint such as [`yield_now`](crate::thread::yield_now), with the next one that can run.
    /// Passing over one thread is one delay. Threads are ordered by the tree of spawns: main, its
    /// first child, the children of that one, main's second child, and so on. Otherwise like
    /// [`Builder::preemption_bound`].
    ///
    /// Environment: `DPOR_MAX_DELAYS`. Default: `None`, no bound.
    pub delay_bound: Option<usize>,
    /// Maximum number of times in an execution that a thread reaches one spin hint with something
    /// changed.
    ///
    /// Spin hints are [`yield_now`](crate::thread::yield_now) and
    /// [`spin_loop`](crate::hint::spin_loop). Changed means by the thread, since its last hint. A
    /// thread that would reach the hint once more goes no further, as with
    /// [`assume`](crate::assume). This is for loops that make progress in every round until another
    /// thread acts: they have infinitely many executions. If any executions were left out, the
    /// report is not complete ([`Verdict::Rounds`](crate::Verdict::Rounds)). At least 1.
    ///
    /// Environment: `DPOR_MAX_ROUNDS`. Default: `None`, no limit.
    pub max_rounds: Option<usize>,
    /// Whether standard error shows the progress of the exploration.
    ///
    /// On a terminal this is a bar, elsewhere a line every few seconds. `None` shows it unless the
    /// test harness captures what tests print; then it is one line, after a minute, if no
    /// [`max_duration`](Builder#structfield.max_duration) ends the exploration.
    ///
    /// Environment: `DPOR_PROGRESS`, 0 or 1. Default: `None`.
    pub progress: Option<bool>,
    /// Whether standard error shows the schedule of each execution.
    ///
    /// Environment: `DPOR_LOG`, 0 or 1. Default: `false`.
    pub log: bool,
    /// Filter for the test's `tracing` events that standard error shows in every execution.
    ///
    /// Each comes with the modelled thread and the number of the last event. A filter is `debug`,
    /// say, or `my_crate=trace,other=warn`, as
    /// [`Targets`](https://docs.rs/tracing-subscriber/0.3/tracing_subscriber/filter/struct.Targets.html)
    /// reads it. With `None`, only the report of a failure shows events, and shows all of them. If
    /// the test has a `tracing` subscriber of its own, that subscriber gets everything and this
    /// setting has no effect.
    ///
    /// Environment: `DPOR_LOG`, any value but 0 and 1. Default: `None`.
    pub log_filter: Option<String>,
    /// No effect, exists for users of loom: source locations cost nothing here, so reports always
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
    /// is removed. One file serves one test at a time, and only [`Algorithm::Optimal`] without a
    /// bound can keep one. Of a test with several models it serves one at a time: while it belongs
    /// to one, the others are explored without a file, and standard error says so. Whose turn it is
    /// in an [`Order`] is not kept: the order starts anew. What closures return is not kept either,
    /// so [`Builder::outcomes`] explores without the file.
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
    /// not continued, so nothing races with what its threads would have done afterwards: with more
    /// than one failure, the search is not exhaustive.
    ///
    /// Environment: `DPOR_MAX_FAILURES`. Default: 1.
    pub max_failures: usize,
    /// Directory that failures are written to, as `<test>.json`, `<test>.dot` and `<test>.html`.
    ///
    /// They are for programs, for Graphviz and for a browser. A relative directory is relative to
    /// the one the test runs in, and files of the same names are replaced. The report says where
    /// they are.
    ///
    /// Environment: `DPOR_REPORT_DIR`. Default: `None`, nothing is written.
    pub report_dir: Option<PathBuf>,
    /// Executions to show although they did not fail.
    ///
    /// Standard error shows them with the table of a report. If [`Builder::report_dir`] is set,
    /// they are also written there, as `<test>-execution-<number>`.
    ///
    /// Environment: `DPOR_TRACE`, `all` or a number. Default: `None`, none are shown.
    pub trace: Option<Executions>,
    /// Number of executions that a sampling algorithm draws, at least 1.
    ///
    /// Environment: `DPOR_ITERATIONS`. Default: 1000.
    pub iterations: u64,
    /// Seed that a sampling algorithm draws executions from; the report and a failure say which it
    /// was.
    ///
    /// Environment: `DPOR_SEED`. Default: `None`, another seed each time.
    pub seed: Option<u64>,
    /// Number of ordering constraints in the bugs that [`Algorithm::Pct`] looks for, at least 1.
    ///
    /// A value above the number of steps of the longest execution has the effect of that number.
    ///
    /// Environment: `DPOR_PCT_DEPTH`. Default: 3.
    pub pct_depth: usize,
    /// Number of idle rounds of a spin loop that are free before its hint waits for a change.
    ///
    /// In an idle round the thread reads the same values as in the round before and leaves no
    /// change behind. A loop that gives up by itself after more than these rounds is explored in
    /// full only if this is raised ([`Verdict::Waits`](crate::Verdict::Waits)).
    ///
    /// Environment: `DPOR_SPIN_BOUND`. Default: 1.
    pub spin_bound: u32,
    /// Whether a loop that waits at a hint is taken for one step, which waits until what it looks
    /// at lets it go on.
    ///
    /// An execution in which such a loop looks in vain, and goes round once more when something has
    /// changed, is then given up, because there is another one in which it looks only after that.
    /// This takes for granted that what a thread does after the loop does not depend on how often
    /// it has looked, nor on what it saw when it looked in vain. It concerns loops that only look:
    /// once one has waited at its hint, and does not give up by itself, the test is explored anew.
    /// Where nothing changes any more, the loop is let go as always, so that livelocks are found.
    /// It has no effect with a bound, and when you sample or replay.
    ///
    /// Environment: `DPOR_AWAIT_LOOPS`. Default: `false`.
    pub await_loops: bool,
    /// Whether weak compare-exchanges may fail spuriously.
    ///
    /// After such a failure a thread's compare-exchanges on the same atomic do not fail spuriously
    /// again until one of them succeeds. Otherwise a retry loop would have infinitely many
    /// executions.
    ///
    /// Environment: `DPOR_SPURIOUS_FAILURES`, 0 or 1. Default: `false`.
    pub spurious_failures: bool,
    /// Maximum number of a thread's waits, in each execution, that may end spuriously.
    ///
    /// These are waits on a condition variable (a timed one then ends before its time), in
    /// [`park`](crate::thread::park), in [`Notify::wait`](crate::sync::Notify::wait) and of a task.
    /// Which of them do is explored, and also that none does. With 1,
    /// [`block_on`](crate::future::block_on) polls as often as loom's does.
    ///
    /// Environment: `DPOR_SPURIOUS_WAKEUPS`. Default: 0.
    pub spurious_wakeups: u32,
    /// Maximum number of times in a row that a wait at one place in the program times out.
    ///
    /// The waits are `wait_timeout`, `park_timeout` and `recv_timeout`. After that the wait lasts
    /// until something changes or nothing else can run, so that a loop around it comes to an end.
    /// What gives up by itself after more timeouts is explored in full only if this is raised
    /// ([`Verdict::TimesOut`](crate::Verdict::TimesOut)).
    ///
    /// Environment: `DPOR_TIMEOUT_BOUND`. Default: 2.
    pub timeout_bound: u32,
    /// Whether the panic of a spawned thread ends only that thread, as in std.
    ///
    /// If so, `join` returns the panic and locks are poisoned; if not, the panic fails the test at
    /// once. A panic of the closure itself always does.
    ///
    /// Environment: `DPOR_CATCH_PANICS`, 0 or 1. Default: `false`.
    pub catch_panics: bool,
    /// Whether threads may still be blocked at the end of an execution, once the closure has
    /// returned.
    ///
    /// If not, an execution that ends like that is a deadlock, or a livelock if a thread waits in a
    /// loop. If so, it is complete, and the threads that are left are unwound. Set this for a test
    /// whose threads serve in the background until the process ends. It also allows that such
    /// threads wait for each other. While the closure has not returned, nothing is different.
    ///
    /// Environment: `DPOR_DETACHED_MAY_BLOCK`, 0 or 1. Default: `false`.
    pub detached_may_block: bool,
    /// Whether heap blocks of the model that are still allocated at the end of an execution are a
    /// failure.
    ///
    /// These are blocks in which a shim or a cell was used, and blocks that an `AtomicPtr` has
    /// pointed to or that a compare-exchange on one has tried to store, or whose address has been
    /// in an `AtomicUsize` or `AtomicU64`. Other blocks may belong to what the test collects.
    /// [`may_leak`](crate::alloc::may_leak) exempts a single block. A
    /// [`Track`](crate::alloc::Track) that is not dropped is a failure regardless of this setting.
    ///
    /// With [loom's signatures](crate#looms-signatures) this is off by default, because loom knows
    /// of no such blocks. There, blocks of an [`Arc`](crate::sync::Arc), of
    /// [`alloc`](crate::alloc::alloc()) and of the wakers of [`block_on`](crate::future::block_on)
    /// are a failure regardless of this setting, as a `Track` is.
    ///
    /// Environment: `DPOR_CHECK_LEAKS`, 0 or 1. Default: `true`; with loom's signatures, `false`.
    pub check_leaks: bool,
    /// Maximum number of executions to search, after a failure, for a simpler one that fails in the
    /// same way.
    ///
    /// The same way means at the same place with the same message, numbers aside. The simpler
    /// execution is the one that is shown, and its panic the one that is raised. The search is
    /// among executions with few preemptions. If it finds none, as many executions again may be
    /// tried, each with one switch less. With 0, the execution that failed is shown as it was, no
    /// pair of operations is tried in the other order, and nobody checks whether the failure recurs
    /// from its schedule. Nor is it tried whether a thread that is held up uses freed memory, and
    /// the report does not say where a block was allocated and freed. The closure then runs once
    /// for each execution, and once more in two cases only: if it hangs on that whether there is a
    /// failure at all (a free that looks like a data race, a block that looks leaked, a loop that
    /// `await_loops` took for one step); and if the failure cannot be told without it (a panic that
    /// only a hook of the program's own has seen, and what was logged through `tracing`).
    ///
    /// Where executions are long, fewer are run: all that is tried for a failure ends after 500
    /// events for each of them and twice the events of the exploration up to the failure, but for
    /// the execution that is being run then.
    ///
    /// Environment: `DPOR_SIMPLIFY`. Default: 200.
    pub simplify: u64,
    /// Size of each thread's stack, in bytes.
    ///
    /// At most 1 GiB, and no more than the system allows. A thread may ask for more than this with
    /// its own [`Builder`](crate::thread::Builder::stack_size).
    ///
    /// Environment: `DPOR_STACK_SIZE`. Default: 262,144.
    pub stack_size: usize,
    /// Time after which standard error says that a step has not come back.
    ///
    /// A step is a visible operation and the code up to the next one. The message may take up to
    /// twice as long. `None` means never.
    ///
    /// Environment: `DPOR_PATIENCE`, in seconds or with a unit as [`Builder::max_duration`], 0 for
    /// never. Default: 10 s.
    pub patience: Option<Duration>,
    /// Schedule of one execution to run instead of exploring, or `@` and the name of a file that
    /// holds it.
    ///
    /// The variable is for one of a test's models: the one that it names (`model 3: v2 ..`), or
    /// else the first. The others are explored as usual, and standard error says so.
    ///
    /// Environment: `DPOR_REPLAY`. Default: `None`, which explores.
    pub replay: Option<String>,
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
    /// The environment is read once in a process, by the first builder. To look for some thirty
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

    /// The names of the variables that set something: those that are asked for.
    fn variables() -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        let get = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            Ok(None)
        };
        // Where no variable is set, none is malformed.
        let _ = Builder::from(&Environment { get: &get });
        asked.into_inner()
    }

    fn from(env: &Environment<'_>) -> Result<Builder, String> {
        let either = |name| env.either(name);
        let log = env.log(either("DPOR_LOG"))?;
        Ok(Builder {
            algorithm: env.one_of("DPOR_ALGORITHM", &ALGORITHMS)?,
            order: env.one_of("DPOR_ORDER", &ORDERS)?,
            max_threads: env.size("DPOR_MAX_THREADS", "threads")?.unwrap_or(1000),
            max_branches: env
                .size(either("DPOR_MAX_BRANCHES"), "events")?
                .unwrap_or(100_000),
            max_permutations: env.size(either("DPOR_MAX_PERMUTATIONS"), "executions")?,
            max_duration: env.duration(either("DPOR_MAX_DURATION"))?,
            max_memory: env.size("DPOR_MAX_MEMORY", "bytes")?,
            preemption_bound: env.size(either("DPOR_MAX_PREEMPTIONS"), "preemptions")?,
            switch_bound: env.size("DPOR_MAX_SWITCHES", "context switches")?,
            delay_bound: env.size("DPOR_MAX_DELAYS", "delays")?,
            max_rounds: env.size("DPOR_MAX_ROUNDS", "rounds")?,
            max_failures: env.size("DPOR_MAX_FAILURES", "failures")?.unwrap_or(1),
            checkpoint_file: env.path(either("DPOR_CHECKPOINT_FILE"))?,
            checkpoint_interval: env
                .size(either("DPOR_CHECKPOINT_INTERVAL"), "executions")?
                .unwrap_or(20_000),
            report_dir: env.path("DPOR_REPORT_DIR")?,
            trace: env.executions("DPOR_TRACE")?,
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
            await_loops: env.switch("DPOR_AWAIT_LOOPS")?.unwrap_or(false),
            spurious_failures: env.switch("DPOR_SPURIOUS_FAILURES")?.unwrap_or(false),
            spurious_wakeups: env
                .parse("DPOR_SPURIOUS_WAKEUPS", "a number of waits below 2^32")?
                .unwrap_or(0),
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
        })
    }
}

impl Builder {
    /// Whether each setting is one that can be had; an error names it, its value, and what can.
    pub(crate) fn check_values(&self) -> Result<(), String> {
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
        if self.iterations == 0 {
            return Err(
                "iterations = 0 (DPOR_ITERATIONS): an algorithm that samples draws at least 1 execution"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What is shown of the test's log in every execution.
    pub(crate) fn targets(&self) -> Result<Option<Targets>, String> {
        let Some(text) = &self.log_filter else {
            return Ok(None);
        };
        let filter = text.parse().map_err(|error| {
            format!(
                "log_filter = `{text}` (DPOR_LOG): expected something such as `debug` or \
                 `my_crate=trace,other=warn`: {error}"
            )
        });
        filter.map(Some)
    }
}

pub(crate) mod environment;
#[cfg(test)]
mod tests;
pub(crate) mod unknown_variables;
