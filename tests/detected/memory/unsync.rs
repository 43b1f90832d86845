//! Must plain accesses to an atomic be ordered with its operations?

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{FailureKind, thread};

use super::{fails, passes, tells};

#[test]
fn plain_accesses_to_an_atomic_must_be_ordered_with_its_operations() {
    let unsync = |order| {
        move || {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.0.store(1, Relaxed);
                theirs.1.store(1, order);
            });
            if shared.1.load(Acquire) == 1 {
                // SAFETY: that nobody writes it now is what is checked.
                assert_eq!(unsafe { shared.0.unsync_load() }, 1);
            }
            other.join().unwrap();
        }
    };
    assert_eq!(passes(unsync(Release)), 2);
    let failure = fails(FailureKind::DataRace, unsync(Relaxed));
    tells(
        &failure,
        &[
            "data race",
            "theirs.0 := 1",
            "(Relaxed)",
            "with at least Release and Acquire",
        ],
    );
    // The other way round: the plain access is first.
    let failure = fails(FailureKind::DataRace, || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        // SAFETY: that nobody writes it now is what is checked.
        unsafe { x.unsync_load() };
        other.join().unwrap();
    });
    tells(&failure, &["data race: main and main.1"]);
}

#[test]
fn an_operation_that_writes_counts_though_its_thread_has_only_looked_since() {
    fails(FailureKind::DataRace, || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.0.store(1, Relaxed);
            theirs.0.load(Relaxed);
            theirs.1.store(1, Relaxed);
        });
        if shared.1.load(Acquire) == 1 {
            // SAFETY: that nobody writes it now is what is checked.
            unsafe { shared.0.unsync_load() };
        }
        other.join().unwrap();
    });
}

/// A value that is changed plainly makes another object of the atomic for the model. What used it before and after that must
/// be ordered with the change all the same.
#[test]
fn so_must_be_what_changes_the_value() {
    let changes = |after: bool| {
        move || {
            let atomic = Box::into_raw(Box::new(AtomicUsize::new(0)));
            let (pointer, told) = (AtomicPtr::new(atomic), Arc::new(AtomicUsize::new(0)));
            let tells = told.clone();
            let other = thread::spawn(move || {
                // SAFETY: it is freed only after the join.
                unsafe { (*pointer.into_inner()).store(1, SeqCst) };
                tells.store(1, Relaxed);
            });
            if !after || told.load(Relaxed) == 1 {
                // SAFETY: that nobody else uses it now is what is checked.
                *unsafe { (*atomic).get_mut() } = 5;
            }
            other.join().unwrap();
            // SAFETY: nobody uses it any more.
            drop(unsafe { Box::from_raw(atomic) });
        }
    };
    for after in [false, true] {
        fails(FailureKind::DataRace, changes(after));
    }
    // Here it is exclusive: the other thread begins after the change, or has been joined.
    passes(|| {
        let mut atomic = Arc::new(AtomicUsize::new(0));
        for value in [3, 5] {
            *Arc::get_mut(&mut atomic).unwrap().get_mut() = value;
            let theirs = atomic.clone();
            let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
            assert_eq!(other.join().unwrap(), value);
        }
    });
}
