//! Drop-in replacements for `std::sync::atomic`.
//!
//! Inside a model every access is a visible operation. Values are sequentially consistent whatever
//! the [`Ordering`] says: a behaviour that only weak memory shows is not explored. Outside a model
//! the types behave as std's, whose size, alignment and representation they share.

mod cell;
mod int;
mod special;

pub use int::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize,
};
pub use special::{AtomicBool, AtomicPtr};
pub use std::sync::atomic::{Ordering, compiler_fence};

use crate::rt;

/// An atomic fence: a visible operation that commutes with everything, because values are
/// sequentially consistent.
///
/// # Panics
///
/// If `order` is `Relaxed`, as std's.
#[track_caller]
pub fn fence(order: Ordering) {
    assert!(
        order != Ordering::Relaxed,
        "there is no such thing as a relaxed fence"
    );
    rt::fence(order);
    std::sync::atomic::fence(order);
}
