//! What does a spin hint mean here?
//!
//! A loop that only looks waits at its hint until something it has looked at changes; see
//! [`spin_loop`].

#[cfg(not(any(loom, feature = "loom")))]
pub use std::hint::unreachable_unchecked;
pub use std::hint::{assert_unchecked, black_box, select_unpredictable};

use crate::rt::{self, Answer};

/// Says that the path which comes here is rarely taken, as `std::hint::cold_path`, which is newer than
/// our oldest compiler.
#[cold]
pub const fn cold_path() {}

/// Panics, as loom's: a test that comes here has found something.
///
/// # Safety
///
/// None here; in the program that is not tested the caller must not come here.
///
/// # Panics
///
/// Always.
#[cfg(any(loom, feature = "loom"))]
#[track_caller]
pub const unsafe fn unreachable_unchecked() -> ! {
    panic!("`unreachable_unchecked` was reached")
}

/// Drop-in replacement for `std::hint::spin_loop`.
///
/// Inside a model, a thread that comes back here without having changed anything, having read the
/// same values again, waits until one of them is another one.
#[track_caller]
pub fn spin_loop() {
    if let Answer::Outside = rt::hint() {
        std::hint::spin_loop();
    }
}
