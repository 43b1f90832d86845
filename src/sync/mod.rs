//! Drop-in replacements for `std::sync`.
//!
//! | std | here |
//! |---|---|
//! | `atomic` | modelled: every type and method that is stable, except `AtomicPtr::fetch_*` |
//! | `Mutex`, `MutexGuard` | modelled |
//! | `PoisonError`, `TryLockError`, `LockResult`, `TryLockResult` | std's own |
//! | `Arc`, `Weak` | std's own: counting references is not a visible operation |

pub mod atomic;
mod mutex;

pub use mutex::{Mutex, MutexGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};
