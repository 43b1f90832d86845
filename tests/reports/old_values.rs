//! Failures of C11 alone: a thread reads a value that another one has overwritten.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize, fence};
use dpor::{Failure, Memory, thread};

use super::failures::{Named, builder};

/// Each of them.
pub const ALL: &[Named] = &[
    ("old_message", old_message),
    ("old_message_behind_a_fence", old_message_behind_a_fence),
    ("old_message_through_another", old_message_through_another),
    ("old_stores_in_a_circle", old_stores_in_a_circle),
    ("old_stores_buffered", old_stores_buffered),
    ("old_stores_and_one_fence", old_stores_and_one_fence),
    ("old_values_of_two_readers", old_values_of_two_readers),
    ("old_number_of_a_seqlock", old_number_of_a_seqlock),
    ("old_flags_before_a_cell", old_flags_before_a_cell),
    ("old_place_of_a_store", old_place_of_a_store),
    ("old_compare_exchange", old_compare_exchange),
    ("new_values_under_c11", new_values_under_c11),
];

fn fails(f: impl Fn() + Send + Sync + 'static) -> Failure {
    let mut builder = builder();
    builder.memory = Memory::C11;
    *builder.explore(f).expect_err("a failure")
}

/// Message passing with relaxed accesses.
fn old_message() -> Failure {
    fails(|| {
        let data = Arc::new(AtomicUsize::new(0));
        let flag = Arc::new(AtomicBool::new(false));
        let (data2, flag2) = (data.clone(), flag.clone());
        let writer = thread::spawn(move || {
            data2.store(42, Relaxed);
            flag2.store(true, Relaxed);
        });
        if flag.load(Relaxed) {
            assert_eq!(data.load(Relaxed), 42);
        }
        writer.join().unwrap();
    })
}

/// The writer has its fence, and the reader has none.
fn old_message_behind_a_fence() -> Failure {
    fails(|| {
        let data = Arc::new(AtomicUsize::new(0));
        let flag = Arc::new(AtomicBool::new(false));
        let (data2, flag2) = (data.clone(), flag.clone());
        let writer = thread::spawn(move || {
            data2.store(1, Relaxed);
            data2.store(2, Relaxed);
            fence(Release);
            flag2.store(true, Relaxed);
        });
        let seen = data.load(Relaxed);
        if seen == 1 && flag.load(Relaxed) {
            assert_eq!(data.load(Relaxed), 2);
        }
        writer.join().unwrap();
    })
}

/// The message goes through a third thread, which passes it on with a relaxed store.
fn old_message_through_another() -> Failure {
    fails(|| {
        let data = Arc::new(AtomicUsize::new(0));
        let (ready, passed) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (data2, ready2) = (data.clone(), ready.clone());
        let writer = thread::spawn(move || {
            data2.store(42, Relaxed);
            ready2.store(true, Release);
        });
        let passed2 = passed.clone();
        let between = thread::spawn(move || {
            if ready.load(Relaxed) {
                passed2.store(true, Relaxed);
            }
        });
        if passed.load(Acquire) {
            assert_eq!(data.load(Relaxed), 42);
        }
        writer.join().unwrap();
        between.join().unwrap();
    })
}

/// Store buffering in a circle of three threads.
fn old_stores_in_a_circle() -> Failure {
    fails(|| {
        let all = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let turn = |all: &[AtomicUsize; 3], me: usize| {
            all[me].store(1, Release);
            all[(me + 1) % 3].load(Acquire)
        };
        let others = [1, 2].map(|me| {
            let all = all.clone();
            thread::spawn(move || turn(&all, me))
        });
        let mut seen = turn(&all, 0);
        for other in others {
            seen += other.join().unwrap();
        }
        assert!(seen > 0, "no store was seen");
    })
}

/// Store buffering with release and acquire.
fn old_stores_buffered() -> Failure {
    fails(|| store_buffering(false))
}

/// Store buffering with a fence in one of the threads only.
fn old_stores_and_one_fence() -> Failure {
    fails(|| store_buffering(true))
}

