//! Variables with a value per thread, as `std::thread::LocalKey`.
//!
//! Inside a model each modelled thread has its own value, which is created on first use and dropped
//! at the end of the thread. Outside a model the variables are std's.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::needs_drop;

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
        $vis const $name: $crate::thread::LocalKey<$t> = {
            // A constant as in std: values that its initialiser borrows live for ever.
            #[allow(clippy::declare_interior_mutable_const)]
            const __DPOR_INIT: $t = $init;
            $crate::thread::__std_thread_local! { static __DPOR_REAL: $t = const { __DPOR_INIT }; }
            static __DPOR_VARIABLE: $crate::thread::__Variable<$t> =
                $crate::thread::__Variable::__new(|| __DPOR_INIT, &__DPOR_REAL);
            $crate::thread::LocalKey::__new(&__DPOR_VARIABLE)
        };
        $($crate::thread_local! { $($rest)* })?
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = $init:expr $(; $($rest:tt)*)?) => {
        $(#[$attr])*
        $vis const $name: $crate::thread::LocalKey<$t> = {
            $crate::thread::__std_thread_local! { static __DPOR_REAL: $t = $crate::thread::LocalKey::__make(|| $init); }
            static __DPOR_VARIABLE: $crate::thread::__Variable<$t> =
                $crate::thread::__Variable::__new(|| $init, &__DPOR_REAL);
            $crate::thread::LocalKey::__new(&__DPOR_VARIABLE)
        };
        $($crate::thread_local! { $($rest)* })?
    };
}

/// A thread-local variable, declared by [`crate::thread_local!`].
pub struct LocalKey<T: 'static> {
    variable: &'static __Variable<T>,
}

/// The variable of a [`LocalKey`]. The key is a constant, as in std, so that it may be declared
/// where a static may not, for example in an `impl`. A constant has no address of its own, but this
/// type has one, which identifies the variable.
#[doc(hidden)]
pub struct __Variable<T: 'static> {
    init: fn() -> T,
    real: &'static std::thread::LocalKey<T>,
}

impl<T: 'static> __Variable<T> {
    #[doc(hidden)]
    pub const fn __new(init: fn() -> T, real: &'static std::thread::LocalKey<T>) -> Self {
        __Variable { init, real }
    }
}

/// The error for an access to a thread-local variable that was dropped at the end of its thread.
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

std::thread_local! {
    /// The first value for a variable outside of a model, in place of the initialiser's: its type
    /// and its address. Set only while std creates the variable.
    static GIVEN: Cell<Option<(TypeId, *mut u8)>> = const { Cell::new(None) };
}

