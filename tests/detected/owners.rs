//! Is the end of a block in order if the last of its owners makes it, whoever counts them?
//!
//! An `Arc` of std's orders what no event shows. A test has one where its imports are only swapped in part, and
//! wherever `std::task::Wake` makes a `Waker` of it.

use std::cell::RefCell;
use std::ptr;
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicBool;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Once, mpsc};
use dpor::{Algorithm, Builder, Failure, FailureKind, thread};

/// What has owners: an object, and some in a block of their own.
struct Owned {
    flag: AtomicUsize,
    slots: Box<[AtomicUsize]>,
}

impl Owned {
    fn new() -> Owned {
        Owned {
            flag: AtomicUsize::new(0),
            slots: [0, 0].map(AtomicUsize::new).into(),
        }
    }

    /// Nothing of this orders anything.
    fn use_it(&self, mine: usize) {
        self.flag.store(mine, Relaxed);
        self.slots[mine].store(mine, Relaxed);
    }
}

/// Two threads use the same, and end.
fn share<T: Clone + Send + 'static>(owned: T, use_it: fn(&T, usize)) {
    let theirs = owned.clone();
    thread::spawn(move || use_it(&theirs, 1));
    use_it(&owned, 0);
}

fn counted_by_std() {
    share(StdArc::new(Owned::new()), |owned, mine| owned.use_it(mine));
}

#[test]
fn what_an_arc_of_std_frees_is_freed_after_every_use_of_it() {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Source,
        Algorithm::SleepSets,
        Algorithm::Naive,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(counted_by_std);
        // The two stores to `flag` have two orders. Without partial orders, each of the thread's two steps goes
        // anywhere between those of the other.
        let expected = match algorithm {
            Algorithm::Naive => 6,
            _ => 2,
        };
        assert_eq!(report.executions, expected, "{algorithm:?}");
        assert!(report.complete);
    }
    for algorithm in [Algorithm::Random, Algorithm::Pct] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.iterations = 20;
        assert_eq!(builder.check(counted_by_std).executions, 20);
    }
    let mut builder = Builder::new();
    builder.replay = Some("v2 main*3 main.1*2".to_owned());
    assert_eq!(builder.check(counted_by_std).executions, 1);
}

/// Two owners come to a barrier for one. The second arrival comes after the first one, and so does
/// what follows it, but the barrier tells no thread anything.
fn both_wait<T: Send + Sync + 'static>(owned: StdArc<T>, barrier: fn(&T) -> &Barrier) {
    let theirs = owned.clone();
    thread::spawn(move || {
        barrier(&theirs).wait();
    });
    barrier(&owned).wait();
}

fn many() -> Vec<Barrier> {
    vec![Barrier::new(1)]
}

