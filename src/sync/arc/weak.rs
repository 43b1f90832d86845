//! References that do not keep a value alive, as `std::sync::Weak`.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Acquire;

use super::Arc;
use super::block::{self, Header};
use crate::rt::{self, OpKind};

/// Drop-in replacement for `std::sync::Weak`.
///
/// A `Weak` does not coerce to an unsized type, just as an [`Arc`] does not: make it from an
/// `Arc<dyn Trait>`.
pub struct Weak<T: ?Sized> {
    /// [`NOWHERE`] if there never was a value.
    value: NonNull<T>,
}

/// No value has this address: the value would end behind the last address.
const NOWHERE: usize = usize::MAX;

// SAFETY: an upgrade turns the weak reference into an `Arc`, so it needs what an `Arc` needs.
unsafe impl<T: ?Sized + Sync + Send> Send for Weak<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync + Send> Sync for Weak<T> {}
impl<T: ?Sized> Unpin for Weak<T> {}
impl<T: ?Sized + RefUnwindSafe> UnwindSafe for Weak<T> {}

impl<T> Weak<T> {
    /// Creates a weak reference without a value. It allocates no memory and cannot be upgraded.
    #[must_use]
    pub const fn new() -> Weak<T> {
        // SAFETY: the address is not zero.
        let value = unsafe { NonNull::new_unchecked(ptr::without_provenance_mut(NOWHERE)) };
        Weak { value }
    }
}

impl<T: ?Sized> Weak<T> {
    /// # Safety
    ///
    /// A weak reference to the block of this value is counted, and the result owns it.
    pub(super) unsafe fn own(value: NonNull<T>) -> Weak<T> {
        Weak { value }
    }

    /// The counts, unless there never was a value.
    fn header(&self) -> Option<&Header> {
        if self.value.addr().get() == NOWHERE {
            return None;
        }
        // SAFETY: this weak reference keeps the block.
        Some(unsafe { block::header(self.value) })
    }

    /// Creates a reference to the value, unless the last reference has been dropped.
    #[must_use = "this makes a reference and does nothing else"]
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let header = self.header()?;
        header.perform(OpKind::Upgrade);
        // SAFETY: the reference has just been counted.
        header.upgrade().then(|| unsafe { Arc::own(self.value) })
    }

    /// Returns the number of references to the value, not counting weak ones.
    #[must_use]
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        self.header().map_or(0, |header| {
            header.perform(OpKind::ReadCount { unique: false });
            header.strong.load(Acquire)
        })
    }

    /// Returns the number of weak references, or 0 if the value has been dropped.
    #[must_use]
    #[track_caller]
    pub fn weak_count(&self) -> usize {
        self.header().map_or(0, |header| {
            header.perform(OpKind::ReadCount { unique: false });
            match header.strong.load(Acquire) {
                0 => 0,
                _ => header.weak_references(),
            }
        })
    }

    /// Returns whether both are references to the same value, or both were created by
    /// [`Weak::new`].
    #[must_use]
    pub fn ptr_eq(&self, other: &Weak<T>) -> bool {
        ptr::addr_eq(self.value.as_ptr(), other.value.as_ptr())
    }

    /// Returns a pointer to the place of the value, even after the value has been dropped.
    ///
    /// The pointer may be read only while there is a reference that is not weak.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.value.as_ptr()
    }

    /// Turns the weak reference into a pointer, for [`Weak::from_raw`].
    #[must_use = "the weak reference is leaked if the pointer is lost"]
    pub fn into_raw(self) -> *const T {
        ManuallyDrop::new(self).as_ptr()
    }

    /// Turns a pointer from [`Weak::into_raw`] back into the weak reference.
    ///
    /// # Safety
    ///
    /// The pointer is from `into_raw`, and owns a weak reference that is not used otherwise.
    pub unsafe fn from_raw(pointer: *const T) -> Weak<T> {
        rt::note_raw_reference();
        // SAFETY: neither the address of a value nor `NOWHERE` is zero; the rest is the caller's
        // promise.
        unsafe { Weak::own(NonNull::new_unchecked(pointer.cast_mut())) }
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    /// Creates another weak reference to the same value.
    #[track_caller]
    fn clone(&self) -> Weak<T> {
        if let Some(header) = self.header() {
            header.perform(OpKind::RetainWeak);
            header.retain_weak();
        }
        Weak { value: self.value }
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        /// Drops the weak reference even if the announcement does not return.
        struct Release<T: ?Sized>(NonNull<T>);
        impl<T: ?Sized> Drop for Release<T> {
            fn drop(&mut self) {
                // SAFETY: the `Weak` that is being dropped owns one.
                unsafe { block::release_weak(self.0) };
            }
        }
        if let Some(header) = self.header() {
            let _release = Release(self.value);
            header.announce_weak_end();
        }
    }
}

impl<T> Default for Weak<T> {
    /// Creates a weak reference without a value.
    fn default() -> Weak<T> {
        Weak::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
