//! Does `dpor` find two threads that initialise the same pool (turso, pull request 4518)?
//!
//! `if !initialised { finalize(); initialised = true }`: both threads check the
//! flag before either sets it. The fix checks and sets the flag with one operation.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

#[derive(Default)]
struct Pool {
    initialised: AtomicBool,
    finalized: AtomicUsize,
}

impl Pool {
    fn initialise_buggy(&self) {
        if !self.initialised.load(Acquire) {
            self.finalize();
            self.initialised.store(true, Release);
        }
    }

    fn initialise_fixed(&self) {
        if !self.initialised.swap(true, AcqRel) {
            self.finalize();
        }
    }

    fn finalize(&self) {
        self.finalized.fetch_add(1, AcqRel);
    }
}

fn two_threads(initialise: fn(&Pool)) {
    let pool = Pool::default();
    thread::scope(|scope| {
        scope.spawn(|| initialise(&pool));
        scope.spawn(|| initialise(&pool));
    });
    assert_eq!(pool.finalized.load(Acquire), 1, "finalized twice");
}

pub fn buggy() {
    two_threads(Pool::initialise_buggy);
}

#[test]
fn two_threads_that_look_before_either_acts_finalize_twice() {
    finds(buggy, FailureKind::Panic, "finalized twice");
    assert_eq!(census(buggy), (6, 4));
}

#[test]
fn a_flag_that_is_taken_with_one_operation_lets_one_thread_finalize() {
    passes(|| two_threads(Pool::initialise_fixed), 2);
}
