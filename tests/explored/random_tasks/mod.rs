//! Do random programs of tasks show all their outcomes, each trace once?
//!
//! They are compared with brute force, with an interpreter that was written from the documentation, and with the other
//! algorithms, which must have as many executions. `DPOR_TASKS` says how many programs there are to be, and
//! `DPOR_TASKS_FROM` the first one's seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dpor::{Algorithm, Builder, FailureKind, Memory};

use crate::drawn;
mod program;
mod run;
mod says;

use drawn::{setting, smallest, without_one};
use program::Program;
use run::Outcome;

/// More interleavings than this are too many.
const INTERLEAVINGS_MAX: usize = 1_500;

/// More states than this are too many.
const STATES_MAX: usize = 100_000;

/// What an algorithm made of a program: the outcomes, and how many executions there were, unless there is a deadlock.
type Explored = (BTreeSet<Outcome>, Option<u64>);

/// Explores `program`; `None` if it takes too long.
fn explore(program: &Program, algorithm: Algorithm) -> Option<Explored> {
    let mut builder = Builder::new();
    builder.algorithm = algorithm;
    builder.memory = Memory::Sc;
    builder.max_permutations = Some(INTERLEAVINGS_MAX);
    builder.max_failures = usize::MAX;
    builder.progress = Some(false);
    builder.simplify = 0;
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let begun = Arc::new(AtomicUsize::new(0));
    let (all, runs, body) = (outcomes.clone(), begun.clone(), program.clone());
    let result = builder.explore(move || {
        runs.fetch_add(1, Relaxed);
        let all = all.clone();
        run::run(&body, move |outcome| {
            all.lock().unwrap().insert(outcome);
        });
    });
    if begun.load(Relaxed) >= INTERLEAVINGS_MAX {
        return None;
    }
    let executions = match result {
        Ok(report) => {
            assert!(report.complete, "{program:?}: {report}");
            let in_vain = algorithm == Algorithm::Optimal && report.pruned > 0;
            assert!(!in_vain, "{program:?}: {report}");
            Some(report.executions)
        }
        Err(failure) => {
            let all = [&*failure].into_iter().chain(failure.others());
            for failure in all {
                assert_eq!(
                    failure.kind(),
                    FailureKind::Deadlock,
                    "{program:?}\n{failure}"
                );
            }
            None
        }
    };
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap());
    Some((outcomes, executions))
}

/// What is wrong with the exploration of `program`; `None` if it is too large.
fn verdict(program: &Program) -> Option<Result<(), String>> {
    let optimal = explore(program, Algorithm::Optimal)?;
    let expected = says::outcomes(program, STATES_MAX)?;
    let found = &optimal.0;
    if *found != expected {
        let missing: Vec<_> = expected.difference(found).collect();
        let extra: Vec<_> = found.difference(&expected).collect();
        return Some(Err(format!("there are {missing:?}, and not {extra:?}")));
    }
    let others = [
        Algorithm::Naive,
        Algorithm::Source,
        Algorithm::Bounded,
        Algorithm::Classic,
        Algorithm::SleepSets,
    ];
    for algorithm in others {
        // What is too large for one of them is not too large for all.
        let Some((outcomes, executions)) = explore(program, algorithm) else {
            continue;
        };
        let missing: Vec<_> = expected.difference(&outcomes).collect();
        if !missing.is_empty() {
            return Some(Err(format!("{algorithm:?} misses {missing:?}")));
        }
        if algorithm != Algorithm::Naive && executions != optimal.1 {
            return Some(Err(format!(
                "{:?} executions, but {algorithm:?} has {executions:?}",
                optimal.1
            )));
        }
    }
    Some(Ok(()))
}

/// The programs without one of its steps.
fn simpler(program: &Program) -> Vec<Program> {
    without_one(&program.0).map(Program).collect()
}

#[test]
fn every_outcome_is_seen_and_no_other() {
    let (from, count) = (setting("DPOR_TASKS_FROM", 0), setting("DPOR_TASKS", 60));
    let mut checked = 0;
    for seed in from..from + count {
        let program = Program::random(seed);
        match verdict(&program) {
            None => {}
            Some(Ok(())) => checked += 1,
            Some(Err(_)) => {
                let wrong = |program: &Program| matches!(verdict(program), Some(Err(_)));
                let program = smallest(program, simpler, wrong);
                panic!("seed {seed}: {:?}\n{program:?}", verdict(&program));
            }
        }
    }
    assert!(checked > count / 2, "{checked} of {count} are small enough");
}
