//! Can destructors do what they always do while a thread unwinds, or an execution is given up?
//!
//! A pool that joins its threads when it is dropped, or a guard that takes a lock, does so when a test fails,
//! too. A destructor that panicked then, because it was told something that is not true, would end the
//! process before the failure is told.
// The feature has other signatures, whose tests are `loom_signatures`.
#![cfg(not(feature = "loom"))]

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
    builder.algorithm = dpor::Algorithm::Optimal;
    builder.preemption_bound = Some(1);
    assert!(builder.check(body).pruned > 0, "nor this one");
}

#[test]
fn an_execution_that_a_worker_gives_up_may_lock_in_a_destructor() {
    let report = Builder::new().check(|| {
        let lock = Arc::new(Mutex::new(0));
        let (mine, theirs) = (lock.clone(), lock);
        let _locks = Finally(move || *mine.lock().unwrap() += 1);
        let other = thread::spawn(move || {
            let guard = theirs.lock().unwrap();
            dpor::assume(*guard == 5);
        });
        other.join().unwrap();
    });
    assert_eq!(report.executions, 0);
}

/// Not a test of its own: what [`what_was_found_is_told_before_a_second_panic_ends_the_process`] runs.
#[test]
fn child_that_ends_the_process() {
    let panics = || {
        let _panics = Finally(|| panic!("a second time"));
        panic!("broken");
    };
    match std::env::var("DPOR_TEST_ABORTS").as_deref() {
        Ok("main") => Builder::new().check(move || {
            thread::spawn(|| ());
            panics();
        }),
        Ok("child") => Builder::new().check(move || drop(thread::spawn(panics))),
        Ok("pool") => Builder::new().check(|| {
            let queue = Arc::new(Mutex::new(0));
            let theirs = queue.clone();
            let worker = thread::Builder::new().name("worker".to_owned());
            let worker = worker.spawn(move || {
                let guard = theirs.lock().unwrap();
                assert!(*guard == 1, "broken");
            });
            // The lock is poisoned, which is all that the other two panics are about.
            let other = queue.clone();
            let _shuts_down = Finally(move || *other.lock().expect("a second time") = 2);
            *queue.lock().expect("in the middle") += 1;
            worker.unwrap().join().unwrap();
        }),
        Ok("null") => Builder::new().check(|| {
            let nothing: *const AtomicUsize = std::hint::black_box(std::ptr::null());
            thread::spawn(|| ());
            // SAFETY: there is nothing, which std has to notice.
            unsafe { &*nothing }.load(SeqCst);
        }),
        Ok("misaligned") => Builder::new().check(|| {
            let words = [7u32; 2];
            let between = std::hint::black_box(words.as_ptr()).wrapping_byte_add(1);
            // SAFETY: it is no place for a number, which std has to notice.
            assert_eq!(unsafe { *between }, 7);
        }),
        Ok("unchecked") => Builder::new().check(|| {
            let worker = thread::Builder::new().name("worker".to_owned());
            let worker = worker.spawn(|| {
                let numbers = std::hint::black_box(vec![1, 2, 3]);
                // SAFETY: there are three, which std has to notice.
                assert_eq!(unsafe { *numbers.get_unchecked(3) }, 4);
            });
            worker.unwrap().join().unwrap();
        }),
        Ok("foreign") => Builder::new().check(|| {
            extern "C" fn called_back() {
                panic!("broken");
            }
            called_back();
        }),
        Ok("waits") => Builder::new().check(|| {
            // What a channel asserts when it is dropped does not hold where its threads are stuck.
            let checks = Finally(|| panic!("a second time"));
            thread::park();
            std::mem::forget(checks);
        }),
        Ok("races") => Builder::new().check(|| {
            let shared = Arc::new(Shared(UnsafeCell::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || theirs.0.with_mut(|_| ()));
            let checks = Finally(|| panic!("a second time"));
            shared.0.with_mut(|_| ());
            other.join().unwrap();
            std::mem::forget(checks);
        }),
        Ok("late") => Builder::new().check(|| {
            let checks = Finally(|| panic!("a second time"));
            let flag = Box::into_raw(Box::new(AtomicUsize::new(0)));
            // SAFETY: none: it is gone when it is used, which dpor has to notice.
            unsafe {
                drop(Box::from_raw(flag));
                (*flag).load(SeqCst);
            }
            std::mem::forget(checks);
        }),
        Ok("stuck") => {
            // Given up by `assume` while another thread has to wait for the lock.
            Builder::new().check(|| check_when_dropped(|| true))
        }
        _ => return,
    };
}

/// Explores two executions of which one is given up; in that one a thread is left stuck whose destructor asserts where `checks`.
fn check_when_dropped(checks: fn() -> bool) {
    let lock = Arc::new(Mutex::new(false));
    let theirs = lock.clone();
    let other = thread::spawn(move || {
        let seen = std::cell::Cell::new(false);
        let _checks = Finally(|| assert!(!checks() || seen.get(), "a second time"));
        let guard = theirs.lock().unwrap();
        seen.set(true);
        drop(guard);
    });
    let guard = lock.lock().unwrap();
    dpor::assume(dpor::any());
    drop(guard);
    other.join().unwrap();
}

#[test]
fn a_thread_that_is_stuck_where_the_execution_ends_is_unwinding() {
    let report = Builder::new().check(|| check_when_dropped(|| !thread::panicking()));
    assert_eq!((report.executions, report.pruned), (2, 2));
}

#[test]
fn what_the_execution_had_failed_with_is_told_with_its_places_where_a_destructor_then_panics() {
    for (how, what, places) in [
        ("waits", "deadlock", 1),
        ("races", "data race", 2),
        ("late", "wrong use of memory", 1),
    ] {
        let said = last_words(how);
        assert!(said.contains("a second time"), "{said}");
        let begins = format!("  the execution had ended with a {what}: main");
        let told = said.lines().find(|line| line.starts_with(&begins));
        let told = told.unwrap_or_else(|| panic!("{said}"));
        let at = " at tests/unwinding.rs:";
        assert_eq!(told.matches(at).count(), places, "{said}");
        // Such a panic ends the process by `abort`, which is told where it is the program that calls it.
        assert_eq!(said.matches("ends the process").count(), 1, "{said}");
    }
}

#[test]
fn a_destructor_that_panics_where_an_execution_was_given_up_is_told_why_it_runs() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child_that_ends_the_process"]);
    let output = child.env("DPOR_TEST_ABORTS", "stuck").output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let stuck = "  main.1 was stuck in an execution that is over, and is unwound; what a destructor checks, it checks unless \
                 `thread::panicking()`\n";
    assert!(said.contains(stuck), "{said}");
}

