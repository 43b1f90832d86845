//! Drop-in replacements for `std::sync`.
//!
//! | std | here |
//! |---|---|
//! | `atomic` | modelled: every stable type and method |
//! | `Mutex`, `RwLock`, `Condvar`, `Barrier` | modelled |
//! | `Once`, `OnceLock`, `LazyLock` | modelled |
//! | (loom's `Notify`) | modelled |
//! | `mpsc` | modelled; its errors are std's own |
//! | `PoisonError`, `TryLockError`, `LockResult`, `TryLockResult` | std's own |
//! | `Arc`, `Weak` | modelled, with the limits below |
//!
//! An `Arc` unsizes only by `From<Box<dyn Trait>>`, cannot be `self: Arc<Self>`, and makes no
//! `Waker`.
//!
//! `docs/SURFACE.md` lists every item.

mod arc;
pub mod atomic;
mod barrier;
mod changes;
mod condvar;
mod lazy_lock;
pub mod mpsc;
mod mutex;
mod notify;
mod once;
mod once_lock;
mod poison;
mod printer;
mod rwlock;
pub(crate) mod shared;
mod shown;

pub use arc::{Arc, Weak};
pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lazy_lock::LazyLock;
pub use mutex::{Mutex, MutexGuard};
pub use notify::Notify;
#[allow(deprecated, reason = "a name that std has is a name that we have")]
pub use once::ONCE_INIT;
pub use once::{Once, OnceState};
pub use once_lock::OnceLock;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use shown::Shown;
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
