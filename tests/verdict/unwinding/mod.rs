//! Can destructors do what they always do while a thread unwinds, or an execution is given up?
//!
//! A pool that joins its threads when it is dropped, or a guard that takes a lock, does so when a test fails,
//! too. A destructor that panicked then, because it was told something that is not true, would end the
//! process before the failure is told.

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use dpor::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, mpsc};
use dpor::thread::{self, JoinHandle};
use dpor::{Builder, FailureKind, hint};
use pretty_assertions::assert_eq;
use std::time::Duration;

use crate::children;
mod for_ever;
mod last_words;

/// Does something when it is dropped.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Plain memory of several threads.
struct Shared(UnsafeCell<usize>);

// SAFETY: that its accesses race is the point.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// A destructor that joins a thread.
fn joins(handle: JoinHandle<()>) -> Finally<impl FnMut()> {
    let mut handle = Some(handle);
    Finally(move || handle.take().unwrap().join().unwrap())
}

/// The first lines of a failure.
fn fails(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) -> String {
    let failure = Builder::new().explore(f).expect_err("it fails");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure.to_string()
}

fn panics(f: impl Fn() + Send + Sync + 'static) {
    let text = fails(FailureKind::Panic, f);
    assert!(text.contains("broken"), "{text}");
    assert!(text.contains("panic: main panicked"), "{text}");
}

#[test]
fn a_destructor_that_joins_hears_how_the_thread_has_ended() {
    panics(|| {
        let _joins = joins(thread::spawn(|| ()));
        panic!("broken");
    });
}

#[test]
fn a_destructor_gets_the_lock_that_another_thread_gives_up() {
    panics(|| {
        let lock = Arc::new(Mutex::new(0));
        let (mine, theirs) = (lock.clone(), lock);
        let _locks = Finally(move || *mine.lock().unwrap() += 1);
        thread::spawn(move || {
            let mut guard = theirs.lock().unwrap();
            thread::yield_now();
            *guard += 1;
        });
        panic!("broken");
    });
}

#[test]
fn a_destructor_receives_what_another_thread_sends() {
    panics(|| {
        let (send, receive) = mpsc::channel();
        let _receives = Finally(move || assert_eq!(receive.recv().unwrap(), 7));
        thread::spawn(move || send.send(7).unwrap());
        panic!("broken");
    });
}

#[test]
fn a_destructor_is_notified() {
    panics(|| {
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let (mine, theirs) = (done.clone(), done);
        let _waits = Finally(move || {
            let mut guard = mine.0.lock().unwrap();
            while !*guard {
                guard = mine.1.wait(guard).unwrap();
            }
        });
        thread::spawn(move || {
            *theirs.0.lock().unwrap() = true;
            theirs.1.notify_all();
        });
        panic!("broken");
    });
}

#[test]
fn a_destructor_that_spins_sees_what_it_waits_for() {
    panics(|| {
        let done = Arc::new(AtomicBool::new(false));
        let (mine, theirs) = (done.clone(), done);
        let _spins = Finally(move || {
            while !mine.load(SeqCst) {
                hint::spin_loop();
            }
        });
        thread::spawn(move || theirs.store(true, SeqCst));
        panic!("broken");
    });
}

#[test]
fn what_destructors_do_after_a_panic_is_no_part_of_the_report() {
    let text = fails(FailureKind::Panic, || {
        let after = Arc::new(AtomicUsize::new(0));
        let theirs = after.clone();
        let _joins = joins(thread::spawn(move || theirs.store(9, SeqCst)));
        let _stores = Finally(move || after.store(8, SeqCst));
        panic!("broken");
    });
    assert!(!text.contains(":= "), "{text}");
    assert!(text.contains("schedule   v2 main*2\n"), "{text}");
}

#[test]
fn a_failure_whose_destructors_did_more_is_whole_as_data() {
    let failure = Builder::new().explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let _joins = joins(thread::spawn(move || theirs.store(9, SeqCst)));
        let _stores = Finally(|| x.store(8, SeqCst));
        x.store(1, SeqCst);
        panic!("broken");
    });
    let failure = failure.expect_err("it fails");
    assert!(
        failure.json().contains("\"x := 1 (was 0)\""),
        "{}",
        failure.json()
    );
    assert!(!failure.json().contains("x := 8"), "{}", failure.json());
}

