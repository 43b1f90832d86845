//! Does any trace have two executions, if traces are distinguished by the real order of wake-ups,
//! releases and messages?
//!
//! The test checks the labels of events, so they play no part in the oracle: see [`reference`].

use std::collections::BTreeMap;

use crate::rt::engine::testing::*;
use crate::rt::engine::tests::blocking::{Blocking, OBJECT};
use crate::rt::engine::tests::random::{MUTEX, Rng, number};
use crate::rt::engine::tests::{load, store, var};
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::event::operation::{ObjectKind, OpKind};
use crate::rt::event::verdict::{End, Pruned};
use crate::rt::relation::key::TraceKey;

/// Explores `program`; returns its traces by [`reference::key`], each with its number of
/// executions.
fn explored(program: &Program, explorer: Box<dyn Explorer>) -> BTreeMap<TraceKey, u32> {
    let mut found = BTreeMap::new();
    let mut driver = driver(program, explorer);
    while let Some(end) = run(program, &mut driver) {
        if !matches!(end, End::Pruned(Pruned::Asleep)) {
            let key = reference::key(program, &driver.trace, &driver.machine);
            *found.entry(key).or_default() += 1;
        }
    }
    found
}

/// Checks `program` against brute force, which distinguishes traces in the same way; returns the
/// number of traces, unless there are more prefixes than `most`.
pub(super) fn check(program: &Program, most: usize, seed: u64) -> Option<usize> {
    let oracle = brute_force_by(program, most, Some(reference::key))?.keys();
    let other = ["source", "sleep_sets"].into_iter().chain(ORDERS);
    let other = other.cycle().nth(seed as usize % 7);
    for algorithm in ["optimal", "parsimonious"].into_iter().chain(other) {
        for free in [TieBreak::Last, TieBreak::Random(seed | 1)] {
            let context = || format!("{algorithm}, {free:?}, seed {seed}:\n{}", program.listing());
            let found = explored(program, explorer(algorithm, free));
            let executions: u32 = found.values().sum();
            assert_eq!(found.len(), oracle.len(), "traces of {}", context());
            assert!(
                found.keys().eq(oracle.iter()),
                "other traces of {}",
                context()
            );
            assert_eq!(
                executions as usize,
                oracle.len(),
                "executions of {}",
                context()
            );
        }
    }
    Some(oracle.len())
}

/// A program of three to five threads that wait for each other.
pub(super) fn waiting(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let kind = match rng.below(3) {
        0 => Blocking::any(&mut rng),
        _ => Blocking::Condvar,
    };
    let threads = 3 + rng.below(3) as u32;
    let parks = rng.one_in(4);
    let mut all = Vec::new();
    for me in 1..=threads {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below([2, 2, 1][threads as usize - 3]) {
            let value = Val::Const(1);
            let (x, other) = (
                var(rng.below(2) as i64),
                1 + rng.below(u64::from(me)) as u32,
            );
            match rng.below(6) {
                0 => code.push(load(0, 0)),
                1 => code.push(store(0, 1)),
                2 if parks => code.push(Ins::Park),
                3 if parks => code.push(Ins::Unpark(other)),
                4 if parks => code.push(Ins::ParkTimeout { to: 0 }),
                _ => kind.instructions(OBJECT, &mut rng, me, &mut code, (x, value)),
            }
        }
        kind.end(OBJECT, &mut rng, me, &mut code);
        all.push(code);
    }
    let program = Program::of(all).with(MUTEX, ObjectKind::Mutex, 0);
    kind.declare(OBJECT, &mut rng, threads, program)
}

#[test]
fn no_trace_of_random_programs_is_executed_twice_by_what_really_woke_what() {
    let programs = number("DPOR_FUZZ", 1_500);
    let start = number("DPOR_FUZZ_SEED", 1);
    let (mut checked, mut traces) = (0, 0);
    for seed in start..start + programs {
        if let Some(found) = check(&waiting(seed), 500, seed) {
            checked += 1;
            traces += found;
        }
    }
    println!("{checked} programs, {traces} traces");
    assert!(
        checked * 2 >= programs,
        "only {checked} of {programs} were small enough"
    );
}

#[test]
fn a_notification_of_all_is_ordered_with_those_that_it_wakes() {
    let mutex = Val::Const(i64::from(MUTEX));
    let on_condvar = |kind| Ins::Op {
        var: OBJECT,
        kind,
        to: 7,
    };
    let waiter = vec![
        Ins::Lock(mutex),
        Ins::Enqueue(OBJECT),
        Ins::Unlock(mutex),
        on_condvar(OpKind::Awake { timed: false }),
        Ins::Lock(mutex),
        Ins::Unlock(mutex),
    ];
    let notifier = vec![on_condvar(OpKind::NotifyOne), on_condvar(OpKind::NotifyAll)];
    for (waiters, traces) in [(2, 28), (3, 498)] {
        let mut threads = vec![waiter.clone(); waiters];
        threads.push(notifier.clone());
        let program = Program::of(threads).with(OBJECT, ObjectKind::Condvar, 0);
        let program = program.with(MUTEX, ObjectKind::Mutex, 0);
        assert_eq!(count(&program, "optimal"), traces, "{waiters} waiters");
        assert_eq!(check(&program, usize::MAX, 0), Some(traces as usize));
    }
}
