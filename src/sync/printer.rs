//! How does a report show the data behind a lock?
//!
//! A lock keeps the function that prints its data, so the function is called with data of its type
//! only, and while the lock is held.

use std::marker::PhantomData;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::rt::{self, Datum};

/// The function that prints the data of a lock, if the program has set one.
pub(super) struct Printer<T: ?Sized> {
    /// A `fn(&T) -> String`, or null.
    function: AtomicPtr<()>,
    /// Makes `T` invariant, without owning one.
    data: PhantomData<fn(&T) -> *mut T>,
}

// SAFETY: a pointer to a function may be used by any thread. There is no `T` here.
unsafe impl<T: ?Sized> Sync for Printer<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized> Send for Printer<T> {}

impl<T: ?Sized> Printer<T> {
    pub(super) const fn none() -> Printer<T> {
        Printer {
            function: AtomicPtr::new(null_mut()),
            data: PhantomData,
        }
    }

    pub(super) fn set(&self, print: fn(&T) -> String) {
        self.function.store(print as *mut (), Relaxed);
    }

    /// The data, which the caller has locked, if the execution is run to be reported.
    #[inline]
    pub(super) fn shown(&self, data: &T) -> Option<Datum> {
        rt::shown_data(data, || {
            let function = self.function.load(Relaxed);
            if function.is_null() {
                return None;
            }
            // SAFETY: the pointer is not null, so `set` has stored it, which has made it from a
            // function of this type: `T` is invariant.
            let print = unsafe { transmute::<*mut (), fn(&T) -> String>(function) };
            Some(print(data))
        })
    }
}
