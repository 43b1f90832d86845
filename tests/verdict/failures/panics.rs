//! Is a panic reported with its own text, and is everything cleaned up after it?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, FailureKind, thread};

use super::children::process_of;
use super::{failure, lost_update};

/// The other thread runs on to its end after the failure, and uses the static for the first time there.
#[test]
fn a_static_that_is_first_used_after_a_failure_does_not_disturb_its_report() {
    static LATE: AtomicUsize = AtomicUsize::new(0);
    let failed = failure(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
            theirs.load(SeqCst);
            LATE.fetch_add(1, SeqCst);
        });
        assert_eq!(x.load(SeqCst), 0, "the other thread has begun");
    });
    assert_eq!(failed.kind(), FailureKind::Panic);
    assert_eq!(failed.schedule(), "v2 main*2 main.1 main");
}

#[test]
fn a_panic_is_told_with_its_text_first_and_its_schedule_replays_to_it() {
    let first = failure(lost_update);
    assert_eq!(first.kind(), FailureKind::Panic);
    let text = first.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("thread 'main' panicked at tests/verdict/failures/mod.rs:"),
        "{text}"
    );
    assert_eq!(
        lines[1],
        "assertion `left == right` failed: an update was lost"
    );
    assert!(
        text.contains("counter := 1 (was 1)") || text.contains("x := 1 (was 1)"),
        "{text}"
    );
    assert!(
        text.contains(&format!("DPOR_REPLAY=\"{}\"", first.schedule())),
        "{text}"
    );

    let events = first.events();
    let shown = |what: &str| text.contains(what) || ["start", "end"].contains(&what);
    assert!(events.iter().all(|event| shown(&event.what)));
    let last = events.last().expect("it has events");
    assert_eq!(
        (last.thread.as_str(), last.what.as_str()),
        ("main", "x = 1")
    );
    assert!(last.place.file().ends_with("failures/mod.rs"));

    let mut builder = Builder::new();
    builder.replay = Some(first.schedule().to_owned());
    let again = builder
        .explore(lost_update)
        .expect_err("the schedule fails again");
    assert_eq!(again.schedule(), first.schedule());
    assert_eq!(again.kind(), FailureKind::Panic);
}

#[test]
#[should_panic(expected = "an update was lost")]
fn the_test_harness_sees_the_panic_of_the_test() {
    dpor::model(lost_update);
}

#[test]
fn a_panic_while_other_threads_hold_locks_unwinds_every_stack() {
    static DROPS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    struct Payload(Arc<Mutex<u32>>);
    impl Drop for Payload {
        fn drop(&mut self) {
            // Takes a lock that another thread of the torn-down execution holds.
            *self.0.lock().unwrap_or_else(|e| e.into_inner()) += 1;
            DROPS.fetch_add(1, SeqCst);
        }
    }
    let mut builder = Builder::new();
    builder.simplify = 0;
    let found = builder.explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let payload = Payload(lock.clone());
        let held = lock.lock().unwrap();
        let other = thread::spawn(move || {
            let _payload = payload;
            panic!("in the middle");
        });
        drop(other.join());
        drop(held);
    });
    let found = found.expect_err("the panic");
    assert_eq!(found.kind(), FailureKind::Panic);
    assert!(found.to_string().contains("in the middle"));
    assert_eq!(DROPS.load(SeqCst), 1);
}

#[test]
fn failing_models_in_parallel_threads_report_their_own_failures() {
    let rounds = 200;
    std::thread::scope(|scope| {
        for text in ["left", "right"] {
            scope.spawn(move || {
                for _ in 0..rounds {
                    let found = failure(move || {
                        let x = Arc::new(AtomicUsize::new(0));
                        let shared = x.clone();
                        let other = thread::spawn(move || shared.store(1, SeqCst));
                        assert_eq!(x.load(SeqCst), 0, "{text}");
                        other.join().unwrap();
                    });
                    assert!(found.to_string().contains(text), "{found}");
                }
            });
        }
    });
    // The hook that was there before still sees panics outside of models.
    let caught = std::panic::catch_unwind(|| panic!("outside"));
    assert!(caught.is_err());
}

/// Panics in a function that is called by another one.
#[test]
fn child_that_panics_deep_inside() {
    #[inline(never)]
    fn inner(found: Option<usize>) -> usize {
        found.expect("nothing there")
    }
    #[inline(never)]
    fn outer(found: usize) -> usize {
        inner(found.checked_sub(2)) + 1
    }
    if std::env::var("DPOR_TEST_BACKTRACE").is_ok() {
        dpor::model(|| {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || outer(theirs.fetch_add(1, SeqCst)));
            other.join().unwrap();
        });
    }
}

