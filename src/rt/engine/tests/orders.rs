//! Does every order of search find every trace, once, and prune no execution?

use std::time::Instant;

use crate::rt::engine::TieBreak;
use crate::rt::engine::order::Order;
use crate::rt::engine::rng::Rng;
use crate::rt::engine::strategies::frontier::Frontier;
use crate::rt::engine::testing::programs::{filesystem, indexer, lastzero, readers, wakeup_stress};
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::estimates::of_known_size;
use crate::rt::engine::tests::lost_update;
use crate::rt::engine::tests::random::{number, program};
use crate::rt::event::operation::{ObjectKind, OpKind};

/// Explores the program of this seed in every order; returns the number of traces, unless there are
/// too many.
fn check(seed: u64) -> Option<usize> {
    let program = program(seed);
    let oracle = brute_force(&program, 600)?;
    for order in ORDERS {
        for free in [TieBreak::Last, TieBreak::Random(seed | 1)] {
            let found = explore_up_to(&program, order, free, u64::MAX)?;
            let context = || format!("{order}, {free:?}, seed {seed}:\n{}", program.listing());
            assert_eq!(found.keys(), oracle.keys(), "traces of {}", context());
            assert_eq!(found.finals, oracle.finals, "final states of {}", context());
            let twice = found.traces.values().find(|&&n| n != 1);
            assert_eq!(twice, None, "a trace more than once: {}", context());
            assert_eq!(found.stats.asleep, 0, "pruned: {}", context());
            let ends = |found: &Found| (found.deadlocks, found.livelocks, found.given_up);
            assert_eq!(ends(&found), ends(&oracle), "ends of {}", context());
        }
    }
    Some(oracle.traces.len())
}

#[test]
fn every_order_finds_each_trace_of_random_programs_once_and_begins_nothing_in_vain() {
    let programs = number("DPOR_FUZZ", 36_000).div_ceil(4);
    let start = number("DPOR_FUZZ_SEED", 1);
    let traces: Vec<usize> = (start..start + programs).filter_map(check).collect();
    println!(
        "{} programs, {} traces",
        traces.len(),
        traces.iter().sum::<usize>()
    );
    assert!(
        traces.len() as u64 * 9 >= programs * 5,
        "most are small enough"
    );
}

/// The cost of an exploration: executions, seconds, and the most bytes that held the planned
/// branches.
fn cost(program: &Program, order: &str) -> (u64, f64, usize) {
    let mut driver = driver(program, explorer(order, TieBreak::Last));
    let mut bytes = 0;
    let start = Instant::now();
    let all = explore_on(
        program,
        &mut driver,
        false,
        &mut Found::default(),
        |driver| {
            bytes = bytes.max(driver.memory());
            true
        },
    );
    assert!(all);
    assert_eq!(driver.stats.asleep, 0, "{order} begins nothing in vain");
    (driver.stats.complete, start.elapsed().as_secs_f64(), bytes)
}

/// `cargo test --lib orders -- --nocapture` prints the table of `docs/BIG_STATE_SPACES.md`.
#[test]
fn every_order_explores_each_trace_of_the_published_programs_once() {
    let programs = [
        ("readers(13)", readers(13), 8192),
        ("lastzero(10)", lastzero(10), 3328),
        ("lastzero(12)", lastzero(12), 15_360),
        ("lost update, 4 threads", lost_update(4), 576),
        ("lost update, 5 threads", lost_update(5), 14_400),
        ("indexer(12)", indexer(12), 8),
        ("indexer(15)", indexer(15), 4096),
        ("filesystem(19)", filesystem(19), 64),
        ("wakeup_stress(6)", wakeup_stress(6), 1440),
    ];
    println!(
        "| program | executions | depth_first | {} |",
        ORDERS.join(" | ")
    );
    for (name, program, traces) in programs {
        let (found, depth_first, bytes) = cost(&program, "optimal");
        assert_eq!(found, traces, "{name}");
        let mut row = format!(
            "| {name} | {found} | {depth_first:.3} s, {} kB",
            bytes / 1000
        );
        for order in ORDERS {
            let (found, seconds, most) = cost(&program, order);
            assert_eq!(found, traces, "{name} in the order {order}");
            let factor = seconds / depth_first;
            row.push_str(&format!(" | x {factor:.1}, {} kB", most / 1000));
        }
        println!("{row} |");
    }
}

#[test]
fn what_an_elder_sibling_finds_is_planned_below_a_younger_one_that_was_started_before() {
    let token = |kind| Ins::Op {
        var: 0,
        kind,
        to: 0,
    };
    let unpark = vec![token(OpKind::Unpark)];
    let park = vec![token(OpKind::ParkTimeout)];
    let program = Program::of(vec![unpark.clone(), unpark, park]);
    let program = program.with(0, ObjectKind::Token, 0);
    let oracle = brute_force(&program, 1000).expect("small");
    assert_eq!(oracle.traces.len(), 4);
    for seed in 1..200 {
        let order = Order::Random(Rng::new(seed, 0));
        let explorer = Box::new(Frontier::new(TieBreak::Random(seed), order));
        let found = explore_with(&program, explorer, true, 100).expect("no more than the traces");
        assert_eq!(found.traces, oracle.traces, "seed {seed}");
    }
}

/// The estimate after a tenth of the executions; there are `traces` in all.
fn estimate(program: &Program, order: &str, traces: u64) -> f64 {
    let mut driver = driver(program, explorer(order, TieBreak::Last));
    let mut estimate = None;
    explore_on(
        program,
        &mut driver,
        false,
        &mut Found::default(),
        |driver| {
            if driver.stats.begun() == traces / 10 {
                estimate = driver.estimate();
            }
            true
        },
    );
    assert_eq!(driver.estimate(), Some(traces as f64), "all done");
    estimate.expect("after a tenth")
}

/// `cargo test --lib orders -- --nocapture` prints the table.
#[test]
fn the_estimate_is_of_the_right_magnitude_after_a_tenth_in_every_order() {
    let programs = of_known_size();
    let mut errors = [0.0; ORDERS.len()];
    println!("| program | traces | {} |", ORDERS.join(" | "));
    for (name, program, traces) in &programs {
        let mut row = format!("| {name} | {traces}");
        for (error, order) in errors.iter_mut().zip(ORDERS) {
            let estimate = estimate(program, order, *traces);
            *error += (estimate / *traces as f64).ln().abs() / programs.len() as f64;
            row.push_str(&format!(" | {estimate:.0}"));
        }
        println!("{row} |");
    }
    let factors = errors.map(f64::exp);
    println!("off by a factor of {factors:.2?}");
    assert!(factors.iter().all(|&factor| factor < 5.0), "{factors:?}");
}

#[test]
fn a_branch_ends_where_nobody_sleeps_whatever_the_counts_on_its_way_say() {
    // A sequence that continues below steps of other sequences takes its counts of references from
    // an execution without these steps: a release may be nearer to the last one than its label
    // says.
    assert!(check(1_047_933).is_some(), "small enough");
}
