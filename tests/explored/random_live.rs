//! Do random programs over every kind of object show all their outcomes, each trace once?
//!
//! Some are explored by each exhaustive algorithm. [`Algorithm::Naive`] runs every interleaving,
//! knows nothing of dependency, and so says which outcomes there are; the others must see the same, and
//! `Optimal` in every order. But what an operation means is the same for all of them. So others are compared with an
//! interpreter that was written from std's documentation, and their executions with a count of traces.
//! `DPOR_LIVE` says how many programs there are to be, and `DPOR_LIVE_FROM` the first one's seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dpor::{Algorithm, Builder, FailureKind, Memory, Order, Verdict};

#[path = "random_live/operations.rs"]
mod operations;
#[path = "random_live/priced.rs"]
mod priced;
#[path = "random_live/program.rs"]
mod program;
#[path = "random_live/run.rs"]
mod run;
#[path = "random_live/searches.rs"]
mod searches;
#[path = "random_live/std_says.rs"]
mod std_says;
#[path = "random_live/steps.rs"]
mod steps;
#[path = "random_live/traces.rs"]
mod traces;
#[path = "random_live/world.rs"]
mod world;

use crate::drawn::{setting, smallest, without_one};
use crate::orders::ORDERS;
use program::{Op, Program};
use world::Outcome;

/// More interleavings than this are too many for a test that has thousands of programs.
const INTERLEAVINGS_MAX: usize = 1_500;

/// More states than this are too many.
const STATES_MAX: usize = 10_000;

/// What an algorithm made of a program.
#[derive(Debug)]
struct Explored {
    outcomes: BTreeSet<Outcome>,
    /// Executions begun.
    begun: usize,
    /// Those that came to their end and those that were given up, unless there is a deadlock.
    counts: Option<(u64, u64)>,
}

/// Settings that are a matter of the program.
fn set_for(program: &Program, builder: &mut Builder) {
    // Brute force knows no memory but one that is sequentially consistent.
    builder.memory = Memory::Sc;
    builder.spurious_failures = program.spurious;
    builder.spurious_wakeups = program.spurious.into();
    builder.timeout_bound = program.timeouts;
    builder.catch_panics = program.catches_panics();
    builder.progress = Some(false);
}

/// Explores `program`; `None` if it takes too long.
fn explore(program: &Program, algorithm: Algorithm, order: Order) -> Option<Explored> {
    explore_with(program, algorithm, order, Some(false))
}

/// [`explore`] with this setting.
fn explore_with(
    program: &Program,
    algorithm: Algorithm,
    order: Order,
    await_loops: Option<bool>,
) -> Option<Explored> {
    let mut builder = Builder::new();
    // The outcomes are collected outside of the model, and are those of the first pass.
    builder.thorough = dpor::Thorough::Off;
    set_for(program, &mut builder);
    (builder.algorithm, builder.order) = (algorithm, order);
    // Only `Optimal` leaves looks in vain out.
    builder.await_loops = await_loops;
    builder.max_permutations = Some(INTERLEAVINGS_MAX);
    builder.max_failures = usize::MAX;
    builder.simplify = 0;
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let begun = Arc::new(AtomicUsize::new(0));
    let (all, runs, body) = (outcomes.clone(), begun.clone(), program.clone());
    let result = builder.explore(move || {
        runs.fetch_add(1, Relaxed);
        run::run(&body, |outcome| {
            all.lock().unwrap().insert(outcome);
        });
    });
    let begun = begun.load(Relaxed);
    if begun >= INTERLEAVINGS_MAX {
        return None;
    }
    let counts = match result {
        Ok(report) => {
            // A thread makes all its waits in one place, and there the third timeout in a row comes only where nothing else can
            // run, which brute force knows, too.
            let is_all = matches!(report.verdict, Verdict::Complete | Verdict::TimesOut(3..));
            assert!(is_all, "{program:?}: {report}");
            Some((report.executions, report.pruned))
        }
        Err(failure) => {
            let waits = [FailureKind::Deadlock, FailureKind::Livelock];
            let other = |failure: &dpor::Failure| !waits.contains(&failure.kind());
            assert!(
                !other(&failure) && !failure.others().iter().any(other),
                "{program:?}\n{failure}"
            );
            None
        }
    };
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap());
    Some(Explored {
        outcomes,
        begun,
        counts,
    })
}

