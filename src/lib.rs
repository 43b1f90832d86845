//! Tests concurrent code under every schedule that makes a difference, and prints the exact
//! schedule that breaks it.
//!
//! A test replaces its imports of `std::sync` and `std::thread` with those of this crate and wraps
//! its body in [`model()`]. The body then runs once for every Mazurkiewicz trace of its visible
//! operations: every order of dependent operations, and no order twice.
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
//! * **Explored**: every trace, exactly once, and every outcome that an operation can have, such as
//!   which waiter `notify_one` wakes. [`Report::complete`] says whether everything was explored.
//! * **Weak memory**: executions under sequential consistency come first. If C11 allows others,
//!   they are explored next ([`Memory`]); [`Report::weak`] says which of the two is the case.
//! * **Not explored**: load buffering and values out of thin air, which C++20 allows formally.
//! * **Data races**: the detector uses the memory orderings as written. A `Relaxed` store publishes
//!   nothing, and an access to plain memory ([`cell::UnsafeCell`]) that relies on such a store is a
//!   failure.
//!
//! [`FailureKind`] lists what counts as a failure, [`Builder`] the settings with their environment
//! variables. The algorithm is Optimal-DPOR (Abdulla, Aronsson, Jonsson, Sagonas, *Source Sets: A
//! Foundation for Optimal Dynamic Partial Order Reduction*, J.ACM 64:4, 2017).
//!
//! # Set-up
//!
//! The dependency is behind a cfg, so that ordinary builds use std and do not compile this crate.
//! An exploration runs the test thousands of times, so let the compiler optimise this crate and
//! `generator`, its library for coroutines:
//!
//! ```toml
//! [target.'cfg(dpor)'.dependencies]
//! dpor = "0.1"
//!
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ["cfg(dpor)"] }
//!
//! [profile.dev.package]
//! dpor.opt-level = 3
//! generator.opt-level = 3
//! ```
//!
//! The code imports from one crate or the other:
//!
//! ```
//! #[cfg(dpor)]
//! use dpor::{sync::atomic::{AtomicUsize, Ordering}, thread};
//! #[cfg(not(dpor))]
//! use std::{sync::atomic::{AtomicUsize, Ordering}, thread};
//! ```
//!
//! Put `#[cfg(dpor)]` on the tests that call [`model()`], too, and run them with
//! `RUSTFLAGS="--cfg dpor" cargo test`.
//!
//! # Features
//!
//! * `allocator`, on by default, makes [`alloc::Tracking`] the global allocator.
//! * `loom` has the effect of `--cfg loom`, see below.
//! * `futures` and `checkpoint` change nothing. They exist because loom has features of these
//!   names.
//!
//! # Loom's signatures
//!
//! Where std and loom disagree, this crate has std's signature. A crate that was written for loom
//! can rename the dependency, `loom = { package = "dpor", .. }`. It gets loom's signatures if it is
//! compiled with `--cfg loom`, as the tests of such a crate are. If its cfg has another name, it
//! enables the feature `loom`. These are the differences:
//!
//! * [`cell::UnsafeCell`]'s `get` and `get_mut` take `&self` and return a [`cell::ConstPtr`] and a
//!   [`cell::MutPtr`];
//! * [`thread::spawn()`] does not require `Send`, and panics outside a model;
//! * [`thread::Builder::stack_size`] counts words inside a model;
//! * [`Builder::check`] returns nothing, [`Builder::explore`] still returns a [`Report`];
//! * [`hint::unreachable_unchecked`] panics;
//! * the first thread of a model has no [name](thread::Thread::name);
//! * [`Builder::max_branches`](Builder#structfield.max_branches) also counts spin hints, such as
//!   [`thread::yield_now`];
//! * a static of [`lazy_static!`] can be used only inside a model; a thread that outlives the first
//!   thread can use it only until the first thread has ended;
//! * blocks that are not freed are a failure only if they belong to a [`sync::Arc`] or to a waker
//!   of [`future::block_on`], are from [`alloc::alloc`](alloc::alloc()), or are tracked by the
//!   test, see [`Builder::check_leaks`](Builder#structfield.check_leaks);
//! * loom's environment variables, such as `LOOM_MAX_BRANCHES`, take effect where the variable of
//!   this crate, here `DPOR_MAX_BRANCHES`, is not set.
//!
//! A build contains one `dpor`: the feature applies to every crate of the build that uses it.

#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
// What only JSON shows is dead without it, and the build with all features finds what is dead.
#![cfg_attr(not(feature = "json"), allow(dead_code))]
// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod diagnose;
mod verdict;

pub mod alloc;
mod atomically;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
pub mod cell;
pub mod collections;
mod config;
pub mod engine;
mod exploration;
pub mod future;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
pub mod hint;
pub mod lazy_static;
pub mod model;
mod orderings;
mod rt;
pub mod sync;
pub mod thread;
pub mod time;

/// Maximum number of threads in one execution of loom, for tests that read it.
///
/// In this crate [`Builder::max_threads`] is the maximum number of threads at once, by default
/// 1000.
pub const MAX_THREADS: usize = 5;

pub use crate::atomically::{Footprint, Object, atomically};
pub use crate::exploration::regions::{explore, skip_branch, stop_exploring};
pub use crate::rt::engine::stats::Trees;
pub use crate::sync::shared::Shared;
pub use crate::verdict::assumption::{Assumption, AssumptionKind};
pub use crate::verdict::failure::{Event, Failure, FailureKind};
pub use crate::verdict::further::Further;
pub use crate::verdict::outcomes::{outcome, outcomes};
pub use crate::verdict::report::{Bound, Hotspot, Limit, Pruned, Report, Verdict};
pub use crate::verdict::vacuous::Vacuous;
pub use crate::verdict::weak::WeakMemory;
pub use config::{Algorithm, Builder, Executions, Memory, Order, Shard, Summary, Thorough};
pub use model::{
    Any, access, access_in, any, assume, choose, model, name, orderings, replay, show, stop,
};
pub use orderings::{OrderingPlace, OrderingsReport, WeakerOrdering};
