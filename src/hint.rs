//! What does a spin hint mean here?
//!
//! A loop that only looks waits at its hint until something it has looked at changes; see
//! [`spin_loop`].

pub use std::hint::{assert_unchecked, black_box, select_unpredictable, unreachable_unchecked};

use crate::rt::{self, Answer};

/// Says that the path which comes here is rarely taken, as `std::hint::cold_path`, which is newer than
/// our oldest compiler.
#[cold]
pub const fn cold_path() {}

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
