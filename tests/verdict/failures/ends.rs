//! What is told where the program ends the process in the middle of an execution.

#![cfg(unix)]

use std::alloc::Layout;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use super::*;

/// Ends the process as the environment says.
#[test]
fn child_that_ends() {
    let Ok(how) = std::env::var("DPOR_TEST_ENDS") else {
        return;
    };
    if how.starts_with("outside") {
        dpor::model(|| {
            two();
        });
        end(&how);
    }
    dpor::model(|| {
        let other = thread::spawn(two);
        other.join().unwrap();
    });
    // The second model of the test.
    dpor::model(move || {
        let how = how.clone();
        let other = thread::Builder::new().name("worker".to_owned());
        let other = other.spawn(move || {
            if two() == 2 {
                end(&how);
            }
        });
        other.unwrap().join().unwrap();
    });
}

fn end(how: &str) {
    match how {
        "exit" | "outside, exit" => std::process::exit(3),
        "abort" => std::process::abort(),
        "illegal" => illegal(),
        freed => free(freed),
    }
}

/// As a pointer with a tag in its upper bits.
const NOWHERE: usize = (usize::MAX / 3) & !15;

/// Frees what is no block.
#[inline(never)]
fn free(what: &str) {
    // The word before the pointer is what the allocator takes for the size of the block. It is one
    // that no block has, wherever the linker puts the static.
    static SENTINEL: [u64; 8] = [1; 8];
    let on_stack = std::hint::black_box([1_u64; 8]);
    let pointer = match what {
        "stack" => &raw const on_stack[4],
        "static" => &raw const SENTINEL[4],
        _ => std::ptr::without_provenance(NOWHERE),
    };
    // SAFETY: there is no such block: the allocator ends the process.
    unsafe { std::alloc::dealloc(pointer.cast_mut().cast(), Layout::new::<[u64; 4]>()) };
}

/// An instruction that there is not.
fn illegal() {
    // SAFETY: it ends the process.
    unsafe { libc::raise(libc::SIGILL) };
}

/// What two threads make of a counter: 1 in one of two orders.
fn two() -> usize {
    let counter = Arc::new(AtomicUsize::new(0));
    let theirs = counter.clone();
    let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
    let found = counter.fetch_add(1, SeqCst);
    other.join().unwrap();
    found + 1
}

/// How the child ends, and what it says.
fn ended(how: &str) -> (ExitStatus, String) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    // The replay names the test exactly all the same.
    child.arg("failures::ends::child_that_ends");
    let output = child.env("DPOR_TEST_ENDS", how).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    (output.status, said.into_owned())
}

#[test]
fn the_schedule_is_told_before_the_program_ends_the_process() {
    for (how, what, code, signal) in [
        ("exit", "a call of `exit`", Some(3), None),
        ("abort", "a call of `abort`", None, Some(libc::SIGABRT)),
        (
            "illegal",
            "an illegal instruction",
            None,
            Some(libc::SIGILL),
        ),
    ] {
        let (status, said) = ended(how);
        assert_eq!((status.code(), status.signal()), (code, signal), "{said}");
        let expected = format!(
            "dpor: {what} ends the process. What was found is not lost:\n  worker has done it after event "
        );
        assert!(said.starts_with(&expected), "{said}");
        assert!(
            said.contains(", at tests/verdict/failures/ends.rs:"),
            "{said}"
        );
        let its = ", its last operation that dpor has seen\n";
        assert!(said.contains(its), "{said}");
        let (_, replay) = said
            .split_once("\n  replay: DPOR_REPLAY=\"")
            .expect("a schedule");
        let (schedule, command) = replay.split_once("\" ").expect("a command");
        assert!(schedule.starts_with("model 2: v2 main main.1*"), "{said}");
        let whose = "cargo test --test verdict";
        assert!(command.starts_with(whose), "{said}");
        assert!(
            command.ends_with("-- --exact failures::ends::child_that_ends\n"),
            "{said}"
        );
    }
}

/// The allocator keeps its lock where it fails.
#[test]
fn the_schedule_is_told_before_the_allocator_ends_the_process() {
    for (what, place, signal) in [
        ("stack", "on the stack of worker", libc::SIGABRT),
        (
            "static",
            match cfg!(target_os = "linux") {
                true => "in a static of the program",
                false => "at 0x",
            },
            libc::SIGABRT,
        ),
        (
            "nowhere",
            &format!("at {NOWHERE:#x}, where no block of this execution is"),
            match cfg!(target_os = "linux") {
                true => libc::SIGSEGV,
                false => libc::SIGABRT,
            },
        ),
    ] {
        let (status, said) = ended(what);
        assert_eq!(status.signal(), Some(signal), "{said}");
        // The allocator may have said something before.
        let (_, told) = said.split_once("dpor: ").expect(&said);
        let why = "the allocator, which was handed a pointer that it has never handed out, or has found its memory overwritten, ends the \
                   process. What was found is not lost:\n  worker has asked it after event ";
        assert!(told.starts_with(why), "{said}");
        assert!(
            told.contains(&format!("\n  what was to be freed is {place}")),
            "{said}"
        );
        assert!(
            told.contains("\n  replay: DPOR_REPLAY=\"model 2: v2 main main.1*"),
            "{said}"
        );
    }
}

#[test]
fn the_end_of_a_process_outside_of_a_model_is_not_told() {
    let (status, said) = ended("outside, exit");
    assert_eq!((status.code(), said.as_str()), (Some(3), ""));
}
