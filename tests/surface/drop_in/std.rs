//! The bodies against std.

pub use std::{cell, hint, sync, thread, thread_local};

pub mod atomics;
pub mod cells;
pub mod locks;
pub mod once;
pub mod queues;
pub mod threads;
pub mod traits;
