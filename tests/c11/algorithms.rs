//! Litmus programs and algorithms, with and without what they need.

use std::sync::Arc;

use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, fence};
use dpor::{Algorithm, Builder, FailureKind, Memory, Order, thread};

use super::{Cell, c11, counts, fails, fails_with_race, passes};

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

fn message_passing(store: Ordering, load: Ordering) {
    let data = Arc::new(AtomicUsize::new(0));
    let flag = Arc::new(AtomicBool::new(false));
    let (data2, flag2) = (data.clone(), flag.clone());
    let writer = thread::spawn(move || {
        data2.store(42, Relaxed);
        flag2.store(true, store);
    });
    if flag.load(load) {
        assert_eq!(data.load(Relaxed), 42);
    }
    writer.join().unwrap();
}

#[test]
fn a_relaxed_flag_publishes_nothing() {
    let failure = fails(|| message_passing(Relaxed, Relaxed));
    println!("{failure}");
    fails(|| message_passing(Relaxed, Acquire));
    fails(|| message_passing(Release, Relaxed));
    assert_eq!(passes(|| message_passing(Release, Acquire)), 2);
}

fn iriw(store: Ordering, load: Ordering) {
    let x = Arc::new(AtomicUsize::new(0));
    let y = Arc::new(AtomicUsize::new(0));
    let write = |at: &Arc<AtomicUsize>| {
        let at = at.clone();
        thread::spawn(move || at.store(1, store))
    };
    let read = |a: &Arc<AtomicUsize>, b: &Arc<AtomicUsize>| {
        let (a, b) = (a.clone(), b.clone());
        thread::spawn(move || (a.load(load), b.load(load)))
    };
    let _writers = (write(&x), write(&y));
    let readers = (read(&x, &y), read(&y, &x));
    let seen = (readers.0.join().unwrap(), readers.1.join().unwrap());
    assert_ne!(seen, ((1, 0), (1, 0)), "the readers disagree");
}

#[test]
fn readers_of_independent_writes_may_disagree() {
    fails(|| iriw(Release, Acquire));
    assert_eq!(passes(|| iriw(SeqCst, SeqCst)), 15);
}

fn dekker(fences: bool) {
    let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let cell = Arc::new(Cell::new());
    let enter = move |flags: &[AtomicBool; 2], cell: &Cell, me: usize| {
        flags[me].store(true, Relaxed);
        if fences {
            fence(SeqCst);
        }
        if !flags[1 - me].load(Relaxed) {
            cell.add_one();
        }
    };
    let (flags2, cell2) = (flags.clone(), cell.clone());
    let other = thread::spawn(move || enter(&flags2, &cell2, 1));
    enter(&flags, &cell, 0);
    other.join().unwrap();
}

#[test]
fn two_threads_are_in_the_critical_section_of_a_dekker_without_fences() {
    let failure = fails(|| dekker(false));
    assert_eq!(failure.kind(), FailureKind::DataRace);
    assert_eq!(passes(|| dekker(true)), 3);
}

/// A pointer that is published, and read by a thread that may not know what it points to.
fn publish(store: Ordering, load: Ordering) {
    let slot = Arc::new(AtomicPtr::new(std::ptr::null_mut::<AtomicU32>()));
    let slot2 = slot.clone();
    let reader = thread::spawn(move || {
        let found = slot2.load(load);
        if !found.is_null() {
            // SAFETY: the pointer is freed once the thread has ended.
            assert_eq!(unsafe { &*found }.load(Relaxed), 1);
        }
    });
    let boxed = Box::into_raw(Box::new(AtomicU32::new(0)));
    // SAFETY: it was made just now.
    unsafe { &*boxed }.store(1, Relaxed);
    slot.store(boxed, store);
    reader.join().unwrap();
    // SAFETY: no thread uses it any more.
    drop(unsafe { Box::from_raw(boxed) });
}

#[test]
fn a_pointer_without_release_shows_old_contents() {
    let failure = *c11()
        .explore(|| publish(Relaxed, Acquire))
        .expect_err("it fails");
    println!("{failure}");
    assert_eq!(passes(|| publish(Release, Acquire)), 2);
}

