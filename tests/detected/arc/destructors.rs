//! Who runs the destructor of a shared value, and does it run exactly once?

use std::cell::Cell;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::mpsc::channel;
use dpor::sync::{Arc, Mutex};
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

/// The number of executions in which so many threads, the main thread among them, drop their
/// references to one value.
fn executions_of_drops<T: Send + Sync + 'static>(threads: u64, value: fn() -> T) -> u64 {
    let (executions, _) = explore(move || {
        let shared = Arc::new(value());
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
    executions
}

#[test]
fn a_destructor_that_only_frees_memory_has_one_execution_whichever_thread_runs_it() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let atomics = || (0..3).map(AtomicUsize::new).collect::<Vec<_>>();
    for threads in [1, 2, 8] {
        assert_eq!(executions_of_drops(threads, atomics), 1);
        assert_eq!(executions_of_drops(threads, || String::from("text")), 1);
        assert_eq!(executions_of_drops(threads, || Mutex::new(vec![1])), 1);
        let before = DROPPED.load(SeqCst);
        assert_eq!(executions_of_drops(threads, || Seen(&DROPPED)), 1);
        assert_eq!(DROPPED.load(SeqCst), before + 1, "it is dropped once");
    }
}

#[test]
fn a_destructor_that_does_more_has_one_execution_for_each_thread_that_may_run_it() {
    static X: AtomicUsize = AtomicUsize::new(0);
    dpor::thread_local! {
        static LOCAL: Cell<usize> = const { Cell::new(0) };
    }
    /// Calls the function when it is dropped.
    struct Then(fn());
    impl Drop for Then {
        fn drop(&mut self) {
            self.0();
        }
    }
    for threads in [1, 2, 5] {
        let executions = executions_of_drops(threads, || Then(|| X.store(1, SeqCst)));
        assert_eq!(executions, threads, "a store");
        let executions = executions_of_drops(threads, || Then(|| _ = X.load(SeqCst)));
        assert_eq!(executions, threads, "a load");
        let executions = executions_of_drops(threads, || Then(|| _ = thread::current()));
        assert_eq!(executions, threads, "a look at its thread");
        let executions = executions_of_drops(threads, || Then(|| _ = LOCAL.with(Cell::get)));
        assert_eq!(executions, threads, "a thread-local variable");
        let executions = executions_of_drops(threads, || Then(|| drop(black_box(Box::new(1)))));
        assert_eq!(executions, threads, "an allocation");
        let executions = executions_of_drops(threads, || Then(|| thread::yield_now()));
        assert_eq!(executions, threads, "a hint");
        let executions = executions_of_drops(threads, || Mutex::new(channel::<u8>().0));
        assert_eq!(executions, threads, "a sender");
        let executions = executions_of_drops(threads, || Arc::new(vec![1]));
        assert_eq!(executions, threads, "an Arc in an Arc");
    }
}

#[test]
fn what_a_destructor_does_is_compared_with_what_other_threads_do() {
    /// Reads a cell that its threads have written before they dropped it, and sets a flag.
    struct Value {
        cell: [UnsafeCell<usize>; 2],
        flag: Arc<AtomicUsize>,
    }
    // SAFETY: each thread writes its own cell, and the destructor comes behind both.
    unsafe impl Sync for Value {}
    impl Drop for Value {
        fn drop(&mut self) {
            // SAFETY: the destructor comes behind all accesses of the threads.
            let read = |cell: &UnsafeCell<usize>| cell.with(|it| unsafe { *it });
            let sum = self.cell.iter().map(read).sum();
            self.flag.store(sum, SeqCst);
        }
    }
    let test = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let value = Arc::new(Value {
            cell: [UnsafeCell::new(0), UnsafeCell::new(0)],
            flag: flag.clone(),
        });
        let handles = [0, 1].map(|i| {
            let (value, flag) = (value.clone(), flag.clone());
            thread::spawn(move || {
                // SAFETY: no other thread uses this cell meanwhile.
                value.cell[i].with_mut(|it| unsafe { *it = i + 1 });
                drop(value);
                flag.load(SeqCst)
            })
        });
        drop(value);
        handles.map(|handle| handle.join().unwrap())
    };
    let (executions, seen) = explore(test);
    // Each of the threads may set the flag; the other one looks before or after that.
    assert_eq!(executions, 8);
    assert_eq!(seen, [[0, 3], [3, 0], [3, 3], [0, 0]].into());
}

#[test]
fn one_of_the_threads_that_ask_for_the_value_gets_it_whichever_is_last() {
    let (executions, seen) = explore(|| {
        let shared = Arc::new(vec![1]);
        let handles = [(); 3].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || Arc::into_inner(shared).is_some())
        });
        drop(shared);
        handles.map(|handle| handle.join().unwrap())
    });
    let one = |at: usize| std::array::from_fn(|i| i == at);
    assert_eq!(
        (executions, seen),
        (4, [one(0), one(1), one(2), one(3)].into())
    );
}

#[test]
fn a_vector_that_no_thread_keeps_multiplies_no_executions() {
    let chain = |is_kept: bool| {
        let (executions, _) = explore(move || {
            let all = Arc::new((0..5).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
            let kept = is_kept.then(|| all.clone());
            let handles: Vec<_> = (0..5)
                .map(|i| {
                    let all = all.clone();
                    thread::spawn(move || match i {
                        0 => _ = all.iter().rposition(|it| it.load(SeqCst) == 0),
                        i => all[i].store(all[i - 1].load(SeqCst) + 1, SeqCst),
                    })
                })
                .collect();
            drop(all);
            handles.into_iter().for_each(|it| it.join().unwrap());
            drop(kept);
        });
        executions
    };
    assert_eq!(chain(false), chain(true));
    assert_eq!(chain(true), 28);
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