#[test]
fn what_the_value_of_an_arc_of_std_owns_is_freed_after_every_use_of_it() {
    type Model = (&'static str, fn());
    let models: &[Model] = &[
        ("a vector", || both_wait(StdArc::new(many()), |it| &it[0])),
        ("a box", || {
            both_wait(StdArc::new(Box::new(Barrier::new(1))), |it| it);
        }),
        ("vectors in a vector", || {
            both_wait(StdArc::new(vec![many()]), |it| &it[0][0]);
        }),
        ("an owner in an owner", || {
            both_wait(StdArc::new(StdArc::new(many())), |it| &it[0]);
        }),
        ("an owner of dpor's in one of std's", || {
            both_wait(StdArc::new(Arc::new(many())), |it| &it[0]);
        }),
        ("a flag, and a look whether a thread is over", || {
            let owned = StdArc::new(vec![AtomicUsize::new(0)]);
            let theirs = owned.clone();
            let handle = thread::spawn(move || theirs[0].store(1, Relaxed));
            handle.is_finished();
        }),
        ("a condition variable, and a wait there", || {
            let owned = StdArc::new((Mutex::new(false), vec![Condvar::new()]));
            let theirs = owned.clone();
            thread::spawn(move || {
                *theirs.0.lock().unwrap() = true;
                theirs.1[0].notify_one();
            });
            let mut guard = owned.0.lock().unwrap();
            while !*guard {
                guard = owned.1[0].wait(guard).unwrap();
            }
        }),
        ("what comes by a channel", || {
            let (sender, receiver) = mpsc::channel();
            let owned = StdArc::new(many());
            sender.send(owned.clone()).unwrap();
            thread::spawn(move || {
                receiver.recv().unwrap()[0].wait();
            });
            owned[0].wait();
        }),
        ("what a variable of a thread owns", || {
            dpor::thread_local!(static KEPT: RefCell<Option<StdArc<Vec<Barrier>>>> = const { RefCell::new(None) });
            let owned = StdArc::new(many());
            let theirs = owned.clone();
            thread::spawn(move || {
                theirs[0].wait();
                KEPT.with(|kept| *kept.borrow_mut() = Some(theirs));
            });
            owned[0].wait();
        }),
        ("what the last owner takes out", || {
            let owned = StdArc::new(many());
            let theirs = owned.clone();
            thread::spawn(move || {
                theirs[0].wait();
                drop(StdArc::into_inner(theirs));
            });
            owned[0].wait();
            if let Some(all) = StdArc::into_inner(owned) {
                all[0].wait();
                drop(all);
            }
        }),
    ];
    for (what, model) in models {
        let report = Builder::new().explore(model);
        let report = report.unwrap_or_else(|failure| panic!("{what}: {failure}"));
        assert!(report.complete, "{what}");
    }
}

/// What several threads own, each object in a block of its own or with others, some behind another
/// owner.
struct Shared {
    numbers: Vec<AtomicUsize>,
    barrier: Box<Barrier>,
    lock: StdArc<Vec<Mutex<usize>>>,
    rows: Vec<Vec<(AtomicUsize, Condvar)>>,
    once: Box<Once>,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            numbers: vec![AtomicUsize::new(0), AtomicUsize::new(0)],
            barrier: Box::new(Barrier::new(1)),
            lock: StdArc::new(vec![Mutex::new(0)]),
            rows: vec![vec![(AtomicUsize::new(0), Condvar::new())]],
            once: Box::new(Once::new()),
        }
    }

    /// One of several operations, none of which waits for ever.
    fn perform(&self, which: usize) {
        match which {
            0 => drop(self.barrier.wait()),
            1 => self.numbers[0].store(1, Relaxed),
            2 => drop(self.numbers[0].load(Acquire)),
            3 => drop(self.numbers[1].fetch_add(1, Release)),
            4 => *self.lock[0].lock().unwrap() += 1,
            5 => self.rows[0][0].1.notify_all(),
            6 => drop(self.rows[0][0].0.swap(1, Relaxed)),
            7 => self.once.call_once(|| ()),
            _ => drop(self.lock[0].try_lock().is_ok()),
        }
    }
}

#[test]
fn what_an_arc_of_std_owns_is_in_no_race_in_random_programs() {
    let mut state = 7_u64;
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 33) % bound) as usize
    };
    for round in 0..150 {
        let mut draw = || -> Vec<usize> {
            let length = 1 + below(3);
            (0..length).map(|_| below(9)).collect()
        };
        let threads: [Vec<usize>; 2] = [draw(), draw()];
        let (looks, joins) = (round % 3 == 0, round % 5 == 0);
        let program = threads.clone();
        let model = move || {
            let shared = StdArc::new(Shared::new());
            let theirs = shared.clone();
            let ours = threads[1].clone();
            let other = thread::spawn(move || ours.iter().for_each(|&it| theirs.perform(it)));
            threads[0].iter().for_each(|&it| shared.perform(it));
            if looks {
                other.is_finished();
            }
            drop(shared);
            if joins {
                other.join().unwrap();
            }
        };
        if let Err(failure) = Builder::new().explore(model) {
            panic!("{round}: {program:?}\n{failure}");
        }
    }
}

#[test]
fn a_use_by_a_thread_that_was_an_owner_is_still_a_race() {
    let failure = Builder::new()
        .explore(|| {
            let owned = StdArc::new(many());
            let theirs = owned.clone();
            thread::spawn(move || {
                let barrier = ptr::from_ref(&theirs[0]);
                drop(theirs);
                // SAFETY: none, which is what the test is about.
                unsafe { &*barrier }.wait();
            });
            owned[0].wait();
        })
        .expect_err("a use of what belongs to others");
    assert_is_too_early(&failure);
}

#[test]
fn what_an_arc_of_dpor_owns_is_freed_in_order_whichever_owner_is_the_last() {
    let report = Builder::new().check(|| {
        share(Arc::new(Owned::new()), |owned, mine| owned.use_it(mine));
    });
    assert_eq!(report.executions, 2);
    assert!(report.complete);
}

/// An owner by a count of its own, of which the last one is told by an operation with this order.
struct ByHand(*const (AtomicUsize, Owned));

// SAFETY: the last owner frees the block, and says so in an order that the tests vary.
unsafe impl Send for ByHand {}