#[test]
fn the_first_of_two_panics_is_the_failure() {
    let text = fails(FailureKind::Panic, || {
        let _joins = joins(thread::spawn(|| panic!("a worker, too")));
        panic!("broken");
    });
    assert!(text.contains("broken"), "{text}");
    assert!(text.contains("panic: main panicked"), "{text}");
}

#[test]
fn a_destructor_whose_wait_would_never_end_does_not_hide_the_panic() {
    panics(|| {
        let never = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
        let waits = never.clone();
        let _waits = Finally(move || drop(waits.1.wait(waits.0.lock().unwrap()).unwrap()));
        let _spins = Finally(move || {
            while !never.2.load(SeqCst) {
                hint::spin_loop();
            }
        });
        panic!("broken");
    });
}

#[test]
fn a_deadlock_is_told_although_a_destructor_takes_a_lock_that_was_held() {
    fails(FailureKind::Deadlock, || {
        let lock = Arc::new(Mutex::new(0));
        let (mine, theirs) = (lock.clone(), lock);
        let _locks = Finally(move || *mine.lock().unwrap() += 1);
        let other = thread::spawn(move || {
            let _guard = theirs.lock().unwrap();
            let _again = theirs.lock().unwrap();
        });
        other.join().unwrap();
    });
}

#[test]
fn a_lock_that_a_failed_thread_held_is_free_for_destructors() {
    let text = fails(FailureKind::Panic, || {
        let lock = Arc::new(Mutex::new(0));
        let (mine, theirs) = (lock.clone(), lock);
        let _locks = Finally(move || *mine.lock().unwrap() += 1);
        let other = thread::spawn(move || {
            let _guard = theirs.lock().unwrap();
            panic!("broken");
        });
        other.join().unwrap();
    });
    assert!(text.contains("panic: main.1 panicked"), "{text}");
}

/// A pool of two that joins when it is dropped.
fn two() {
    let x = Arc::new(AtomicUsize::new(0));
    let _both: Vec<_> = (0..2)
        .map(|_| {
            let x = x.clone();
            joins(thread::spawn(move || {
                x.fetch_add(1, SeqCst);
                x.fetch_add(1, SeqCst);
            }))
        })
        .collect();
    x.fetch_add(1, SeqCst);
}

#[test]
fn who_goes_on_only_for_a_destructor_of_the_panic_is_told_so() {
    struct Joins(Option<thread::JoinHandle<()>>);
    impl Drop for Joins {
        fn drop(&mut self) {
            self.0.take().unwrap().join().unwrap();
        }
    }
    let failure = Builder::new().explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let _joins = Joins(Some(thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
        })));
        assert_eq!(x.load(SeqCst), 0, "too late");
    });
    let text = failure.expect_err("it panics").to_string();
    assert!(text.contains("main.1 goes on after the panic"), "{text}");
}

#[test]
fn executions_that_are_given_up_may_join_in_destructors() {
    let all = Builder::new().check(two).executions;
    assert_eq!(all, 30);
    for most in 0..3 {
        let mut builder = Builder::new();
        builder.algorithm = dpor::Algorithm::Bounded;
        builder.preemption_bound = Some(most);
        assert!(builder.check(two).executions <= all);
    }
    let mut builder = Builder::new();
    builder.algorithm = dpor::Algorithm::SleepSets;
    let report = builder.check(two);
    assert_eq!(report.executions, all);
    assert!(report.pruned > 0, "or this test shows nothing");
}

/// Announces with a number where it is, like the waiting side of many a lock-free channel, and is never dropped
/// in between.
struct Step(Arc<AtomicUsize>);

impl Step {
    fn make(&self) {
        self.0.store(1, SeqCst);
        thread::yield_now();
        self.0.store(2, SeqCst);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        assert_ne!(self.0.load(SeqCst), 1, "nobody leaves in the middle");
    }
}

