//! Are bugs that were found in public projects found here, and do their fixes pass?
//!
//! Each file is one bug, written anew from its description and reduced to the steps that matter: a
//! buggy and a fixed version. Every named step is one visible operation, so that the numbers of
//! executions can be derived by hand.
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod broadcast;
mod closed_twice;
mod examples;
mod freed_channel;
mod futex_wait;
mod last_message;
mod latch;
mod lazy_cell;
mod list_channel;
mod once_cell;
mod once_wait;
mod oneshot;
#[path = "../support/orders.rs"]
mod orders;
mod page;
mod pool;
#[path = "../support/portable.rs"]
mod portable;
mod shared_notify;
mod shared_waker;
mod spin_rwlock;
mod strategies;
#[path = "../support/mod.rs"]
mod support;
mod thread_ids;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use dpor::{Algorithm, Builder, FailureKind};

/// A version with a bug.
struct Real {
    name: &'static str,
    /// The file of this folder that has it, and what is in it.
    file: &'static str,
    source: &'static str,
    run: fn(),
    /// How many preemptions it takes to see the bug.
    preemptions: usize,
}

macro_rules! real {
    ($($name:literal, $file:ident::$run:ident, $preemptions:literal;)*) => {
        [$(Real {
            name: $name,
            file: concat!(stringify!($file), ".rs"),
            source: include_str!(concat!(stringify!($file), ".rs")),
            run: $file::$run,
            preemptions: $preemptions,
        }),*]
    };
}

/// All of them.
const REAL: [Real; 20] = real! {
    "spin rwlock, 1 reader", spin_rwlock::one_reader, 2;
    "spin rwlock, 2 readers", spin_rwlock::two_readers, 2;
    "spin rwlock, both inside", spin_rwlock::both_inside, 3;
    "last message lost", last_message::buggy, 1;
    "latch freed after set", latch::buggy, 1;
    "latch on the heap", latch::buggy_on_the_heap, 0;
    "pool check-then-act", pool::buggy, 1;
    "oneshot taken twice", oneshot::buggy, 1;
    "shared notification", shared_notify::buggy, 0;
    "broadcast without lock", broadcast::buggy, 2;
    "futex looks too early", futex_wait::buggy, 1;
    "channel, null pointer", list_channel::null_dereference, 1;
    "channel, double free", list_channel::double_free, 2;
    "lazy cell half filled", lazy_cell::buggy, 1;
    "channel freed too early", freed_channel::buggy, 1;
    "once cell, just filled", once_cell::buggy, 1;
    "once cell, not acquired", once_wait::buggy, 1;
    "shared future, woken too early", shared_waker::buggy, 1;
    "thread id, given back too early", thread_ids::buggy, 0;
    "channel, closed by both sides", closed_twice::buggy, 1;
};

/// Explores a buggy version: it fails in this way, and its schedule leads there again.
fn finds(buggy: fn(), kind: FailureKind, text: &str) {
    let found = Builder::new().explore(buggy).expect_err("the bug is found");
    let mut replay = Builder::new();
    replay.replay = Some(found.schedule().to_owned());
    let again = replay.explore(buggy).expect_err("the schedule fails again");
    assert_eq!(again.schedule(), found.schedule());
    for failure in [&found, &again] {
        let report = failure.to_string();
        assert_eq!(failure.kind(), kind, "{report}");
        assert!(report.contains(text), "{report}");
    }
}

/// Explores a fixed version: all of its executions pass, and there are so many; as many as sleep sets
/// find, which know nothing of races.
fn passes(fixed: fn(), executions: u64) {
    let mut builder = Builder::new();
    for algorithm in [Algorithm::Optimal, Algorithm::SleepSets] {
        builder.algorithm = algorithm;
        let report = builder.check(fixed);
        assert!(report.complete, "{report}");
        assert_eq!(report.executions, executions, "{algorithm:?}: {report}");
    }
}

/// How many executions a buggy version has, and how many of them fail; those that `wait_until` gives up
/// do not count.
///
/// An execution is not continued after its failure; so these numbers are those of all traces only
/// if the failure is a deadlock, or an assertion after the last `join`.
fn census(buggy: fn()) -> (u64, u64) {
    TOO_EARLY.set(0);
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let shared = counts.clone();
    let mut builder = Builder::new();
    builder.max_failures = usize::MAX;
    builder.simplify = 0;
    let found = builder.explore(move || {
        shared[0].fetch_add(1, SeqCst);
        buggy();
        shared[1].fetch_add(1, SeqCst);
    });
    assert!(found.is_err(), "the bug is found");
    let [begun, passed] = [0, 1].map(|i| counts[i].load(SeqCst));
    let executions = begun - TOO_EARLY.get();
    (executions, executions - passed)
}

thread_local! {
    /// How many executions were given up; all threads of a model run on the OS thread that explores.
    static TOO_EARLY: Cell<u64> = const { Cell::new(0) };
}

/// A loop that waits for `condition`, as one event: an execution that looks too early is given up,
/// because its next look is that of another execution. A spin loop has as many executions more as
/// it has idle rounds for free; `tests/explored/loops/waiting.rs` has such loops alone.
fn wait_until(condition: bool) {
    if !condition {
        TOO_EARLY.set(TOO_EARLY.get() + 1);
    }
    dpor::assume(condition);
}
