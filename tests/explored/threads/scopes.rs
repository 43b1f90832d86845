//! Do scoped threads borrow what is around them, and does the scope wait for all of them?

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Mutex;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::count;

#[test]
fn scoped_threads_borrow_and_are_joined_at_the_end_of_the_scope() {
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        let mut plain = vec![1, 2, 3];
        let sum = thread::scope(|s| {
            let sum = s.spawn(|| plain.iter().sum::<i32>());
            s.spawn(|| x.fetch_add(1, SeqCst));
            s.spawn(|| x.fetch_add(1, SeqCst));
            sum.join().unwrap()
        });
        plain.push(sum);
        assert_eq!((x.load(SeqCst), plain.len()), (2, 4));
    });
    assert_eq!(traces, 2);
}

#[test]
fn scopes_nest_and_their_threads_have_names() {
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            let builder = thread::Builder::new().name("outer".to_owned());
            let outer = builder.spawn_scoped(s, || {
                thread::scope(|s| {
                    s.spawn(|| x.fetch_add(1, SeqCst));
                    x.fetch_add(1, SeqCst);
                });
                thread::current().name().map(str::to_owned)
            });
            assert_eq!(outer.unwrap().join().unwrap().as_deref(), Some("outer"));
        });
    });
    assert_eq!(traces, 2);
}

#[test]
fn the_end_of_a_scope_joins_where_the_scope_is_called() {
    let failure = Builder::new().explore(|| {
        thread::scope(|s| {
            s.spawn(|| ());
        });
        panic!("to see the events");
    });
    let failure = failure.expect_err("it panics");
    let events = failure.events().iter();
    let joins = events.filter(|event| event.what == "join main.1");
    let files: Vec<_> = joins.map(|event| event.place.file()).collect();
    assert_eq!(files, [file!()]);
}

#[test]
fn an_execution_that_ends_in_the_middle_of_a_scope_keeps_what_is_borrowed() {
    for _ in 0..20 {
        let failure = Builder::new().explore(|| {
            let data = [1_u64; 64];
            let lock = Mutex::new(());
            thread::scope(|s| {
                for _ in 0..3 {
                    s.spawn(|| {
                        let guard = lock.lock();
                        thread::park();
                        drop(guard);
                        assert_eq!(data.iter().sum::<u64>(), 64);
                    });
                }
                let _guard = lock.lock();
                panic!("in the middle");
            });
        });
        let failure = failure.expect_err("the closure panics");
        assert_eq!(failure.kind(), FailureKind::Panic);
        assert!(failure.to_string().contains("in the middle"), "{failure}");
    }
    let deadlock = Builder::new().explore(|| {
        let data = [1_u64; 64];
        thread::scope(|s| {
            s.spawn(|| {
                thread::park();
                data.iter().sum::<u64>()
            });
        });
    });
    let deadlock = deadlock.expect_err("nobody unparks");
    assert_eq!(deadlock.kind(), FailureKind::Deadlock);
}

#[test]
fn outside_of_a_model_scopes_and_locals_are_real_ones() {
    let total = AtomicUsize::new(0);
    thread::scope(|s| {
        for i in 0..4 {
            let total = &total;
            s.spawn(move || total.fetch_add(i, SeqCst));
        }
    });
    assert_eq!(total.load(SeqCst), 6);
    let caught = std::panic::catch_unwind(|| {
        thread::scope(|s| {
            s.spawn(|| panic!("not joined"));
        });
    });
    let text = caught.expect_err("the scope tells");
    let text = text.downcast_ref::<&str>().expect("a text");
    assert_eq!(*text, "a scoped thread panicked");
    dpor::thread_local! { static LOCAL: Cell<u32> = const { Cell::new(1) }; }
    LOCAL.set(2);
    let other = thread::spawn(|| LOCAL.get()).join().unwrap();
    assert_eq!((LOCAL.get(), other), (2, 1));
}

/// What becomes of a scope with a thread that panics, and that nobody joins; its result is of type `T`.
fn panics_in_a_scope<T: Send>() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        thread::scope(|s| {
            s.spawn(|| -> T { panic!("on purpose") });
        });
    });
    let failure = failure.expect_err("the scope panics");
    assert!(
        failure.to_string().contains("a scoped thread panicked"),
        "{failure}"
    );
}

#[test]
fn a_scope_tells_of_a_caught_panic_that_nobody_asked_for() {
    panics_in_a_scope::<()>();
    // Who drops such a result is seen.
    panics_in_a_scope::<Vec<usize>>();
}

#[test]
fn a_scope_waits_for_all_that_its_threads_have_spawned_in_it() {
    for algorithm in [Algorithm::Naive, Algorithm::Optimal] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let x = AtomicUsize::new(0);
            let add = || x.fetch_add(1, SeqCst);
            thread::scope(|s| {
                s.spawn(move || {
                    s.spawn(move || {
                        s.spawn(move || {
                            s.spawn(add);
                            add()
                        });
                        add()
                    });
                    add()
                });
            });
            assert_eq!(x.load(SeqCst), 4);
        });
        assert!(report.complete, "{report}");
        if algorithm == Algorithm::Optimal {
            assert_eq!(report.executions, 24);
        }
    }
}

#[test]
fn who_is_joined_next_does_not_depend_on_who_spawned_first() {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Naive;
    builder.max_failures = 2;
    builder.simplify = 0;
    let found = builder.explore(|| {
        let spawned = std::sync::Mutex::new(Vec::new());
        thread::scope(|s| {
            for parent in [1, 2] {
                let spawned = &spawned;
                s.spawn(move || {
                    s.spawn(|| ());
                    spawned.lock().unwrap().push(parent);
                });
            }
        });
        // Two places, so that there are two failures.
        match spawned.lock().unwrap()[0] {
            1 => panic!("the first one spawns first"),
            _ => panic!("the second one spawns first"),
        }
    });
    let first = found.expect_err("it panics");
    assert_eq!(first.others().len(), 1);
    for failure in [&*first, &first.others()[0]] {
        let events = failure.events().iter().map(|event| &*event.what);
        let joins: Vec<&str> = events
            .filter_map(|what| what.strip_prefix("join "))
            .collect();
        assert_eq!(joins, ["main.1", "main.1.1", "main.2", "main.2.1"]);
    }
}
