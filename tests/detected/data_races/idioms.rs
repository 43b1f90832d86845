//! Are idioms made of atomics, such as a spin lock or a reference count, told right from wrong?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::atomic::{AtomicBool, AtomicUsize, fence};
use dpor::sync::{Arc, Mutex};
use dpor::thread;

use super::{Plain, check};

/// Two threads that add under a lock made of an atomic.
fn spinlock(lock: Ordering, unlock: Ordering) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((Plain::default(), AtomicBool::new(false)));
        let add = move |shared: &(Plain, AtomicBool)| {
            while shared.1.swap(true, lock) {
                thread::yield_now();
            }
            shared.0.set(shared.0.get() + 1);
            shared.1.store(false, unlock);
        };
        let theirs = shared.clone();
        let other = thread::spawn(move || add(&theirs));
        add(&shared);
        other.join().unwrap();
        assert_eq!(shared.0.get(), 2);
    }
}

#[test]
fn spinlocks() {
    check(
        "Acquire and Release",
        "[atomics.order] 2",
        false,
        spinlock(Acquire, Release),
    );
    check(
        "SeqCst",
        "[atomics.order] 2",
        false,
        spinlock(SeqCst, SeqCst),
    );
    check(
        "a relaxed unlock",
        "[atomics.order] 2",
        true,
        spinlock(Acquire, Relaxed),
    );
    check(
        "a relaxed lock",
        "[atomics.order] 2",
        true,
        spinlock(Relaxed, Release),
    );
}

#[test]
fn reference_counting_by_hand() {
    let counted = |drop: Ordering, last: Ordering| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(2)));
            let release = move |shared: &(Plain, AtomicUsize)| {
                shared.0.get();
                if shared.1.fetch_sub(1, drop) == 1 {
                    if last != Relaxed {
                        fence(last);
                    }
                    // The payload is destroyed.
                    shared.0.set(9);
                }
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || release(&theirs));
            release(&shared);
            other.join().unwrap();
        }
    };
    check(
        "Release, and an Acquire fence for the last",
        "[atomics.fences] 4",
        false,
        counted(Release, Acquire),
    );
    check(
        "AcqRel",
        "[atomics.order] 2",
        false,
        counted(AcqRel, Relaxed),
    );
    check(
        "a relaxed decrement",
        "[atomics.order] 2",
        true,
        counted(Relaxed, Acquire),
    );
    check(
        "without the fence",
        "[atomics.order] 2: the last decrement does not acquire",
        true,
        counted(Release, Relaxed),
    );
}

#[test]
fn double_checked_initialisation() {
    let init = |check: Ordering, publish: Ordering| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicBool::new(false), Mutex::new(())));
            let get = move |shared: &(Plain, AtomicBool, Mutex<()>)| {
                if !shared.1.load(check) {
                    let _guard = shared.2.lock().unwrap();
                    if !shared.1.load(Relaxed) {
                        shared.0.set(7);
                        shared.1.store(true, publish);
                    }
                }
                assert_eq!(shared.0.get(), 7);
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || get(&theirs));
            get(&shared);
            other.join().unwrap();
        }
    };
    check(
        "Acquire and Release",
        "[atomics.order] 2",
        false,
        init(Acquire, Release),
    );
    check(
        "a relaxed check",
        "[atomics.order] 2",
        true,
        init(Relaxed, Release),
    );
    check(
        "a relaxed publication",
        "[atomics.order] 2",
        true,
        init(Acquire, Relaxed),
    );
}
