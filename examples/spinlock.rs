//! Shows: a spinlock that looks and then takes, so two threads can both see it free.
//! Prints: the report, then how many executions the fixed version has.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Builder, hint, thread};

#[derive(Default)]
struct SpinLock {
    locked: AtomicBool,
    inside: AtomicUsize,
}

impl SpinLock {
    fn lock_broken(&self) {
        while self.locked.load(Acquire) {
            hint::spin_loop();
        }
        self.locked.store(true, Relaxed);
    }

    fn lock_fixed(&self) {
        while self.locked.swap(true, Acquire) {
            hint::spin_loop();
        }
    }

    fn critical_section(&self, lock: fn(&SpinLock)) {
        lock(self);
        assert_eq!(
            self.inside.fetch_add(1, Relaxed),
            0,
            "two threads are inside"
        );
        self.inside.fetch_sub(1, Relaxed);
        self.locked.store(false, Release);
    }
}

fn two_threads(lock: fn(&SpinLock)) {
    let spin = Arc::new(SpinLock::default());
    let shared = spin.clone();
    let other = thread::spawn(move || shared.critical_section(lock));
    spin.critical_section(lock);
    other.join().unwrap();
}

fn main() {
    let failure = Builder::new()
        .explore(|| two_threads(SpinLock::lock_broken))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| two_threads(SpinLock::lock_fixed))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert!(report.complete);
}
