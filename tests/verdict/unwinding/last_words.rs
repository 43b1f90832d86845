//! What does a process say that ends because a destructor panics while its thread unwinds?

use pretty_assertions::assert_eq;

use super::children::process_of;
use super::*;

/// Not a test of its own: what [`what_was_found_is_told_before_a_second_panic_ends_the_process`] runs.
#[test]
fn child_that_ends_the_process() {
    let panics = || {
        let _panics = Finally(|| panic!("a second time"));
        panic!("broken");
    };
    if std::env::var_os("DPOR_TEST_ABORTS_FOR_GOOD").is_some() {
        Builder::new().check(|| ());
        // SAFETY: the call has no requirements.
        unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
    }
    match std::env::var("DPOR_TEST_ABORTS").as_deref() {
        Ok("main") => Builder::new().check(move || {
            thread::spawn(|| ());
            panics();
        }),
        Ok("child") => Builder::new().check(move || drop(thread::spawn(panics))),
        Ok("pool") => Builder::new().check(pool),
        Ok("waits") => Builder::new().check(waits),
        Ok("races") => Builder::new().check(races),
        Ok("late") => Builder::new().check(late),
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
        Ok("adopts at once") => adopts_nothing_behind(|| ()),
        Ok("adopts") => adopts_nothing_behind(|| {
            AtomicUsize::new(0).store(1, SeqCst); // The last operation.
        }),
        Ok("adopts behind a drop") => adopts_nothing_behind(|| {
            let (sender, _receiver) = mpsc::channel();
            sender.send(1).unwrap(); // The last operation that has a place.
            drop(sender);
        }),
        Ok("foreign") => Builder::new().check(|| {
            extern "C" fn called_back() {
                panic!("broken");
            }
            called_back();
        }),
        Ok("stuck") => {
            // Given up by `assume` while another thread has to wait for the lock.
            Builder::new().check(|| check_when_dropped(|| true))
        }
        _ => return,
    };
}

/// A pool whose worker panics with its lock held.
fn pool() {
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
}

/// A thread that waits for ever, and checks at its end what does not hold there.
fn waits() {
    // What a channel asserts when it is dropped does not hold where its threads are stuck.
    let checks = Finally(|| panic!("a second time"));
    thread::park();
    std::mem::forget(checks);
}

/// As [`waits`], for a data race.
fn races() {
    let shared = Arc::new(Shared(UnsafeCell::new(0)));
    let theirs = shared.clone();
    let other = thread::spawn(move || theirs.0.with_mut(|_| ()));
    let checks = Finally(|| panic!("a second time"));
    shared.0.with_mut(|_| ());
    other.join().unwrap();
    std::mem::forget(checks);
}

/// As [`waits`], for memory that is gone.
fn late() {
    let checks = Finally(|| panic!("a second time"));
    let flag = Box::into_raw(Box::new(AtomicUsize::new(0)));
    // SAFETY: none: it is gone when it is used, which dpor has to notice.
    unsafe {
        drop(Box::from_raw(flag));
        (*flag).load(SeqCst);
    }
    std::mem::forget(checks);
}

