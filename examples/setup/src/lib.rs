//! A one-shot event, built on std's atomics and threads, or on dpor's under `--cfg dpor`.
//!
//! `cargo test` runs the ordinary tests; `RUSTFLAGS="--cfg dpor" cargo test` explores every schedule.

mod sync {
    #[cfg(dpor)]
    pub use dpor::{hint::spin_loop, sync::atomic};
    #[cfg(not(dpor))]
    pub use std::{hint::spin_loop, sync::atomic};
}

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