/// Drops a boxed value.
///
/// # Safety
///
/// `value` comes from `Box::into_raw` of a `Box<T>`, and is not used again.
unsafe fn drop_boxed<T>(value: *mut u8) {
    // SAFETY: by the caller's promise the pointer comes from a `Box<T>` and is not used again.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

/// Panics because a variable has been dropped, in std's words.
fn gone() -> ! {
    panic!(
        "cannot access a Thread Local Storage value during or after destruction: {AccessError:?}"
    )
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(variable: &'static __Variable<T>) -> Self {
        LocalKey { variable }
    }

    /// The identity of this variable.
    fn key(&self) -> usize {
        (self.variable as *const __Variable<T>).addr()
    }

    /// The first value of a std variable: the value in `GIVEN`, or the initialiser's.
    #[doc(hidden)]
    pub fn __make(init: impl FnOnce() -> T) -> T {
        let given = GIVEN.take().filter(|(of, _)| *of == TypeId::of::<T>());
        given
            // SAFETY: by the `TypeId` the pointer leads to an `Option` of this type. `give` keeps
            // the `Option` until this function has returned, and does not use it meanwhile.
            .and_then(|(_, value)| unsafe { (*value.cast::<Option<T>>()).take() })
            .unwrap_or_else(init)
    }

    /// Makes `value` this thread's first value, without a call of the initialiser. Returns `value`
    /// if the thread has a value already.
    ///
    /// # Panics
    ///
    /// Panics as [`LocalKey::with`] does.
    fn give(&'static self, value: T) -> Option<T> {
        let key = self.key();
        match rt::local(key) {
            Local::Outside => {
                let mut value = Some(value);
                GIVEN.set(Some((TypeId::of::<T>(), (&raw mut value).cast())));
                let made = self.variable.real.try_with(|_| ());
                // `__make` has not taken the value if the variable existed, was dropped, or is made
                // from a constant.
                GIVEN.set(None);
                made.unwrap_or_else(|_| gone());
                value
            }
            Local::Dropped => gone(),
            Local::Value(_) => Some(value),
            Local::Missing => {
                self.make(key, value);
                None
            }
        }
    }

    /// Stores this thread's value for a key that has none.
    fn make(&self, key: usize, value: T) -> *mut T {
        // The initialiser may have used the variable, so that the variable has a value already.
        if let Local::Value(earlier) = rt::local(key) {
            let earlier = earlier.cast::<T>();
            // SAFETY: the earlier value was boxed below, by this thread, for this key, and has not
            // been dropped. There is no reference to it: each use in the initialiser has returned.
            drop(unsafe { earlier.replace(value) });
            return earlier;
        }
        let value = Box::into_raw(Box::new(value));
        rt::set_local(key, value.cast(), drop_boxed::<T>, needs_drop::<T>());
        value
    }

    /// Calls `f` with this thread's value, and creates the value first if necessary.
    ///
    /// # Panics
    ///
    /// Panics if the value has been dropped, that is, in a destructor that runs at the end of the
    /// thread.
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(AccessError) => gone(),
        }
    }

    /// Calls `f` with this thread's value, and creates the value first if necessary.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has been dropped, that is, in a destructor that runs at the
    /// end of the thread.
    pub fn try_with<F, R>(&'static self, f: F) -> std::result::Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let key = self.key();
        let value = match rt::local(key) {
            Local::Outside => return self.variable.real.try_with(f).map_err(|_| AccessError),
            Local::Dropped => return Err(AccessError),
            Local::Value(value) => value.cast::<T>(),
            Local::Missing => self.make(key, (self.variable.init)()),
        };
        // SAFETY: the value was boxed in `make`, by this thread, for this key. It is dropped after
        // the end of this thread's body, so not during this call, and there is no exclusive
        // reference to it.
        Ok(f(unsafe { &*value }))
    }
}

/// The methods of a variable that is a cell, of std or of this crate.
macro_rules! of_a_cell {
    ($($($path:ident)::+;)*) => {$(
        impl<T: 'static> LocalKey<$($path)::+<T>> {
            /// Sets this thread's value. If the thread has no value yet, the initialiser is not
            /// called.
            ///
            /// # Panics
            ///
            /// Panics as [`LocalKey::with`] does.
            pub fn set(&'static self, value: T) {
                if let Some(value) = self.give($($path)::+::new(value)) {
                    self.with(|cell| cell.set(value.into_inner()));
                }
            }

            /// Returns a copy of this thread's value.
            ///
            /// # Panics
            ///
            /// Panics as [`LocalKey::with`] does.
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
            /// Panics as [`LocalKey::with`] does.
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
            /// Panics as [`LocalKey::with`] does.
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
    /// Panics as [`LocalKey::with`] does, and if the value is mutably borrowed.
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
    /// Panics as [`LocalKey::with`] does, and if the value is borrowed.
    pub fn with_borrow_mut<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&mut T) -> R,
    {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets this thread's value. If the thread has no value yet, the initialiser is not called.
    ///
    /// # Panics
    ///
    /// Panics as [`LocalKey::with`] does, and if the value is borrowed.
    pub fn set(&'static self, value: T) {
        if let Some(value) = self.give(RefCell::new(value)) {
            self.with(|cell| *cell.borrow_mut() = value.into_inner());
        }
    }

    /// Takes this thread's value and leaves the default in its place.
    ///
    /// # Panics
    ///
    /// Panics as [`LocalKey::with`] does, and if the value is borrowed.
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
    /// Panics as [`LocalKey::with`] does, and if the value is borrowed.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
