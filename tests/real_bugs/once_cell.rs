//! Does `dpor` find a cell that takes for impossible what another thread has just done (conquer-once 0.4.0)?
//!
//! `try_get_or_init` looks at the state. If the cell is empty, it exchanges "empty" for "filling". The exchange fails if
//! another thread is filling the cell, which is the error that the caller gets, or has filled it since the look: the
//! conversion of that case into an error is `unreachable!()`. The fix takes the value that is there. `dpor` found this
//! bug; with real threads and the crate as it is, 2 % of 300,000 tries panicked.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

const FILLING: usize = 0;
const EMPTY: usize = 1;
const FULL: usize = 2;

struct OnceCell {
    state: AtomicUsize,
}

/// Another thread fills the cell, so the caller would have to wait.
#[derive(Debug)]
struct WouldBlock;

impl OnceCell {
    /// `filled` says what becomes of a caller for whom another thread has filled the cell since the look.
    fn try_get_or_init(&self, filled: fn() -> Result<(), WouldBlock>) -> Result<(), WouldBlock> {
        match self.state.load(Acquire) {
            FULL => return Ok(()),
            FILLING => return Err(WouldBlock),
            _ => {}
        }
        match (self.state).compare_exchange(EMPTY, FILLING, Acquire, Acquire) {
            Ok(_) => {
                // The value is written.
                self.state.swap(FULL, AcqRel);
                Ok(())
            }
            Err(FILLING) => Err(WouldBlock),
            Err(_) => filled(),
        }
    }
}

fn two_users(filled: fn() -> Result<(), WouldBlock>) {
    let cell = OnceCell {
        state: AtomicUsize::new(EMPTY),
    };
    thread::scope(|scope| {
        scope.spawn(|| drop(cell.try_get_or_init(filled)));
        drop(cell.try_get_or_init(filled));
    });
    assert_eq!(cell.state.load(Relaxed), FULL);
}

pub fn buggy() {
    two_users(|| unreachable!());
}

/// Let the other thread fill. The look comes before it begins, before it has finished, or after that; in the first case
/// the failed exchange comes before it has finished or after that (the failure). That makes 4 per thread that fills.
#[test]
fn a_cell_that_another_thread_has_filled_since_the_look_is_thought_to_be_impossible() {
    finds(buggy, FailureKind::Panic, "entered unreachable code");
    assert_eq!(census(buggy), (8, 2));
}

#[test]
fn a_cell_that_another_thread_has_filled_since_the_look_is_full() {
    passes(|| two_users(|| Ok(())), 8);
}