/// A thread that takes a pointer to nothing for a box when it has done this. The check of that stands in std.
fn adopts_nothing_behind(does: fn()) -> dpor::Report {
    Builder::new().check(move || {
        let worker = thread::Builder::new().name("worker".to_owned());
        let worker = worker.spawn(move || {
            does();
            let nothing: *mut u8 = std::hint::black_box(std::ptr::null_mut());
            // SAFETY: there is no box, which std has to notice.
            drop(unsafe { Box::from_raw(nothing) });
        });
        worker.unwrap().join().unwrap();
    })
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
    for (how, what, places, report) in [
        (
            "waits",
            "deadlock",
            1,
            [
                "\ndeadlock: 1 thread waits for ever (execution 1, after 0 events)\n",
                "\n  main       is parked  ",
            ],
        ),
        (
            "races",
            "data race",
            2,
            [
                "\ndata race: main and main.1 access shared.0, and nothing orders the two (execution 1, ",
                "\n     2  spawn main.1 ",
            ],
        ),
        (
            "late",
            "wrong use of memory",
            1,
            [
                "\nuse after free: main uses what is in a block that has been freed (execution 1, after 0 events)\n",
                "\n     -  free\n",
            ],
        ),
    ] {
        let said = last_words_for_good(how);
        assert!(said.contains("a second time"), "{said}");
        let begins = format!("  the execution had ended with a {what}: main");
        let told = said.lines().find(|line| line.starts_with(&begins));
        let told = told.unwrap_or_else(|| panic!("{said}"));
        let at = " at tests/verdict/unwinding/last_words.rs:";
        assert_eq!(told.matches(at).count(), places, "{said}");
        // The report comes behind that.
        for expected in report {
            let at = said.find(expected);
            let at = at.unwrap_or_else(|| panic!("{expected}: {said}"));
            assert!(at > said.find(told).unwrap_or_default(), "{said}");
        }
        assert!(said.contains("\nreplay     DPOR_REPLAY="), "{said}");
        // Such a panic ends the process by `abort`, which is told where it is the program that calls it.
        assert_eq!(said.matches("ends the process").count(), 1, "{said}");
    }
}

#[test]
fn a_destructor_that_panics_where_an_execution_was_given_up_is_told_why_it_runs() {
    let said = last_words_for_good("stuck");
    let stuck = "  main.1 was stuck in an execution that is over, and is unwound; what a destructor checks, it checks unless \
                 `thread::panicking()`\n";
    assert!(said.contains(stuck), "{said}");
}

/// What runs the child again.
const COMMAND: &str = match cfg!(debug_assertions) {
    true => {
        "cargo test --test verdict -- --exact unwinding::last_words::child_that_ends_the_process\n"
    }
    false => {
        "cargo test --test verdict --release -- --exact unwinding::last_words::child_that_ends_the_process\n"
    }
};

#[test]
fn what_was_found_is_told_before_a_second_panic_ends_the_process() {
    // The thread that was spawned panics before its first step.
    for (who, replay) in [
        ("main", "\"v2 main\""),
        ("child", "\"v2 main main.1*0\""),
        ("pool", "\"model 2: v2 main*3 main.1\""),
    ] {
        let said = match who {
            "pool" => last_words_for_good(who),
            _ => last_words(who),
        };
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
        told("\nreplay     DPOR_REPLAY=");
        if who == "pool" {
            told("  worker panicked at tests/verdict/unwinding/last_words.rs:");
            assert!(
                (first..told("a second time")).contains(&told("in the middle")),
                "{said}"
            );
            told("  main panicked at tests/verdict/unwinding/last_words.rs:");
            let ended = told("the execution had ended with a panic\n");
            // Main has run on since, and is no part of the failure.
            let report = told("\npanic: worker panicked (execution 2, after 4 events)\n");
            assert!(report > ended, "{said}");
            told("\nschedule   v2 main*3 main.1\n");
        }
    }
}

/// What [`child_that_ends_the_process`] says where the harness keeps what its tests print.
fn last_words(how: &str) -> String {
    said_by(how, process_of(CHILD), false)
}

/// [`last_words`] of a process that sees to aborts itself, so that none can be kept from it.
fn last_words_for_good(how: &str) -> String {
    let mut child = process_of(CHILD);
    child.env("DPOR_TEST_ABORTS_FOR_GOOD", "1");
    said_by(how, child, false)
}

const CHILD: &str = "unwinding::last_words::child_that_ends_the_process";

