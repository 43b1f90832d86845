//! Are bugs that were found in public projects found here, and do their fixes pass?
//!
//! Each file is one bug, written anew from its description and reduced to the steps that matter: a
//! buggy and a fixed version. Every named step is one visible operation, so that the numbers of
//! executions can be derived by hand.

mod broadcast;
mod futex_wait;
mod last_message;
mod latch;
mod lazy_cell;
mod list_channel;
mod oneshot;
mod pool;
mod shared_notify;
mod spin_rwlock;
mod strategies;
#[path = "../support/mod.rs"]
mod support;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use dpor::{Algorithm, Builder, FailureKind};

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
/// it has idle rounds for free; `tests/counts.rs` has such a loop alone.
fn wait_until(condition: bool) {
    if !condition {
        TOO_EARLY.set(TOO_EARLY.get() + 1);
    }
    dpor::assume(condition);
}
