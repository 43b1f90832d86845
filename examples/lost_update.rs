//! Shows: two threads that load and then store lose an update.
//! Prints: the report with the schedule that loses it, then how many executions the fixed version has.

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

fn count_to_two(increment: fn(&AtomicUsize)) {
    let counter = Arc::new(AtomicUsize::new(0));
    let shared = counter.clone();
    let other = thread::spawn(move || increment(&shared));
    increment(&counter);
    other.join().unwrap();
    assert_eq!(counter.load(SeqCst), 2, "an update was lost");
}

fn broken(counter: &AtomicUsize) {
    let seen = counter.load(SeqCst);
    counter.store(seen + 1, SeqCst);
}

fn fixed(counter: &AtomicUsize) {
    counter.fetch_add(1, SeqCst);
}

fn main() {
    let failure = Builder::new()
        .explore(|| count_to_two(broken))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| count_to_two(fixed))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert_eq!(report.executions, 2);
}
