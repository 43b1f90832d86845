//! Drop-in replacements for `std::sync::atomic`.
//!
//! Inside a model every access is a visible operation. Values are sequentially consistent, whatever
//! the [`Ordering`] says: behaviour that only weak memory shows is not explored. Outside a model
//! the types behave like std's. In both cases they have the same size, alignment and representation
//! as std's.

mod cell;
mod commuting;
mod int;
mod special;

pub use commuting::{Commuting, Number};
pub use int::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize,
};
pub use special::{AtomicBool, AtomicPtr};
pub use std::sync::atomic::{Ordering, compiler_fence};

use crate::rt;

macro_rules! initial {
    ($($name:ident $atomic:ident $value:literal;)*) => {$(
        #[doc = concat!("An `", stringify!($atomic), "` that holds ", stringify!($value), ".")]
        #[deprecated(note = "std has deprecated it; use `new`")]
        #[allow(
            clippy::declare_interior_mutable_const,
            reason = "std's is the same; each use is a new one"
        )]
        pub const $name: $atomic = $atomic::new($value);
    )*};
}
initial! {
    ATOMIC_BOOL_INIT AtomicBool false;
    ATOMIC_ISIZE_INIT AtomicIsize 0;
    ATOMIC_USIZE_INIT AtomicUsize 0;
}

/// Same as [`crate::hint::spin_loop`], under its old name.
#[track_caller]
#[deprecated(note = "std has deprecated it; use `hint::spin_loop`")]
pub fn spin_loop_hint() {
    crate::hint::spin_loop();
}

/// An atomic fence.
///
/// The fence commutes with all operations, because values are sequentially consistent. So a fence
/// is no step of an execution, and threads do not switch at a fence. The search for data races
/// takes fences into account.
///
/// # Panics
///
/// Panics if `order` is `Relaxed`, as std's function does.
#[track_caller]
pub fn fence(order: Ordering) {
    assert!(
        order != Ordering::Relaxed,
        "there is no such thing as a relaxed fence"
    );
    rt::fence(order);
    std::sync::atomic::fence(order);
}
