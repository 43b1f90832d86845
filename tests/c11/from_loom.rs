//! Does what loom's own tests expect of weak memory happen?
//!
//! The programs are those of loom 0.7.2 in `tests/litmus.rs`, `atomic.rs`, `atomic_relaxed.rs`,
//! `fence.rs`, `mutex.rs`, `spec.rs` and `unsafe_cell.rs`, without loom's bounds. Those that loom
//! leaves out as what it cannot do are among them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, AtomicUsize, fence};
use dpor::{Builder, FailureKind, hint, thread};

use super::{explored, failure_of};

/// What the closure has returned in the executions by default, which are all there are.
fn outcomes<T>(f: impl Fn() -> T + Sync + Send + 'static) -> BTreeSet<T>
where
    T: Ord + Clone + Send + 'static,
{
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let into = seen.clone();
    explored(&Builder::new(), move || {
        let outcome = f();
        into.lock().unwrap().insert(outcome);
    });
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn atomics<const N: usize>() -> Arc<[AtomicUsize; N]> {
    Arc::new([const { AtomicUsize::new(0) }; N])
}

/// `litmus::store_buffering`
#[test]
fn store_buffering() {
    let seen = outcomes(|| {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, Relaxed);
            theirs[1].load(Relaxed)
        });
        all[1].store(1, Relaxed);
        let mine = all[0].load(Relaxed);
        (other.join().unwrap(), mine)
    });
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

/// `atomic::check_ordering_valid`, `check_ordering_invalid_1` and `check_ordering_invalid_2`
#[test]
fn check_ordering() {
    fn run(store: Ordering, load: Ordering) {
        let all = atomics::<2>();
        let theirs = all.clone();
        thread::spawn(move || {
            theirs[0].store(1, Relaxed);
            theirs[1].store(1, store);
        });
        if 1 == all[1].load(load) {
            assert_eq!(1, all[0].load(Relaxed));
        }
    }
    explored(&Builder::new(), || run(Release, Acquire));
    failure_of(&Builder::new(), || run(Release, Relaxed));
    failure_of(&Builder::new(), || run(Relaxed, Relaxed));
}

/// `spec::acq_rel` and `spec::test_seq_cst`. With the second one loom has an execution that
/// `SeqCst` forbids.
#[test]
fn spec() {
    fn run(store: Ordering, load: Ordering) -> usize {
        let all = Arc::new((
            [AtomicBool::new(false), AtomicBool::new(false)],
            AtomicUsize::new(0),
        ));
        let theirs = all.clone();
        thread::spawn(move || theirs.0[1].store(true, store));
        let readers = [0, 1].map(|at| {
            let theirs = all.clone();
            thread::spawn(move || {
                let (flags, count) = &*theirs;
                while !flags[at].load(load) {
                    thread::yield_now();
                }
                if flags[1 - at].load(load) {
                    count.fetch_add(1, Relaxed);
                }
            })
        });
        all.0[0].store(true, store);
        for reader in readers {
            reader.join().unwrap();
        }
        all.1.load(SeqCst)
    }
    assert_eq!(
        outcomes(|| run(Release, Acquire)),
        BTreeSet::from([0, 1, 2])
    );
    assert_eq!(outcomes(|| run(SeqCst, SeqCst)), BTreeSet::from([1, 2]));
}

/// `fence::fence_sw_base`, `fence_sw_collapsed_store` and `fence_sw_collapsed_load`
#[test]
fn fence_sw() {
    fn run(store: Option<Ordering>, load: Option<Ordering>) {
        let shared = Arc::new((Data::default(), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (data, flag) = &*theirs;
            // SAFETY: the model finds races.
            data.0.with_mut(|data| unsafe { *data = 42 });
            if store.is_none() {
                fence(Release);
            }
            flag.store(true, store.unwrap_or(Relaxed));
        });
        let (data, flag) = &*shared;
        if flag.load(load.unwrap_or(Relaxed)) {
            if load.is_none() {
                fence(Acquire);
            }
            // SAFETY: the model finds races.
            data.0.with_mut(|data| assert_eq!(42, unsafe { *data }));
        }
        other.join().unwrap();
    }
    explored(&Builder::new(), || run(None, None));
    explored(&Builder::new(), || run(Some(Release), None));
    explored(&Builder::new(), || run(None, Some(Acquire)));
    let races = |store, load| {
        let f = move || run(store, load);
        let failure = Builder::new().explore(f).expect_err("a race");
        assert_eq!(failure.kind(), FailureKind::DataRace);
    };
    races(Some(Relaxed), None);
    races(None, Some(Relaxed));
}

