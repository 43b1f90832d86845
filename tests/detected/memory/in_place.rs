//! Is a use behind the free found where nobody has to be held up for it, whatever else was freed and however long it takes?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{FailureKind, thread};

use super::fails;

/// Frees a block that nobody else frees.
fn drop_block<T>(block: *mut T) {
    // SAFETY: as the caller says.
    drop(unsafe { Box::from_raw(block) });
}

#[test]
fn each_of_two_blocks_that_are_freed_is_guarded() {
    fails(FailureKind::UseAfterFree, || {
        let places = Arc::new((
            AtomicPtr::new(null_mut::<u32>()),
            AtomicPtr::new(null_mut::<u64>()),
        ));
        let theirs = places.clone();
        let other = thread::spawn(move || {
            let (first, second) = (Box::into_raw(Box::new(7)), Box::into_raw(Box::new(7)));
            theirs.0.store(first, SeqCst);
            theirs.1.store(second, SeqCst);
            drop_block(first);
            drop_block(second);
        });
        // SAFETY: none, which is what is to be found.
        let seen = unsafe { places.0.load(SeqCst).as_ref() };
        assert!(seen.is_none_or(|&seen| seen == 7));
        other.join().unwrap();
    });
}

#[test]
fn a_free_that_was_made_in_the_execution_before_counts() {
    // Only behind another order of what comes later the thread reads, and the free is in what is kept of the execution before.
    fails(FailureKind::UseAfterFree, || {
        let block = Box::into_raw(Box::new(7_u32));
        let place = Arc::new((AtomicPtr::new(block), AtomicUsize::new(0)));
        let theirs = place.clone();
        let other = thread::spawn(move || {
            if theirs.1.load(SeqCst) == 0 {
                // SAFETY: none, which is what is to be found.
                unsafe { theirs.0.load(SeqCst).read_volatile() };
            }
        });
        drop_block(place.0.load(SeqCst));
        place.1.store(1, SeqCst);
        other.join().unwrap();
    });
}

#[test]
fn who_has_the_pointer_is_found_in_a_long_execution() {
    for is_made_late in [false, true] {
        fails(FailureKind::UseAfterFree, move || {
            let block = || Box::into_raw(Box::new(7_u32));
            let place = Arc::new((AtomicPtr::new(null_mut()), AtomicUsize::new(0)));
            if !is_made_late {
                place.0.store(block(), SeqCst);
            }
            for _ in 0..1100 {
                place.1.store(1, SeqCst);
            }
            if is_made_late {
                place.0.store(block(), SeqCst);
            }
            let theirs = place.clone();
            let other = thread::spawn(move || {
                // SAFETY: none, which is what is to be found.
                if let Some(seen) = unsafe { theirs.0.load(SeqCst).as_ref() } {
                    std::hint::black_box(*seen);
                }
            });
            drop_block(place.0.swap(null_mut(), SeqCst));
            other.join().unwrap();
        });
    }
}

#[test]
fn a_block_is_told_as_freed_if_it_was_known_in_the_execution_before() {
    fails(FailureKind::DataRace, || {
        let node = Address(Box::into_raw(Box::new(AtomicUsize::new(0))));
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || {
            // SAFETY: it is freed behind the flag, or behind this thread.
            unsafe { &*node.get() }.store(1, Relaxed);
            theirs.store(1, Relaxed);
        });
        let done = flag.load(Relaxed) == 1;
        if done {
            drop_block(node.get());
        }
        other.join().unwrap();
        if !done {
            drop_block(node.get());
        }
    });
}

/// Where something is.
#[derive(Clone, Copy)]
struct Address(*mut AtomicUsize);

// SAFETY: whether it may be used there is what is asked.
unsafe impl Send for Address {}

impl Address {
    fn get(self) -> *mut AtomicUsize {
        self.0
    }
}
