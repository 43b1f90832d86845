//! How does a report show the data behind a lock?
//!
//! A lock keeps the function that prints its data, so the function is called with data of its type
//! only, and while the lock is held. The type is not part of the lock's own: a lock of an array may
//! become one of a slice (`Box<Mutex<[u8]>>`), as with std's.

use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::rt::{self, Datum};

/// Calls a `fn(&T) -> String` with the `T` at an address.
type Call = unsafe fn(*const (), *const ()) -> String;

/// The function that prints the data of a lock, if the program has set one.
pub(super) struct Printer {
    /// A `fn(&T) -> String`, for the `T` with which the lock was made.
    function: AtomicPtr<()>,
    /// The [`Call`] for this `T`, or null. It is stored behind the function.
    call: AtomicPtr<()>,
}

impl Printer {
    pub(super) const fn none() -> Printer {
        Printer {
            function: AtomicPtr::new(null_mut()),
            call: AtomicPtr::new(null_mut()),
        }
    }

    /// Sets the function.
    ///
    /// # Safety
    ///
    /// The data behind the lock is a `T`, whatever the lock is unsized to later on.
    pub(super) unsafe fn set<T>(&self, print: fn(&T) -> String) {
        let call: Call = call::<T>;
        self.function.store(print as *mut (), Relaxed);
        self.call.store(call as *mut (), Release);
    }

    /// The data, which the caller has locked, if the execution is run to be reported.
    #[inline]
    pub(super) fn shown<T: ?Sized>(&self, data: &T) -> Option<Datum> {
        rt::shown_data(data, || {
            let call = self.call.load(Acquire);
            if call.is_null() {
                return None;
            }
            // SAFETY: the pointer is not null, so `set` has made it from a function of this type.
            let call = unsafe { transmute::<*mut (), Call>(call) };
            let function = self.function.load(Relaxed);
            // SAFETY: `set` stores the function before the call, both for the type of the data, of
            // which a lock has one; and the data begins at the same address if it is unsized.
            Some(unsafe { call(function, (&raw const *data).cast()) })
        })
    }
}

/// # Safety
///
/// `function` was a `fn(&T) -> String`, and at `data` is a `T` that may be read.
unsafe fn call<T>(function: *const (), data: *const ()) -> String {
    // SAFETY: the caller promises it.
    let (print, data) = unsafe {
        let print = transmute::<*const (), fn(&T) -> String>(function);
        (print, &*data.cast::<T>())
    };
    print(data)
}
