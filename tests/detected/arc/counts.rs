//! Which counts does a thread see while others clone and drop?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::thread;
use pretty_assertions::assert_eq;

use super::explore;

#[test]
fn a_count_may_be_read_before_and_after_other_threads_change_it() {
    let (executions, seen) = explore(|| {
        let shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let seen = Arc::strong_count(&shared);
        thread.join().unwrap();
        seen
    });
    assert_eq!((executions, seen), (2, [1, 2].into()));

    let (executions, seen) = explore(|| {
        let shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let _weak = Arc::downgrade(&other);
        });
        let seen = Arc::weak_count(&shared);
        thread.join().unwrap();
        seen
    });
    // Before both, between the two, and after the weak reference is gone; whether the other
    // reference is gone as well is a matter of the same count.
    assert_eq!((executions, seen), (4, [0, 1].into()));
}

#[test]
fn a_loop_that_clones_while_it_spins_is_a_wait() {
    let (executions, _) = explore(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let other = flag.clone();
        let thread = thread::spawn(move || other.store(1, SeqCst));
        while flag.clone().load(SeqCst) == 0 {
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert!((1..10).contains(&executions));
}

#[test]
fn an_arc_in_a_static_keeps_its_count_from_one_execution_to_the_next() {
    static SHARED: std::sync::LazyLock<Arc<usize>> = std::sync::LazyLock::new(|| Arc::new(3));
    assert_eq!(**SHARED, 3);
    let (executions, seen) = explore(|| {
        let thread = thread::spawn(|| drop(SHARED.clone()));
        let seen = Arc::strong_count(&SHARED);
        thread.join().unwrap();
        seen
    });
    assert_eq!((executions, seen), (3, [1, 2].into()));
    assert_eq!(Arc::strong_count(&SHARED), 1);
}
