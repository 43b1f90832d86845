//! Loops that wait, give up, or go round too often.

use std::sync::Arc;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use dpor::{Builder, FailureKind, Verdict, hint, thread};

use super::{c11, explored, sc};

/// Behind the last round that is explored, an execution goes on and is no part of the search.
#[test]
fn an_execution_that_is_left_goes_on_without_its_graph() {
    fn run() {
        let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let (a, b) = (all.clone(), all.clone());
        let waits = thread::spawn(move || {
            // Each round changes something.
            while a[0].load(SeqCst) == 0 {
                a[1].fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        let writes = thread::spawn(move || {
            b[1].store(10, SeqCst);
            b[1].load(SeqCst)
        });
        all[1].load(SeqCst);
        all[0].store(1, SeqCst);
        all[1].load(SeqCst);
        waits.join().unwrap();
        writes.join().unwrap();
    }
    let counts = |mut builder: Builder| {
        builder.max_rounds = Some(1);
        let report = builder.explore(run).expect("it does not fail");
        assert!(report.pruned > 0, "{report:?}");
        (report.executions, report.pruned)
    };
    assert_eq!(counts(c11()), counts(sc()));
}

/// A message, and a thread that waits for its data, at most so often. An old value alone makes the
/// thread wait.
fn waits_for_old_data(most: usize) {
    let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let theirs = all.clone();
    let writer = thread::spawn(move || {
        let [data, flag] = &*theirs;
        data.store(1, Relaxed);
        flag.store(1, Relaxed);
    });
    let [data, flag] = &*all;
    if flag.load(Relaxed) == 1 {
        let mut left = most;
        while data.load(Relaxed) == 0 {
            left -= 1;
            assert_ne!(left, 0, "it gives up");
            hint::spin_loop();
        }
    }
    writer.join().unwrap();
}

#[test]
fn a_loop_that_gives_up_on_an_old_value_is_told() {
    let report = c11().explore(|| waits_for_old_data(10)).expect("it waits");
    assert!(!report.complete, "{report:?}");
    assert_eq!(report.verdict, Verdict::Waits(9));
    let text = report.to_string();
    assert!(
        text.contains("below the 9 rounds after which a loop gives up"),
        "{text}"
    );
    // With the bound that is told the loop is explored in full.
    let mut builder = c11();
    builder.spin_bound = 9;
    let failure = *builder
        .explore(|| waits_for_old_data(10))
        .expect_err("it gives up");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert!(failure.to_string().contains("it gives up"), "{failure}");
    // Under sequential consistency the loop never waits.
    explored(&sc(), || waits_for_old_data(10));
}

/// In a solo run a thread goes on with the old values that it has waited with.
#[test]
fn a_loop_that_waits_for_ever_gives_up_by_no_old_value() {
    explored(&c11(), || waits_for_old_data(usize::MAX));
    fn lock(acquire: fn(&AtomicUsize) -> bool) {
        let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let add_one = move |[held, count]: &[AtomicUsize; 2]| {
            while !acquire(held) {
                hint::spin_loop();
            }
            count.store(count.load(Relaxed) + 1, Relaxed);
            held.store(0, Release);
        };
        let theirs = all.clone();
        let other = thread::spawn(move || add_one(&theirs));
        add_one(&all);
        other.join().unwrap();
        assert_eq!(all[1].load(Relaxed), 2);
    }
    let locks: [fn(&AtomicUsize) -> bool; 3] = [
        |held| held.swap(1, Acquire) == 0,
        |held| held.compare_exchange(0, 1, Acquire, Relaxed).is_ok(),
        |held| held.load(Relaxed) == 0 && held.swap(1, Acquire) == 0,
    ];
    for acquire in locks {
        explored(&c11(), move || lock(acquire));
    }
}
