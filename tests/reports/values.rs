//! Which failures have their reports kept for the numbers and the results that are in them?

use std::sync::atomic::Ordering::AcqRel;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Failure, thread};

use super::failures::{Named, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("count_beside_a_flag", count_beside_a_flag),
    ("result_left_behind", result_left_behind),
];

/// The highest bit says that a channel is open, and the others count its messages.
fn count_beside_a_flag() -> Failure {
    const OPEN: usize = 1 << (usize::BITS - 1);
    fails(|| {
        let state = Arc::new(AtomicUsize::new(OPEN));
        let theirs = state.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, AcqRel));
        let before = state.fetch_add(1, AcqRel);
        assert_eq!(before & !OPEN, 0, "the first message");
        other.join().unwrap();
    })
}

/// A thread whose result has a destructor, which nobody waits for before the test is stuck.
fn result_left_behind() -> Failure {
    fails(|| {
        let other = thread::spawn(|| Box::new(1));
        thread::park();
        drop(other);
    })
}
