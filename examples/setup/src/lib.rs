//! A one-shot event and a slot for one value, built on std's atomics and threads, or on dpor's under `--cfg dpor`.
//!
//! `cargo test` runs the ordinary tests; `RUSTFLAGS="--cfg dpor" cargo test` explores every schedule.

mod slot;
mod sync;

pub use slot::Slot;
use sync::atomic::{AtomicBool, Ordering};

/// Something that happens once.
#[derive(Debug, Default)]
pub struct Event {
    happened: AtomicBool,
}

impl Event {
    /// An event that has not happened.
    pub const fn new() -> Event {
        Event {
            happened: AtomicBool::new(false),
        }
    }

    /// Makes it happen; true for the one caller who did.
    pub fn fire(&self) -> bool {
        !self.happened.swap(true, Ordering::AcqRel)
    }

    /// Waits until it has happened.
    pub fn wait(&self) {
        while !self.happened.load(Ordering::Acquire) {
            sync::spin_loop();
        }
    }
}