fn store_buffering(has_fence: bool) {
    let x = Arc::new(AtomicUsize::new(0));
    let y = Arc::new(AtomicUsize::new(0));
    let (x2, y2) = (x.clone(), y.clone());
    let other = thread::spawn(move || {
        y2.store(1, Release);
        x2.load(Acquire)
    });
    x.store(1, Release);
    if has_fence {
        fence(SeqCst);
    }
    let mine = y.load(Acquire);
    let theirs = other.join().unwrap();
    assert!(mine + theirs > 0, "no store was seen");
}

/// Two readers that see two writes in different orders.
fn old_values_of_two_readers() -> Failure {
    fails(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let write = |at: &Arc<AtomicUsize>| {
            let at = at.clone();
            thread::spawn(move || at.store(1, Release))
        };
        let read = |a: &Arc<AtomicUsize>, b: &Arc<AtomicUsize>| {
            let (a, b) = (a.clone(), b.clone());
            thread::spawn(move || (a.load(Acquire), b.load(Acquire)))
        };
        let writers = [write(&x), write(&y)];
        let readers = [read(&x, &y), read(&y, &x)];
        let seen = readers.map(|reader| reader.join().unwrap());
        for writer in writers {
            writer.join().unwrap();
        }
        assert_ne!(seen, [(1, 0), (1, 0)], "the readers disagree");
    })
}

/// A seqlock with a reader that has no fence before its second look at the number.
fn old_number_of_a_seqlock() -> Failure {
    fails(|| {
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
        if before == seq.load(Relaxed) && before % 2 == 0 {
            assert_eq!(data.0, data.1);
        }
        writer.join().unwrap();
    })
}

struct Cell(UnsafeCell<u64>);

// SAFETY: the models find races.
unsafe impl Sync for Cell {}

/// Two flags that are to keep one of two threads out, without fences.
fn old_flags_before_a_cell() -> Failure {
    fails(|| {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let cell = Arc::new(Cell(UnsafeCell::new(0)));
        let enter = move |flags: &[AtomicBool; 2], cell: &Cell, me: usize| {
            flags[me].store(true, Release);
            if !flags[1 - me].load(Acquire) {
                // SAFETY: the model finds the race.
                cell.0.with_mut(|data| unsafe { *data += 1 });
            }
        };
        let (flags2, cell2) = (flags.clone(), cell.clone());
        let other = thread::spawn(move || enter(&flags2, &cell2, 1));
        enter(&flags, &cell, 0);
        other.join().unwrap();
    })
}

/// Of each atomic the thread's own first store is the last one.
fn old_place_of_a_store() -> Failure {
    fails(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let other = thread::spawn(move || {
            y2.store(1, Relaxed);
            x2.store(2, Relaxed);
        });
        x.store(1, Relaxed);
        y.store(2, Relaxed);
        other.join().unwrap();
        let left = (x.load(Relaxed), y.load(Relaxed));
        assert_ne!(left, (1, 1), "both first stores are the last ones");
    })
}

/// A compare-exchange that fails because it sees the old value.
fn old_compare_exchange() -> Failure {
    fails(|| {
        let slot = Arc::new(AtomicUsize::new(0));
        let flag = Arc::new(AtomicBool::new(false));
        let (slot2, flag2) = (slot.clone(), flag.clone());
        let writer = thread::spawn(move || {
            slot2.store(1, Relaxed);
            flag2.swap(true, Relaxed);
        });
        if flag.load(Acquire) {
            let taken = slot.compare_exchange(1, 2, Relaxed, Relaxed);
            assert_eq!(taken, Ok(1));
        }
        writer.join().unwrap();
    })
}

/// A failure without old values is the one of sequential consistency.
fn new_values_under_c11() -> Failure {
    fails(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let add = |count: &AtomicUsize| {
            let seen = count.load(Relaxed);
            count.store(seen + 1, Relaxed);
        };
        let count2 = count.clone();
        let other = thread::spawn(move || add(&count2));
        add(&count);
        other.join().unwrap();
        assert_eq!(count.load(Relaxed), 2);
    })
}