fn said_by(how: &str, mut child: std::process::Command, passes: bool) -> String {
    let output = child.env("DPOR_TEST_ABORTS", how).output().unwrap();
    assert_eq!(output.status.success(), passes, "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Where the tool unwinds a thread, or lets it go on to its end, a second panic is no end of the process.
#[cfg(target_os = "linux")]
#[test]
fn a_destructor_that_panics_where_the_execution_is_over_ends_no_process() {
    fails(FailureKind::Deadlock, waits);
    fails(FailureKind::DataRace, races);
    fails(FailureKind::UseAfterFree, late);
    let text = fails(FailureKind::Panic, pool);
    assert!(text.contains("panic: worker panicked"), "{text}");
    // On several threads, and where a function cannot unwind, and where the program aborts in the end.
    extern "C" fn called_back() {
        panic!("broken");
    }
    for ends in [
        || panic!("a second time"),
        || called_back(),
        || std::process::abort(),
    ] as [fn(); 3]
    {
        fails(FailureKind::Deadlock, move || {
            drop([(); 3].map(|()| {
                thread::spawn(move || {
                    let checks = Finally(ends);
                    thread::park();
                    std::mem::forget(checks);
                })
            }));
            thread::park();
        });
    }
    assert!(!thread::panicking());
    // Not even a failure: two executions, of which one was given up.
    let report = Builder::new().check(|| check_when_dropped(|| true));
    assert_eq!((report.executions, report.pruned), (2, 2));
    let caught = std::panic::catch_unwind(|| panic!("as ever"));
    assert!(caught.is_err() && !thread::panicking());
}

/// What a thread would have begun with is dropped where no thread is any more.
#[test]
fn a_destructor_of_what_no_thread_has_begun_with_does_not_hide_the_failure() {
    panics(|| {
        let panics = Finally(|| panic!("a second time"));
        drop(thread::spawn(move || std::mem::forget(panics)));
        panic!("broken");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn that_a_stack_is_given_up_is_told_once_with_its_panic_and_why() {
    let said = said_by("stuck", process_of(CHILD), true);
    let told = "dpor: main.1 panics (a second time at tests/verdict/unwinding/last_words.rs:";
    let behind = ") while it unwinds, in an execution that is over, where it is unwound. Its stack is given up, ";
    let line = said.lines().find(|line| line.starts_with(told));
    assert!(line.is_some_and(|line| line.contains(behind)), "{said}");
    assert_eq!(said.matches("Its stack is given up").count(), 1, "{said}");
    assert!(!said.contains("ends the process"), "{said}");
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
            told(&format!(
                "\n  {who} panicked at tests/verdict/unwinding/last_words.rs:"
            ));
        }
        told(&format!("\n  replay: DPOR_REPLAY=\"{replay}\" "));
        told(COMMAND);
    }
}

// The checks of std are made only with debug assertions.
#[cfg(debug_assertions)]
#[test]
fn where_a_panic_has_no_place_in_the_program_the_last_operation_of_its_thread_is_told() {
    let place_of = |comment: &str| {
        let mut lines = include_str!("last_words.rs").lines();
        let line = lines.position(|line| line.ends_with(&format!("; // {comment}")));
        format!(
            "tests/verdict/unwinding/last_words.rs:{}:",
            line.unwrap() + 1
        )
    };
    let send = place_of("The last operation that has a place.");
    let store = place_of("The last operation.");
    for (how, begins, ends) in [
        (
            "adopts",
            format!("after event 2, at {store}"),
            ", its last operation that dpor has seen",
        ),
        (
            "adopts behind a drop",
            format!(
                "after event 4, in a drop, its last operation that dpor has seen; the last with a place in the program is \
                 event 2, at {send}"
            ),
            "",
        ),
        (
            "adopts at once",
            "before any operation that dpor has seen of it; event 1, at tests/verdict/unwinding/last_words.rs:".to_owned(),
            ", has spawned it",
        ),
    ] {
        let said = last_words(how);
        let begins = format!("  worker panicked outside of the program's source {begins}");
        let line = said.lines().find(|line| line.starts_with(&begins));
        let line = line.unwrap_or_else(|| panic!("{begins}: {said}"));
        assert!(line.ends_with(ends), "{said}");
    }
    // Where the place is the program's own, that is enough.
    let said = last_words("null");
    assert!(!said.contains("outside of the program's source"), "{said}");
}
