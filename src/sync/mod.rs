//! Drop-in replacements for `std::sync`.
//!
//! | std | here |
//! |---|---|
//! | `atomic` | modelled: every type and method that is stable, except `AtomicPtr::fetch_*` |
//! | `Mutex`, `RwLock`, `Condvar`, `Barrier` | modelled |
//! | `Once`, `OnceLock`, `LazyLock` | modelled |
//! | `mpsc` | modelled; its errors are std's own |
//! | `PoisonError`, `TryLockError`, `LockResult`, `TryLockResult` | std's own |
//! | `Arc`, `Weak` | std's own: counting references is not a visible operation |

pub mod atomic;
mod barrier;
mod condvar;
mod lazy_lock;
pub mod mpsc;
mod mutex;
mod once;
mod once_lock;
mod poison;
mod rwlock;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lazy_lock::LazyLock;
pub use mutex::{Mutex, MutexGuard};
pub use once::{Once, OnceState};
pub use once_lock::OnceLock;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};
