//! Is a wrong use of heap memory found, and a right one left in peace?

mod again;
use crate::children;
mod counted;
mod dropped_last;
#[cfg(all(unix, target_pointer_width = "64"))]
mod given_away;
mod in_place;
mod late;
mod leaks;
#[cfg(target_os = "linux")]
mod mapped;
mod passed_on;
#[cfg(all(unix, target_pointer_width = "64"))]
mod raw_uses;
#[cfg(all(unix, target_pointer_width = "64"))]
mod retired;
mod stacks;
mod unfreed;
mod unsync;
mod use_after_free;
mod wrong_free;

use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Algorithm, Builder, Failure, FailureKind, thread};

/// The failure of `f`, which must have one of this kind.
fn fails(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) -> Failure {
    let failure = *Builder::new().explore(f).expect_err("a failure");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure
}

/// Each algorithm finds that a block is used after its free, or that nothing orders these.
#[track_caller]
fn each_finds_it(body: impl Fn() + Copy + Send + Sync + 'static) {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Source,
        Algorithm::SleepSets,
        Algorithm::Naive,
        Algorithm::Bounded,
        Algorithm::Random,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.seed = Some(1);
        let found = builder.explore(body);
        let Err(failure) = found else {
            panic!("{algorithm:?} finds nothing");
        };
        let kinds = [FailureKind::DataRace, FailureKind::UseAfterFree];
        assert!(kinds.contains(&failure.kind()), "{algorithm:?}: {failure}");
    }
}

/// The number of executions of `f`, which must have no failure.
fn passes(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().explore(f).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.complete);
    report.executions
}

/// Whether each of these texts is in the report, in this order.
#[track_caller]
fn tells(failure: &Failure, texts: &[&str]) {
    let report = failure.to_string();
    let mut rest = report.as_str();
    for text in texts {
        let at = rest.find(text);
        let at = at.unwrap_or_else(|| panic!("`{text}` is not in, or too early in\n{report}"));
        rest = &rest[at + text.len()..];
    }
}

/// A node of a list, to be freed by hand.
struct Node {
    value: AtomicUsize,
    plain: UnsafeCell<usize>,
}

/// A pointer to a node, for threads.
struct Slot(AtomicPtr<Node>);

impl Slot {
    fn full() -> Slot {
        Slot(AtomicPtr::new(node()))
    }

    /// Uses the node that is there.
    fn with<R>(&self, f: impl FnOnce(&Node) -> R) -> R {
        // SAFETY: as in `free`.
        f(unsafe { &*self.0.load(Acquire) })
    }
}

fn node() -> *mut Node {
    // The optimiser leaves out what is allocated and freed without being used in between.
    std::hint::black_box(Box::into_raw(Box::new(Node {
        value: AtomicUsize::new(7),
        plain: UnsafeCell::new(7),
    })))
}

fn free(node: *mut Node) {
    // SAFETY: whether nobody frees it before or uses it later is what these tests are about; the
    // model keeps the memory until the execution ends.
    drop(unsafe { Box::from_raw(node) });
    // A call at the end of a function may leave no frame of that function.
    black_box(());
}

fn value(node: *mut Node) -> usize {
    // SAFETY: as in `free`.
    unsafe { &*node }.value.load(Acquire)
}

/// Runs `first` in a new thread and `second` in the main one, and frees what is left.
fn beside(first: fn(&Slot), second: fn(&Slot)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let slot = Arc::new(Slot::full());
        let theirs = slot.clone();
        let other = thread::spawn(move || first(&theirs));
        second(&slot);
        other.join().unwrap();
        let left = slot.0.load(Acquire);
        if !left.is_null() {
            free(left);
        }
    }
}

fn take_and_free(slot: &Slot) {
    let node = slot.0.swap(null_mut(), AcqRel);
    if !node.is_null() {
        free(node);
        black_box(());
    }
}

/// An address for another thread.
struct At(*const AtomicUsize);

// SAFETY: what is at the address is an atomic. Whether it still is, is what the tests are about.
unsafe impl Send for At {}

impl At {
    fn get(&self) -> &AtomicUsize {
        // SAFETY: none. The model ends before memory is used that is no more.
        unsafe { &*self.0 }
    }

    /// Says that it is over, and then says it again.
    fn announce(&self) {
        self.get().store(1, Release);
        self.get().store(2, Release);
    }

    /// Looks twice. Where a stack goes on to be used, what is stored to a variable that is no more may be where a function
    /// returns to.
    fn look(&self) {
        self.get().load(Acquire);
        self.get().load(Acquire);
    }
}
