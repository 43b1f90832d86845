//! Which settings and limits exist, where do they come from, and in which unit?
//!
//! Every setting is a field of [`Builder`]; the environment sets its first value. A variable that
//! does not parse is an error that names it, its value and what was expected (`environment.rs`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::filter::Targets;

use crate::environment::{Environment, variable};
use crate::rt::exec::coroutine::largest_stack;
use crate::unknown;

/// Whether this build has loom's signatures, and with them its notion of a leak, where loom and std disagree. What
/// differs by its type says `cfg` itself.
pub(crate) const LOOM: bool = cfg!(any(loom, feature = "loom"));

/// The algorithm that decides which executions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Every trace exactly once, and nothing else (Optimal-DPOR).
    #[default]
    Optimal,
    /// Every trace, with some executions begun in vain (Source-DPOR).
    Source,
    /// Flanagan and Godefroid's DPOR with sleep sets; begins more executions in vain than `Source`.
    Classic,
    /// Every trace, with many executions begun in vain.
    SleepSets,
    /// Every interleaving.
    Naive,
    /// Every trace that needs at most [`Builder::preemption_bound`] preemptions (or
    /// [`Builder::switch_bound`] switches, or [`Builder::delay_bound`] delays), those that need fewer
    /// first; all of them, in the order of their preemptions, without a bound. Some executions are begun
    /// in vain, and memory grows with the number of prefixes.
    Bounded,
    /// [`Builder::iterations`] executions by chance: a random walk, uniform over the enabled
    /// threads.
    Random,
    /// [`Builder::iterations`] executions by chance: random priorities of threads that change at
    /// [`Builder::pct_depth`] - 1 random moments (Burckhardt et al., ASPLOS 2010).
    Pct,
    /// [`Builder::iterations`] executions by chance: random priorities of events, drawn anew for
    /// those that lost a race (Yuan et al., CAV 2018).
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

/// Which of the executions that [`Algorithm::Optimal`] has planned comes next.
///
/// Each order explores every trace exactly once; they differ in which come early, and in memory: what
/// has been begun and not finished is kept. A planned execution branches off from one before; *tree
/// order* puts those that branch off latest from the first execution first, then those that branch off
/// earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The first in tree order. Least memory, and least work for each execution: it repeats most of the one
    /// before.
    #[default]
    DepthFirst,
    /// The one in the middle of what is planned, in tree order, then in the first quarter, the third, the
    /// first eighth, the fifth, and so on (the van der Corput sequence).
    BitReversal,
    /// The depths at which executions branch off take turns: the depth whose last turn was longest ago, and
    /// of those that had none the least. Of one depth the execution that was planned last.
    RoundRobin,
    /// As many further on in tree order than the one before as the square root of what is planned, and from
    /// the end on to the beginning.
    Stride,
    /// The one that reverses those two places in the program that were reversed least often, and of several
    /// pairs the one that stands first in the program. Of one pair the execution that was planned last.
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

/// Which executions are shown although they did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executions {
    /// Every one of them.
    All,
    /// The one with this number, counted from 1 as in a report; those that are covered elsewhere do not
    /// count.
    Only(u64),
}