/// What runs the child again.
const COMMAND: &str = match cfg!(debug_assertions) {
    true => "cargo test --test unwinding -- --exact child_that_ends_the_process\n",
    false => "cargo test --test unwinding --release -- --exact child_that_ends_the_process\n",
};

#[test]
fn what_was_found_is_told_before_a_second_panic_ends_the_process() {
    // The thread that was spawned panics before its first step.
    for (who, replay) in [
        ("main", "\"v2 main\""),
        ("child", "\"v2 main main.1*0\""),
        ("pool", "\"v2 main*3 main.1\""),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "child_that_ends_the_process"]);
        let output = child.env("DPOR_TEST_ABORTS", who).output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        let told = |expected: &str| {
            let at = said.find(expected);
            at.unwrap_or_else(|| panic!("{expected}: {said}"))
        };
        told("a destructor has panicked while its thread unwound");
        // The first one comes first.
        let first = told("broken");
        assert!(first < told("a second time"), "{said}");
        told(&format!("DPOR_REPLAY={replay} "));
        told(COMMAND);
        if who == "pool" {
            told("  worker panicked at tests/unwinding.rs:");
            assert!(
                (first..told("a second time")).contains(&told("in the middle")),
                "{said}"
            );
            told("  main panicked at tests/unwinding.rs:");
            told("the execution had ended with a panic\n");
        }
    }
}

/// What [`child_that_ends_the_process`] says where the harness keeps what its tests print.
fn last_words(how: &str) -> String {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child_that_ends_the_process"]);
    let output = child.env("DPOR_TEST_ABORTS", how).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// What is dereferenced is checked only with debug assertions.
#[cfg(debug_assertions)]
#[test]
fn a_panic_that_cannot_unwind_is_told_before_it_ends_the_process() {
    let any = "dpor: a panic that cannot unwind ends the process. What was found is not lost:\n";
    let foreign = "dpor: a panic in a function that cannot unwind ends the process. What was found is not lost:\n";
    for (how, first, who, message, replay) in [
        (
            "null",
            any,
            "main",
            "null pointer dereference occurred\n",
            "v2 main",
        ),
        (
            "misaligned",
            any,
            "main",
            "misaligned pointer dereference: ",
            "v2",
        ),
        (
            "unchecked",
            any,
            "worker",
            "unsafe precondition(s) violated: ",
            "v2 main main.1*0",
        ),
        ("foreign", foreign, "main", "broken\n", "v2"),
    ] {
        let said = last_words(how);
        let told = |expected: &str| assert!(said.contains(expected), "{expected}: {said}");
        told(first);
        told(&format!("\n  {who} panicked at "));
        told(&format!(": {message}"));
        if how != "unchecked" {
            // The check of `get_unchecked` may stand in std.
            told(&format!("\n  {who} panicked at tests/unwinding.rs:"));
        }
        told(&format!("\n  replay: DPOR_REPLAY=\"{replay}\" "));
        told(COMMAND);
    }
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

/// Whether somebody is still taken to unwind, which is said of nobody in this model.
fn nobody_unwinds() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let lock = Mutex::new(());
    assert!(!thread::panicking());
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _guard = lock.lock().unwrap();
        panic!("caught")
    }));
    assert!(caught.is_err() && lock.is_poisoned());
}

