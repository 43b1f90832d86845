//! Does `dpor` find the use of a latch that its waiter has freed (rayon, issues 739 and 929)?
//!
//! The latch lives on the stack of the thread that waits for it. The thread that sets it then
//! wakes the waiter through a field of the latch. But the waiter may already have seen the latch
//! set, returned, and freed it. The fix reads what it needs from the latch before it sets it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{FailureKind, thread};

use super::{census, finds, passes, wait_until};

#[derive(Default)]
struct Latch {
    set: AtomicBool,
    /// Stands for the memory, which others must not touch once this is true.
    freed: AtomicBool,
}

impl Latch {
    /// Reads the field through which the waiter is woken; whether it is still there.
    fn registry(&self) -> bool {
        !self.freed.load(Acquire)
    }

    fn set_buggy(&self) -> bool {
        self.set.store(true, Release);
        self.registry()
    }

    fn set_fixed(&self) -> bool {
        let registry = self.registry();
        self.set.store(true, Release);
        registry
    }

    /// Waits for the latch and frees it.
    fn wait(&self) {
        wait_until(self.set.load(Acquire));
        self.freed.store(true, Release);
    }
}

fn one_waiter(set: fn(&Latch) -> bool) {
    let latch = Latch::default();
    let alive = thread::scope(|scope| {
        scope.spawn(|| latch.wait());
        set(&latch)
    });
    assert!(alive, "the latch is used after it was freed");
}

pub fn buggy() {
    one_waiter(Latch::set_buggy);
}

/// A latch on the heap, by its address.
struct OnHeap(*mut RealLatch);

#[derive(Default)]
struct RealLatch {
    set: AtomicBool,
    registry: AtomicUsize,
}

// SAFETY: the latch can be used by several threads. Whether it is still there is what the tests ask; the
// model keeps the memory until the execution ends.
unsafe impl Sync for OnHeap {}

impl OnHeap {
    fn latch(&self) -> &RealLatch {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }

    fn wait(&self) {
        wait_until(self.latch().set.load(Acquire));
        // SAFETY: as above; nobody else frees.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

fn one_waiter_on_the_heap(fixed: bool) {
    let heap = OnHeap(Box::into_raw(Box::default()));
    let latch = heap.latch();
    thread::scope(|scope| {
        scope.spawn(|| heap.wait());
        if fixed {
            latch.registry.load(Relaxed);
        }
        latch.set.store(true, Release);
        if !fixed {
            latch.registry.load(Relaxed);
        }
    });
}

pub fn buggy_on_the_heap() {
    one_waiter_on_the_heap(false);
}

#[test]
fn a_latch_that_is_used_after_it_was_set_may_be_gone() {
    let text = "the latch is used after it was freed";
    finds(buggy, FailureKind::Panic, text);
    assert_eq!(census(buggy), (2, 1));
}

#[test]
fn a_latch_that_is_not_used_after_it_was_set_can_go() {
    passes(|| one_waiter(Latch::set_fixed), 1);
}

/// A free is no event, so there is one execution; and nothing orders its free after the last use, so it
/// fails whichever comes first.
#[test]
fn a_free_that_nothing_orders_after_the_last_use_is_found_whichever_comes_first() {
    finds(buggy_on_the_heap, FailureKind::DataRace, "data race");
    passes(|| one_waiter_on_the_heap(true), 1);
}