#[derive(Default)]
struct Data(UnsafeCell<u32>);

// SAFETY: the models find races.
unsafe impl Sync for Data {}

/// `fence::sb_fences`
#[test]
fn sb_fences() {
    let run = |fences: [bool; 2]| {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, Relaxed);
            if fences[0] {
                fence(SeqCst);
            }
            theirs[1].load(Relaxed)
        });
        all[1].store(1, Relaxed);
        if fences[1] {
            fence(SeqCst);
        }
        let mine = all[0].load(Relaxed);
        assert_ne!(mine + other.join().unwrap(), 0);
    };
    assert_eq!(explored(&Builder::new(), move || run([true, true])), 3);
    failure_of(&Builder::new(), move || run([true, false]));
}

/// `fence::fence_hazard_pointer`
#[test]
fn fence_hazard_pointer() {
    fn run(fences: [bool; 2]) {
        let all = Arc::new([
            AtomicBool::new(true),
            AtomicBool::new(false),
            AtomicBool::new(true),
        ]);
        let theirs = all.clone();
        let other = thread::spawn(move || {
            let [reachable, protected, allocated] = &*theirs;
            protected.store(true, Relaxed);
            if fences[0] {
                fence(SeqCst);
            }
            if reachable.load(Relaxed) {
                assert!(allocated.load(Relaxed), "a use after free");
            }
        });
        let [reachable, protected, allocated] = &*all;
        reachable.store(false, Relaxed);
        if fences[1] {
            fence(SeqCst);
        }
        if !protected.load(Relaxed) {
            allocated.store(false, Relaxed);
        }
        other.join().unwrap();
    }
    explored(&Builder::new(), || run([true, true]));
    failure_of(&Builder::new(), || run([false, true]));
    failure_of(&Builder::new(), || run([true, false]));
}

/// `fence::rwc_syncs` and `fence::w_rwc`
#[test]
fn rwc_syncs() {
    fn run(passes_on: bool, fences: [bool; 2]) {
        let all = atomics::<3>();
        let (second, third) = (all.clone(), all.clone());
        let second = thread::spawn(move || {
            let seen = match passes_on {
                true => second[2].load(Acquire),
                false => second[0].load(Relaxed),
            };
            if fences[0] {
                fence(SeqCst);
            }
            (seen, second[1].load(Relaxed))
        });
        let third = thread::spawn(move || {
            third[1].store(1, Relaxed);
            if fences[1] {
                fence(SeqCst);
            }
            third[0].load(Relaxed)
        });
        all[0].store(1, Relaxed);
        if passes_on {
            all[2].store(1, Release);
        }
        let (seen, second) = second.join().unwrap();
        let third = third.join().unwrap();
        assert_ne!((seen, second, third), (1, 0, 0));
    }
    for passes_on in [false, true] {
        explored(&Builder::new(), move || run(passes_on, [true, true]));
        failure_of(&Builder::new(), move || run(passes_on, [false, true]));
        failure_of(&Builder::new(), move || run(passes_on, [true, false]));
    }
}

/// `litmus::load_buffering` and `spec::relaxed`, which loom leaves out: a load that reads a later
/// store is in the standard, and in no execution of either.
#[test]
fn load_buffering() {
    let seen = outcomes(|| {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || theirs[0].store(theirs[1].load(Relaxed), Relaxed));
        let mine = all[0].load(Relaxed);
        all[1].store(1, Relaxed);
        other.join().unwrap();
        mine
    });
    assert_eq!(seen, BTreeSet::from([0]));
}

/// `yield::yield_completes`, and loops that read an old value for a while.
#[test]
fn loops_end() {
    for yields in [true, false] {
        explored(&Builder::new(), move || {
            let all = atomics::<1>();
            let theirs = all.clone();
            thread::spawn(move || theirs[0].store(1, Relaxed));
            while all[0].load(Relaxed) != 1 {
                match yields {
                    true => thread::yield_now(),
                    false => hint::spin_loop(),
                }
            }
        });
    }
}

