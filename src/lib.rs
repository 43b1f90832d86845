//! Shows concurrent code to be right, or prints the exact schedule that breaks it.
//!
//! A test swaps the imports of `std::sync` and `std::thread` for those of this crate and wraps its
//! body in [`model()`]. The body then runs once for every Mazurkiewicz trace of its visible operations:
//! every order in which it makes a difference, and no order twice (Optimal-DPOR: Abdulla, Aronsson,
//! Jonsson, Sagonas, *Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction*, J.ACM
//! 64:4, 2017).
//!
//! ```
//! use dpor::sync::Arc;
//! use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
//! use dpor::thread;
//!
//! let report = dpor::Builder::new().check(|| {
//!     let counter = Arc::new(AtomicUsize::new(0));
//!     let mine = counter.clone();
//!     let other = thread::spawn(move || mine.fetch_add(1, SeqCst));
//!     counter.fetch_add(1, SeqCst);
//!     other.join().unwrap();
//!     assert_eq!(counter.load(SeqCst), 2);
//! });
//! assert_eq!(report.executions, 2);
//! assert!(report.complete);
//! ```
//!
//! Values are sequentially consistent whatever the memory ordering says: behaviour that only weak
//! memory shows is not explored.
//!
//! # Features
//!
//! * `allocator`, on by default, makes [`alloc::Tracking`] the global allocator.
//! * `loom` stands for `--cfg loom`, see below.
//! * `futures` and `checkpoint` may be asked for because loom has them; they change nothing.
//!
//! # Loom's signatures
//!
//! Where std and loom disagree, std's signature is here. A crate that was written for loom and renames the dependency,
//! `loom = { package = "dpor", .. }`, has loom's instead if it is compiled with `--cfg loom`, as its tests are, or if it
//! asks for the feature `loom`, for a cfg of another name. Then
//!
//! * [`cell::UnsafeCell`]'s `get` and `get_mut` take `&self` and give a [`cell::ConstPtr`] and a [`cell::MutPtr`];
//! * [`thread::spawn()`] asks for no `Send`, and panics outside of a model;
//! * [`thread::Builder::stack_size`] counts words inside a model;
//! * [`Builder::check`] returns nothing, and [`Builder::explore`] a [`Report`];
//! * [`hint::unreachable_unchecked`] panics;
//! * blocks that are not freed are a failure only if they are an [`sync::Arc`]'s or tracked by the test, see
//!   [`Builder::check_leaks`](Builder#structfield.check_leaks).
//!
//! A build has one `dpor`: the feature holds for all crates in it that use one.

#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

mod again;
pub mod alloc;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
pub mod cell;
mod checkpoint;
mod config;
mod environment;
mod failure;
pub mod future;
mod gives_up;
pub mod hint;
mod in_order;
mod kept;
pub mod lazy_static;
pub mod model;
mod nth;
mod outcomes;
mod plural;
mod progress;
mod regions;
mod report_dir;
mod rerun;
mod rt;
mod search;
mod shown;
mod summary;
pub mod sync;
pub mod thread;
mod unknown;

/// How many threads loom can have in one execution, for tests that ask. Here there may be any number, and
/// [`Builder::max_threads`] can say less.
pub const MAX_THREADS: usize = 5;

pub use config::{Algorithm, Builder, Executions, Order};
pub use failure::{Event, Failure, FailureKind};
pub use model::{Any, any, assume, choose, model, name, replay};
pub use outcomes::outcomes;
pub use regions::{explore, skip_branch, stop_exploring};
pub use summary::{Bound, Hotspot, Limit, Report, Verdict};
