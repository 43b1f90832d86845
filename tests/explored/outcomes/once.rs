//! Who initialises what is initialised once, and what do the others see?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Once, OnceLock};
use dpor::thread;

use super::{count, outcomes, set};

#[test]
fn once_runs_one_of_the_closures() {
    let (seen, executions) = outcomes(|| {
        let once = Once::new();
        let who = AtomicUsize::new(9);
        thread::scope(|s| {
            s.spawn(|| once.call_once(|| who.store(1, SeqCst)));
            once.call_once(|| who.store(0, SeqCst));
            assert!(once.is_completed());
        });
        who.load(SeqCst)
    });
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(executions, 2);
}

#[test]
fn a_once_lock_is_empty_or_has_one_of_the_values() {
    let seen = set(|| {
        let cell = OnceLock::new();
        thread::scope(|s| {
            s.spawn(|| cell.set(1).is_ok());
            s.spawn(|| *cell.get_or_init(|| 2));
            cell.get().copied()
        })
    });
    assert_eq!(seen, [None, Some(1), Some(2)]);
}

#[test]
fn a_once_lock_waits_for_its_value() {
    let traces = count(|| {
        let cell = OnceLock::new();
        thread::scope(|s| {
            s.spawn(|| cell.set(7).unwrap());
            assert_eq!(*cell.wait(), 7);
        });
    });
    assert_eq!(traces, 1);
}

#[test]
fn who_waits_whatever_happens_also_waits_for_one_that_comes_behind_a_panic() {
    let (seen, executions) = outcomes(|| {
        let once = Once::new();
        let who = AtomicUsize::new(9);
        thread::scope(|s| {
            s.spawn(|| {
                let panics = || once.call_once(|| panic!("on purpose"));
                assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                once.call_once_force(|_| who.store(1, SeqCst));
            });
            once.wait_force();
            assert!(once.is_completed());
            who.load(SeqCst)
        })
    });
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [1]);
    assert_eq!(executions, 1);
}
