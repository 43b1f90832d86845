//! What does a caught panic leave behind?

use std::sync::atomic::AtomicUsize as StdAtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Barrier, Mutex, MutexGuard, Once, PoisonError, RwLock};
use dpor::{Builder, FailureKind, thread};

#[test]
fn a_caught_panic_is_what_join_returns_and_poisons_locks() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let lock = Arc::new((Mutex::new(0), RwLock::new(0)));
        let theirs = lock.clone();
        let other = thread::spawn(move || {
            let _a = theirs.0.lock();
            let _b = theirs.1.write();
            panic!("on purpose");
        });
        let poisoned_before = lock.0.lock().is_err();
        let payload = other.join().expect_err("it panicked");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(lock.0.is_poisoned() && lock.1.is_poisoned());
        assert!(lock.0.lock().is_err());
        lock.0.clear_poison();
        assert!(lock.0.lock().is_ok());
        // Both orders of the two lockings are explored.
        let _ = poisoned_before;
    });
    assert_eq!(report.executions, 2);
    // Without it the same is a failure.
    let failure = Builder::new().explore(|| {
        let other = thread::spawn(|| panic!("on purpose"));
        assert!(other.join().is_err());
    });
    assert_eq!(failure.expect_err("fails").kind(), FailureKind::Panic);
}

#[test]
fn a_failure_after_a_panic_that_was_not_the_end_tells_of_it() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        let meeting = Arc::new(Barrier::new(2));
        let theirs = meeting.clone();
        let worker = thread::Builder::new().name("worker".to_owned());
        let worker = worker.spawn(move || {
            let none: Vec<u8> = Vec::new();
            assert!(!none.is_empty(), "nothing to do\nat all");
            theirs.wait();
        });
        let _ = std::panic::catch_unwind(|| panic!("by the test itself"));
        meeting.wait();
        let _ = worker.unwrap().join();
    });
    let failure = failure.expect_err("nobody comes to the meeting");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
    let text = failure.to_string();
    let line = text.lines().find(|line| line.contains("worker panicked"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.starts_with("  before that worker panicked at tests/explored/threads/panics.rs:")
            && line.ends_with(": nothing to do"),
        "{line}"
    );
    assert!(text.contains(": by the test itself"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&failure.json()).expect("JSON");
    let earlier = json["outcome"]["earlier_panics"]
        .as_array()
        .expect("a list");
    assert_eq!(earlier.len(), 2, "{text}");
    assert_eq!(earlier[1]["message"], "nothing to do\nat all");
    let thread = earlier[1]["thread"].as_u64().expect("a thread") as usize;
    assert_eq!(json["threads"][thread]["name"], "worker");
    assert!(failure.html().contains("nothing to do"));
    // In the graph it stands behind the last event of the worker before it, or comes first of it.
    let dot = failure.dot();
    let column = dot
        .split("subgraph")
        .find(|column| column.contains("label=\"worker\""));
    let column = column.unwrap_or_else(|| panic!("{dot}"));
    assert!(
        column.contains("p1 [label=\"panics: nothing to do\\n"),
        "{dot}"
    );
    assert!(column.contains("\n    p1 -> e"), "{dot}");
    assert!(!column.contains(" p0 "), "that is main's: {dot}");
    // Its own panic is none that was caught, and the executions before are of no interest.
    let failure = builder.explore(|| {
        let worker = thread::spawn(|| panic!("of the worker"));
        worker.join().expect("a result");
    });
    let text = failure.expect_err("it panics").to_string();
    assert_eq!(text.matches("before that").count(), 1, "{text}");
    assert!(text.contains("before that main.1 panicked at"), "{text}");
    // It poisons the lock before its panic is caught.
    let failure = builder.explore(|| {
        let lock = Arc::new(Mutex::new(()));
        let theirs = lock.clone();
        let worker = thread::spawn(move || {
            let _held = theirs.lock();
            panic!("under the lock");
        });
        drop(lock.lock().unwrap());
        assert!(worker.join().is_err());
    });
    let text = failure.expect_err("the lock is poisoned").to_string();
    assert!(text.contains(": under the lock"), "{text}");
}

#[test]
fn a_poisoned_once_can_be_forced() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let once = Arc::new(Once::new());
        let theirs = once.clone();
        let other = thread::spawn(move || theirs.call_once(|| panic!("on purpose")));
        assert!(other.join().is_err());
        let theirs = once.clone();
        let refused = thread::spawn(move || theirs.call_once(|| ()));
        assert!(refused.join().is_err(), "it is poisoned");
        once.call_once_force(|state| assert!(state.is_poisoned()));
        assert!(once.is_completed());
    });
    assert_eq!(report.executions, 1);
}

/// Panics, and catches it.
fn caught(body: impl FnOnce()) {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    assert!(result.is_err());
}

#[test]
fn a_thread_that_has_caught_its_own_panic_is_explored_as_before() {
    for catch_panics in [false, true] {
        let mut builder = Builder::new();
        builder.catch_panics = catch_panics;
        let report = builder.check(|| {
            caught(|| panic!("caught"));
            assert!(!thread::panicking());
            let x = AtomicUsize::new(0);
            thread::scope(|s| {
                s.spawn(|| x.fetch_add(1, SeqCst));
                x.fetch_add(1, SeqCst);
            });
        });
        assert_eq!(report.executions, 2);
    }
}

#[test]
fn a_thread_that_has_caught_its_own_panic_ends_with_its_execution() {
    let went_on = std::sync::Arc::new(StdAtomicUsize::new(0));
    let after = went_on.clone();
    let result = Builder::new().explore(move || {
        caught(|| panic!("caught"));
        thread::park();
        after.fetch_add(1, SeqCst);
    });
    assert_eq!(result.unwrap_err().kind(), FailureKind::Deadlock);
    assert_eq!(went_on.load(SeqCst), 0);
}

#[test]
fn a_panic_that_is_caught_poisons_the_lock_that_is_held() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let lock = Mutex::new(0);
        thread::scope(|s| {
            s.spawn(|| {
                caught(|| {
                    let _guard = lock.lock();
                    panic!("caught");
                });
                assert!(lock.is_poisoned());
            });
            drop(lock.lock());
        });
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn what_destructors_do_before_the_test_catches_a_panic_is_explored() {
    let report = Builder::new().check(|| {
        let lock = Arc::new(Mutex::new(0));
        let theirs = lock.clone();
        let other = thread::spawn(move || *lock_of(&theirs) += 1);
        caught(|| {
            let _guard = lock_of(&lock);
            panic!("caught");
        });
        *lock_of(&lock) += 1;
        other.join().unwrap();
        assert_eq!(*lock_of(&lock), 2);
    });
    // The other thread comes before, between or after the two.
    assert_eq!(report.executions, 3);
}

/// The guard, poisoned or not.
fn lock_of(lock: &Mutex<usize>) -> MutexGuard<'_, usize> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
