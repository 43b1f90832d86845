//! Which bugs need weak memory, are found by default, and are explained by the report?
//!
//! Each program has a broken version, which passes in full under sequential consistency, and a
//! repaired one. Some are public bug reports, written anew. Where `SeqCst` accesses repair a
//! program, loom, which takes them for `AcqRel`, has a false alarm.

use std::sync::Arc;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, fence};
use dpor::sync::{Condvar, Mutex};
use dpor::{Builder, Failure, FailureKind, thread};

use super::{Cell, explored, failure_of, headline};

/// The failure is found by default, and its report says which old value a thread reads, and why it
/// may.
fn found(kind: FailureKind, f: impl Fn() + Sync + Send + Copy + 'static) -> Failure {
    let failure = failure_of(&Builder::new(), f);
    let text = failure.to_string();
    assert_eq!(failure.kind(), kind, "{text}");
    assert!(text.contains(" (old)  "), "{text}");
    for told in ["\n  it fails because ", " does not know of it, because "] {
        assert!(text.contains(told), "{told}: {text}");
    }
    failure
}

/// The report says this, too.
fn says(failure: &Failure, told: &str) {
    let text = failure.to_string();
    assert!(text.contains(told), "{told}: {text}");
}

/// The number of executions by default.
fn repaired(f: impl Fn() + Sync + Send + Copy + 'static) -> u64 {
    explored(&Builder::new(), f)
}

fn atomics<const N: usize>() -> Arc<[AtomicUsize; N]> {
    Arc::new([const { AtomicUsize::new(0) }; N])
}

#[test]
fn store_buffering() {
    fn run(store: Ordering, load: Ordering) {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, store);
            theirs[1].load(load)
        });
        all[1].store(1, store);
        let seen = all[0].load(load);
        let seen = seen + other.join().unwrap();
        assert_ne!(seen, 0, "no store was seen");
    }
    let failure = found(FailureKind::Panic, || run(Release, Acquire));
    says(&failure, "no SeqCst fence stands between");
    assert_eq!(repaired(|| run(SeqCst, SeqCst)), 3);
}

/// Both first stores, or both last ones, may be the last in the order of their atomics.
#[test]
fn two_stores_to_each_of_two_atomics() {
    fn run(order: Ordering) {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, order);
            theirs[1].store(2, order);
        });
        all[1].store(1, order);
        all[0].store(2, order);
        other.join().unwrap();
        let left = [all[0].load(Relaxed), all[1].load(Relaxed)];
        assert_ne!(left, [1, 1], "both first stores are the last ones");
    }
    let failure = failure_of(&Builder::new(), || run(Release));
    says(&failure, "goes before");
    assert_eq!(repaired(|| run(SeqCst)), 3);
}

#[test]
fn peterson_before_a_plain_cell() {
    fn run(store: Ordering, load: Ordering) {
        let all = Arc::new((
            [AtomicBool::new(false), AtomicBool::new(false)],
            AtomicUsize::new(0),
            Cell::new(),
        ));
        let try_enter = move |all: &([AtomicBool; 2], AtomicUsize, Cell), me: usize| {
            let (wants, turn, cell) = all;
            wants[me].store(true, store);
            turn.store(1 - me, store);
            if !wants[1 - me].load(load) || turn.load(load) == me {
                cell.add_one();
            }
        };
        let theirs = all.clone();
        let other = thread::spawn(move || try_enter(&theirs, 0));
        try_enter(&all, 1);
        other.join().unwrap();
    }
    found(FailureKind::DataRace, || run(Release, Acquire));
    assert_eq!(repaired(|| run(SeqCst, SeqCst)), 6);
}

#[test]
fn dekker_before_a_plain_cell() {
    fn run(order: [Ordering; 2]) {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let cell = Arc::new(Cell::new());
        let try_enter = move |flags: &[AtomicBool; 2], cell: &Cell, me: usize| {
            flags[me].store(true, order[0]);
            if !flags[1 - me].load(order[1]) {
                cell.add_one();
            }
            flags[me].store(false, order[0]);
        };
        let theirs = (flags.clone(), cell.clone());
        let other = thread::spawn(move || try_enter(&theirs.0, &theirs.1, 0));
        try_enter(&flags, &cell, 1);
        other.join().unwrap();
    }
    found(FailureKind::DataRace, || run([Release, Acquire]));
    assert!(repaired(|| run([SeqCst, SeqCst])) > 3);
}

