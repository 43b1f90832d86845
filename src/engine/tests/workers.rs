//! Is everything the same for every number of workers, as in tests that are closures?

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::config::{Algorithm, Builder};
use crate::engine::tests::client::{engine, execute, of_words, trace_key};
use crate::engine::tests::random::{program, relation};
use crate::engine::{Ended, Engine, Execution, Misuse, Operation, Outcome, Thread, Turn};
use crate::exploration::workers::queue::shared;
use crate::rt::engine::testing::Program;
use crate::rt::engine::testing::programs::lost_update;
use crate::rt::relation::key::TraceKey;

const WORKERS: [usize; 4] = [1, 2, 3, 8];

fn with(workers: usize) -> Builder {
    Builder {
        workers: Some(workers),
        ..Builder::new()
    }
}

/// The traces of a program with the ways in which executions end, and the numbers of the engine.
type Explored = (BTreeMap<(TraceKey, bool), u64>, [u64; 4], bool);

fn numbers(engine: &Engine) -> [u64; 4] {
    let depth = engine.depth() as u64;
    [engine.executions(), engine.begun(), engine.pruned(), depth]
}

/// Explores with workers.
fn explore(program: &Program, settings: &Builder) -> Explored {
    let mut engine = engine(program, settings, &relation());
    let traces = engine.explore(|execution| {
        let ended = execute(program, execution);
        Ok((trace_key(execution), ended == Ended::Complete))
    });
    let traces = traces.expect("right calls");
    (traces, numbers(&engine), engine.is_complete())
}

/// Explores by the loop over `begin`.
fn explore_alone(program: &Program) -> Explored {
    let settings = Builder {
        algorithm: Algorithm::Parsimonious,
        ..Builder::new()
    };
    let mut engine = engine(program, &settings, &relation());
    let mut traces = BTreeMap::new();
    while let Some(mut execution) = engine.begin().expect("the last one has ended") {
        let ended = execute(program, &mut execution);
        if ended != Ended::Covered {
            let outcome = (trace_key(&mut execution), ended == Ended::Complete);
            *traces.entry(outcome).or_default() += 1;
        }
    }
    (traces, numbers(&engine), engine.is_complete())
}

#[test]
fn random_programs_are_explored_in_the_same_way_by_any_number_of_workers() {
    let (mut explorations, mut programs) = (0, 0);
    shared().set((0, 0));
    for seed in 1.. {
        let program = program(seed);
        let alone = explore_alone(&program);
        // Fewer are explored before workers begin, and many take long.
        if !(60..2_000).contains(&alone.1[0]) {
            continue;
        }
        assert!(alone.2);
        for workers in WORKERS {
            let found = explore(&program, &with(workers));
            assert!(found == alone, "seed {seed}, {workers} workers");
            explorations += u64::from(workers > 1);
        }
        programs += 1;
        if programs == 150 {
            break;
        }
    }
    // Each exploration is one task at first, and what workers give away are the others.
    let (tasks, _) = shared().get();
    assert!(
        2 * tasks > 3 * explorations,
        "{tasks} tasks, {explorations}"
    );
}

#[test]
fn what_workers_leave_is_explored_by_any_number_of_them() {
    let program = of_words(lost_update(4));
    let whole = explore(&program, &with(1));
    assert_eq!((whole.1[0], whole.2), (576, true));
    for (first, second) in [(1, 3), (3, 1), (8, 2)] {
        let limited = Builder {
            max_permutations: Some(300),
            ..with(first)
        };
        let mut one = engine(&program, &limited, &relation());
        let key = |execution: &mut Execution<'_>| {
            let ended = execute(&program, execution);
            Ok((trace_key(execution), ended == Ended::Complete))
        };
        let mut traces = one.explore(key).expect("right calls");
        assert_eq!((one.begun(), one.is_complete()), (300, false));
        let saved = one.save().expect("some are left").expect("all have names");
        let mut other = engine(&program, &with(second), &relation());
        assert!(other.restore(&saved));
        for (outcome, executions) in other.explore(key).expect("right calls") {
            *traces.entry(outcome).or_default() += executions;
        }
        assert!((traces, numbers(&other), other.is_complete()) == whole);
    }
}

