//! Is a use of memory that is not there a failure like any other, and not the end of the process?
//!
//! Where a debug build looks at a pointer itself, a null one is a panic that cannot unwind
//! (`tests/verdict/unwinding/last_words.rs`), so what is used here is behind one.

#![cfg(unix)]

use std::sync::atomic::AtomicUsize as Real;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Builder, FailureKind, thread};

use super::children::process_of;
use super::failure;

/// What is so many bytes behind a null pointer.
fn behind_null(bytes: usize) -> *mut u64 {
    std::ptr::without_provenance_mut(bytes)
}

/// A node is published before the one that it leads to.
fn half_a_list() {
    struct Node {
        next: AtomicPtr<u64>,
    }
    let node = Arc::new(Node {
        next: AtomicPtr::new(behind_null(64)),
    });
    let other = node.clone();
    let writer = thread::spawn(move || {
        let next = Box::into_raw(Box::new(7_u64));
        other.next.store(next, SeqCst);
    });
    let next = node.next.load(SeqCst);
    // SAFETY: none: that is the bug.
    let value = unsafe { next.read() };
    assert_eq!(value, 7);
    writer.join().unwrap();
    // SAFETY: nobody else has it any more.
    drop(unsafe { Box::from_raw(next) });
}

#[test]
fn a_use_of_memory_that_is_not_there_is_told_with_its_schedule_and_comes_again() {
    for _ in 0..2 {
        let found = failure(half_a_list);
        assert_eq!(found.kind(), FailureKind::MemoryFault);
        let text = found.to_string();
        let first = "memory fault: main used memory 64 bytes behind a null pointer (execution 1, after 3 events)";
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(first));
        let place = lines.next().unwrap_or_default();
        assert!(
            place.starts_with("  at tests/verdict/failures/faults.rs:"),
            "{text}"
        );
        assert_eq!(found.schedule(), "v2 main*3");
        let replayed = std::panic::catch_unwind(|| dpor::replay("v2 main*3", half_a_list));
        let payload = replayed.expect_err("it fails");
        let told = payload.downcast_ref::<String>().expect("a sentence");
        assert!(told.starts_with("memory fault: main used"), "{told}");
    }
}

#[test]
fn the_order_that_a_fault_hangs_on_is_found_and_the_next_model_is_not_disturbed() {
    let found = failure(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let writer = thread::spawn(move || {
            other.store(16, SeqCst);
            other.store(0, SeqCst);
        });
        let seen = x.load(SeqCst);
        if seen != 0 {
            // SAFETY: none: that is the bug.
            unsafe { behind_null(seen).write(1) };
        }
        writer.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::MemoryFault);
    assert_eq!(found.schedule(), "v2 main*2 main.1 main");
    let text = found.to_string();
    assert!(
        text.contains("it fails because main's \"other = 16\""),
        "{text}"
    );
    let two_choices = || assert!(dpor::choose(2) < 2);
    assert_eq!(Builder::new().check(two_choices).executions, 2);
}

/// The thread faults while it holds a lock, which nobody gives up any more.
#[test]
fn an_exploration_goes_on_after_a_fault() {
    static RUNS: Real = Real::new(0);
    let mut builder = Builder::new();
    builder.max_failures = 3;
    let failure = builder
        .explore(|| {
            RUNS.fetch_add(1, Relaxed);
            let locked = Arc::new(dpor::sync::Mutex::new(0));
            let theirs = locked.clone();
            let other = thread::spawn(move || {
                let mut guard = theirs.lock().unwrap();
                *guard += 1;
                // SAFETY: none: that is the bug.
                unsafe { behind_null(8).write(1) };
            });
            *locked.lock().unwrap() += 1;
            other.join().unwrap();
        })
        .expect_err("each execution fails");
    assert_eq!(failure.kind(), FailureKind::MemoryFault);
    assert!(RUNS.load(Relaxed) > 1);
    assert_eq!(failure.others().len(), 0);
}

