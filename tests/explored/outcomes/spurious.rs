//! Does a wait end for no reason when that is asked for, and only then?

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Duration;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, Notify};
use dpor::{Builder, FailureKind, Thorough, Verdict, hint, thread};

#[test]
fn spurious_wakeups_are_explored_on_request() {
    let run = |wakeups| {
        let mut builder = Builder::new();
        builder.thorough = Thorough::Off;
        builder.spurious_wakeups = wakeups;
        builder.explore(|| {
            let pair = (Mutex::new(false), Condvar::new());
            thread::scope(|s| {
                s.spawn(|| {
                    *pair.0.lock().unwrap() = true;
                    pair.1.notify_one();
                });
                let mut flag = pair.0.lock().unwrap();
                if !*flag {
                    flag = pair.1.wait(flag).unwrap();
                }
                assert!(*flag, "woke up too early");
            });
        })
    };
    assert!(run(0).expect("an `if` is enough").complete);
    let text = run(1).expect_err("an `if` is not enough").to_string();
    assert!(text.contains("woke up too early"), "{text}");
    assert!(text.contains("wait on pair.1 ends for no reason"), "{text}");
}

#[test]
fn a_timed_wait_may_end_for_no_reason_before_its_time_on_request() {
    let run = |wakeups| {
        let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
        let noted = seen.clone();
        let mut builder = Builder::new();
        builder.thorough = Thorough::Off;
        builder.spurious_wakeups = wakeups;
        let report = builder.check(move || {
            let pair = (Mutex::new(false), Condvar::new());
            thread::scope(|s| {
                s.spawn(|| {
                    *pair.0.lock().unwrap() = true;
                    pair.1.notify_one();
                });
                let flag = pair.0.lock().unwrap();
                if !*flag {
                    let (flag, result) =
                        pair.1.wait_timeout(flag, Duration::from_millis(1)).unwrap();
                    noted.lock().unwrap().insert((*flag, result.timed_out()));
                }
            });
        });
        (seen.lock().unwrap().clone(), report.executions)
    };
    let usual = BTreeSet::from([(true, false), (false, true), (true, true)]);
    let (seen, executions) = run(0);
    assert_eq!(seen, usual);
    let (seen, more) = run(1);
    assert_eq!(seen, &usual | &BTreeSet::from([(false, false)]));
    // A wait that ends without a notification does so before the store or after it, and both times for two reasons.
    assert_eq!((executions, more), (4, 6));
    let text = waking_up(1, || {
        let (lock, condvar) = (Mutex::new(()), Condvar::new());
        let waited = condvar.wait_timeout(lock.lock().unwrap(), Duration::from_millis(1));
        assert!(waited.unwrap().1.timed_out(), "woke up too early");
    });
    let text = text.expect_err("the time is not over").to_string();
    assert!(text.contains("woke up too early"), "{text}");
    assert!(
        text.contains("wait on condvar ends for no reason"),
        "{text}"
    );
    assert!(
        text.contains("its time is not over: it woke up for no reason"),
        "{text}"
    );
}

#[test]
fn a_wait_whose_time_is_over_is_said_to_time_out() {
    for wakeups in [0, 1] {
        let text = waking_up(wakeups, || {
            let (lock, condvar) = (Mutex::new(()), Condvar::new());
            let waited = condvar.wait_timeout(lock.lock().unwrap(), Duration::from_millis(1));
            assert!(!waited.unwrap().1.timed_out(), "nobody notified it");
        });
        let text = text.expect_err("the time is over").to_string();
        assert!(text.contains("wait on condvar times out"), "{text}");
        let decided = text.contains("its time is over");
        assert_eq!(decided, wakeups > 0, "{text}");
    }
}

/// Explores `f` with so many waits of each thread that may end for no reason.
fn waking_up(wakeups: u32, f: fn()) -> Result<(u64, u64), Box<dpor::Failure>> {
    let mut builder = Builder::new();
    builder.thorough = Thorough::Off;
    builder.spurious_wakeups = wakeups;
    let report = builder.explore(f)?;
    assert!(report.complete);
    Ok((report.executions, report.pruned))
}

/// Checks a wait that may end for no reason: `once` waits for a thread's store, and `until` it sees it.
fn may_end_for_no_reason(once: fn(), until: fn()) {
    assert_eq!(waking_up(0, once).expect("once is enough"), (1, 0));
    let failure = waking_up(1, once).expect_err("once is not enough");
    let text = failure.to_string();
    assert!(text.contains("woke up too early"), "{text}");
    assert!(text.contains(" ends for no reason"), "{text}");
    assert_eq!(waking_up(0, until).expect("a loop is enough"), (2, 0));
    // The store comes first; or the wait ends as it should; or for no reason, and the store comes
    // before the next look or after it.
    assert_eq!(waking_up(1, until).expect("a loop is enough"), (4, 0));
}