#[test]
fn the_stack_of_a_panic_is_told_where_the_environment_asks_for_backtraces() {
    let told = |asked: &str| {
        let mut child = process_of("failures::panics::child_that_panics_deep_inside");
        child.env("DPOR_TEST_BACKTRACE", "1");
        child
            .env("RUST_BACKTRACE", asked)
            .env_remove("RUST_LIB_BACKTRACE");
        let output = child.arg("--nocapture").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let begins = "\nstack backtrace of the panic:\n   0: ";
    let said = told("1");
    let (report, stack) = said.split_once(begins).expect("a stack");
    assert!(
        report.contains("nothing there") && report.contains("\nkept       in "),
        "{said}"
    );
    let (inner, outer) = (stack.find("inner"), stack.find("outer"));
    assert!(inner.is_some() && inner < outer, "{stack}");
    assert!(
        stack.contains("tests/verdict/failures/panics.rs:"),
        "{stack}"
    );
    // Nothing of what is below or above the program's own code.
    assert!(
        !stack.contains("panic_fmt") && !stack.contains("dpor::"),
        "{stack}"
    );
    let said = told("full");
    let (_, stack) = said.split_once(begins).expect("a stack");
    assert!(
        stack.contains("panic_fmt") && stack.contains("outer"),
        "{stack}"
    );
    let said = told("0");
    assert!(
        said.contains("nothing there") && !said.contains("stack backtrace"),
        "{said}"
    );
}

#[test]
fn what_is_raised_again_is_told_with_its_text_first() {
    let raises = || {
        let x = AtomicUsize::new(0);
        let caught = std::panic::catch_unwind(|| panic!("for the second time"));
        x.load(SeqCst);
        std::panic::resume_unwind(caught.expect_err("it panics"));
    };
    let (by_main, by_child) = (
        failure(raises),
        failure(move || drop(thread::spawn(raises).join())),
    );
    for (failed, caught_after) in [(by_main, 0), (by_child, 1)] {
        let text = failed.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("panicked at an unknown place:"),
            "{text}"
        );
        assert_eq!(lines[1], "for the second time");
        let by = "  by `resume_unwind`, which has no place";
        assert!(lines.contains(&by), "{text}");
        let caught = format!(", after event {caught_after}: for the second time\n");
        assert!(text.contains(&caught), "{text}");
    }
}

/// Panics in its destructor, and catches that.
struct Catches(Arc<AtomicUsize>);

impl Drop for Catches {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        let caught = std::panic::catch_unwind(|| panic!("caught in a destructor"));
        assert!(caught.is_err());
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_panic_that_a_destructor_catches_meanwhile_is_not_told_for_the_one_that_fails() {
    for by_child in [false, true] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            let fails = move || {
                let _catches = Catches(x.clone());
                x.load(SeqCst);
                panic!("the failure");
            };
            match by_child {
                true => drop(thread::spawn(fails).join()),
                false => fails(),
            }
        };
        let failed = failure(body);
        let text = failed.to_string();
        assert_eq!(text.lines().nth(1), Some("the failure"), "{text}");
        assert!(!text.contains("caught in a destructor"), "{text}");
        // It ends where that panic began.
        let last = failed.events().last().expect("it has events");
        assert!(last.what.ends_with("= 0"), "{text}");
    }
}

#[test]
fn the_panic_that_fails_is_told_and_not_the_one_that_was_caught_before_it() {
    let failed = failure(|| {
        let x = AtomicUsize::new(0);
        let caught = std::panic::catch_unwind(|| panic!("caught"));
        drop(caught);
        // No operation in between, by which the catch would be noticed.
        let _catches = Catches(Arc::new(AtomicUsize::new(0)));
        panic!("the failure, with {}", x.load(SeqCst));
    });
    let text = failed.to_string();
    assert_eq!(text.lines().nth(1), Some("the failure, with 0"), "{text}");
    assert!(text.contains(", after event 0: caught\n"), "{text}");
}

#[test]
fn a_name_with_a_line_break_stays_on_its_line() {
    let failure = failure(|| {
        let x = AtomicUsize::new(0);
        dpor::name(&x, "x\ny");
        x.load(SeqCst);
        let builder = thread::Builder::new().name("worker\t1\n".to_owned());
        let other = builder.spawn(|| panic!("who")).unwrap();
        other.join().unwrap();
    });
    let text = failure.to_string();
    assert!(text.contains(r"panic: worker\t1\n panicked"), "{text}");
    assert!(text.contains(r" x\ny = 0 "), "{text}");
    assert!(text.contains(r"main.1 is worker\t1\n"), "{text}");
}

/// While the main thread unwinds from a panic that the test catches, another thread fails.
#[test]
fn what_fails_while_a_panic_unwinds_that_is_caught_then_is_what_is_told() {
    struct Stores(Arc<AtomicUsize>);
    impl Drop for Stores {
        fn drop(&mut self) {
            self.0.store(7, SeqCst);
            self.0.store(8, SeqCst);
        }
    }
    let test = |is_caught: bool| {
        move || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || assert!(theirs.load(SeqCst) != 7, "it was 7"));
            let unwinds = move || {
                let _stores = Stores(x);
                panic!("on its own");
            };
            match is_caught {
                true => {
                    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(unwinds));
                    assert!(unwound.is_err());
                }
                false => unwinds(),
            }
            other.join().unwrap();
        }
    };
    let found = failure(test(true));
    let text = found.to_string();
    assert!(text.contains("panic: main.1 panicked"), "{text}");
    assert!(text.contains("it was 7"), "{text}");
    assert!(!text.contains("does not decide alone"), "{text}");
    let mut builder = Builder::new();
    builder.replay = Some(found.schedule().to_owned());
    let again = builder.explore(test(true)).unwrap_err();
    assert_eq!(again.schedule(), found.schedule());
    // Where it is not caught, it is what fails first.
    let text = failure(test(false)).to_string();
    assert!(text.contains("panic: main panicked"), "{text}");
    assert!(text.contains("on its own"), "{text}");
}

#[test]
fn a_panic_that_join_handles_names_the_setting_that_lets_it() {
    fn handles(handled: bool) -> String {
        let failed = failure(move || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || {
                theirs.store(1, SeqCst);
                panic!("the worker gives up");
            });
            x.load(SeqCst);
            let ended = other.join();
            assert!(ended.is_err() && handled, "it is not handled");
        });
        assert!(
            failed.to_string().contains("the worker gives up"),
            "{failed}"
        );
        failed.to_string()
    }
    let told = "\nhandled    with `Builder::catch_panics`, where `join` returns the panic";
    let text = handles(true);
    assert!(text.contains(told), "{text}");
    let text = handles(false);
    assert!(!text.contains("catch_panics"), "{text}");
}