fn seqlock(fences: bool) {
    let all = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let all2 = all.clone();
    let writer = thread::spawn(move || {
        let [seq, a, b] = &*all2;
        seq.store(1, Relaxed);
        fence(Release);
        a.store(1, Relaxed);
        b.store(1, Relaxed);
        seq.store(2, Release);
    });
    let [seq, a, b] = &*all;
    let before = seq.load(Acquire);
    let data = (a.load(Relaxed), b.load(Relaxed));
    if fences {
        fence(Acquire);
    }
    if before == seq.load(Relaxed) && before % 2 == 0 {
        assert_eq!(data.0, data.1);
    }
    writer.join().unwrap();
}

#[test]
fn a_seqlock_reader_needs_its_fence() {
    fails(|| seqlock(false));
    assert_eq!(passes(|| seqlock(true)), 18);
}

fn spin_flag(store: Ordering, load: Ordering) {
    let data = Arc::new(AtomicUsize::new(0));
    let flag = Arc::new(AtomicBool::new(false));
    let (data2, flag2) = (data.clone(), flag.clone());
    let writer = thread::spawn(move || {
        data2.store(42, Relaxed);
        flag2.store(true, store);
    });
    while !flag.load(load) {
        dpor::hint::spin_loop();
    }
    assert_eq!(data.load(Relaxed), 42);
    writer.join().unwrap();
}

#[test]
fn a_loop_that_waits_ends_under_c11() {
    fails(|| spin_flag(Relaxed, Acquire));
    passes(|| spin_flag(Release, Acquire));
}

fn spin_lock(lock: Ordering, unlock: Ordering) {
    let held = Arc::new(AtomicBool::new(false));
    let data = Arc::new(Cell::new());
    let add = move |held: &AtomicBool, data: &Cell| {
        while held.swap(true, lock) {
            dpor::hint::spin_loop();
        }
        data.add_one();
        held.store(false, unlock);
    };
    let (held2, data2) = (held.clone(), data.clone());
    let other = thread::spawn(move || add(&held2, &data2));
    add(&held, &data);
    other.join().unwrap();
}

#[test]
fn a_spin_lock_orders_what_it_protects() {
    fails_with_race(|| spin_lock(Relaxed, Release));
    fails_with_race(|| spin_lock(Acquire, Relaxed));
    passes(|| spin_lock(Acquire, Release));
}

