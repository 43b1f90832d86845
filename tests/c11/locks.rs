//! A `try_lock` that fails reads the word of its mutex, as a relaxed load of std's does: it may
//! fail although the mutex was unlocked, if its thread does not know of that.

use std::sync::Arc;

use dpor::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, fence};
use dpor::sync::{Mutex, RwLock};
use dpor::{Algorithm, Builder, Failure, FailureKind, Memory, WeakMemory, thread};

use super::{counts, explored, failure_of, passes};

/// The first thread unlocks a mutex and says so, and the second one tries to lock it.
fn says_so(store: Ordering, load: Ordering) {
    let shared = Arc::new((Mutex::new(0), AtomicBool::new(false)));
    let theirs = shared.clone();
    let other = thread::spawn(move || {
        *theirs.0.lock().unwrap() += 1;
        theirs.1.store(true, store);
    });
    if shared.1.load(load) {
        assert!(shared.0.try_lock().is_ok(), "no thread holds the mutex");
    }
    other.join().unwrap();
}

fn failure(f: impl Fn() + Sync + Send + Copy + 'static) -> (Failure, String) {
    let failure = failure_of(&Builder::new(), f);
    let text = failure.to_string();
    assert_eq!(failure.kind(), FailureKind::Panic, "{text}");
    (failure, text)
}

#[test]
fn a_try_lock_fails_if_its_thread_does_not_know_of_the_unlock() {
    let (failure, text) = failure(|| says_so(Relaxed, Relaxed));
    for told in [
        "try_lock theirs.0: held (old)  ",
        "fails by the past: main.1 unlocked theirs.0 before (event 3), and main does not know of it, because ",
        "is Relaxed",
        "; with the newest state it passes",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let json = failure.json();
    assert!(
        json.contains("\"stale\":true") || json.contains("\"stale\": true"),
        "{json}"
    );
    // The right orderings, of which neither is enough.
    for (store, load) in [(Relaxed, Acquire), (Release, Relaxed)] {
        super::fails(move || says_so(store, load));
    }
    assert_eq!(passes(|| says_so(Release, Acquire)), 2);
    assert_eq!(passes(|| says_so(SeqCst, SeqCst)), 2);
}

#[test]
fn the_look_out_tells_of_a_try_lock_that_may_fail_by_the_past() {
    fn weak(f: impl Fn() + Sync + Send + 'static) -> (WeakMemory, u64) {
        let report = Builder::new().explore(f).expect("no failure");
        assert!(report.complete, "{report}");
        (report.weak, report.executions)
    }
    fn look(store: Ordering, load: Ordering) {
        let shared = Arc::new((Mutex::new(0), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            *theirs.0.lock().unwrap() += 1;
            theirs.1.store(true, store);
        });
        if shared.1.load(load) {
            drop(shared.0.try_lock());
        }
        other.join().unwrap();
    }
    let (told, executions) = weak(|| look(Relaxed, Relaxed));
    let WeakMemory::Explored {
        operation,
        sequential,
    } = told
    else {
        panic!("{told:?}")
    };
    assert!(operation.starts_with("main's try_lock at "), "{operation}");
    assert_eq!((sequential, executions), (2, 3));
    assert_eq!(weak(|| look(Release, Acquire)), (WeakMemory::Impossible, 2));
}

#[test]
fn without_the_setting_a_try_lock_fails_only_if_the_mutex_is_held() {
    for memory in [Memory::Auto, Memory::C11] {
        let mut builder = Builder::new();
        builder.stale_try_lock = false;
        builder.memory = memory;
        assert_eq!(explored(&builder, || says_so(Relaxed, Relaxed)), 2);
    }
}

#[test]
fn a_failure_by_the_past_is_an_old_value() {
    let within = |most| {
        let mut builder = super::c11();
        builder.algorithm = Algorithm::Bounded;
        builder.stale_bound = Some(most);
        builder.explore(|| says_so(Relaxed, Relaxed))
    };
    within(0).expect("it needs an old value");
    let failure = within(1).expect_err("it fails");
    assert!(failure.schedule().starts_with("v2 c11"), "{failure}");
}

#[test]
fn samplers_draw_it() {
    let mut builder = super::c11();
    builder.algorithm = Algorithm::Random;
    builder.seed = Some(1);
    let failure = builder.explore(|| says_so(Relaxed, Relaxed));
    failure.expect_err("one of a thousand executions fails");
}

/// Store buffering, with the unlock of a mutex in place of a store.
#[test]
fn fences_that_are_seq_cst_forbid_it() {
    fn run(has_fence: bool) {
        let shared = Arc::new((Mutex::new(()), AtomicBool::new(false)));
        let theirs = shared.clone();
        let between = move || {
            if has_fence {
                fence(SeqCst);
            }
        };
        let other = thread::spawn(move || {
            drop(theirs.0.lock().unwrap());
            between();
            theirs.1.load(Relaxed)
        });
        shared.1.store(true, Relaxed);
        between();
        let is_free = shared.0.try_lock().is_ok();
        assert!(
            other.join().unwrap() || is_free,
            "neither has seen the other"
        );
    }
    let (_, text) = failure(|| run(false));
    assert!(text.contains("no SeqCst fence stands between"), "{text}");
    passes(|| run(true));
}

/// A loop of attempts ends: the thread that has waited for a change does not miss it.
#[test]
fn attempts_in_a_loop_end() {
    fn run(has_hint: bool) {
        let count = Arc::new(Mutex::new(0));
        let add = move |count: &Mutex<i32>| {
            loop {
                if let Ok(mut count) = count.try_lock() {
                    *count += 1;
                    return;
                }
                if has_hint {
                    thread::yield_now();
                }
            }
        };
        let theirs = count.clone();
        let other = thread::spawn(move || add(&theirs));
        add(&count);
        other.join().unwrap();
        assert_eq!(*count.lock().unwrap(), 2);
    }
    // Either thread is the first one, and the other one finds the mutex locked in none, one, two or
    // three attempts.
    assert_eq!(counts(|| run(true)), (8, 8));
    passes(|| run(false));
}

/// A spin lock that each of three threads tries to take once has 21 executions.
#[test]
fn one_attempt_of_each_of_three_threads() {
    fn run() {
        let lock = Arc::new(Mutex::new(()));
        let attempt = |lock: &Mutex<()>| drop(lock.try_lock());
        let others = [lock.clone(), lock.clone(), lock.clone()];
        let others = others.map(|lock| thread::spawn(move || attempt(&lock)));
        others.into_iter().for_each(|other| other.join().unwrap());
    }
    assert_eq!(counts(run), (21, 21));
}

/// A lock with readers tells its newest state: which of several readers an attempt has found is
/// nothing that a thread could see.
#[test]
fn attempts_at_a_lock_with_readers_are_strong() {
    fn run() {
        let shared = Arc::new((RwLock::new(0), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            *theirs.0.write().unwrap() += 1;
            theirs.1.store(true, Relaxed);
        });
        if shared.1.load(Relaxed) {
            assert!(shared.0.try_write().is_ok() && shared.0.try_read().is_ok());
        }
        other.join().unwrap();
    }
    passes(run);
}
