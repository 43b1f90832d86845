//! Is every kind of failure found, told in its own words, and reproduced by its schedule?

mod causes;
use crate::children;
mod deadlocks;
mod determinism;
mod ends;
mod faults;
mod layout;
mod leaks;
mod limits;
mod livelocks;
mod no_failure;
mod outside;
mod panics;
mod replay;
mod simplify;

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Failure, thread};

fn failure(f: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    Builder::new().explore(f).expect_err("the model fails")
}

fn lost_update() {
    let counter = Arc::new(AtomicUsize::new(0));
    let shared = counter.clone();
    let increment = |x: &AtomicUsize| x.store(x.load(SeqCst) + 1, SeqCst);
    let other = thread::spawn(move || increment(&shared));
    increment(&counter);
    other.join().unwrap();
    assert_eq!(counter.load(SeqCst), 2, "an update was lost");
}
