//! Variables of which each thread has its own, as `std::thread::LocalKey`.
//!
//! Inside a model each modelled thread has its own, made when it first uses it and dropped at its end;
//! outside, they are std's.

use std::cell::{Cell, RefCell};
use std::fmt;

use crate::rt::{self, Local};

/// Declares thread-local variables, as `std::thread_local!`.
///
/// ```
/// use std::cell::Cell;
///
/// dpor::thread_local! {
///     /// How often this thread was here.
///     static VISITS: Cell<u32> = const { Cell::new(0) };
/// }
///
/// dpor::model(|| {
///     VISITS.set(VISITS.get() + 1);
///     let other = dpor::thread::spawn(|| VISITS.get());
///     assert_eq!((VISITS.get(), other.join().unwrap()), (1, 0));
/// });
/// ```
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = const $init:block $(; $($rest:tt)*)?) => {
        $(#[$attr])*
        $vis static $name: $crate::thread::LocalKey<$t> = {
            ::std::thread_local! { static REAL: $t = const $init; }
            $crate::thread::LocalKey::__new(|| $init, &REAL)
        };
        $($crate::thread_local! { $($rest)* })?
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = $init:expr $(; $($rest:tt)*)?) => {
        $(#[$attr])*
        $vis static $name: $crate::thread::LocalKey<$t> = {
            ::std::thread_local! { static REAL: $t = $init; }
            $crate::thread::LocalKey::__new(|| $init, &REAL)
        };
        $($crate::thread_local! { $($rest)* })?
    };
}

/// A thread-local variable, declared by [`crate::thread_local!`].
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
    real: &'static std::thread::LocalKey<T>,
}

/// Error of an access to a thread-local variable that was dropped because its thread is at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessError;

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessError").finish()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt("already destroyed", f)
    }
}

impl std::error::Error for AccessError {}

/// Drops a boxed value.
///
/// # Safety
///
/// `value` comes from `Box::into_raw` of a `Box<T>`, and is not used again.
unsafe fn drop_boxed<T>(value: *mut u8) {
    // SAFETY: the caller says so.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(init: fn() -> T, real: &'static std::thread::LocalKey<T>) -> Self {
        LocalKey { init, real }
    }

    /// Calls `f` with this thread's value, creating it first if necessary.
    ///
    /// # Panics
    ///
    /// If the value has been dropped, in a destructor that runs at the thread's end.
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!(
                "cannot access a Thread Local Storage value during or after destruction: {error:?}"
            ),
        }
    }

    /// Calls `f` with this thread's value, creating it first if necessary.
    ///
    /// # Errors
    ///
    /// If the value has been dropped, in a destructor that runs at the thread's end.
    pub fn try_with<F, R>(&'static self, f: F) -> std::result::Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let key = (self as *const LocalKey<T>).addr();
        let value = match rt::local(key) {
            Local::Outside => return self.real.try_with(f).map_err(|_| AccessError),
            Local::Dropped => return Err(AccessError),
            Local::Value(value) => value.cast::<T>(),
            Local::Missing => {
                let value = Box::into_raw(Box::new((self.init)()));
                rt::set_local(key, value.cast(), drop_boxed::<T>);
                value
            }
        };
        // SAFETY: the value was boxed above, by this thread, for this key. It is dropped when this
        // thread's body has ended, so not during this call; nobody has a unique reference to it.
        Ok(f(unsafe { &*value }))
    }
}

/// The methods of a variable that is a cell, std's or ours.
macro_rules! of_a_cell {
    ($($($path:ident)::+;)*) => {$(
        impl<T: 'static> LocalKey<$($path)::+<T>> {
            /// Sets this thread's value.
            ///
            /// # Panics
            ///
            /// As for [`LocalKey::with`].
            pub fn set(&'static self, value: T) {
                self.with(|cell| cell.set(value));
            }

            /// Returns a copy of this thread's value.
            ///
            /// # Panics
            ///
            /// As for [`LocalKey::with`].
            pub fn get(&'static self) -> T
            where
                T: Copy,
            {
                self.with(|cell| cell.get())
            }

            /// Takes this thread's value and leaves the default in its place.
            ///
            /// # Panics
            ///
            /// As for [`LocalKey::with`].
            pub fn take(&'static self) -> T
            where
                T: Default,
            {
                self.with(|cell| cell.take())
            }

            /// Replaces this thread's value with `value` and returns the old one.
            ///
            /// # Panics
            ///
            /// As for [`LocalKey::with`].
            pub fn replace(&'static self, value: T) -> T {
                self.with(|cell| cell.replace(value))
            }
        }
    )*};
}
of_a_cell! {
    Cell;
    crate::cell::Cell;
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Calls `f` with a shared borrow of this thread's value.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is mutably borrowed.
    pub fn with_borrow<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Calls `f` with a mutable borrow of this thread's value.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is borrowed.
    pub fn with_borrow_mut<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&mut T) -> R,
    {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets this thread's value.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is borrowed.
    pub fn set(&'static self, value: T) {
        self.with(|cell| *cell.borrow_mut() = value);
    }

    /// Takes this thread's value and leaves the default in its place.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is borrowed.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Replaces this thread's value with `value` and returns the old one.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is borrowed.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
