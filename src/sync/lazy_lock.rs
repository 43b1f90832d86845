//! A value that is created on first use, as `std::sync::LazyLock`.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::once::{Stage, poisoned};

/// Drop-in replacement for `std::sync::LazyLock`.
///
/// In a `static`, the value is created anew in every execution. This needs a closure without drop
/// glue.
pub struct LazyLock<T, F = fn() -> T> {
    stage: Stage,
    /// Initialised until the closure is moved out to create the value.
    f: UnsafeCell<ManuallyDrop<F>>,
    /// Whether `f` is initialised.
    whole: UnsafeCell<bool>,
    /// Initialised if the stage is done.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads get `&T` from the lock, and one of them calls `f` and may create a value that
// another one drops. The value, `f` and `whole` are written by the one thread that the stage
// admits.
unsafe impl<T: Sync + Send, F: Send> Sync for LazyLock<T, F> {}
// SAFETY: the lock owns the value and the closure.
unsafe impl<T: Send, F: Send> Send for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}

/// Drops the value of the lock at this address, and resets the lock.
///
/// # Safety
///
/// A `LazyLock<T, F>` is at this address, and no thread uses it during the call. `F` has no drop
/// glue.
unsafe fn undo<T, F>(lock: *mut u8) {
    // SAFETY: by the caller's promise the lock is there, and this reference is exclusive.
    let lock = unsafe { &mut *lock.cast::<LazyLock<T, F>>() };
    if lock.stage.take_back() {
        // SAFETY: the stage was done, so the value is initialised. The stage is not done any more,
        // so the value is not used again.
        unsafe { lock.value.get_mut().assume_init_drop() };
    }
    // The closure was moved out, but its bytes are still in place, and its call had nothing to
    // drop, because `F` has no drop glue. So the closure can be called again. (A type without drop
    // glue that must not exist twice, such as an exclusive reference, is one of the guide's
    // limits.)
    *lock.whole.get_mut() = true;
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates a lazy value, which `f` computes on first use.
    pub const fn new(f: F) -> LazyLock<T, F> {
        LazyLock {
            stage: Stage::new(),
            f: UnsafeCell::new(ManuallyDrop::new(f)),
            whole: UnsafeCell::new(true),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the value, and creates it first if necessary.
    ///
    /// Waits if another thread is creating it.
    ///
    /// # Panics
    ///
    /// Panics if creating the value has panicked before.
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        let begun = || {
            if needs_drop::<F>() {
                this.stage.undo_at_end(this, refuse);
            } else {
                this.stage.undo_at_end(this, undo::<T, F>);
            }
        };
        this.stage.call(Some("LazyLock"), begun, |_| {
            // SAFETY: the stage admits one thread at a time.
            let whole = unsafe { std::mem::replace(&mut *this.whole.get(), false) };
            // While an execution is torn down, another attempt may have taken the closure and been
            // unwound.
            if !whole && needs_drop::<F>() {
                poisoned(Some("LazyLock"));
            }
            // SAFETY: as above. The closure is taken once, or has no drop glue and cannot be
            // dropped twice.
            let f = unsafe { ManuallyDrop::take(&mut *this.f.get()) };
            let value = f();
            // SAFETY: as above; no thread reads the value before the stage is done.
            unsafe { (*this.value.get()).write(value) };
        });
        this.stage.note_origin::<T, _>(this);
        // SAFETY: the stage is done, after which the value is initialised and only read.
        unsafe { (*this.value.get()).assume_init_ref() }
    }

    /// Returns a mutable reference to the value, and creates the value first if necessary.
    ///
    /// # Panics
    ///
    /// Panics if creating the value has panicked before.
    #[track_caller]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        // SAFETY: the value has just been created, and the reference is exclusive.
        unsafe { this.value.get_mut().assume_init_mut() }
    }
}

/// Panics because the lock at this address cannot be reset.
///
/// # Safety
///
/// Always safe to call; the signature is that of a function that the model calls at the end of an
/// execution.
unsafe fn refuse(_: *mut u8) {
    panic!(
        "a LazyLock that is older than the model was used in it, and its closure owns something, so \
         it cannot be called again in the next execution; make it inside the model's closure"
    );
}

impl<T, F> LazyLock<T, F> {
    /// Returns the value if it has been created; does not create the value.
    #[track_caller]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        this.stage.check().then(|| {
            this.stage.note_origin::<T, _>(this);
            // SAFETY: the stage is done, after which the value is initialised and only read.
            unsafe { (*this.value.get()).assume_init_ref() }
        })
    }

    /// Returns a mutable reference to the value if it has been created.
    ///
    /// The reference is exclusive, so this is not a visible operation.
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        if !this.stage.is_done() {
            return None;
        }
        // SAFETY: the stage is done, so the value is initialised.
        Some(unsafe { this.value.get_mut().assume_init_mut() })
    }
}

impl<T, F> Drop for LazyLock<T, F> {
    fn drop(&mut self) {
        if self.stage.is_done() {
            // SAFETY: the stage is done, so the value is initialised.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
        if *self.whole.get_mut() {
            // SAFETY: `whole` says that `f` is initialised: no call has taken the closure, or the
            // closure has no drop glue and `undo` has reset the lock.
            unsafe { ManuallyDrop::drop(self.f.get_mut()) };
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> Self {
        LazyLock::new(T::default)
    }
}

/// Prints the value if it has been created, without a visible operation.
impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("LazyLock");
        if self.stage.is_done() {
            // SAFETY: the stage is done, after which the value is initialised and only read.
            out.field(unsafe { (*self.value.get()).assume_init_ref() });
        } else {
            out.field(&format_args!("<uninit>"));
        }
        out.finish()
    }
}
