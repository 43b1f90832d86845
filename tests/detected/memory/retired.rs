//! Is a use of a freed block found where it was retired: taken out of where others find it, and freed by somebody else, or behind a
//! flag that says so?

use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex, mpsc};
use dpor::{FailureKind, thread};

use super::{fails, passes};

#[derive(Clone, Copy)]
struct Block(*mut u64);

// SAFETY: it is only a number until somebody uses it.
unsafe impl Send for Block {}

impl Block {
    fn new() -> Block {
        Block(Box::into_raw(Box::new(5)))
    }

    fn read(self) {
        // SAFETY: none, which is what is to be found.
        black_box(unsafe { self.0.read_volatile() });
    }

    fn free(self) {
        // SAFETY: nobody else frees it.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Reads what is there, if something is.
fn look(at: &AtomicPtr<u64>) {
    let found = at.load(Acquire);
    if !found.is_null() {
        Block(found).read();
    }
}

/// What main takes out is freed by another thread, and main waits for the reader first, or even before that.
fn taken_out(waits_before: bool) {
    let place = Arc::new(AtomicPtr::new(Block::new().0));
    let theirs = place.clone();
    let reader = thread::spawn(move || look(&theirs));
    let taken = Block(place.swap(null_mut(), AcqRel));
    let mut reader = Some(reader);
    if waits_before {
        reader.take().unwrap().join().unwrap();
    }
    let reclaimer = thread::spawn(move || taken.free());
    if let Some(reader) = reader {
        reader.join().unwrap();
    }
    reclaimer.join().unwrap();
}

#[test]
fn who_has_waited_for_a_reader_need_not_be_who_frees() {
    let failure = fails(FailureKind::UseAfterFree, || taken_out(false));
    assert!(failure.schedule().contains("held main.1*1"), "{failure}");
    passes(|| taken_out(true));
}

/// A scope waits for the reader before it waits for the collector.
#[test]
fn a_scope_waits_for_a_reader_that_is_late() {
    fails(FailureKind::UseAfterFree, || {
        let place = Mutex::new(Some(Block::new()));
        let (retired, to_free) = mpsc::channel::<Block>();
        thread::scope(|scope| {
            scope.spawn(|| {
                let found = *place.lock().unwrap();
                if let Some(block) = found {
                    block.read();
                }
            });
            scope.spawn(move || to_free.into_iter().for_each(Block::free));
            let taken = place.lock().unwrap().take().unwrap();
            retired.send(taken).unwrap();
            drop(retired);
        });
    });
}

/// The pointer is known from the beginning, and an atomic says whether it is alive.
fn flagged(retire: fn(&AtomicUsize), waits: bool) {
    let block = Block::new();
    let alive = Arc::new(AtomicUsize::new(1));
    let theirs = alive.clone();
    let reader = thread::spawn(move || {
        if theirs.load(Acquire) == 1 {
            block.read();
        }
    });
    let mut reader = Some(reader);
    retire(&alive);
    if waits {
        reader.take().unwrap().join().unwrap();
    }
    block.free();
    if let Some(reader) = reader {
        reader.join().unwrap();
    }
}

#[test]
fn who_has_read_that_a_block_is_alive_may_be_late() {
    let by_store: fn(&AtomicUsize) = |alive| alive.store(0, Release);
    let by_swap: fn(&AtomicUsize) = |alive| _ = alive.swap(0, AcqRel);
    for retire in [by_store, by_swap] {
        let failure = fails(FailureKind::UseAfterFree, move || flagged(retire, false));
        assert!(failure.schedule().contains("held main.1*1"), "{failure}");
        passes(move || flagged(retire, true));
    }
}