#[test]
fn no_destructor_of_an_execution_that_is_given_up_sees_what_no_execution_leads_to() {
    let body = || {
        let states = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let threads = [0, 1].map(|me| {
            let (mine, other) = (Step(states[me].clone()), states[1 - me].clone());
            thread::spawn(move || {
                mine.make();
                other.load(SeqCst)
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
    };
    let all = Builder::new().check(body).executions;
    let mut builder = Builder::new();
    builder.algorithm = dpor::Algorithm::SleepSets;
    let report = builder.check(body);
    assert_eq!(report.executions, all);
    assert!(report.pruned > 0, "or this test shows nothing");
    builder.algorithm = dpor::Algorithm::Bounded;
    builder.preemption_bound = Some(1);
    assert!(builder.check(body).pruned > 0, "nor this one");
}

#[test]
fn an_execution_that_a_worker_gives_up_may_lock_in_a_destructor() {
    let report = Builder::new().explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let (mine, theirs) = (lock.clone(), lock);
        let _locks = Finally(move || *mine.lock().unwrap() += 1);
        let other = thread::spawn(move || {
            let guard = theirs.lock().unwrap();
            dpor::assume(*guard == 5);
        });
        other.join().unwrap();
    });
    let report = report.expect("nothing fails");
    assert_eq!(report.executions, 0);
}

#[test]
fn a_panic_that_only_says_what_std_says_is_a_failure_as_any_other() {
    let text = fails(FailureKind::Panic, || {
        panic!("null pointer dereference occurred")
    });
    let told = "\nnull pointer dereference occurred\n";
    assert!(text.contains(told), "{text}");
    assert!(!text.contains("resume_unwind"), "{text}");
}

#[test]
fn exploration_goes_on_behind_a_panic_whose_destructors_wait_for_others() {
    let explore = |most| {
        let mut builder = Builder::new();
        builder.max_failures = most;
        let failure = builder.explore(|| {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let _joins = joins(thread::spawn(move || {
                theirs.store(1, SeqCst);
                theirs.store(2, SeqCst);
            }));
            match x.load(SeqCst) {
                0 => panic!("too early"),
                1 => panic!("in between"),
                _ => (),
            }
        });
        let failure = failure.expect_err("two of three orders fail");
        let others = failure.others().iter().map(ToString::to_string);
        let texts: Vec<String> = [failure.to_string()].into_iter().chain(others).collect();
        let mut words: Vec<&str> = (texts.iter())
            .map(|text| text.lines().nth(1).unwrap_or_default())
            .collect();
        words.sort_unstable();
        words.join(", ")
    };
    assert_eq!(explore(9), "in between, too early");
}

#[test]
fn a_thread_that_was_spawned_behind_the_failure_and_waits_for_ever_is_unwound() {
    let text = fails(FailureKind::Panic, || {
        let ready = Arc::new(AtomicBool::new(false));
        let (seen, main) = (ready.clone(), thread::current());
        let first = thread::spawn(move || {
            assert!(seen.load(SeqCst), "broken");
            main.unpark();
        });
        ready.store(true, SeqCst);
        let later = thread::spawn(thread::park);
        thread::park();
        later.thread().unpark();
        first.join().unwrap();
        later.join().unwrap();
    });
    assert!(text.contains("broken"), "{text}");
    assert!(text.contains("panic: main.1 panicked"), "{text}");
    assert!(text.contains("DPOR_REPLAY="), "{text}");
}

#[test]
fn a_free_by_the_last_owner_while_another_thread_unwinds_is_in_order() {
    /// Gives up a value that std counts the owners of, and then one that a shim does.
    struct Owner(
        std::sync::Arc<[AtomicUsize; 2]>,
        #[allow(dead_code)] Arc<String>,
    );
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0[0].swap(2, Relaxed);
        }
    }
    let mut builder = Builder::new();
    builder.catch_panics = true;
    // While the thread stands between the two, the other one frees the first value.
    builder.replay = Some("v2 main*2 main.1 main*2".to_string());
    let report = builder.check(|| {
        let value = std::sync::Arc::new([const { AtomicUsize::new(0) }; 2]);
        let other = Arc::new(String::new());
        let mut owner = Some(Owner(value.clone(), other.clone()));
        drop(thread::spawn(move || {
            let _owner = owner.take();
            panic!("this is caught");
        }));
        assert_eq!(value[0].load(SeqCst), 2);
        drop(value);
        drop(other);
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn that_a_lock_is_poisoned_is_told_as_that() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        let total = Arc::new(Mutex::new(0));
        let theirs = total.clone();
        let worker = thread::spawn(move || {
            let _guard = theirs.lock().unwrap();
            panic!("the job has failed");
        });
        assert!(worker.join().is_err());
        *total.lock().unwrap() += 1;
    });
    let text = failure.expect_err("it is poisoned").to_string();
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    };
    // It is one object, whatever each thread calls it.
    assert!(at("poison of theirs = false") < at("poison of theirs := true (was false)"));
    at("poison of theirs = true from ");
    assert!(
        !text.contains("#2"),
        "nothing has the name of another: {text}"
    );
}

