//! Which failures of threads that wait have their reports kept?

use std::sync::atomic::Ordering::{Acquire, Release};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Failure, hint, thread};

use super::failures::{Named, builder, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("livelock_of_one", livelock_of_one),
    ("livelock_of_three", livelock_of_three),
    ("loop_that_counts", loop_that_counts),
];

/// The thread that could end the loop has seen too early that it is not there yet.
fn livelock_of_one() -> Failure {
    fails(|| {
        let flags = Arc::new((AtomicBool::new(true), AtomicBool::new(false)));
        let theirs = flags.clone();
        let spinner = thread::Builder::new().name("the spinning worker".to_owned());
        let spinner = spinner.spawn(move || {
            theirs.1.store(true, Release);
            while theirs.0.load(Acquire) {
                hint::spin_loop();
            }
        });
        if flags.1.load(Acquire) {
            flags.0.store(false, Release);
        }
        spinner.unwrap().join().unwrap();
    })
}

/// A round is one of each thread.
fn livelock_of_three() -> Failure {
    fails(|| {
        let taken = Arc::new(AtomicBool::new(false));
        let lock = |taken: &AtomicBool| {
            while taken.swap(true, Acquire) {
                while taken.load(Acquire) {
                    hint::spin_loop();
                }
            }
        };
        let others = [(), ()].map(|()| {
            let taken = taken.clone();
            thread::spawn(move || lock(&taken))
        });
        lock(&taken);
        for other in others {
            other.join().unwrap();
        }
    })
}

/// Says something else in each round.
fn loop_that_counts() -> Failure {
    let mut builder = builder();
    builder.max_branches = 300;
    let failure = builder.explore(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let theirs = counter.clone();
        let other = thread::spawn(move || {
            for _ in 0.. {
                let seen = theirs.load(Acquire);
                theirs.store(seen + 1, Release);
            }
        });
        counter.load(Acquire);
        other.join().unwrap();
    });
    *failure.expect_err("a failure")
}