/// What is wrong with the exploration of `program`; `None` if there are too many interleavings.
fn verdict(program: &Program) -> Option<Result<(), String>> {
    let depth_first = |algorithm| explore(program, algorithm, Order::DepthFirst);
    let naive = depth_first(Algorithm::Naive)?;
    let optimal = depth_first(Algorithm::Optimal)?;
    // An execution that is given up leaves an outcome of its first part, so only two are compared.
    if optimal.outcomes != naive.outcomes {
        let missing: Vec<_> = naive.outcomes.difference(&optimal.outcomes).collect();
        let extra: Vec<_> = optimal.outcomes.difference(&naive.outcomes).collect();
        return Some(Err(format!(
            "outcomes missing {missing:?}, extra {extra:?}"
        )));
    }
    if program.has(|op| matches!(op, Op::Spin(..))) {
        let first_looks = explore_with(program, Algorithm::Optimal, Order::DepthFirst, None)?;
        if !naive.outcomes.is_subset(&first_looks.outcomes) {
            let missing: Vec<_> = naive.outcomes.difference(&first_looks.outcomes).collect();
            return Some(Err(format!("by default, outcomes missing {missing:?}")));
        }
    }
    if optimal.begun > naive.begun || optimal.begun < optimal.outcomes.len() {
        return Some(Err(format!(
            "{} executions for {} outcomes and {} interleavings",
            optimal.begun,
            optimal.outcomes.len(),
            naive.begun
        )));
    }
    if let Some((executions, pruned)) = optimal.counts {
        if pruned != 0 {
            return Some(Err(format!("{pruned} executions begun in vain")));
        }
        // The last two begin nearly as many executions as there are interleavings.
        let all = [
            Algorithm::Source,
            Algorithm::Bounded,
            Algorithm::Classic,
            Algorithm::SleepSets,
        ];
        let few = if naive.begun > 200 { 2 } else { all.len() };
        for &algorithm in &all[..few] {
            let other = depth_first(algorithm)?;
            if other.counts.map(|(executions, _)| executions) != Some(executions) {
                return Some(Err(format!(
                    "{executions} executions, but {algorithm:?} has {:?}",
                    other.counts
                )));
            }
        }
    }
    for &order in &ORDERS[1..] {
        let other = explore(program, Algorithm::Optimal, order)?;
        if (&other.outcomes, other.counts) != (&optimal.outcomes, optimal.counts) {
            return Some(Err(format!("{order:?} has {other:?}, not {optimal:?}")));
        }
    }
    Some(Ok(()))
}

/// What is wrong with the exploration of `program` by std's documentation; `None` if it is too large.
fn verdict_by_std(program: &Program) -> Option<Result<(), String>> {
    let program = &Program {
        // As often as it comes there.
        timeouts: u32::MAX,
        ..program.clone()
    };
    let expected = std_says::outcomes(program, STATES_MAX)?;
    let depth_first = |algorithm| explore(program, algorithm, Order::DepthFirst);
    let optimal = depth_first(Algorithm::Optimal)?;
    if optimal.outcomes != expected {
        let missing: Vec<_> = expected.difference(&optimal.outcomes).collect();
        let extra: Vec<_> = optimal.outcomes.difference(&expected).collect();
        return Some(Err(format!(
            "by std's documentation there are {missing:?}, and not {extra:?}"
        )));
    }
    let others = [
        Algorithm::Source,
        Algorithm::SleepSets,
        Algorithm::Bounded,
        Algorithm::Classic,
    ];
    // Each gets its share of the programs. What it gives up leaves an outcome of its first part.
    let another = others[expected.len() % others.len()];
    if let Some(explored) = depth_first(another)
        && !explored.outcomes.is_superset(&expected)
    {
        let missing: Vec<_> = expected.difference(&explored.outcomes).collect();
        return Some(Err(format!("{another:?} misses {missing:?}")));
    }
    // Where a thread asks whether another one has finished, or a destructor makes an event, the
    // exploration begins anew; and one that ends with a deadlock tells no number of executions.
    let executions = match optimal.counts {
        Some((executions, _)) => Some(executions as usize),
        None if program.has(|op| matches!(op, Op::IsFinished(_))) || program.shares() => None,
        None => Some(optimal.begun),
    };
    if let Some(executions) = executions
        && let Some(traces) = traces::count(program, None, INTERLEAVINGS_MAX)
        && traces != executions
    {
        return Some(Err(format!("{executions} executions of {traces} traces")));
    }
    Some(Ok(()))
}

/// How a program is judged.
type Judge = fn(&Program) -> Option<Result<(), String>>;

/// The programs without one of its operations.
fn simpler(program: &Program) -> Vec<Program> {
    let less = without_one(&program.threads).map(|threads| Program {
        threads,
        ..program.clone()
    });
    less.collect()
}

/// Checks the programs of these seeds; gives how many were small enough, and how many of those wait.
fn check(seeds: impl Iterator<Item = u64>, judge: Judge) -> (u64, u64) {
    let (mut checked, mut waiting) = (0, 0);
    for seed in seeds {
        let program = Program::random(seed);
        match judge(&program) {
            None => continue,
            Some(Ok(())) => checked += 1,
            Some(Err(_)) => {
                let program = smallest(program, simpler, |program| {
                    matches!(judge(program), Some(Err(_)))
                });
                let why = judge(&program).map(|verdict| verdict.expect_err("it is wrong"));
                panic!("seed {seed}: {}\n{program:#?}", why.unwrap_or_default());
            }
        }
        waiting += u64::from(program.has(|op| *op == Op::Wait));
    }
    (checked, waiting)
}

/// Checks as many programs as are wanted, on two threads.
fn check_all(count: u64, judge: Judge) {
    let (from, count) = (setting("DPOR_LIVE_FROM", 0), setting("DPOR_LIVE", count));
    let seeds = |half: u64| (from..from + count).filter(move |seed| seed % 2 == half);
    let [even, odd] = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || check(seeds(half), judge)));
        halves.map(|half| match half.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    let (checked, waiting) = (even.0 + odd.0, even.1 + odd.1);
    eprintln!("{checked} programs checked, {waiting} of them wait");
    assert!(
        checked > count / 2,
        "{checked} of {count} programs are small enough"
    );
}

#[test]
fn every_algorithm_sees_the_outcomes_of_brute_force() {
    check_all(300, verdict);
}

#[test]
fn other_searches_see_the_same_outcomes_and_a_failure_comes_again() {
    check_all(100, searches::verdict);
}

#[test]
fn every_outcome_that_std_allows_is_seen_and_no_other() {
    check_all(800, verdict_by_std);
}
