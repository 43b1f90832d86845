//! Drop-in replacements for `std::hint`.
//!
//! A loop that only reads waits at its hint until a value that it has read changes; see
//! [`spin_loop`].

#[cfg(not(any(loom, feature = "loom")))]
pub use std::hint::unreachable_unchecked;
pub use std::hint::{assert_unchecked, black_box, select_unpredictable};

pub use crate::rt::rare::cold_path;
use crate::rt::{self, Answer};

/// Panics, as loom's function does: a test that reaches this has found something.
///
/// # Safety
///
/// None here. In the program that is not tested, the caller must never reach this.
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
/// Inside a model, a thread that returns here having changed nothing and read the same values again
/// waits until one of them changes. [`Builder::spin_bound`](crate::Builder::spin_bound) says how
/// many such rounds are free, and with [`Builder::await_loops`](crate::Builder::await_loops) looks
/// in vain are left out.
///
/// ```
/// use dpor::sync::atomic::{AtomicBool, Ordering::{Acquire, Release}};
///
/// let report = dpor::Builder::new().explore(|| {
///     let ready = AtomicBool::new(false);
///     dpor::thread::scope(|scope| {
///         scope.spawn(|| ready.store(true, Release));
///         while !ready.load(Acquire) {
///             dpor::hint::spin_loop();
///         }
///     });
/// });
/// assert!(report.expect("the loop ends").complete);
/// ```
#[track_caller]
pub fn spin_loop() {
    if let Answer::Outside = rt::hint() {
        std::hint::spin_loop();
    }
}
