//! Which failures of many threads have their reports kept?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Barrier};
use dpor::{Failure, thread};

use super::failures::{Named, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("lost_update_among_many", lost_update_among_many),
    ("barrier_for_too_many", barrier_for_too_many),
    ("columns_too_wide", columns_too_wide),
];

/// More rows than are shown, and nearly all of them say the same.
const MANY: usize = 30;

/// So many threads run this, and are joined.
fn all<T: Send + Sync + 'static>(threads: usize, shared: &Arc<T>, run: fn(&T)) {
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let theirs = Arc::clone(shared);
            thread::spawn(move || run(&theirs))
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

fn lost_update_among_many() -> Failure {
    fails(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        all(MANY, &counter, |counter| {
            let value = counter.load(SeqCst);
            counter.store(value + 1, SeqCst);
        });
        assert_eq!(counter.load(SeqCst), MANY);
    })
}

fn barrier_for_too_many() -> Failure {
    fails(|| {
        let barrier = Arc::new(Barrier::new(MANY + 1));
        all(MANY, &barrier, |barrier| {
            barrier.wait();
        });
    })
}

/// Few threads with long names.
fn columns_too_wide() -> Failure {
    fails(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let handles = (0..6).map(|number| {
            let theirs = Arc::clone(&counter);
            let worker = thread::Builder::new().name(format!("worker {number} of the pool of six"));
            worker
                .spawn(move || theirs.fetch_add(number, SeqCst))
                .unwrap()
        });
        let handles: Vec<_> = handles.collect();
        for handle in handles {
            handle.join().unwrap();
        }
        assert_eq!(counter.load(SeqCst), 16, "0 + 1 + 2 + 3 + 4 + 5");
    })
}