/// `atomic::compare_and_swap_reads_old_values`, which loom leaves out: it expects that both
/// exchanges write over the store of the other thread. But an exchange comes directly behind the
/// store that it reads, so the other store comes before both or behind both.
#[test]
fn compare_and_swap_reads_old_values() {
    let seen = outcomes(|| {
        let all = atomics::<2>();
        let theirs = all.clone();
        let swap = |atomic: &AtomicUsize| atomic.compare_exchange(0, 2, AcqRel, Acquire).is_ok();
        let other = thread::spawn(move || {
            theirs[0].store(1, Release);
            swap(&theirs[1])
        });
        all[1].store(1, Release);
        let mine = swap(&all[0]);
        let read_old = [mine, other.join().unwrap()];
        (read_old, [0, 1].map(|at| all[at].load(Acquire)))
    });
    // Both may read the old value, which sequential consistency forbids.
    let all = [[false, false], [false, true], [true, false], [true, true]];
    assert_eq!(seen, all.map(|read_old| (read_old, [1, 1])).into());
}

/// `atomic_relaxed::compare_and_swap`
#[test]
fn compare_and_swap() {
    let seen = outcomes(|| {
        let all = atomics::<1>();
        let others = [(); 2].map(|()| {
            let theirs = all.clone();
            thread::spawn(move || {
                let mut seen = theirs[0].load(Relaxed);
                while let Err(other) = theirs[0].compare_exchange(seen, seen + 1, Relaxed, Relaxed)
                {
                    seen = other;
                }
            })
        });
        for other in others {
            other.join().unwrap();
        }
        all[0].load(Relaxed)
    });
    assert_eq!(seen, BTreeSet::from([2]));
}

/// `unsafe_cell::atomic_causality_success` and `atomic_causality_fail`
#[test]
fn atomic_causality() {
    fn run(orderings: Option<[Ordering; 2]>) {
        let shared = Arc::new((Data::default(), AtomicBool::new(false)));
        let theirs = shared.clone();
        let [store, load] = orderings.unwrap_or([Release, Acquire]);
        let other = thread::spawn(move || {
            // SAFETY: the model finds races.
            theirs.0.0.with_mut(|data| unsafe { *data += 123 });
            theirs.1.store(true, store);
        });
        let is_set = || shared.1.load(load);
        // SAFETY: the model finds races.
        let get = || shared.0.0.with(|data| unsafe { *data });
        if orderings.is_none() || is_set() {
            let seen = get();
            assert!(orderings.is_none() || seen == 123);
        }
        other.join().unwrap();
        assert!(is_set());
        assert_eq!(get(), 123);
    }
    explored(&Builder::new(), || run(Some([Release, Acquire])));
    for orderings in [None, Some([Relaxed, Acquire]), Some([Release, Relaxed])] {
        let failure = Builder::new().explore(move || run(orderings));
        let failure = failure.expect_err("a race");
        assert_eq!(failure.kind(), FailureKind::DataRace, "{orderings:?}");
    }
}

/// `mutex::mutex_establishes_seq_cst`: what was written before an unlock is there behind the lock.
#[test]
fn mutex_establishes_seq_cst() {
    let seen = outcomes(|| {
        let shared = Arc::new((Data::default(), dpor::sync::Mutex::new(false)));
        let theirs = shared.clone();
        thread::spawn(move || {
            // SAFETY: the model finds races.
            theirs.0.0.with_mut(|data| unsafe { *data = 1 });
            *theirs.1.lock().unwrap() = true;
        });
        let is_set = *shared.1.lock().unwrap();
        // SAFETY: the model finds races.
        is_set.then(|| shared.0.0.with(|data| unsafe { *data }))
    });
    assert_eq!(seen, BTreeSet::from([None, Some(1)]));
}

/// `atomic::invalid_unsync_load_relaxed`: a read without synchronisation races with a store.
#[test]
fn unsync_load() {
    let failure = Builder::new().explore(|| {
        let all = atomics::<1>();
        let theirs = all.clone();
        // SAFETY: the model finds races.
        let other = thread::spawn(move || unsafe { theirs[0].unsync_load() });
        all[0].store(1, Relaxed);
        other.join().unwrap();
    });
    assert_eq!(failure.expect_err("a race").kind(), FailureKind::DataRace);
}

/// Read-modify-writes read the last value, with any ordering.
#[test]
fn counters_are_exact() {
    for order in [Relaxed, AcqRel] {
        let seen = outcomes(move || {
            let all = atomics::<1>();
            let others = [(); 2].map(|()| {
                let theirs = all.clone();
                thread::spawn(move || theirs[0].fetch_add(1, order))
            });
            let read = others.map(|other| other.join().unwrap());
            (BTreeSet::from(read), all[0].load(Relaxed))
        });
        assert_eq!(seen, BTreeSet::from([(BTreeSet::from([0, 1]), 2)]));
    }
}
