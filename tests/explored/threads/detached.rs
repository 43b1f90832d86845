//! May a thread that nobody joins wait for ever?

use std::sync::atomic::AtomicUsize as StdAtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, mpsc};
use dpor::{Builder, FailureKind, Report, hint, thread};

/// How `model` is failed by default, and what is reported if detached threads may block.
fn both(model: impl Fn() + Clone + Send + Sync + 'static) -> (FailureKind, Report) {
    let failure = Builder::new().explore(model.clone());
    let mut builder = Builder::new();
    builder.detached_may_block = true;
    let report = builder.check(model);
    let failure = failure.expect_err("a thread is left");
    let text = failure.to_string();
    assert!(text.contains("`Builder::detached_may_block`"), "{text}");
    (failure.kind(), report)
}

#[test]
fn a_worker_that_nobody_stops_is_a_deadlock_unless_it_may_block() {
    let (failure, report) = both(|| {
        let (jobs, inbox) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let mine = jobs.clone();
        thread::spawn(move || {
            // It could give itself jobs, so its channel is never closed.
            let _mine = mine;
            for job in inbox {
                done.send(job + 1).unwrap();
            }
        });
        jobs.send(1).unwrap();
        assert_eq!(results.recv(), Ok(2));
    });
    assert_eq!(failure, FailureKind::Deadlock);
    assert!(report.complete);
}

#[test]
fn a_detached_loop_that_only_looks_is_a_livelock_unless_it_may_wait() {
    let (failure, report) = both(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        thread::spawn(move || {
            theirs.store(1, SeqCst);
            while !stop.load(SeqCst) {
                hint::spin_loop();
            }
        });
        x.load(SeqCst);
    });
    assert_eq!(failure, FailureKind::Livelock);
    // The load comes before or after the store.
    assert_eq!((report.executions, report.complete), (2, true));
}

#[test]
fn whoever_waits_for_a_thread_that_is_blocked_is_explored_first_and_last() {
    let (failure, report) = both(|| {
        let lock = Arc::new(Mutex::new(()));
        let (keeps, wants) = (lock.clone(), lock);
        thread::spawn(move || {
            let _guard = keeps.lock();
            thread::park();
        });
        thread::spawn(move || drop(wants.lock()));
    });
    assert_eq!(failure, FailureKind::Deadlock);
    // The lock is wanted before it is kept, or for ever.
    assert_eq!((report.executions, report.complete), (2, true));
}

#[test]
fn the_closure_itself_may_not_block() {
    let mut builder = Builder::new();
    builder.detached_may_block = true;
    let failure = builder.explore(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let theirs = pair.clone();
        thread::spawn(move || {
            *theirs.0.lock().unwrap() = true;
            // Not told to whoever waits.
        });
        let mut ready = pair.0.lock().unwrap();
        while !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
    });
    let failure = failure.expect_err("nobody notifies");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
    let text = failure.to_string();
    assert!(
        text.contains("builder.detached_may_block = true;"),
        "{text}"
    );
    assert!(!text.contains("`Builder::detached_may_block`"), "{text}");
}

#[test]
fn what_a_blocked_thread_has_is_dropped_before_the_next_execution() {
    static ALIVE: StdAtomicUsize = StdAtomicUsize::new(0);
    static MADE: StdAtomicUsize = StdAtomicUsize::new(0);
    struct Value(#[expect(dead_code, reason = "a block that must be freed")] Box<AtomicUsize>);
    impl Value {
        fn new() -> Value {
            assert_eq!(ALIVE.fetch_add(1, SeqCst), 0, "one of an earlier execution");
            MADE.fetch_add(1, SeqCst);
            let value = Box::new(AtomicUsize::new(0));
            value.store(1, SeqCst);
            Value(value)
        }
    }
    impl Drop for Value {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, SeqCst);
        }
    }
    let mut builder = Builder::new();
    builder.detached_may_block = true;
    // The values of a further pass would count, too.
    builder.thorough = dpor::Thorough::Off;
    let report = builder.check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        thread::spawn(move || {
            let _value = Value::new();
            theirs.store(1, SeqCst);
            thread::park();
        });
        x.load(SeqCst);
    });
    assert_eq!((report.executions, report.complete), (2, true));
    assert_eq!((MADE.load(SeqCst), ALIVE.load(SeqCst)), (2, 0));
}
