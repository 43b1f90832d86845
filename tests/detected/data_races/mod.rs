//! Is a data race reported exactly where there is one?
//!
//! Each row is a small program with the line of the standard that decides it. Numbers refer to C++20,
//! whose memory model Rust uses.

mod duration;
mod handed_over;
mod idioms;
mod litmus;
mod orderings;
mod primitives;
mod publication;
mod report;
mod reuse;

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, FailureKind, Memory, thread};

/// Plain memory that threads share.
#[derive(Default)]
struct Plain(UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what the tests ask; the model runs one thread at a time.
unsafe impl Sync for Plain {}
// SAFETY: it is a number.
unsafe impl Send for Plain {}

impl Plain {
    #[track_caller]
    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }

    #[track_caller]
    fn set(&self, new: usize) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// The report, if `f` has a data race under sequential consistency; any other failure fails the
/// test.
fn race(f: impl Fn() + Send + Sync + 'static) -> Option<String> {
    let mut builder = Builder::new();
    builder.memory = Memory::Sc;
    // A `park` of these tests waits for one `unpark` and stands in no loop.
    builder.thorough = dpor::Thorough::Off;
    match builder.explore(f) {
        Ok(report) => {
            assert!(report.complete);
            None
        }
        Err(failure) => {
            assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
            Some(failure.to_string())
        }
    }
}

fn check(name: &str, why: &str, racy: bool, f: impl Fn() + Send + Sync + 'static) {
    let found = race(f);
    assert_eq!(
        found.is_some(),
        racy,
        "{name}: {why}\n{}",
        found.unwrap_or_default()
    );
}

/// `publish` runs after a write in one thread, `ready` before a read in the other, if it says yes.
fn message(
    publish: impl Fn(&AtomicUsize) + Send + Sync + 'static,
    ready: impl Fn(&AtomicUsize) -> bool + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    let (publish, ready) = (Arc::new(publish), Arc::new(ready));
    move || {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
        let (theirs, publish) = (shared.clone(), publish.clone());
        let other = thread::spawn(move || {
            theirs.0.set(1);
            publish(&theirs.1);
        });
        if ready(&shared.1) {
            assert_eq!(shared.0.get(), 1);
        }
        other.join().unwrap();
        assert_eq!(shared.0.get(), 1);
    }
}
