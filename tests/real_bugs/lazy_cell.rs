//! Does `dpor` find a cell that is taken for full while another thread fills it (syntect, issue 391)?
//!
//! `if cell is empty { cell.fill(value).ok() }; cell.borrow().unwrap()`: the
//! fill fails because another thread is filling the cell, and that thread may
//! not have finished when the borrow comes. The fix waits until it has finished.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{census, finds, passes, wait_until};

const EMPTY: usize = 0;
const FILLING: usize = 1;
const FULL: usize = 2;

#[derive(Default)]
struct LazyCell {
    state: AtomicUsize,
}

impl LazyCell {
    fn is_full(&self) -> bool {
        self.state.load(Acquire) == FULL
    }

    fn fill(&self) {
        let filling = self.state.compare_exchange(EMPTY, FILLING, AcqRel, Acquire);
        if filling.is_ok() {
            // The value is written.
            self.state.store(FULL, Release);
        }
    }

    /// Whether there is something to borrow.
    fn get_buggy(&self) -> bool {
        if self.is_full() {
            return true;
        }
        self.fill();
        self.is_full()
    }

    fn get_fixed(&self) -> bool {
        if self.is_full() {
            return true;
        }
        self.fill();
        wait_until(self.is_full());
        true
    }
}

fn two_users(get: fn(&LazyCell) -> bool) {
    let cell = LazyCell::default();
    let (here, there) = thread::scope(|scope| {
        let other = scope.spawn(|| get(&cell));
        (get(&cell), other.join().unwrap())
    });
    assert!(here && there, "the cell is borrowed while it is filled");
}

pub fn buggy() {
    two_users(LazyCell::get_buggy);
}

/// Let the other thread fill. The first look comes before it begins, before it has finished, or
/// after that; in the last case that is all, else the failed fill and the second look come both
/// before it has finished (the failure), on either side, or both after that. That makes 7 per
/// thread that fills.
#[test]
fn a_cell_that_another_thread_fills_is_borrowed_too_early() {
    let text = "the cell is borrowed while it is filled";
    finds(buggy, FailureKind::Panic, text);
    assert_eq!(census(buggy), (14, 4));
}

/// As above, without the second look that comes too early: 5 per thread that fills.
#[test]
fn a_cell_that_another_thread_fills_is_waited_for() {
    passes(|| two_users(LazyCell::get_fixed), 10);
}
