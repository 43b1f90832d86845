//! The bodies against `dpor`.

pub use dpor::{cell, hint, sync, thread, thread_local};

pub mod atomics;
pub mod cells;
pub mod locks;
pub mod once;
pub mod queues;
pub mod threads;
pub mod traits;