fn counter(order: Ordering) {
    let count = Arc::new(AtomicUsize::new(0));
    let add = |n: usize| {
        let count = count.clone();
        thread::spawn(move || count.fetch_add(n, order))
    };
    let threads = [add(1), add(2), add(4)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(count.load(Relaxed), 7);
}

#[test]
fn read_modify_writes_lose_nothing() {
    assert_eq!(passes(|| counter(Relaxed)), 6);
    assert_eq!(passes(|| counter(AcqRel)), 6);
}

/// What the exploration says about weak memory, and its number of executions.
fn auto(f: impl Fn() + Sync + Send + Copy + 'static) -> (dpor::WeakMemory, u64) {
    let mut builder = Builder::new();
    builder.memory = Memory::Auto;
    let report = builder.explore(f).expect("it does not fail");
    assert!(report.complete, "{report:?}");
    (report.weak, report.executions)
}

#[test]
fn weak_behaviour_is_looked_for_and_explored_if_there_is_some() {
    use dpor::WeakMemory::{Explored, Impossible};
    let strong = || store_buffering(SeqCst, SeqCst, false);
    assert_eq!(auto(strong), (Impossible, 3));
    let fenced = || store_buffering(Relaxed, Relaxed, true);
    assert_eq!(auto(fenced), (Impossible, 3));
    let published = || message_passing(Release, Acquire);
    assert_eq!(auto(published), (Impossible, 2));
    let (weak, executions) = auto(|| store_buffering(Release, Acquire, false));
    let Explored {
        operation,
        sequential: 3,
    } = weak
    else {
        panic!("{weak:?}")
    };
    assert!(
        operation.contains("load at tests/c11/algorithms.rs:"),
        "{operation}"
    );
    assert_eq!(executions, 4);
    let mut builder = Builder::new();
    builder.memory = Memory::Auto;
    let failure = *builder
        .explore(|| message_passing(Relaxed, Acquire))
        .expect_err("it fails under C11");
    assert!(failure.schedule().starts_with("v2 c11"));
}

#[test]
fn executions_of_c11_are_drawn_at_random_and_other_searches_refuse() {
    let mut builder = c11();
    builder.algorithm = Algorithm::Random;
    builder.iterations = 200;
    builder.seed = Some(7);
    let report = builder
        .explore(|| store_buffering(Release, Acquire, false))
        .expect("it does not fail");
    let weak = report.outcomes.get("(0, 0)").copied().unwrap_or(0);
    assert!(weak > 0, "{:?}", report.outcomes);
    let refused = |set: fn(&mut Builder)| {
        let mut builder = c11();
        set(&mut builder);
        let told = std::panic::catch_unwind(move || builder.explore(|| ()));
        let told = told.map(drop).expect_err("it is refused");
        told.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    for told in [
        refused(|builder| builder.algorithm = Algorithm::Source),
        refused(|builder| builder.algorithm = Algorithm::Parsimonious),
    ] {
        assert!(told.contains("DPOR_MEMORY=c11"), "{told}");
    }
}

#[test]
fn every_order_explores_the_same_graphs() {
    let explored = |order: Order| {
        let mut builder = c11();
        builder.order = order;
        let report = builder.explore(|| {
            let all = Arc::new([const { AtomicUsize::new(0) }; 3]);
            let threads = (0..3).map(|at| {
                let all = all.clone();
                thread::spawn(move || {
                    all[at].store(1, Relaxed);
                    all[(at + 1) % 3].fetch_add(2, AcqRel);
                    all[(at + 2) % 3].load(Acquire)
                })
            });
            let threads: Vec<_> = threads.collect();
            let found = threads.into_iter().map(|thread| thread.join().unwrap());
            dpor::outcome(found.collect::<Vec<_>>());
        });
        let report = report.expect("it does not fail");
        assert!(report.complete, "{report}");
        (report.executions, report.outcomes)
    };
    let all = explored(Order::DepthFirst);
    for order in [
        Order::BitReversal,
        Order::RoundRobin,
        Order::Stride,
        Order::ConflictFirst,
    ] {
        assert_eq!(explored(order), all, "{order:?}");
    }
}

/// A queue of one element that is taken by its owner or by a thief (Chase and Lev, SPAA 2005; the
/// orderings are those of Lê et al., PPoPP 2013).
fn chase_lev(fences: bool) {
    let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let taken = Arc::new(AtomicUsize::new(0));
    let (all2, taken2) = (all.clone(), taken.clone());
    let thief = thread::spawn(move || {
        let [top, bottom] = &*all2;
        let at = top.load(Acquire);
        if fences {
            fence(SeqCst);
        }
        if bottom.load(Acquire) > at && top.compare_exchange(at, at + 1, SeqCst, Relaxed).is_ok() {
            taken2.fetch_add(1, Relaxed);
        }
    });
    let [top, bottom] = &*all;
    // Push one element, and pop it.
    bottom.store(1, Release);
    bottom.store(0, Relaxed);
    if fences {
        fence(SeqCst);
    }
    let at = top.load(Relaxed);
    if at == 0 {
        // It is the last one.
        if top.compare_exchange(0, 1, SeqCst, Relaxed).is_ok() {
            taken.fetch_add(1, Relaxed);
        }
        bottom.store(1, Relaxed);
    }
    thief.join().unwrap();
    assert!(taken.load(Relaxed) <= 1, "taken twice");
}

#[test]
fn an_element_of_a_chase_lev_queue_is_taken_once() {
    // The compare-exchange decides between the two with one element, with or without fences.
    assert!(passes(|| chase_lev(true)) > 1);
    assert!(passes(|| chase_lev(false)) > 1);
}

/// A sleeper announces itself and looks for work; a submitter adds work and looks for a sleeper.
fn pool(fences: bool) {
    let work = Arc::new(AtomicBool::new(false));
    let asleep = Arc::new(AtomicBool::new(false));
    let (work2, asleep2) = (work.clone(), asleep.clone());
    let sleeper = thread::spawn(move || {
        asleep2.store(true, Relaxed);
        if fences {
            fence(SeqCst);
        }
        !work2.load(Relaxed)
    });
    work.store(true, Relaxed);
    if fences {
        fence(SeqCst);
    }
    let wakes = asleep.load(Relaxed);
    let sleeps = sleeper.join().unwrap();
    assert!(wakes || !sleeps, "the sleeper is never woken");
}

#[test]
fn a_sleeper_and_a_submitter_need_their_fences() {
    fails(|| pool(false));
    assert_eq!(passes(|| pool(true)), 3);
}

/// Mutexes, channels and scopes synchronise as under sequential consistency.
#[test]
fn what_locks_and_channels_publish_is_seen() {
    let locked = || {
        let data = Arc::new(AtomicUsize::new(0));
        let lock = Arc::new(dpor::sync::Mutex::new(0));
        let (data2, lock2) = (data.clone(), lock.clone());
        let other = thread::spawn(move || {
            data2.store(1, Relaxed);
            *lock2.lock().unwrap() += 1;
        });
        if *lock.lock().unwrap() == 1 {
            assert_eq!(data.load(Relaxed), 1);
        }
        other.join().unwrap();
        assert_eq!(data.load(Relaxed), 1);
    };
    assert_eq!(passes(locked), 2);
    let sent = || {
        let data = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = dpor::sync::mpsc::channel();
        let data2 = data.clone();
        let other = thread::spawn(move || {
            data2.store(1, Relaxed);
            sender.send(()).unwrap();
        });
        receiver.recv().unwrap();
        assert_eq!(data.load(Relaxed), 1);
        other.join().unwrap();
    };
    assert_eq!(passes(sent), 1);
    let parked = || {
        let data = Arc::new(AtomicUsize::new(0));
        let me = thread::current();
        let data2 = data.clone();
        let other = thread::spawn(move || {
            data2.store(1, Relaxed);
            me.unpark();
        });
        thread::park();
        assert_eq!(data.load(Relaxed), 1);
        other.join().unwrap();
    };
    assert_eq!(passes(parked), 1);
}

#[test]
fn the_first_event_of_a_model_may_have_several_outcomes() {
    // The exploration forgot what was planned at the first event, and made it again for ever.
    for times in [1, 2, 3] {
        let under = |mut builder: Builder| {
            builder.spurious_failures = true;
            builder.max_permutations = Some(100);
            let report = builder.explore(move || {
                let x = AtomicUsize::new(0);
                for _ in 0..times {
                    _ = x.compare_exchange_weak(0, 0, Relaxed, Relaxed);
                }
            });
            let report = report.expect("nothing fails");
            assert!(report.complete, "{report}");
            report.executions
        };
        let both = under(c11());
        assert!(both > times);
        assert_eq!(both, under(super::sc()));
    }
}

#[test]
fn seq_cst_loops_that_wait_are_not_weak() {
    // The thread waits until one of two flags changes. Its wait is no access, so it does not matter
    // that the wait can be over because of the second flag and the thread still reads the first one
    // as it was.
    let body = || {
        let flags = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let theirs = flags.clone();
        let sets = thread::spawn(move || {
            theirs[0].store(1, SeqCst);
            theirs[1].store(1, SeqCst);
        });
        while flags[0].load(SeqCst) == 0 {
            flags[1].load(SeqCst);
            thread::yield_now();
        }
        sets.join().unwrap();
    };
    let report = Builder::new().check(body);
    assert!(report.complete, "{report}");
    assert!(
        report.to_string().contains("no weak behaviour is possible"),
        "{report}"
    );
}
