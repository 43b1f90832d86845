//! The primitives that this crate is built on: std's, or dpor's under `--cfg dpor`.

#[cfg(dpor)]
pub use dpor::{cell::UnsafeCell, hint::spin_loop, sync::atomic};
#[cfg(not(dpor))]
pub use std::{hint::spin_loop, sync::atomic};

/// Std's cell, with the two methods of dpor's that say how long an access lasts.
#[cfg(not(dpor))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(dpor))]
impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Reads it.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes to it.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