#[test]
fn message_passing() {
    fn run(store: Ordering, load: Ordering) {
        let all = atomics::<2>();
        let theirs = all.clone();
        let writer = thread::spawn(move || {
            theirs[0].store(42, Relaxed);
            theirs[1].store(1, store);
        });
        if all[1].load(load) == 1 {
            assert_eq!(all[0].load(Relaxed), 42);
        }
        writer.join().unwrap();
    }
    let failure = found(FailureKind::Panic, || run(Relaxed, Relaxed));
    says(&failure, "is Relaxed");
    found(FailureKind::Panic, || run(Release, Relaxed));
    found(FailureKind::Panic, || run(Relaxed, Acquire));
    assert_eq!(repaired(|| run(Release, Acquire)), 2);
}

/// A thread that wants to sleep announces itself and looks for an event; the other one posts the
/// event and looks for sleepers.
#[test]
fn an_event_count() {
    fn run(has_fence: bool) {
        let all = atomics::<2>();
        let theirs = all.clone();
        let other = thread::spawn(move || {
            let [sleepers, events] = &*theirs;
            events.fetch_add(1, Release);
            fence(SeqCst);
            sleepers.load(Relaxed) != 0
        });
        let [sleepers, events] = &*all;
        let key = events.load(Acquire);
        sleepers.store(1, Relaxed);
        if has_fence {
            fence(SeqCst);
        }
        let sleeps = events.load(Acquire) == key;
        let wakes = other.join().unwrap();
        assert!(key == 1 || wakes || !sleeps, "it sleeps for ever");
    }
    let failure = found(FailureKind::Panic, || run(false));
    says(&failure, "no SeqCst fence stands between main's events");
    assert!(repaired(|| run(true)) > 1);
}

/// The owner of a queue of two elements takes the last one while a thief takes both. With more than
/// one element in the queue the owner does not compare `top`, so it has to see what was stolen.
#[test]
fn the_owner_of_a_chase_lev_queue() {
    fn run(fences: [bool; 2]) {
        struct Queue {
            top: AtomicIsize,
            bottom: AtomicIsize,
            items: [AtomicUsize; 2],
        }
        let steal = |queue: &Queue, has_fence: bool| {
            let top = queue.top.load(Acquire);
            if has_fence {
                fence(SeqCst);
            }
            if top >= queue.bottom.load(Acquire) {
                return 0;
            }
            let item = queue.items[top as usize].load(Relaxed);
            match queue.top.compare_exchange(top, top + 1, SeqCst, Relaxed) {
                Ok(_) => item,
                Err(_) => 0,
            }
        };
        let pop = |queue: &Queue, has_fence: bool| {
            queue.bottom.store(1, Relaxed);
            if has_fence {
                fence(SeqCst);
            }
            let top = queue.top.load(Relaxed);
            match top {
                0 => queue.items[1].load(Relaxed),
                1 if (queue.top.compare_exchange(1, 2, SeqCst, Relaxed)).is_ok() => 10,
                _ => 0,
            }
        };
        let queue = Arc::new(Queue {
            top: AtomicIsize::new(0),
            bottom: AtomicIsize::new(2),
            items: [AtomicUsize::new(1), AtomicUsize::new(10)],
        });
        let theirs = queue.clone();
        let thief = thread::spawn(move || steal(&theirs, fences[1]) + steal(&theirs, fences[1]));
        let mine = pop(&queue, fences[0]);
        let stolen = thief.join().unwrap();
        assert!(mine + stolen <= 11, "taken twice: {mine} and {stolen}");
    }
    let failure = found(FailureKind::Panic, || run([false, true]));
    says(&failure, "no SeqCst fence stands between main's events");
    found(FailureKind::Panic, || run([true, false]));
    assert!(repaired(|| run([true, true])) > 1);
}

