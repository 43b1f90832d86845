//! Is it found that a latch is used after its waiter has freed it (rayon, issues 739 and 929)?
//!
//! The latch lives on the stack of the thread that waits for it. Whoever sets it then wakes that
//! thread through a field of the latch; but the waiter may have seen the latch set, returned, and
//! freed it. The fix takes out of the latch what is needed before it is set.

use std::sync::atomic::Ordering::{Acquire, Release};

use dpor::sync::atomic::AtomicBool;
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
