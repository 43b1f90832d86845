//! When does a weak reference still lead to the value?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::{Arc, Weak};
use dpor::thread;
use pretty_assertions::assert_eq;

use super::{Seen, explore, run};

#[test]
fn an_upgrade_comes_before_or_after_the_last_drop() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let (executions, upgraded) = explore(|| {
        let shared = Arc::new(Seen(&DROPPED));
        let weak = Arc::downgrade(&shared);
        let thread = thread::spawn(move || weak.upgrade().is_some());
        drop(shared);
        thread.join().unwrap()
    });
    // Upgraded, or too late. Which of the two drops is the last one makes no difference.
    assert_eq!((executions, upgraded), (2, [false, true].into()));
    assert_eq!(DROPPED.load(SeqCst), 2);
}

#[test]
fn weak_references_of_many_threads_commute() {
    for threads in 1..=5 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(0);
            let bodies = (0..threads)
                .map(|_| {
                    let weak = Arc::downgrade(&shared);
                    Box::new(move || drop((weak.clone(), weak))) as _
                })
                .collect();
            run::<()>(bodies);
        });
        assert_eq!(executions, 1);
    }
}

#[test]
fn a_cyclic_value_is_reached_from_another_thread_only_once_it_is_there() {
    let (_, seen) = explore(|| {
        let mut thread = None;
        let shared = Arc::new_cyclic(|weak: &Weak<usize>| {
            let weak = weak.clone();
            thread = Some(thread::spawn(move || weak.upgrade().map(|value| *value)));
            8
        });
        let seen = thread.unwrap().join().unwrap();
        assert_eq!((*shared, Arc::strong_count(&shared)), (8, 1));
        assert_eq!(Arc::weak_count(&shared), 0);
        seen
    });
    assert_eq!(seen, [None, Some(8)].into());
}

#[test]
fn what_is_not_there_yet_keeps_its_block_from_those_who_give_up_a_weak_reference_meanwhile() {
    struct Cyclic {
        _itself: Weak<Cyclic>,
    }
    // Whoever counts the references that others leave finds none, but the one that is not counted yet.
    let (executions, _) = explore(|| {
        Arc::new_cyclic(|weak: &Weak<Cyclic>| {
            let theirs = weak.clone();
            thread::spawn(move || drop(theirs));
            Cyclic {
                _itself: weak.clone(),
            }
        });
    });
    // The one or the other gives up the last one.
    assert_eq!(executions, 2);
}

#[test]
fn a_panic_while_a_cyclic_value_is_made_leaves_nothing_to_upgrade() {
    let mut kept = None;
    let made = catch_unwind(AssertUnwindSafe(|| {
        Arc::<usize>::new_cyclic(|weak| {
            kept = Some(weak.clone());
            panic!("not made")
        })
    }));
    assert!(made.is_err());
    assert!(kept.is_some_and(|weak| weak.upgrade().is_none()));
}