#[test]
fn readers_of_independent_writes() {
    fn run(store: Ordering, load: Ordering) {
        let all = atomics::<2>();
        let writers = [0, 1].map(|at| {
            let all = all.clone();
            thread::spawn(move || all[at].store(1, store))
        });
        let readers = [0, 1].map(|at| {
            let all = all.clone();
            thread::spawn(move || (all[at].load(load), all[1 - at].load(load)))
        });
        let seen = readers.map(|reader| reader.join().unwrap());
        for writer in writers {
            writer.join().unwrap();
        }
        assert_ne!(seen, [(1, 0), (1, 0)], "the readers disagree");
    }
    found(FailureKind::Panic, || run(Release, Acquire));
    assert_eq!(repaired(|| run(SeqCst, SeqCst)), 15);
    // It takes all of them.
    found(FailureKind::Panic, || run(SeqCst, Acquire));
}

/// python/cpython#121388: neither the reader nor the writer of a seqlock has a fence.
#[test]
fn a_seqlock() {
    fn run(fences: [bool; 2]) {
        let all = atomics::<3>();
        let theirs = all.clone();
        let writer = thread::spawn(move || {
            let [sequence, key, value] = &*theirs;
            let seen = sequence.load(Relaxed);
            let locked = sequence.compare_exchange(seen, seen + 1, Acquire, Relaxed);
            assert!(locked.is_ok(), "there is one writer");
            if fences[0] {
                fence(Release);
            }
            key.store(1, Relaxed);
            value.store(10, Relaxed);
            sequence.store(seen + 2, Release);
        });
        let [sequence, key, value] = &*all;
        let before = sequence.load(Acquire);
        if before % 2 == 0 {
            let pair = (key.load(Relaxed), value.load(Relaxed));
            if fences[1] {
                fence(Acquire);
            }
            if sequence.load(Relaxed) == before {
                assert_eq!(pair.1, pair.0 * 10, "a torn read");
            }
        }
        writer.join().unwrap();
    }
    let failure = found(FailureKind::Panic, || run([true, false]));
    says(&failure, "no fence that acquires stands behind it");
    found(FailureKind::Panic, || run([false, true]));
    found(FailureKind::Panic, || run([false, false]));
    assert!(repaired(|| run([true, true])) > 1);
}

/// surrealdb/affinitypool#21: a worker parks although a job was pushed.
#[test]
fn a_pool_with_a_worker_that_parks() {
    fn run(fences: [bool; 2]) {
        let pool = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
        let theirs = pool.clone();
        let worker = thread::spawn(move || {
            let (jobs, parked) = &*theirs;
            let one_less = |jobs: usize| jobs.checked_sub(1);
            let take =
                || jobs.load(Acquire) != 0 && jobs.fetch_update(AcqRel, Acquire, one_less).is_ok();
            while !take() {
                parked.store(true, Release);
                if fences[0] {
                    fence(SeqCst);
                }
                if jobs.load(Acquire) == 0 {
                    thread::park();
                }
                parked.store(false, Release);
            }
        });
        let (jobs, parked) = &*pool;
        jobs.store(1, Release);
        if fences[1] {
            fence(SeqCst);
        }
        if parked.load(Acquire) {
            worker.thread().unpark();
        }
        worker.join().unwrap();
    }
    found(FailureKind::Deadlock, || run([false, false]));
    found(FailureKind::Deadlock, || run([true, false]));
    found(FailureKind::Deadlock, || run([false, true]));
    assert!(repaired(|| run([true, true])) > 1);
}

