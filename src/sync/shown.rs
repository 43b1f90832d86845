//! Which locks can have a function that shows their data in reports?

use super::mutex::Mutex;
use super::rwlock::RwLock;

/// A lock for [`show`](crate::show): a [`Mutex`] or an [`RwLock`].
///
/// No other type can implement this trait.
pub trait Shown: sealed::Sealed {
    /// The data behind the lock.
    type Data;

    #[doc(hidden)]
    fn __show(&self, print: fn(&Self::Data) -> String);
}

mod sealed {
    pub trait Sealed {}
}

impl<T> sealed::Sealed for Mutex<T> {}
impl<T> sealed::Sealed for RwLock<T> {}

impl<T> Shown for Mutex<T> {
    type Data = T;

    fn __show(&self, print: fn(&T) -> String) {
        // SAFETY: the lock was made with a `T`, which is sized, and keeps it.
        unsafe { self.printer.set(print) };
    }
}

impl<T> Shown for RwLock<T> {
    type Data = T;

    fn __show(&self, print: fn(&T) -> String) {
        // SAFETY: the lock was made with a `T`, which is sized, and keeps it.
        unsafe { self.printer.set(print) };
    }
}
