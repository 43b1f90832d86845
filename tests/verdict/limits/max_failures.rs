//! Does the search go on after a failure if more than one is asked for?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, FailureKind, hint, thread};

use super::EXHAUSTIVE;

#[test]
fn distinct_failures_are_collected_and_each_can_be_replayed() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (1..=3)
            .map(|i| {
                let x = x.clone();
                thread::spawn(move || x.swap(i, SeqCst))
            })
            .collect();
        let seen: Vec<_> = handles.into_iter().map(|h| h.join().unwrap()).collect();
        assert_ne!(seen, [0, 1, 2], "one after the other");
        assert_ne!(seen, [2, 3, 0], "the other way round");
        if seen[1] == 0 && seen[0] == 3 {
            thread::park();
        }
    };
    let mut builder = Builder::new();
    let first = builder.explore(body).expect_err("three ways to fail");
    assert!(first.others().is_empty(), "one is enough by default");
    builder.max_failures = 10;
    let first = builder.explore(body).expect_err("three ways to fail");
    let all: Vec<_> = std::iter::once(&*first).chain(first.others()).collect();
    let count = |kind| all.iter().filter(|failure| failure.kind() == kind).count();
    assert_eq!(count(FailureKind::Panic), 2);
    assert_eq!(count(FailureKind::Deadlock), 1);
    for failure in all {
        let mut replay = Builder::new();
        replay.replay = Some(failure.schedule().to_owned());
        let again = replay.explore(body).expect_err("the same failure");
        assert_eq!(again.kind(), failure.kind());
    }
}

#[test]
fn a_failure_in_the_middle_of_a_wakeup_sequence_does_not_end_the_search() {
    // The first execution fails while two threads wait for a lock. Both are to have it before its
    // holder, after the store; but the store is where the executions fail.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        let x = Arc::new(AtomicUsize::new(0));
        let held = lock.clone();
        thread::spawn(move || {
            let _guard = held.lock().unwrap();
            thread::park();
        });
        for _ in 0..2 {
            let lock = lock.clone();
            thread::spawn(move || drop(lock.lock().unwrap()));
        }
        thread::spawn(move || {
            x.store(1, SeqCst);
            panic!("on purpose");
        });
    };
    for algorithm in EXHAUSTIVE {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.max_failures = 5;
        let failure = builder.explore(body).expect_err("fails");
        assert_eq!(failure.kind(), FailureKind::Panic, "{algorithm:?}");
        assert!(failure.to_string().contains("on purpose"), "{failure}");
    }
}

/// One thread writes something and takes it back in each round, and another one waits to see something else. They are let go
/// together, and the first one goes round until there are too many events. All that it has written meanwhile has not kept the
/// other one from going on: that only was not its turn, and will not find a change, whatever it comes before.
#[test]
fn a_wait_that_was_let_go_and_has_not_happened_is_not_planned_as_one_that_has_found_a_change() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        thread::spawn(move || {
            while theirs.load(SeqCst) != 2 {
                hint::spin_loop();
            }
        });
        loop {
            x.fetch_add(1, SeqCst);
            x.fetch_sub(1, SeqCst);
            hint::spin_loop();
        }
    };
    // The first one may have made any of its steps last.
    for most in 18..24 {
        let mut builder = Builder::new();
        builder.max_branches = most;
        builder.max_failures = 5;
        builder.max_permutations = Some(100);
        let failure = builder.explore(body).expect_err("it goes round for ever");
        let mut all = std::iter::once(&*failure).chain(failure.others());
        let other = all.find(|failure| failure.kind() == FailureKind::NotDeterministic);
        assert!(other.is_none(), "{most}: {}", other.unwrap());
    }
}

/// A loop without a hint goes round 1,000 times in the first execution, and ten times once it has waited, so that only the
/// first one fails.
#[test]
fn what_has_failed_before_the_exploration_began_anew_is_not_lost() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let setter = thread::spawn(move || theirs.store(1, SeqCst));
        let looks = (0..).take_while(|_| flag.load(SeqCst) == 0).count();
        setter.join().unwrap();
        assert!(looks < 500, "it took too long");
    };
    for most in [1, 2] {
        let mut builder = Builder::new();
        builder.max_failures = most;
        let failure = builder.explore(body).expect_err("it may take long");
        assert_eq!(failure.kind(), FailureKind::Panic);
        assert!(failure.others().is_empty());
        let mut replay = Builder::new();
        replay.replay = Some(failure.schedule().to_owned());
        let again = replay.explore(body).expect_err("the same failure");
        assert_eq!(again.schedule(), failure.schedule());
    }
}
