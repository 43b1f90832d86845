//! Does `dpor` find a value that is read because an exchange has failed, which acquires nothing (conquer-once 0.4.0)?
//!
//! Who finds a cell that another thread fills adds itself to those that wait, with a compare-exchange of the state. If
//! that fails because the cell is full by now, it reads the value at once. But where the exchange fails it is
//! `Relaxed`, so the value may not be there yet. The fix is `Acquire`. `dpor` found this bug.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{finds, passes, wait_until};

const FILLING: usize = 0;
const WAITED_FOR: usize = 1;
const FULL: usize = 2;

struct OnceCell {
    state: AtomicUsize,
    value: UnsafeCell<u32>,
}

// SAFETY: whether the value is read after it was written is what the tests ask.
unsafe impl Sync for OnceCell {}

impl OnceCell {
    fn fill(&self) {
        // SAFETY: as above.
        self.value.with_mut(|value| unsafe { *value = 7 });
        self.state.swap(FULL, AcqRel);
    }

    /// Waits until the cell is full. The exchange is `failed` where it fails.
    fn get(&self, failed: Ordering) -> u32 {
        if self.state.load(Acquire) != FULL {
            let waiting = (self.state).compare_exchange(FILLING, WAITED_FOR, AcqRel, failed);
            if waiting.is_ok() {
                wait_until(self.state.load(Acquire) == FULL);
            }
        }
        // SAFETY: as above.
        self.value.with(|value| unsafe { *value })
    }
}

/// A cell that one thread fills and another one waits for.
fn filled_and_read(failed: Ordering) {
    let cell = OnceCell {
        state: AtomicUsize::new(FILLING),
        value: UnsafeCell::new(0),
    };
    thread::scope(|scope| {
        scope.spawn(|| cell.fill());
        assert_eq!(cell.get(failed), 7);
    });
}

pub fn buggy() {
    filled_and_read(Relaxed);
}

#[test]
fn what_is_read_behind_a_failed_exchange_has_to_be_acquired() {
    finds(buggy, FailureKind::DataRace, "Relaxed where it fails");
}

/// The cell is full before the look, between the look and the exchange, or behind the exchange.
#[test]
fn what_is_read_behind_a_failed_exchange_that_acquires_is_there() {
    passes(|| filled_and_read(Acquire), 3);
}
