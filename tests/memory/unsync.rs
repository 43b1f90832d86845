//! Must plain accesses to an atomic be ordered with its operations?

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
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
