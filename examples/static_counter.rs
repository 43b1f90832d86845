//! Shows: a `static` starts from its initial value in every execution, and a check-then-act on one.
//! Prints: the report, then how many executions the fixed version has.

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Builder, thread};

static STARTED: AtomicBool = AtomicBool::new(false);
static STARTS: AtomicUsize = AtomicUsize::new(0);

fn start_broken() {
    if !STARTED.load(SeqCst) {
        STARTED.store(true, SeqCst);
        STARTS.fetch_add(1, SeqCst);
    }
}

fn start_fixed() {
    if !STARTED.swap(true, SeqCst) {
        STARTS.fetch_add(1, SeqCst);
    }
}

fn start_twice(start: fn()) {
    let other = thread::spawn(start);
    start();
    other.join().unwrap();
    assert_eq!(STARTS.load(SeqCst), 1, "started more than once");
}

fn main() {
    let failure = Builder::new()
        .explore(|| start_twice(start_broken))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| start_twice(start_fixed))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert_eq!(report.executions, 2);
}