/// apache/brpc#3539: a wake-up is skipped, because the number of waiters is an old one.
#[test]
fn a_wake_up_that_is_skipped() {
    #[derive(Default)]
    struct Lot {
        signals: AtomicUsize,
        waiters: AtomicUsize,
        /// The queue of a futex: the number of wake-ups, and the threads that sleep.
        bucket: Mutex<usize>,
        sleepers: Condvar,
    }
    fn run(adds: Ordering, loads: Ordering) {
        let lot = Arc::new(Lot::default());
        let theirs = lot.clone();
        let signaller = thread::spawn(move || {
            theirs.signals.fetch_add(2, adds);
            if theirs.waiters.load(loads) != 0 {
                let mut wakes = theirs.bucket.lock().unwrap();
                *wakes += 1;
                theirs.sleepers.notify_all();
            }
        });
        if lot.signals.load(loads) == 0 {
            lot.waiters.fetch_add(1, adds);
            let mut wakes = lot.bucket.lock().unwrap();
            if lot.signals.load(loads) == 0 {
                let before = *wakes;
                while *wakes == before {
                    wakes = lot.sleepers.wait(wakes).unwrap();
                }
            }
            drop(wakes);
            lot.waiters.fetch_sub(1, adds);
        }
        signaller.join().unwrap();
    }
    found(FailureKind::Deadlock, || run(Relaxed, Relaxed));
    found(FailureKind::Deadlock, || run(AcqRel, Acquire));
    assert!(repaired(|| run(SeqCst, SeqCst)) > 1);
}

/// Orderings that are too weak for plain data are found in the executions of sequential
/// consistency, too.
fn races(f: impl Fn() + Sync + Send + Copy + 'static) -> Failure {
    let failure = *Builder::new().explore(f).expect_err("it fails");
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
    let mut replay = Builder::new();
    replay.replay = Some(failure.schedule().to_owned());
    let again = *replay.explore(f).expect_err("it fails again");
    assert_eq!(headline(&again), headline(&failure));
    failure
}

/// ZettaScaleLabs/stabby#139: a count of references that is lowered `Relaxed`.
#[test]
fn a_count_of_references() {
    struct Block {
        count: AtomicUsize,
        value: UnsafeCell<u32>,
    }
    struct Owner(*mut Block);
    // SAFETY: the count keeps the block.
    unsafe impl Send for Owner {}
    impl Owner {
        fn read_and_drop(self, lowers: Ordering, has_fence: bool) {
            // SAFETY: this owner is counted.
            let block = unsafe { &*self.0 };
            // SAFETY: all owners only read it.
            block.value.with(|value| assert_eq!(unsafe { *value }, 7));
            if block.count.fetch_sub(1, lowers) == 1 {
                if has_fence {
                    fence(Acquire);
                }
                // SAFETY: that was the last owner.
                drop(unsafe { Box::from_raw(self.0) });
            }
        }
    }
    fn run(lowers: Ordering, has_fence: bool) {
        let block = Box::into_raw(Box::new(Block {
            count: AtomicUsize::new(2),
            value: UnsafeCell::new(7),
        }));
        let owners = [Owner(block), Owner(block)];
        let [mine, theirs] = owners;
        let other = thread::spawn(move || theirs.read_and_drop(lowers, has_fence));
        mine.read_and_drop(lowers, has_fence);
        other.join().unwrap();
    }
    races(|| run(Relaxed, true));
    races(|| run(Release, false));
    assert_eq!(repaired(|| run(Release, true)), 2);
}

/// rust-lang/rust#51780: `Arc::get_mut` acquires nothing of an owner that is gone.
#[test]
fn a_count_that_is_one() {
    struct Inner {
        strong: AtomicUsize,
        weak: AtomicUsize,
        data: Cell,
    }
    fn run(order: Ordering) {
        // Another count keeps the block, since this is about the data only.
        let inner = Arc::new(Inner {
            strong: AtomicUsize::new(2),
            weak: AtomicUsize::new(1),
            data: Cell::new(),
        });
        let theirs = inner.clone();
        let other = thread::spawn(move || {
            theirs.data.add_one();
            if theirs.strong.fetch_sub(1, Release) == 1 {
                fence(Acquire);
            }
        });
        let locked = (inner.weak).compare_exchange(1, usize::MAX, Acquire, Relaxed);
        if locked.is_ok() {
            let is_unique = inner.strong.load(order) == 1;
            inner.weak.store(1, Release);
            if is_unique {
                inner.data.add_one();
            }
        }
        other.join().unwrap();
    }
    races(|| run(Relaxed));
    assert_eq!(repaired(|| run(Acquire)), 2);
}
