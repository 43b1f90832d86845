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
    ("result_of_a_scoped_thread", result_of_a_scoped_thread),
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

/// A scope and a builder have names in the program, which the result of the thread does not have.
fn result_of_a_scoped_thread() -> Failure {
    fails(|| {
        thread::scope(|s| {
            let one = s.spawn(|| vec![1]);
            let builder = thread::Builder::new();
            let two = builder.spawn_scoped(s, || vec![2]).unwrap();
            assert_eq!(one.join().unwrap(), two.join().unwrap());
        });
    })
}