#[test]
fn a_destructor_that_waits_for_ever_is_forgotten_with_its_model() {
    let waits = || {
        let flag = AtomicBool::new(false);
        Finally(move || {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        })
    };
    panics(move || {
        let _waits = waits();
        panic!("broken");
    });
    assert!(!thread::panicking());
    assert!(Builder::new().check(nobody_unwinds).complete);
    fails(FailureKind::Deadlock, move || {
        let _threads = [waits(), waits()].map(|waits| {
            thread::spawn(|| {
                let _waits = waits;
                thread::park();
            })
        });
        thread::park();
    });
    assert!(!thread::panicking());
    assert!(Builder::new().check(nobody_unwinds).complete);
}

#[test]
fn a_destructor_that_waits_for_ever_is_forgotten_with_its_execution() {
    let report = Builder::new().check(|| {
        let flag = AtomicBool::new(false);
        let _waits = Finally(|| {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        });
        dpor::assume(dpor::any());
        flag.store(true, SeqCst);
        nobody_unwinds();
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
}

#[test]
fn what_destructors_do_to_statics_in_the_end_is_put_back() {
    struct Plain(UnsafeCell<usize>);
    // SAFETY: one thread uses it at a time.
    unsafe impl Sync for Plain {}
    static ATOMIC: AtomicUsize = AtomicUsize::new(0);
    static LOCK: Mutex<usize> = Mutex::new(0);
    static TRIED: Mutex<usize> = Mutex::new(0);
    static RWLOCK: RwLock<usize> = RwLock::new(0);
    static ONCE: Once = Once::new();
    static CELL: OnceLock<Box<usize>> = OnceLock::new();
    static PLAIN: Plain = Plain(UnsafeCell::new(0));
    /// What the statics hold, before each is changed.
    fn change() -> [bool; 7] {
        let mut called = false;
        ONCE.call_once(|| called = true);
        let add = |number: &mut usize| std::mem::replace(number, 1) == 0;
        [
            ATOMIC.fetch_add(1, SeqCst) == 0,
            add(&mut LOCK.lock().unwrap()),
            add(&mut TRIED.try_lock().unwrap()),
            add(&mut RWLOCK.write().unwrap()),
            called,
            CELL.set(Box::new(0)).is_ok(),
            // SAFETY: nobody else has the pointer.
            PLAIN.0.with_mut(|number| add(unsafe { &mut *number })),
        ]
    }
    let explored = Builder::new().check(|| {
        let _changes = Finally(|| {
            change();
        });
        // The first execution is torn down here, where it has met none of the statics.
        dpor::assume(dpor::any());
        assert_eq!(change(), [true; 7]);
    });
    assert_eq!((explored.executions, explored.pruned), (1, 1));
    fails(FailureKind::Deadlock, || {
        let _changes = Finally(|| {
            change();
        });
        thread::park();
    });
    let explored = Builder::new().check(|| assert_eq!(change(), [true; 7]));
    assert_eq!(explored.executions, 1);
}

/// A destructor that waits for ever at each of these does not keep the test from its end.
#[test]
fn a_destructor_waits_for_ever_at_no_shim() {
    let waits: [fn(); 6] = [
        thread::park,
        || thread::park_timeout(Duration::from_secs(1)),
        || {
            let _ = mpsc::sync_channel(0).0.send(0);
        },
        || {
            let _ = mpsc::channel::<()>().1.recv();
        },
        || {
            let _ = mpsc::channel::<()>().1.recv_timeout(Duration::from_secs(1));
        },
        || {
            Barrier::new(2).wait();
        },
    ];
    for wait in waits {
        panics(move || {
            let flag = AtomicBool::new(false);
            let _waits = Finally(|| {
                while !flag.load(SeqCst) {
                    wait();
                }
            });
            panic!("broken");
        });
    }
}

#[test]
fn a_destructor_that_waits_once_in_the_end_comes_to_its_own_end() {
    static DROPPED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = Builder::new().check(|| {
        let _waits = Finally(|| {
            thread::yield_now();
            DROPPED.fetch_add(1, Relaxed);
        });
        dpor::assume(dpor::any());
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
    assert_eq!(DROPPED.load(Relaxed), 2);
}
