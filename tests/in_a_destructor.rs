//! Can the first model of a process be run by a destructor of a thread that panics?
//!
//! The panic hook cannot be changed by such a thread, so this is a program of its own.
// The feature has other signatures, whose tests are `loom_signatures`.
#![cfg(not(feature = "loom"))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dpor::{Builder, FailureKind, thread};
use pretty_assertions::assert_eq;

/// Does something when it is dropped.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Two threads that count, with what the main one does with what it sees before the other has ended.
fn counted(look: fn(usize)) -> impl Fn() + Send + Sync {
    move || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        look(x.load(SeqCst));
        other.join().unwrap();
    }
}

#[test]
fn a_model_that_is_run_while_its_thread_panics_is_like_any_other() {
    let mut seen = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _finally = Finally(|| {
            let passed = Builder::new()
                .explore(counted(|_| ()))
                .map(|report| report.executions);
            let assumed = Builder::new().explore(counted(|found| {
                dpor::assume(found == 1);
                assert_eq!(found, 1, "the other execution has ended");
            }));
            let failed = Builder::new().explore(counted(|found| assert_eq!(found, 0)));
            seen = Some((
                passed.map_err(|failure| failure.to_string()),
                assumed
                    .map(|report| report.executions)
                    .map_err(|failure| failure.to_string()),
                failed.map(|_| ()).map_err(|failure| failure.kind()),
            ));
        });
        panic!("the test's own");
    }));
    assert!(panicked.is_err());
    let expected = (Ok(2), Ok(1), Err(FailureKind::Panic));
    assert_eq!(seen, Some(expected));
}