/// Four threads add to a word and return the order in which they have. `fails` gets the order.
fn orders<T: Ord + Send>(
    settings: &Builder,
    fails: impl Fn(&[usize]) -> Result<T, Misuse> + Sync,
) -> (Result<BTreeMap<T, u64>, Misuse>, Engine) {
    let mut engine = Engine::new(settings, 5).expect("fit settings");
    let explored = engine.explore(|execution| {
        let mut order = Vec::new();
        loop {
            let thread = match execution.turn()? {
                Turn::Begins(thread) => {
                    execution.announce(thread, Operation::Add { word: 0, value: 1 })?;
                    continue;
                }
                Turn::Ran(thread, _) => thread,
                Turn::Ended(_) => return fails(&order),
            };
            order.push(thread.0);
            execution.finish_thread(thread)?;
        }
    });
    (explored, engine)
}

#[test]
fn the_first_error_is_that_of_one_worker() {
    let mut first = None;
    for workers in WORKERS {
        // The order of the additions decides, and many executions fail.
        let (explored, engine) = orders(&with(workers), |order| match order {
            [.., 1, _] | [2, 3, ..] => Err(Misuse::TooLarge {
                call: "front end",
                number: order.iter().fold(0, |all, &it| 10 * all + it as u32),
            }),
            _ => Ok(()),
        });
        let found = (explored.expect_err("some fail"), engine.begun());
        assert_eq!(*first.get_or_insert(found.clone()), found, "{workers}");
    }
}

#[test]
fn a_front_end_that_panics_does_so_on_the_thread_of_the_caller() {
    let mut first = None;
    for workers in WORKERS {
        let panics = || {
            orders(&with(workers), |order| {
                assert_ne!(order[..2], [3, 2], "{order:?}");
                Ok(())
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(panics)).map(|_| ());
        let payload = payload.expect_err("it panics");
        let text = payload.downcast_ref::<String>().expect("a text").clone();
        assert!(text.contains("[3, 2, "), "{text}");
        assert_eq!(*first.get_or_insert(text.clone()), text, "{workers}");
    }
}

#[test]
fn an_execution_that_is_too_long_ends_the_exploration_at_the_same_place() {
    let mut first = None;
    for workers in WORKERS {
        let settings = Builder {
            max_branches: 40,
            ..with(workers)
        };
        let mut engine = Engine::new(&settings, 5).expect("fit settings");
        // After a long time, a thread that comes last of all never ends.
        let explored = engine.explore(|execution| {
            let mut order = Vec::new();
            loop {
                let (thread, outcome) = match execution.turn()? {
                    Turn::Begins(thread) => (thread, None),
                    Turn::Ran(thread, outcome) => (thread, Some(outcome)),
                    Turn::Ended(ended) => return Ok(matches!(ended, Ended::Complete)),
                };
                if outcome.is_some() {
                    order.push(thread.0);
                }
                if outcome.is_none() || order.starts_with(&[2, 4]) {
                    execution.announce(thread, Operation::Add { word: 0, value: 1 })?;
                } else {
                    execution.finish_thread(thread)?;
                }
            }
        });
        let complete = explored.expect("no misuse");
        assert!(engine.is_aborted() && !engine.is_complete());
        let found = (complete, numbers(&engine));
        assert!(found.1[0] > 20, "{found:?}");
        assert_eq!(*first.get_or_insert(found.clone()), found, "{workers}");
    }
}

#[test]
fn settings_that_are_not_for_workers_explore_with_one() {
    for algorithm in [Algorithm::Source, Algorithm::Bounded, Algorithm::Optimal] {
        let settings = Builder {
            algorithm,
            order: match algorithm {
                Algorithm::Optimal => crate::config::Order::Stride,
                _ => crate::config::Order::DepthFirst,
            },
            ..with(3)
        };
        shared().set((0, 0));
        let found = explore(&of_words(lost_update(4)), &settings);
        assert_eq!((found.1[0], found.0.len()), (576, 576), "{algorithm:?}");
        assert_eq!(shared().get(), (0, 0), "{algorithm:?}");
    }
}

#[test]
fn a_front_end_that_returns_early_is_told_so() {
    for workers in [None, Some(2)] {
        let settings = Builder {
            workers,
            ..Builder::new()
        };
        let mut engine = Engine::new(&settings, 2).expect("fit settings");
        let explored = engine.explore(|execution| {
            let begun = execution.turn()?;
            assert_eq!(begun, Turn::Begins(Thread(0)));
            execution.finish_thread(Thread(0))
        });
        assert_eq!(explored, Err(Misuse::NotEnded));
        let text = Misuse::NotEnded.to_string();
        assert!(text.starts_with("`explore`: "), "{text}");
        assert_eq!(engine.begin().map(|_| ()), Err(Misuse::Aborted));
        let explored = engine.explore(|execution| match execution.turn()? {
            Turn::Ran(_, Outcome::Done) => Ok(1),
            _ => Ok(0),
        });
        assert_eq!(explored, Err(Misuse::Aborted));
    }
}
