//! Variables of which each thread has its own, as `std::thread::LocalKey`.
//!
//! Inside a model each modelled thread has its own, made when it first uses it and dropped at its
//! end; outside, they are std's.

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
            // A constant as in std: what its initialiser borrows is there for good.
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

/// The variable of a [`LocalKey`]. The key is a constant, as std's is, which may be declared where
/// a static may not, as in an `impl`; so this is what has an address that is the variable's own.
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

std::thread_local! {
    /// The first value that a variable outside of a model is given instead of that of its
    /// initialiser: its type, and where it is. Only while std makes the variable.
    static GIVEN: Cell<Option<(TypeId, *mut u8)>> = const { Cell::new(None) };
}

/// Drops a boxed value.
///
/// # Safety
///
/// `value` comes from `Box::into_raw` of a `Box<T>`, and is not used again.
unsafe fn drop_boxed<T>(value: *mut u8) {
    // SAFETY: the caller says so.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

/// Refuses the use of a variable that has been dropped, in std's words.
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

    /// What tells this variable from others.
    fn key(&self) -> usize {
        (self.variable as *const __Variable<T>).addr()
    }

    /// The first value of a variable of std's: the one that it is given, or that of its
    /// initialiser.
    #[doc(hidden)]
    pub fn __make(init: impl FnOnce() -> T) -> T {
        let given = GIVEN.take().filter(|(of, _)| *of == TypeId::of::<T>());
        given
            // SAFETY: it is an `Option` of this type, says the `TypeId`. `give` keeps it until this
            // has returned, and does not look at it meanwhile.
            .and_then(|(_, value)| unsafe { (*value.cast::<Option<T>>()).take() })
            .unwrap_or_else(init)
    }

    /// Makes `value` this thread's first value, without the initialiser. Returns it if there is one
    /// already.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`].
    fn give(&'static self, value: T) -> Option<T> {
        let key = self.key();
        match rt::local(key) {
            Local::Outside => {
                let mut value = Some(value);
                GIVEN.set(Some((TypeId::of::<T>(), (&raw mut value).cast())));
                let made = self.variable.real.try_with(|_| ());
                // Nobody has looked there if the variable was there, is gone, or is made from a
                // constant.
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

    /// Makes this thread's value, with a key that has none.
    fn make(&self, key: usize, value: T) -> *mut T {
        // Its initialiser may have used the variable, which has made it.
        if let Local::Value(earlier) = rt::local(key) {
            let earlier = earlier.cast::<T>();
            // SAFETY: it was boxed below, by this thread, for this key, and has not been dropped.
            // Nobody has a reference to it: whoever used it in the initialiser has returned.
            drop(unsafe { earlier.replace(value) });
            return earlier;
        }
        let value = Box::into_raw(Box::new(value));
        rt::set_local(key, value.cast(), drop_boxed::<T>, needs_drop::<T>());
        value
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
            Err(AccessError) => gone(),
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
        let key = self.key();
        let value = match rt::local(key) {
            Local::Outside => return self.variable.real.try_with(f).map_err(|_| AccessError),
            Local::Dropped => return Err(AccessError),
            Local::Value(value) => value.cast::<T>(),
            Local::Missing => self.make(key, (self.variable.init)()),
        };
        // SAFETY: the value was boxed in `make`, by this thread, for this key. It is dropped when
        // this thread's body has ended, so not during this call; nobody has a unique reference to
        // it.
        Ok(f(unsafe { &*value }))
    }
}

/// The methods of a variable that is a cell, std's or ours.
macro_rules! of_a_cell {
    ($($($path:ident)::+;)*) => {$(
        impl<T: 'static> LocalKey<$($path)::+<T>> {
            /// Sets this thread's value. Its first one is then not that of the initialiser, which
            /// is not called.
            ///
            /// # Panics
            ///
            /// As for [`LocalKey::with`].
            pub fn set(&'static self, value: T) {
                if let Some(value) = self.give($($path)::+::new(value)) {
                    self.with(|cell| cell.set(value.into_inner()));
                }
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

    /// Sets this thread's value. Its first one is then not that of the initialiser, which is not
    /// called.
    ///
    /// # Panics
    ///
    /// As for [`LocalKey::with`], and if the value is borrowed.
    pub fn set(&'static self, value: T) {
        if let Some(value) = self.give(RefCell::new(value)) {
            self.with(|cell| *cell.borrow_mut() = value.into_inner());
        }
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
