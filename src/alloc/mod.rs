//! Heap allocation that models can see.
//!
//! The objects of a test (atomics, locks, ...) must have the same name in each execution, while the
//! addresses from an allocator may differ. So the model needs to know which thread allocated which
//! block: [`Tracking`] wraps another allocator and tells the model.
//!
//! No setup is needed. With the feature `allocator`, which is on by default, this crate makes
//! `Tracking<System>` the global allocator of the program that it is linked into. A program with an
//! allocator of its own must switch the default features off and wrap that allocator:
//!
//! ```
//! use dpor::alloc::Tracking;
//! use std::alloc::System; // Stands for your allocator.
//!
//! # #[cfg(not(feature = "allocator"))] // With the feature, this program has an allocator already.
//! #[global_allocator]
//! static GLOBAL: Tracking<System> = Tracking::new(System);
//! ```

mod track;
mod tracking;

#[allow(deprecated, reason = "a name that std has is a name that we have")]
pub use std::alloc::LayoutErr;
pub use std::alloc::{GlobalAlloc, Layout, LayoutError, System, handle_alloc_error};
pub(crate) use track::track_block;
pub use track::{Track, alloc, alloc_zeroed, dealloc, may_leak, realloc};
pub use tracking::Tracking;
