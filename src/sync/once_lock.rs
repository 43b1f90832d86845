//! A value that is set once, as `std::sync::OnceLock`.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::once::Stage;

/// Drop-in replacement for `std::sync::OnceLock`.
///
/// In a `static`, the lock has no value at the beginning of every execution.
pub struct OnceLock<T> {
    stage: Stage,
    /// Initialised if the stage is done.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads get `&T` from the lock, which needs `Sync`, and one thread may drop a value that
// another has set, which needs `Send`. The value is written once, by the thread that the stage
// admits, before the stage is done, and only read afterwards.
unsafe impl<T: Sync + Send> Sync for OnceLock<T> {}
// SAFETY: the lock owns the value and nothing else.
unsafe impl<T: Send> Send for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}

/// Takes the value out of the lock at this address.
///
/// # Safety
///
/// An `OnceLock<T>` is at this address, and no thread uses it during the call.
unsafe fn undo<T>(lock: *mut u8) {
    // SAFETY: by the caller's promise the lock is there, and this reference is exclusive.
    let lock = unsafe { &mut *lock.cast::<OnceLock<T>>() };
    drop(lock.take());
}

impl<T> OnceLock<T> {
    /// Creates a lock without a value.
    #[must_use]
    pub const fn new() -> OnceLock<T> {
        OnceLock {
            stage: Stage::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The value, which must have been set.
    fn value(&self) -> &T {
        debug_assert!(self.stage.is_done());
        self.stage.note_origin::<T, _>(self);
        // SAFETY: every caller has seen that the stage is done, after which the value is
        // initialised and only read.
        unsafe { (*self.value.get()).assume_init_ref() }
    }

    /// Returns the value if it has been set.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        self.stage.check().then(|| self.value())
    }

    /// Returns a mutable reference to the value if it has been set.
    ///
    /// The reference is exclusive, so this is not a visible operation.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.stage.is_done() {
            return None;
        }
        // SAFETY: the stage is done, so the value is initialised.
        Some(unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Waits until the value has been set, and returns it.
    #[track_caller]
    pub fn wait(&self) -> &T {
        self.stage.wait(true);
        self.value()
    }

    /// Sets the value if it has not been set.
    ///
    /// Waits if another thread is setting it.
    ///
    /// # Errors
    ///
    /// Returns `value` in an error if the lock has a value already.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| match value.take() {
            Some(value) => value,
            None => unreachable!("dpor bug: an initialisation ran twice"),
        });
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// Returns the value; if there is none, first sets it to the result of `f`.
    ///
    /// Waits if another thread is setting it.
    #[track_caller]
    pub fn get_or_init<F>(&self, f: F) -> &T
    where
        F: FnOnce() -> T,
    {
        // After a panic the next caller tries again.
        self.stage.call(
            None,
            || self.stage.undo_at_end(self, undo::<T>),
            |_| {
                let value = f();
                // SAFETY: the stage admits one thread, and no thread reads the value before the
                // stage is done.
                unsafe { (*self.value.get()).write(value) };
            },
        );
        self.value()
    }

    /// Consumes the lock and returns the value, if it has been set.
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Takes the value out and leaves the lock without a value.
    pub fn take(&mut self) -> Option<T> {
        if !self.stage.take_back() {
            return None;
        }
        // SAFETY: the stage was done, so the value is initialised. The stage is not done any more,
        // so the value is not read again.
        Some(unsafe { self.value.get_mut().assume_init_read() })
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        OnceLock {
            stage: Stage::done(),
            value: UnsafeCell::new(MaybeUninit::new(value)),
        }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        match self.get() {
            Some(value) => OnceLock::from(value.clone()),
            None => OnceLock::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

/// Prints the value if it has been set, without a visible operation.
impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("OnceLock");
        if self.stage.is_done() {
            out.field(self.value());
        } else {
            out.field(&format_args!("<uninit>"));
        }
        out.finish()
    }
}
