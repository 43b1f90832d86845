//! Who runs the destructor of a shared value, and does it run exactly once?

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, FailureKind, thread};
use pretty_assertions::assert_eq;

use super::{Seen, explore};

#[test]
fn threads_that_clone_and_drop_a_plain_value_have_one_execution() {
    for threads in 1..=6 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(AtomicUsize::new(0));
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || drop(shared.clone()))
                })
                .collect();
            drop(shared);
            for handle in handles {
                handle.join().unwrap();
            }
        });
        assert_eq!(executions, 1);
    }
}

#[test]
fn a_value_with_a_destructor_has_one_execution_for_each_thread_that_may_drop_it() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let mut total = 0;
    for threads in 1..=6 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(Seen(&DROPPED));
            let handles: Vec<_> = (1..threads)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || drop(shared))
                })
                .collect();
            drop(shared);
            for handle in handles {
                handle.join().unwrap();
            }
        });
        assert_eq!(executions, threads);
        total += executions as usize;
        assert_eq!(DROPPED.load(SeqCst), total, "dropped once per execution");
    }
}

#[test]
fn every_thread_may_be_the_one_that_runs_the_destructor() {
    struct Tells(std::sync::Arc<StdUsize>);
    impl Drop for Tells {
        fn drop(&mut self) {
            // The main thread has the test's.
            let name = thread::current()
                .name()
                .map_or(0, |n| n.parse().unwrap_or(0));
            self.0.store(name, SeqCst);
        }
    }
    let (executions, last) = explore(|| {
        let told = std::sync::Arc::new(StdUsize::new(9));
        let shared = Arc::new(Tells(told.clone()));
        let handles: Vec<_> = (1..=3)
            .map(|name| {
                let shared = shared.clone();
                thread::Builder::new()
                    .name(name.to_string())
                    .spawn(move || drop(shared))
                    .unwrap()
            })
            .collect();
        drop(shared);
        for handle in handles {
            handle.join().unwrap();
        }
        told.load(SeqCst)
    });
    assert_eq!(executions, 4);
    assert_eq!(last, [0, 1, 2, 3].into());
}

#[test]
fn releases_of_several_values_by_whoever_is_last_are_planned_as_they_will_happen() {
    struct Value {
        number: AtomicUsize,
        _twice: [Arc<AtomicUsize>; 2],
    }
    struct Looks(Option<Arc<Value>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            if let Some(value) = &self.0 {
                value.number.load(SeqCst);
            }
        }
    }
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Parsimonious,
        Algorithm::Source,
        Algorithm::Bounded,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let inner = Arc::new(AtomicUsize::new(0));
            let value = Arc::new(Value {
                number: AtomicUsize::new(0),
                _twice: [inner.clone(), inner],
            });
            let [a, b, c] = [value.clone(), value.clone(), value.clone()];
            let handles = [
                thread::spawn(move || Looks(Some(a))),
                thread::spawn(move || {
                    drop(b);
                    Looks(None)
                }),
                thread::spawn(move || {
                    c.number.store(1, SeqCst);
                    drop(c);
                    Looks(None)
                }),
            ];
            drop(value);
            // What the threads have returned is dropped by them or by this one.
            drop(handles);
        });
        assert_eq!((report.executions, report.complete), (48, true));
    }
}

#[test]
fn a_failed_execution_drops_the_value_once() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let failed = catch_unwind(|| {
        let mut builder = Builder::new();
        // No other execution follows, to find a simpler one.
        builder.simplify = 0;
        builder.check(|| {
            let shared = Arc::new(Seen(&DROPPED));
            let other = shared.clone();
            let thread = thread::spawn(move || drop((other, AtomicUsize::new(0))));
            let weak = Arc::downgrade(&shared);
            drop(shared);
            thread.join().unwrap();
            assert!(weak.upgrade().is_some(), "nothing is left");
        });
    });
    assert!(failed.is_err());
    assert_eq!(DROPPED.load(SeqCst), 1);
}

#[test]
fn a_destructor_that_clones_what_is_gone_does_not_hide_the_failure() {
    struct Last(*const i32);
    impl Drop for Last {
        fn drop(&mut self) {
            // SAFETY: none is needed: the model finds out that the last reference has gone before.
            let mine = ManuallyDrop::new(unsafe { Arc::from_raw(self.0) });
            drop(Arc::clone(&mine));
        }
    }
    let failure = Builder::new().explore(|| {
        let pointer = Arc::into_raw(Arc::new(7));
        let _last = Last(pointer);
        for _ in 0..2 {
            // SAFETY: as above.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    });
    let failure = failure.expect_err("it is dropped twice");
    assert_eq!(failure.kind(), FailureKind::UseAfterFree, "{failure}");
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_block() {
    struct Panics(#[expect(dead_code)] Box<u8>);
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let shared = Arc::new(Panics(Box::new(1)));
    let weak = Arc::downgrade(&shared);
    let caught = catch_unwind(AssertUnwindSafe(|| drop(shared)));
    assert!(caught.is_err());
    // The weak reference is the only one that is left, and frees the block.
    assert_eq!((weak.strong_count(), weak.weak_count()), (0, 0));
    assert!(weak.upgrade().is_none());
    let found = Builder::new()
        .explore(|| drop(Arc::new(Panics(Box::new(1)))))
        .expect_err("the destructor panics")
        .to_string();
    assert!(found.contains("drop arc, the last one"), "{found}");
}
