//! When does a thread in a loop wait for a change, and what if it never has to?

mod awaits;
mod critical_sections;
mod fairness;
mod giving_up;
mod hintless;
mod livelocks;
mod max_rounds;
mod polling;
mod told;
mod waiting;

use std::sync::atomic::Ordering::SeqCst;

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, Memory, Verdict, hint, thread};

/// Whether it is seen here that a thread may count its rounds.
const COUNTS_SHOW: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Explores `f` completely with each algorithm that can tell, and without a preemption bound; gives the number of
/// executions, which is the same for all of them.
fn count(f: impl Fn() + Send + Sync + Clone + 'static) -> u64 {
    let executions = |algorithm| {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        // Only `Optimal` explores C11, and leaves out looks in vain.
        builder.memory = Memory::Sc;
        builder.await_loops = Some(false);
        let report = builder.check(f.clone());
        // What times out more often than twice in a row is explored as far as that.
        let is_complete = report.complete || matches!(report.verdict, Verdict::TimesOut(3..));
        assert!(is_complete, "{algorithm:?}: {report}");
        assert!(
            algorithm != Algorithm::Optimal || report.pruned == 0,
            "{report}"
        );
        report.executions
    };
    let optimal = executions(Algorithm::Optimal);
    for other in [Algorithm::Source, Algorithm::Classic, Algorithm::Bounded] {
        assert_eq!(executions(other), optimal, "{other:?}");
    }
    optimal
}

/// The exploration of `f` finds a failure of this kind.
#[track_caller]
fn fails(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) {
    let failure = Builder::new().explore(f).expect_err("it may fail");
    assert_eq!(failure.kind(), kind, "{failure}");
}

/// Looks at `flags` in turns, with a hint in between, until one of them is set.
fn look_around(flags: &[AtomicUsize]) {
    let mut turns = flags.iter().cycle();
    while turns.next().is_some_and(|flag| flag.load(SeqCst) == 0) {
        hint::spin_loop();
    }
}

/// One thread looks at two flags in turns, and so many others set one each.
fn two_flags(setters: usize) -> impl Fn() + Send + Sync + Clone {
    move || {
        let flags: Arc<[AtomicUsize; 2]> = Arc::default();
        let setter = |at: usize| {
            let flags = flags.clone();
            thread::spawn(move || flags[at].store(1, SeqCst))
        };
        let setters: Vec<_> = (0..setters).map(setter).collect();
        // It has changed nothing before, and knows nothing of the execution before.
        let looks = flags.clone();
        let looker = thread::spawn(move || look_around(&*looks));
        for thread in setters.into_iter().chain([looker]) {
            thread.join().expect("no thread panics");
        }
    }
}

/// A number behind a lock of the test's own.
struct Locked {
    taken: AtomicBool,
    number: UnsafeCell<usize>,
}

// SAFETY: the number is only used by who has the lock.
unsafe impl Sync for Locked {}

impl Locked {
    fn new() -> Locked {
        Locked {
            taken: AtomicBool::new(false),
            number: UnsafeCell::new(0),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut usize) -> R) -> R {
        while self.taken.swap(true, SeqCst) {
            thread::yield_now();
        }
        // SAFETY: the lock is taken.
        let result = self.number.with_mut(|number| f(unsafe { &mut *number }));
        self.taken.store(false, SeqCst);
        result
    }
}
