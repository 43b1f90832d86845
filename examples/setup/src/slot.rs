//! A place for one value, which is plain memory.

use crate::Event;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, Ordering};

/// A value that one thread puts in and all may read.
#[derive(Debug, Default)]
pub struct Slot<T> {
    value: UnsafeCell<Option<T>>,
    claimed: AtomicBool,
    filled: Event,
}

// SAFETY: the value is written once, by the thread that has claimed the slot, before the event happens; it is read through
// shared references only behind the event. So threads share `&T`, and one may drop what another one has put in.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// A slot with nothing in it.
    pub const fn new() -> Slot<T> {
        Slot {
            value: UnsafeCell::new(None),
            claimed: AtomicBool::new(false),
            filled: Event::new(),
        }
    }

    /// Puts the value in, or gives it back if somebody has come before.
    pub fn fill(&self, value: T) -> Result<(), T> {
        if self.claimed.swap(true, Ordering::Relaxed) {
            return Err(value);
        }
        // SAFETY: nobody else has claimed the slot, and nobody reads before the event.
        self.value.with_mut(|slot| unsafe { *slot = Some(value) });
        self.filled.fire();
        Ok(())
    }

    /// Waits until there is a value.
    pub fn wait(&self) -> &T {
        self.filled.wait();
        // SAFETY: the event comes after the only write, and `wait` acquires what it releases.
        let value = self.value.with(|slot| unsafe { &*slot });
        value.as_ref().expect("the event comes after the value")
    }
}