impl ByHand {
    fn new() -> ByHand {
        ByHand(Box::into_raw(Box::new((AtomicUsize::new(1), Owned::new()))))
    }

    fn inside(&self) -> &(AtomicUsize, Owned) {
        // SAFETY: there is an owner.
        unsafe { &*self.0 }
    }
}

impl Clone for ByHand {
    fn clone(&self) -> ByHand {
        self.inside().0.fetch_add(1, Relaxed);
        ByHand(self.0)
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        if self.inside().0.fetch_sub(1, Relaxed) == 1 {
            // SAFETY: this was the last owner.
            drop(unsafe { Box::from_raw(self.0.cast_mut()) });
        }
    }
}

/// Which of the two it is hangs on which execution shows it first.
#[track_caller]
fn assert_is_too_early(failure: &Failure) {
    assert!(
        matches!(
            failure.kind(),
            FailureKind::DataRace | FailureKind::UseAfterFree
        ),
        "{failure}"
    );
}

#[test]
fn what_a_count_that_orders_nothing_frees_is_still_a_race() {
    let failure = Builder::new()
        .explore(|| {
            // Nor does an owner of the other kind hide it.
            counted_by_std();
            share(ByHand::new(), |owned, mine| owned.inside().1.use_it(mine));
        })
        .expect_err("a drop that does not acquire");
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
    assert!(failure.to_string().contains("frees the block"), "{failure}");
}

#[test]
fn a_block_that_is_freed_while_another_thread_may_use_it_is_still_a_race() {
    let mut builder = Builder::new();
    builder.check_leaks = false;
    let failure = builder
        .explore(|| {
            counted_by_std();
            let owned = Box::leak(Box::new(AtomicUsize::new(0)));
            let (address, done) = (ptr::from_mut(owned).addr(), Arc::new(AtomicUsize::new(0)));
            let at = || ptr::with_exposed_provenance_mut::<AtomicUsize>(address);
            let theirs = done.clone();
            thread::spawn(move || {
                let owned = ptr::with_exposed_provenance_mut::<AtomicUsize>(address);
                theirs.store(1, Release);
                // SAFETY: none, which is what the test is about.
                unsafe { &*owned }.store(1, Relaxed);
            });
            if done.load(Acquire) == 1 {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(at()) });
            }
        })
        .expect_err("a use that may come later");
    assert_is_too_early(&failure);
}

/// A thread uses a block, and says so to main in a way that is not seen. Main frees it, maybe after a use of its own, if
/// that is so, or in any case.
fn told_in_std(uses_it: bool, whenever: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let owned = Box::leak(Box::new(AtomicUsize::new(0)));
        let at = ptr::from_mut(owned).expose_provenance();
        let over = StdArc::new(AtomicBool::new(false));
        let theirs = over.clone();
        thread::spawn(move || {
            // SAFETY: `over` says when it is freed.
            unsafe { &*ptr::with_exposed_provenance::<AtomicUsize>(at) }.load(Relaxed);
            theirs.store(true, Release);
        });
        AtomicUsize::new(0).store(0, Relaxed);
        if whenever || over.load(Acquire) {
            if uses_it {
                owned.store(1, Relaxed);
            }
            // SAFETY: the other thread has used it for the last time.
            drop(unsafe { Box::from_raw(owned) });
        }
    }
}

#[test]
fn what_an_atomic_of_std_orders_is_no_race() {
    let mut builder = Builder::new();
    builder.check_leaks = false;
    for uses_it in [false, true] {
        let report = builder.check(told_in_std(uses_it, false));
        assert!(report.complete);
        let failure = builder.explore(told_in_std(uses_it, true));
        let failure = failure.expect_err("a free too early");
        assert_is_too_early(&failure);
    }
}

#[test]
fn who_frees_before_saying_so_is_found() {
    let failure = Builder::new()
        .explore(|| {
            let stop = Arc::new(AtomicUsize::new(0));
            let owned = Box::leak(Box::new(AtomicUsize::new(0)));
            let at = ptr::from_mut(owned).expose_provenance();
            let theirs = stop.clone();
            thread::spawn(move || {
                // SAFETY: none, which is what the test is about.
                drop(unsafe { Box::from_raw(ptr::with_exposed_provenance_mut::<AtomicUsize>(at)) });
                theirs.store(1, Release);
            });
            if stop.load(Acquire) == 0 {
                owned.store(1, Relaxed);
            }
        })
        .expect_err("a use behind the free");
    assert_is_too_early(&failure);
}
