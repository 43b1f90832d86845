//! C11 on live closures: litmus programs, algorithms with and without their fences, and schedules.

use std::sync::Arc;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, fence};
use dpor::{Builder, FailureKind, Memory, thread};

fn c11() -> Builder {
    let mut builder = Builder::new();
    builder.memory = Memory::C11;
    builder
}

fn sc() -> Builder {
    let mut builder = Builder::new();
    builder.memory = Memory::Sc;
    builder
}

/// The numbers of executions under sequential consistency and under C11.
fn counts(f: impl Fn() + Sync + Send + Copy + 'static) -> (u64, u64) {
    let under = |builder: Builder| {
        let report = builder.explore(f).expect("it does not fail");
        assert!(report.complete, "{report:?}");
        report.executions
    };
    (under(sc()), under(c11()))
}

fn store_buffering(store: Ordering, load: Ordering, fences: bool) {
    let x = Arc::new(AtomicUsize::new(0));
    let y = Arc::new(AtomicUsize::new(0));
    let (x2, y2) = (x.clone(), y.clone());
    let other = thread::spawn(move || {
        y2.store(1, store);
        if fences {
            fence(SeqCst);
        }
        x2.load(load)
    });
    x.store(1, store);
    if fences {
        fence(SeqCst);
    }
    let a = y.load(load);
    let b = other.join().unwrap();
    dpor::outcome((a, b));
}

#[test]
fn store_buffering_has_four_executions_unless_all_is_seq_cst() {
    assert_eq!(counts(|| store_buffering(Relaxed, Relaxed, false)), (3, 4));
    assert_eq!(counts(|| store_buffering(Release, Acquire, false)), (3, 4));
    assert_eq!(counts(|| store_buffering(SeqCst, SeqCst, false)), (3, 3));
    assert_eq!(counts(|| store_buffering(Relaxed, Relaxed, true)), (3, 3));
}