/// How a test is explored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Builder {
    /// The algorithm (`DPOR_ALGORITHM`: `optimal`, `source`, `classic`, `sleep_sets`, `naive`,
    /// `bounded`, `random`, `pct`, `pos`), [`Algorithm::Optimal`] by default.
    pub algorithm: Algorithm,
    /// Which planned execution comes next (`DPOR_ORDER`: `depth_first`, `bit_reversal`, `round_robin`,
    /// `stride`, `conflict_first`), for [`Algorithm::Optimal`] only; [`Order::DepthFirst`] by default.
    pub order: Order,
    /// The most threads that may be alive at once (`DPOR_MAX_THREADS`); `usize::MAX`, the default, is
    /// no limit.
    pub max_threads: usize,
    /// The most events in one execution (`DPOR_MAX_BRANCHES`), 100,000 by default.
    pub max_branches: usize,
    /// Stop after this many executions (`DPOR_MAX_PERMUTATIONS`); those of a checkpoint do not count.
    /// `None`, the default, is no limit.
    pub max_permutations: Option<usize>,
    /// Stop after this time, in seconds (`DPOR_MAX_DURATION`); `None`, the default, is no limit.
    pub max_duration: Option<Duration>,
    /// Stop when what is planned needs more memory than this, in bytes (`DPOR_MAX_MEMORY`). The
    /// memory of the test itself does not count. `None`, the default, is no limit.
    pub max_memory: Option<usize>,
    /// The most preemptions (`DPOR_MAX_PREEMPTIONS`): a switch away from a thread that could go on.
    /// Every trace that can be executed with as many is explored, under [`Algorithm::Bounded`]
    /// whatever exhaustive algorithm is set; standard error says so where that is another one. One of the three bounds
    /// at most can be set; `None`, the default of each, is no bound.
    pub preemption_bound: Option<usize>,
    /// The most context switches (`DPOR_MAX_SWITCHES`): every switch from one thread to another counts, also
    /// away from a thread that is blocked or has ended; the start of a thread does not. Otherwise like
    /// [`Builder::preemption_bound`].
    pub switch_bound: Option<usize>,
    /// The most delays (`DPOR_MAX_DELAYS`): a scheduler without a choice goes on with the thread that ran last,
    /// or else with the next one that can, in the order of their births; to pass over one thread is one
    /// delay. Otherwise like [`Builder::preemption_bound`].
    pub delay_bound: Option<usize>,
    /// How often at the most a thread comes to one hint (`yield_now`, `spin_loop`) in an execution, each time having changed
    /// something since its last hint (`DPOR_MAX_ROUNDS`), at least once. One that would come there once more goes no
    /// further, as by [`assume`](crate::assume). For loops that get on in each round for as long as nobody else does
    /// something, which have infinitely many executions. With any of them left out the report is not complete
    /// ([`Verdict::Rounds`](crate::Verdict::Rounds)). `None`, the default, is no limit.
    pub max_rounds: Option<usize>,
    /// Whether standard error shows how far the exploration is (`DPOR_PROGRESS`: 0 or 1), with a bar on a
    /// terminal and a line every few seconds elsewhere; `None`, the default, to do so unless the test harness captures
    /// what tests print.
    pub progress: Option<bool>,
    /// Whether standard error shows the schedule of each execution (`DPOR_LOG`: 0 or 1), not by default.
    pub log: bool,
    /// Which of the `tracing` events of the test standard error shows, in every execution, with the modelled
    /// thread and the number of the last event (`DPOR_LOG`): `debug`, or `my_crate=trace,other=warn`, as
    /// [`Targets`](https://docs.rs/tracing-subscriber/0.3/tracing_subscriber/filter/struct.Targets.html)
    /// reads it. `None`, the default, for none, and all of them with the report of a failure. Where the test has a
    /// `tracing` subscriber of its own, that one hears everything and this has no meaning.
    pub log_filter: Option<String>,
    /// For users of loom (`DPOR_LOCATION`: 0 or 1): places cost nothing here, so reports have them
    /// whatever this says.
    pub location: bool,
    /// Whether nothing is explored before the test calls [`explore`](crate::explore), not by default.
    pub expect_explicit_explore: bool,
    /// Where an unfinished exploration is kept (`DPOR_CHECKPOINT_FILE`): if the file exists it is
    /// taken up, and once everything is explored the file is removed. For one test at a time, and
    /// [`Algorithm::Optimal`] only. Which turn an [`Order`] is at is not kept: it begins anew. `None`, the default,
    /// to keep nothing.
    pub checkpoint_file: Option<PathBuf>,
    /// After how many executions, at least one, the file is written again (`DPOR_CHECKPOINT_INTERVAL`), 20,000 by
    /// default. It is also written when a limit stops the exploration.
    pub checkpoint_interval: usize,
    /// How many failures to collect before the exploration ends, at least one
    /// (`DPOR_MAX_FAILURES`); one by default. Two failures of one kind at one place in the program count once. An
    /// execution that fails is not continued, so what its threads would have done afterwards is
    /// not raced with: with more than one failure the search is not exhaustive.
    pub max_failures: usize,
    /// The directory that a failure is written to for programs and for the eye
    /// (`DPOR_REPORT_DIR`), as `<test>.json`, `<test>.dot` and `<test>.html`: a relative one is in the
    /// directory that the test runs in, and files of the same names are replaced. The report says
    /// where they are. `None`, the default, to write nothing.
    pub report_dir: Option<PathBuf>,
    /// Which executions are shown although they did not fail (`DPOR_TRACE`: `all`, or a number): on
    /// standard error with the table of a report, and in [`Builder::report_dir`] if that is set, as
    /// `<test>-execution-<number>`. `None`, the default, for none.
    pub trace: Option<Executions>,
    /// How many executions are drawn by an algorithm that samples (`DPOR_ITERATIONS`), at least one; 1000 by
    /// default.
    pub iterations: u64,
    /// What the executions of an algorithm that samples are drawn from (`DPOR_SEED`); `None`, the default,
    /// for another seed each time. The seed is told in the report and with a failure.
    pub seed: Option<u64>,
    /// How many ordering constraints the bugs need that [`Algorithm::Pct`] looks for
    /// (`DPOR_PCT_DEPTH`), at least one; 3 by default.
    pub pct_depth: usize,
    /// How many idle iterations of a spin loop are free before its hint waits for a change (`DPOR_SPIN_BOUND`); 1 by default.
    /// A loop that gives up by itself after more is explored in full only with as many
    /// ([`Verdict::Waits`](crate::Verdict::Waits)).
    pub spin_bound: u32,
    /// Whether a weak compare-exchange may fail for no reason, not by default.
    pub spurious_failures: bool,
    /// How many waits of a thread, in each execution, may end for no reason: for a condition variable (a timed one before its
    /// time), in `park` and of a task. Which ones these are is explored, and that they do not; 0 by default.
    pub spurious_wakeups: u32,
    /// How often in a row a wait at one place in the program may time out (`wait_timeout`,
    /// `park_timeout`, `recv_timeout`), 2 by default. After that it waits for a change, or until nothing else can
    /// run, so that a loop around it comes to an end.
    pub timeout_bound: u32,
    /// Whether the panic of a spawned thread is only its own end, as in std: `join` returns it, and
    /// locks are poisoned. Otherwise it fails the test at once, which is the default. A panic of the
    /// closure itself always does.
    pub catch_panics: bool,
    /// Whether heap blocks of the model that are still allocated at the end of an execution are a
    /// failure (`DPOR_CHECK_LEAKS`: 0 or 1): blocks in which a shim or a cell was used, and those that an
    /// `AtomicPtr` has led to, or was to by a compare-exchange. Other blocks may belong to what the test collects. See
    /// [`may_leak`](crate::alloc::may_leak) for a single one.
    ///
    /// It is so by default, and a [`Track`](crate::alloc::Track) that is not dropped is a failure whatever this says.
    /// With [loom's signatures](crate#looms-signatures) it is not so by default, because loom knows of no such
    /// blocks; whatever this says, blocks of an [`Arc`](crate::sync::Arc), of [`alloc`](crate::alloc::alloc()) and
    /// of the wakers of [`block_on`](crate::future::block_on) are a failure there as a `Track` is.
    pub check_leaks: bool,
    /// How many more executions may be run after a failure to find a simpler one that fails in the same
    /// place, with the same words if not the same numbers (`DPOR_SIMPLIFY`), 200 by default. It is shown and raised. If none is
    /// found that has few preemptions, as many again may be run with a switch less each. With 0 the execution
    /// that failed is shown as it was, no pair of operations is tried the other way round, and nobody knows whether
    /// the failure comes again from its schedule.
    pub simplify: u64,
    /// The size of each thread's stack in bytes (`DPOR_STACK_SIZE`), 262,144 by default, at most a GiB, and no more than the
    /// system allows. A thread may ask for more with its own [`Builder`](crate::thread::Builder::stack_size).
    pub stack_size: usize,
    /// After how long a step that does not come back is told on standard error
    /// (`DPOR_PATIENCE`, in seconds; 0 for never); 10 s by default.
    pub patience: Option<Duration>,
    /// The schedule of one execution to run instead of exploring (`DPOR_REPLAY`); `None`, the default, to explore. What
    /// the variable says is for one of a test's models (`model 3: v1 ..`), the first one if it does not say which.
    pub replay: Option<String>,
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// The defaults, changed by the environment.
    ///
    /// # Panics
    ///
    /// If a variable of the environment does not parse.
    #[track_caller]
    pub fn new() -> Builder {
        unknown::tell(Builder::variables);
        match Builder::from(&Environment { get: &variable }) {
            Ok(builder) => builder,
            Err(error) => panic!("{error}"),
        }
    }

    /// Sets [`checkpoint_file`](Builder#structfield.checkpoint_file), as in loom.
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
        let seconds = |number: u64| (number > 0).then(|| Duration::from_secs(number));
        Ok(Builder {
            algorithm: env.one_of("DPOR_ALGORITHM", &ALGORITHMS)?,
            order: env.one_of("DPOR_ORDER", &ORDERS)?,
            max_threads: env
                .size("DPOR_MAX_THREADS", "threads")?
                .unwrap_or(usize::MAX),
            max_branches: env
                .size(either("DPOR_MAX_BRANCHES"), "events")?
                .unwrap_or(100_000),
            max_permutations: env.size(either("DPOR_MAX_PERMUTATIONS"), "executions")?,
            max_duration: env
                .number(either("DPOR_MAX_DURATION"), "seconds")?
                .map(Duration::from_secs),
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
            spurious_failures: false,
            spurious_wakeups: 0,
            timeout_bound: 2,
            catch_panics: false,
            simplify: env.number("DPOR_SIMPLIFY", "executions")?.unwrap_or(200),
            check_leaks: env.switch("DPOR_CHECK_LEAKS")?.unwrap_or(!LOOM),
            stack_size: env.size("DPOR_STACK_SIZE", "bytes")?.unwrap_or(256 * 1024),
            patience: seconds(env.number("DPOR_PATIENCE", "seconds")?.unwrap_or(10)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Builder, String> {
        let get = |asked: &str| Ok((asked == name).then(|| value.to_owned()));
        Builder::from(&Environment { get: &get })
    }

    #[test]
    fn variables_of_loom_s_count_with_its_signatures() {
        let builder = with("LOOM_MAX_PREEMPTIONS", "2").unwrap();
        assert_eq!(builder.preemption_bound, LOOM.then_some(2));
        let error = with("LOOM_MAX_PREEMPTIONS", "two").err();
        let expected = "LOOM_MAX_PREEMPTIONS=`two`: expected a number of preemptions";
        assert_eq!(error.as_deref(), LOOM.then_some(expected));
    }

    #[test]
    fn a_variable_that_does_not_parse_is_named_with_its_value_and_what_was_expected() {
        for (name, value, expected) in [
            ("DPOR_MAX_BRANCHES", "many", "expected a number of events"),
            ("DPOR_MAX_THREADS", "-1", "expected a number of threads"),
            (
                "DPOR_MAX_PERMUTATIONS",
                "1e6",
                "expected a number of executions",
            ),
            ("DPOR_MAX_DURATION", "1m", "expected a number of seconds"),
            ("DPOR_MAX_MEMORY", "1G", "expected a number of bytes"),
            (
                "DPOR_MAX_PREEMPTIONS",
                "two",
                "expected a number of preemptions",
            ),
            (
                "DPOR_MAX_SWITCHES",
                "-1",
                "expected a number of context switches",
            ),
            ("DPOR_MAX_DELAYS", "few", "expected a number of delays"),
            ("DPOR_MAX_ROUNDS", "-1", "expected a number of rounds"),
            ("DPOR_ITERATIONS", "-", "expected a number of executions"),
            (
                "DPOR_CHECKPOINT_INTERVAL",
                "often",
                "expected a number of executions",
            ),
            ("DPOR_PROGRESS", "yes", "expected 0 or 1"),
            ("DPOR_MAX_FAILURES", "all", "expected a number of failures"),
            (
                "DPOR_LOG",
                "my_crate=loud",
                "expected 0, 1, or what to show of the test's log, such as `debug` or \
                 `my_crate=trace,other=warn`",
            ),
            ("DPOR_CHECK_LEAKS", "no", "expected 0 or 1"),
            ("DPOR_LOCATION", "on", "expected 0 or 1"),
            (
                "DPOR_TRACE",
                "0",
                "expected `all`, or the number of an execution, from 1",
            ),
            ("DPOR_SEED", "x", "expected a number below 2^64"),
            (
                "DPOR_PCT_DEPTH",
                "deep",
                "expected a number of ordering constraints",
            ),
            (
                "DPOR_ALGORITHM",
                "best",
                "expected one of optimal, source, classic, sleep_sets, naive, bounded, random, pct, pos",
            ),
            (
                "DPOR_ORDER",
                "breadth_first",
                "expected one of depth_first, bit_reversal, round_robin, stride, conflict_first",
            ),
        ] {
            let error = with(name, value).expect_err(name);
            assert_eq!(error, format!("{name}=`{value}`: {expected}"));
        }
    }

    #[test]
    fn the_variables_that_are_read_are_the_documented_ones() {
        let guide = include_str!("../docs/GUIDE.md");
        let known = Builder::variables();
        assert!(known.contains("DPOR_REPLAY") && known.contains("DPOR_SEED"));
        for name in known {
            // For users of loom only, and does nothing.
            let told = guide.contains(&format!("`{name}`")) || name == "DPOR_LOCATION";
            assert!(told, "{name} is not in the guide");
        }
    }

    #[test]
    fn a_variable_that_parses_sets_its_field_and_an_empty_one_sets_nothing() {
        let seed = with("DPOR_SEED", " 17 ").map(|b| b.seed);
        assert_eq!(seed, Ok(Some(17)));
        for (name, algorithm) in ALGORITHMS {
            let set = with("DPOR_ALGORITHM", name).map(|b| b.algorithm);
            assert_eq!(set, Ok(algorithm));
            assert_eq!(algorithm.name(), name);
        }
        for (name, order) in ORDERS {
            assert_eq!(with("DPOR_ORDER", name).map(|b| b.order), Ok(order));
            assert_eq!(order.name(), name);
        }
        for name in Builder::variables() {
            let (empty, none) = (with(&name, " "), with("", ""));
            assert_eq!(format!("{empty:?}"), format!("{none:?}"), "{name}");
        }
        let memory = with("DPOR_MAX_MEMORY", "1000").map(|b| b.max_memory);
        assert_eq!(memory, Ok(Some(1000)));
    }
}
