//! How soon does each way to search find the planted bugs?

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use dpor::{Algorithm, Builder, Verdict};

use super::support::bugs::{BUGS, Bug};
use super::{
    broadcast, futex_wait, last_message, latch, lazy_cell, list_channel, oneshot, pool,
    shared_notify, spin_rwlock,
};

/// The real ones of this folder, as far as two preemptions show them.
const REAL: [Bug; 12] = [
    ("spin rwlock, 1 reader", spin_rwlock::one_reader),
    ("spin rwlock, 2 readers", spin_rwlock::two_readers),
    ("last message lost", last_message::buggy),
    ("latch freed after set", latch::buggy),
    ("pool check-then-act", pool::buggy),
    ("oneshot taken twice", oneshot::buggy),
    ("shared notification", shared_notify::buggy),
    ("broadcast without lock", broadcast::buggy),
    ("futex looks too early", futex_wait::buggy),
    ("channel, null pointer", list_channel::null_dereference),
    ("channel, double free", list_channel::double_free),
    ("lazy cell half filled", lazy_cell::buggy),
];

/// For each bound from 0 on whether the bug is found within it, up to the first that does.
fn first_bound(bug: fn()) -> usize {
    let within = |bound| {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(bound);
        builder.explore(bug)
    };
    for bound in 0..10 {
        match within(bound) {
            Err(_) => return bound,
            Ok(report) => {
                assert_eq!(report.verdict, Verdict::Bounded { preemptions: bound });
                assert!(!report.complete, "{report}");
            }
        }
    }
    panic!("not within ten preemptions");
}

#[test]
fn the_planted_bugs_are_missed_below_their_number_of_preemptions_and_found_with_it() {
    let bugs = BUGS.into_iter().chain(REAL);
    let found: Vec<_> = bugs.map(|(name, bug)| (name, first_bound(bug))).collect();
    let expected = [
        ("lost update, 3 threads", 1),
        ("philosophers(3) deadlock", 1),
        ("late reset", 1),
        ("needle among 4 threads", 0),
        ("spin rwlock, 1 reader", 2),
        ("spin rwlock, 2 readers", 2),
        ("last message lost", 1),
        ("latch freed after set", 1),
        ("pool check-then-act", 1),
        ("oneshot taken twice", 1),
        ("shared notification", 0),
        ("broadcast without lock", 2),
        ("futex looks too early", 1),
        ("channel, null pointer", 1),
        ("channel, double free", 2),
        ("lazy cell half filled", 1),
    ];
    assert_eq!(found, expected);
}

/// The number of the execution in which a bug is found.
fn first_failure(bug: fn(), algorithm: Algorithm, seed: u64) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let mine = count.clone();
    let mut builder = Builder::new();
    builder.algorithm = algorithm;
    builder.seed = Some(seed);
    builder.iterations = 20_000;
    let found = builder.explore(move || {
        mine.fetch_add(1, SeqCst);
        bug();
    });
    assert!(
        found.is_err(),
        "{algorithm:?} with seed {seed} found nothing"
    );
    count.load(SeqCst)
}

/// The table of `docs/BIG_STATE_SPACES.md`; `cargo test --test real_bugs planted -- --nocapture`
/// prints it.
#[test]
fn every_planted_bug_is_found_by_every_strategy() {
    println!("| bug | optimal | random | pct, depth 3 | pos |\n|---|---|---|---|---|");
    for (name, bug) in BUGS.into_iter().chain(REAL) {
        let optimal = first_failure(bug, Algorithm::Optimal, 0);
        let sampling = [Algorithm::Random, Algorithm::Pct, Algorithm::Pos];
        let means = sampling.map(|algorithm| {
            let seeds = 20;
            let sum: u64 = (1..=seeds)
                .map(|seed| first_failure(bug, algorithm, seed))
                .sum();
            sum as f64 / seeds as f64
        });
        let [random, pct, pos] = means;
        println!("| {name} | {optimal} | {random:.1} | {pct:.1} | {pos:.1} |");
    }
}