#[test]
fn a_panic_that_says_nothing_is_told_as_one() {
    let text = fails(FailureKind::Panic, || {
        drop(thread::spawn(|| std::panic::resume_unwind(Box::new(5u8))));
    });
    let told = "panic: main.1 panicked (execution 1, after 1 event)\n  by `resume_unwind`";
    assert!(text.contains(told), "{text}");
    let text = fails(FailureKind::Panic, || panic!("broken"));
    assert!(!text.contains("resume_unwind"), "{text}");
}

#[test]
fn what_a_lazy_value_was_to_be_made_of_is_dropped_once() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize as StdAtomicUsize;

    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    struct Owned;
    impl Drop for Owned {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    fails(FailureKind::Deadlock, || {
        DROPPED.store(0, Relaxed);
        let owned = Owned;
        let lazy = LazyLock::new(move || -> u8 {
            let _owned = owned;
            panic!("it cannot be made")
        });
        let force = || {
            let made = catch_unwind(AssertUnwindSafe(|| *LazyLock::force(&lazy)));
            assert!(made.is_err());
        };
        force();
        // The execution is torn down when this asks again.
        let _finally = Finally(force);
        thread::park();
    });
    assert_eq!(DROPPED.load(Relaxed), 1);
}

/// Whoever hears of the panic only wonders why the program hangs.
#[test]
fn a_deadlock_while_a_thread_unwinds_is_told_with_the_panic() {
    let waits = |catch_panics| {
        let mut builder = Builder::new();
        builder.catch_panics = catch_panics;
        let failure = builder.explore(|| {
            let other = thread::spawn(|| thread::park());
            let _joins = joins(other);
            panic!("before the unpark");
        });
        let failure = failure.expect_err("it panics");
        assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
        failure.to_string()
    };
    for text in [waits(true), waits(false)] {
        let (before, stuck) = text
            .split_once("\n  while it unwound, nothing could go on any more:\n")
            .unwrap_or_else(|| panic!("{text}"));
        assert!(before.contains("before the unpark"), "{text}");
        let stuck: Vec<&str> = stuck.lines().take(2).collect();
        assert!(
            stuck[0].starts_with("  main       waits to join main.1 "),
            "{text}"
        );
        assert!(stuck[1].starts_with("  main.1     is parked "), "{text}");
    }
}

#[test]
fn a_thread_that_unwinds_out_of_a_scope_waits_where_the_scope_is() {
    let failure = Builder::new().explore(|| {
        thread::scope(|scope| {
            scope.spawn(|| thread::park());
            panic!("before the unpark");
        });
    });
    let line = line!() - 5;
    let text = failure.expect_err("it panics").to_string();
    let stuck = text
        .lines()
        .find(|line| line.starts_with("  main       waits to join main.1 "));
    let stuck = stuck.unwrap_or_else(|| panic!("{text}"));
    let place = format!(" at tests/verdict/unwinding/mod.rs:{line}");
    assert!(stuck.contains(&place), "{text}");
}

/// The panic of a thread whose panics are caught is no failure, but the deadlock is.
#[test]
fn a_deadlock_while_a_thread_unwinds_whose_panic_is_caught_is_told_with_that() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let theirs = lock.clone();
        let guard = lock.lock().unwrap();
        let other = thread::spawn(move || {
            let _locks = Finally(move || drop(theirs.lock()));
            panic!("under the lock");
        });
        let _ = other.join();
        drop(guard);
    });
    let failure = failure.expect_err("nobody unlocks");
    assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
    let text = failure.to_string();
    assert!(text.contains("\n  main.1     waits to lock "), "{text}");
    assert!(
        text.contains("\n  before that main.1 panicked at tests/verdict/unwinding/mod.rs:"),
        "{text}"
    );
}