/// Not a test of its own: what [`what_is_no_fault_of_a_model_s_thread_is_not_taken_for_one`] runs.
#[test]
fn child_that_faults() {
    let passes = || assert!(dpor::choose(2) < 2);
    match std::env::var("DPOR_TEST_FAULTS").as_deref() {
        Ok("outside") => {
            Builder::new().check(passes);
            // SAFETY: none: that is the bug.
            unsafe { behind_null(8).write(1) };
        }
        Ok("sent") => dpor::model(|| {
            // SAFETY: it may be called at any time.
            unsafe { libc::raise(libc::SIGSEGV) };
        }),
        _ => {}
    }
}

#[test]
fn what_is_no_fault_of_a_model_s_thread_is_not_taken_for_one() {
    use std::os::unix::process::ExitStatusExt;

    // A signal that somebody has sent std lets pass, once.
    for (how, signal) in [("outside", Some(libc::SIGSEGV)), ("sent", None)] {
        let mut child = process_of("failures::faults::child_that_faults");
        child.arg("--nocapture").env("DPOR_TEST_FAULTS", how);
        let output = child.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), signal, "{how}: {told}");
        assert!(!told.contains("memory fault"), "{told}");
    }
}

/// Where dpor looks at the memory first, that is no fault of its own.
#[test]
fn a_shim_or_a_cell_that_is_not_there_is_told_as_such() {
    use dpor::cell::{Cell, UnsafeCell};
    use dpor::sync::{Condvar, Mutex, RwLock};
    /// A fault of this use of something that is not there.
    fn told<T: 'static>(used: fn(&T)) {
        let found = failure(move || {
            let here = Arc::new(AtomicUsize::new(0));
            let other = here.clone();
            let writer = thread::spawn(move || other.store(4096, SeqCst));
            let at: *const T = behind_null(here.load(SeqCst)).cast();
            if !at.is_null() {
                // SAFETY: none: that is the bug.
                used(unsafe { &*at });
            }
            writer.join().unwrap();
        });
        let kind = found.kind();
        let what = std::any::type_name::<T>();
        assert_eq!(kind, FailureKind::MemoryFault, "{what}: {found}");
        let first = "memory fault: main used memory at 0x10";
        assert!(found.to_string().starts_with(first), "{what}: {found}");
    }
    told(|it: &UnsafeCell<[u64; 3]>| it.with(|_| ()));
    told(|it: &UnsafeCell<u8>| it.with_mut(|_| ()));
    told(|it: &Cell<u64>| assert_ne!(it.get(), 0));
    told(|it: &AtomicUsize| assert_ne!(it.load(SeqCst), 0));
    told(|it: &AtomicPtr<u8>| it.store(std::ptr::null_mut(), SeqCst));
    told(|it: &Mutex<u64>| drop(it.lock()));
    told(|it: &RwLock<u64>| drop(it.read()));
    told(|it: &Condvar| it.notify_one());
}

/// A node that is a constant is taken for one that may be changed.
#[test]
fn a_write_to_what_may_only_be_read_is_told_as_that() {
    static FIRST: [u64; 4] = [7; 4];
    let found = failure(|| {
        let node = Arc::new(AtomicPtr::new(behind_null(0)));
        let theirs = node.clone();
        let writer = thread::spawn(move || theirs.store(FIRST.as_ptr().cast_mut(), SeqCst));
        let last = node.load(SeqCst);
        if !last.is_null() {
            // SAFETY: none: that is the bug.
            unsafe { last.add(1).write_volatile(1) };
        }
        writer.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::MemoryFault);
    let text = found.to_string();
    let words = match cfg!(target_os = "linux") {
        true => ("wrote to", "which may only be read"),
        false => ("used", "where there is none"),
    };
    let address = FIRST.as_ptr().addr() + size_of::<u64>();
    let first = format!(
        "memory fault: main {} memory at {address:#x}, {} (execution ",
        words.0, words.1
    );
    assert!(text.starts_with(&first), "{text}");
    assert!(
        text.contains("\n  at tests/verdict/failures/faults.rs:"),
        "{text}"
    );
}

/// What is there may not be executed.
#[test]
fn a_call_of_what_may_only_be_read_is_not_told_as_a_write() {
    static DATA: [u64; 4] = [7; 4];
    let found = failure(|| {
        // SAFETY: none: that is the bug.
        let call: fn() = unsafe { std::mem::transmute(std::hint::black_box(DATA.as_ptr())) };
        call();
    });
    let text = found.to_string();
    assert!(text.starts_with("memory fault: main used memory"), "{text}");
}