#[test]
fn a_park_may_end_for_no_reason_on_request() {
    fn told_to(wait: fn(&AtomicBool)) {
        let ready = Arc::new(AtomicBool::new(false));
        let (set, main) = (ready.clone(), thread::current());
        let thread = thread::spawn(move || {
            set.store(true, SeqCst);
            main.unpark();
        });
        wait(&ready);
        thread.join().unwrap();
    }
    let once = || {
        told_to(|ready| {
            thread::park();
            assert!(ready.load(SeqCst), "woke up too early");
        });
    };
    let until = || {
        told_to(|ready| {
            while !ready.load(SeqCst) {
                thread::park();
            }
        });
    };
    may_end_for_no_reason(once, until);
}

#[test]
fn a_notify_may_end_for_no_reason_on_request() {
    fn told_to(wait: fn(&AtomicBool, &Notify)) {
        let (ready, notify) = (AtomicBool::new(false), Notify::new());
        thread::scope(|s| {
            s.spawn(|| {
                ready.store(true, SeqCst);
                notify.notify();
            });
            wait(&ready, &notify);
        });
    }
    let once = || {
        told_to(|ready, notify| {
            notify.wait();
            assert!(ready.load(SeqCst), "woke up too early");
        });
    };
    let until = || {
        told_to(|ready, notify| {
            while !ready.load(SeqCst) {
                notify.wait();
            }
        });
    };
    may_end_for_no_reason(once, until);
}

#[test]
fn a_wait_that_may_end_for_no_reason_does_so_in_one_trace_and_not_in_another() {
    let parks = || {
        let main = thread::current();
        let thread = thread::spawn(move || main.unpark());
        thread::park();
        thread.join().unwrap();
    };
    let waits = || {
        let notify = Notify::new();
        thread::scope(|s| {
            s.spawn(|| notify.notify());
            notify.wait();
        });
    };
    // The notification comes once the other one waits, unless that goes on for no reason.
    let condvars = || {
        let pair = (Mutex::new(()), Condvar::new());
        thread::scope(|s| {
            let guard = pair.0.lock().unwrap();
            s.spawn(|| {
                drop(pair.0.lock().unwrap());
                pair.1.notify_one();
            });
            drop(pair.1.wait(guard).unwrap());
        });
    };
    for f in [parks, waits] {
        assert_eq!(waking_up(0, f).expect("it is right"), (1, 0));
        assert_eq!(waking_up(1, f).expect("it is right"), (2, 0));
    }
    // The two may lock in either order once it is notified, and before.
    assert_eq!(waking_up(0, condvars).expect("it is right"), (1, 0));
    assert_eq!(waking_up(1, condvars).expect("it is right"), (3, 0));
}

#[test]
fn wakeups_for_no_reason_do_not_hide_those_that_are_lost() {
    let waits = || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let other = pair.clone();
        let thread = thread::spawn(move || other.1.notify_one());
        drop(pair.1.wait(pair.0.lock().unwrap()).unwrap());
        thread.join().unwrap();
    };
    let parks = || {
        let main = thread::current();
        let taken = thread::spawn(move || main.unpark());
        thread::park();
        taken.join().unwrap();
        thread::park();
    };
    let polls = || {
        let woken = Arc::new(AtomicBool::new(false));
        let other = woken.clone();
        let thread = thread::spawn(move || other.store(true, SeqCst));
        // Nobody has its waker.
        let ready = std::future::poll_fn(move |_| match woken.load(SeqCst) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        });
        dpor::future::block_on(ready);
        thread.join().unwrap();
    };
    for f in [waits, parks, polls] {
        for wakeups in [0, 1, 2] {
            let failure = waking_up(wakeups, f).expect_err("it waits for ever");
            assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
        }
    }
}

/// How many executions a right program has whose weak compare-exchanges may fail for no reason.
fn executions_with_failures(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let mut builder = Builder::new();
    builder.spurious_failures = true;
    let report = builder.check(body);
    assert_eq!(report.verdict, Verdict::Complete);
    report.executions
}

#[test]
fn a_retry_loop_ends_although_its_exchange_may_fail_for_no_reason() {
    let raise = |x: &AtomicUsize| {
        let mut found = x.load(SeqCst);
        while let Err(other) = x.compare_exchange_weak(found, found + 1, SeqCst, SeqCst) {
            found = other;
            hint::spin_loop();
        }
    };
    // It fails first, or not.
    assert_eq!(
        executions_with_failures(move || raise(&AtomicUsize::new(0))),
        2
    );
    // Once one has succeeded the next may fail, and each atomic counts for itself.
    let twice = move || {
        let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for one in [&x, &x, &y] {
            raise(one);
        }
    };
    assert_eq!(executions_with_failures(twice), 8);
    let update = || {
        let x = AtomicUsize::new(0);
        assert_eq!(x.fetch_update(SeqCst, SeqCst, |v| Some(v + 1)), Ok(0));
    };
    assert_eq!(executions_with_failures(update), 2);
    let two = move || {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| raise(&x));
            raise(&x);
        });
        assert_eq!(x.into_inner(), 2);
    };
    assert!(executions_with_failures(two) > 2);
}
