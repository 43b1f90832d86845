//! Shared ownership, as `std::sync::Arc`.
//!
//! Every operation on the counts is announced as one visible operation and then performed on the
//! block's own counters, with the memory orderings that it needs outside of a model. Operations
//! that make and drop references commute, so they cost no executions unless the program observes
//! their order: by a read of the counts, or by the moment at which the value is dropped.

use std::any::Any;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync as std_sync;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::rt::{self, OpKind};

mod block;
mod clone;
mod convert;
mod delegate;
mod weak;

use block::Header;
use clone::CloneToArc;
pub use weak::Weak;

/// Drop-in replacement for `std::sync::Arc`.
///
/// A value without drop glue, or with glue that only frees memory, is dropped unseen, so for such a
/// value it makes no difference which thread drops the last reference. For any other value, a model
/// explores each thread that may drop the last reference.
///
/// Reports show an operation at the caller's line. The drop of a reference has no caller; reports
/// show it at the line at which the value was put into its `Arc`.
///
/// Three things need compiler support that only std's `Arc` has:
///
/// * An `Arc<T>` does not coerce to an `Arc<dyn Trait>`. Make that from a box,
///   `Arc::from(Box::new(value) as Box<dyn Trait>)`, or from a std `Arc` with [`Arc::from_std`].
/// * A method cannot take `self: Arc<Self>`. Take `this: Arc<Self>`, or `&self` in a trait that is
///   implemented for `Arc<T>`.
/// * A `Waker` is made from a `std::sync::Arc` of a `std::task::Wake`, and the methods of `Wake`
///   take std's `Arc`. The code of such a waker may use this `Arc`; the counting of the waker
///   itself is not explored.
///
/// A reference to a value that borrows from other data must be dropped before that data, even if
/// the destructor of the value does not use the borrow.
pub struct Arc<T: ?Sized> {
    value: NonNull<T>,
}

// SAFETY: several threads may share the value through their references (`Sync`), and the thread
// that drops the last of them drops the value (`Send`). The counters are atomic.
unsafe impl<T: ?Sized + Sync + Send> Send for Arc<T> {}
// SAFETY: a shared reference to an `Arc` can be cloned, so it needs what sending one needs.
unsafe impl<T: ?Sized + Sync + Send> Sync for Arc<T> {}
impl<T: ?Sized> Unpin for Arc<T> {}
impl<T: ?Sized + RefUnwindSafe> UnwindSafe for Arc<T> {}

impl<T> Arc<T> {
    /// Creates an `Arc` that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Arc<T> {
        let memory = Self::allocate(1, false);
        // SAFETY: the block is new and has room for a `T`.
        unsafe {
            memory.write(value);
            Arc::own(memory)
        }
    }

    #[track_caller]
    fn allocate(strong: usize, zeroed: bool) -> NonNull<T> {
        block::allocate(
            std::alloc::Layout::new::<T>(),
            strong,
            mem::needs_drop::<T>(),
            zeroed,
        )
        .cast()
    }

    /// Creates an `Arc` that holds a value with weak references to itself.
    ///
    /// `make` may clone the weak reference that it gets. Neither that reference nor a clone can be
    /// upgraded before `make` has returned.
    #[track_caller]
    pub fn new_cyclic<F: FnOnce(&Weak<T>) -> T>(make: F) -> Arc<T> {
        struct Unfinished<T> {
            value: NonNull<T>,
            written: bool,
        }
        impl<T> Drop for Unfinished<T> {
            fn drop(&mut self) {
                // SAFETY: the block has no reference and never had one, and the weak reference that
                // stands for the value is still counted.
                unsafe {
                    if self.written {
                        block::drop_value(self.value);
                    } else {
                        block::value_is_gone(self.value);
                    }
                }
            }
        }
        let mut unfinished = Unfinished {
            value: Self::allocate(0, false),
            written: false,
        };
        let value = unfinished.value;
        // The weak reference is only lent, and the one that stands for the value keeps the block,
        // so it is not counted.
        // SAFETY: `ManuallyDrop` keeps it from being dropped.
        let weak = ManuallyDrop::new(unsafe { Weak::own(value) });
        let made = make(&weak);
        // SAFETY: the block has room for a `T`, and no thread can upgrade a weak reference and see
        // the value yet.
        unsafe { value.write(made) };
        unfinished.written = true;
        // SAFETY: the block is alive.
        let header = unsafe { block::header(value) };
        header.perform(OpKind::FirstReference);
        header.strong.store(1, Release);
        mem::forget(unfinished);
        // SAFETY: this is the one reference that was counted.
        unsafe { Arc::own(value) }
    }

    /// Creates an `Arc` with an uninitialised value, to be written through [`Arc::get_mut`].
    #[must_use]
    #[track_caller]
    pub fn new_uninit() -> Arc<MaybeUninit<T>> {
        // SAFETY: the new block counts one reference, and any bytes are a valid `MaybeUninit`.
        unsafe { Arc::own(Self::allocate(1, false).cast()) }
    }

    /// Creates an `Arc` with zero in all bytes of its value.
    #[must_use]
    #[track_caller]
    pub fn new_zeroed() -> Arc<MaybeUninit<T>> {
        // SAFETY: as in `new_uninit`.
        unsafe { Arc::own(Self::allocate(1, true).cast()) }
    }

    /// Creates a pinned `Arc` that holds `value`.
    #[must_use]
    #[track_caller]
    pub fn pin(value: T) -> Pin<Arc<T>> {
        // SAFETY: the value stays in its block, and a pinned reference does not let the value be
        // moved out.
        unsafe { Pin::new_unchecked(Arc::new(value)) }
    }

    /// Returns the value if this is the only reference. Weak references can then no longer be
    /// upgraded.
    ///
    /// # Errors
    ///
    /// Returns the reference in an error if there are others.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        this.header().perform(OpKind::TakeUnique);
        if this.header().take_unique() {
            let this = ManuallyDrop::new(this);
            // SAFETY: the last reference has been taken from the count.
            Ok(unsafe { move_out(this.value) })
        } else {
            Err(this)
        }
    }

    /// Drops the reference, and returns the value if it was the last one.
    ///
    /// If all references are dropped in this way, exactly one of the calls gets the value.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        this.header().note_seen();
        this.header().perform(OpKind::Release { told: true });
        let this = ManuallyDrop::new(this);
        // SAFETY: that was the last reference.
        this.header()
            .release()
            .then(|| unsafe { move_out(this.value) })
    }

    /// Returns the value if this is the only reference, and otherwise a clone of it.
    #[track_caller]
    pub fn unwrap_or_clone(this: Arc<T>) -> T
    where
        T: Clone,
    {
        Arc::try_unwrap(this).unwrap_or_else(|shared| (*shared).clone())
    }
}

/// Moves the value out of a block without references, and drops the weak reference that stands for
/// the value.
///
/// # Safety
///
/// The caller has taken the last reference from the count, and this function is called once for the
/// block.
unsafe fn move_out<T>(value: NonNull<T>) -> T {
    // SAFETY: no other code can reach the value, and the value is not dropped in its old place.
    unsafe {
        let moved = value.read();
        block::value_is_gone(value);
        moved
    }
}

impl<T> Arc<[T]> {
    #[track_caller]
    fn allocate_slice(length: usize, zeroed: bool) -> NonNull<[T]> {
        let Ok(layout) = std::alloc::Layout::array::<T>(length) else {
            panic!("capacity overflow")
        };
        let memory = block::allocate(layout, 1, mem::needs_drop::<T>(), zeroed);
        NonNull::slice_from_raw_parts(memory.cast(), length)
    }

    /// Creates an `Arc` of a slice of uninitialised elements, to be written through
    /// [`Arc::get_mut`].
    #[must_use]
    #[track_caller]
    pub fn new_uninit_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        let slice = Self::allocate_slice(length, false);
        // SAFETY: the new block counts one reference, and any bytes are valid `MaybeUninit`s.
        unsafe { Arc::own(as_uninit(slice)) }
    }

    /// Creates an `Arc` of a slice with zero in all its bytes.
    #[must_use]
    #[track_caller]
    pub fn new_zeroed_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        let slice = Self::allocate_slice(length, true);
        // SAFETY: as in `new_uninit_slice`.
        unsafe { Arc::own(as_uninit(slice)) }
    }
}

fn as_uninit<T>(slice: NonNull<[T]>) -> NonNull<[MaybeUninit<T>]> {
    NonNull::slice_from_raw_parts(slice.cast(), slice.len())
}

impl<T> Arc<MaybeUninit<T>> {
    /// Converts to a reference to an initialised value.
    ///
    /// # Safety
    ///
    /// The value has been initialised.
    #[must_use]
    pub unsafe fn assume_init(self) -> Arc<T> {
        // SAFETY: the reference goes over to the new `Arc`; by the caller's promise the value is a
        // `T`.
        unsafe { Arc::own(self.into_pointer().cast()) }
    }
}

impl<T> Arc<[MaybeUninit<T>]> {
    /// Converts to a reference to initialised elements.
    ///
    /// # Safety
    ///
    /// All elements have been initialised.
    #[must_use]
    pub unsafe fn assume_init(self) -> Arc<[T]> {
        let slice = self.into_pointer();
        // SAFETY: as for one value.
        unsafe {
            Arc::own(NonNull::slice_from_raw_parts(
                slice.cast::<T>(),
                slice.len(),
            ))
        }
    }
}

impl<T: ?Sized> Arc<T> {
    /// # Safety
    ///
    /// One reference to this value is counted, and the result owns it.
    unsafe fn own(value: NonNull<T>) -> Arc<T> {
        Arc { value }
    }

    /// The value, with a counted reference that the caller now owns.
    fn into_pointer(self) -> NonNull<T> {
        ManuallyDrop::new(self).value
    }

    fn header(&self) -> &Header {
        // SAFETY: this reference keeps the block.
        unsafe { block::header(self.value) }
    }

    /// Moves the value out of a std `Arc` that is not shared, as in loom.
    ///
    /// # Panics
    ///
    /// Panics if there are other references to the value, weak ones included.
    #[track_caller]
    pub fn from_std(mut std: std_sync::Arc<T>) -> Arc<T> {
        assert!(
            std_sync::Arc::get_mut(&mut std).is_some(),
            "`Arc::from_std` was given an Arc that is shared: {} references and {} weak ones, where \
             only one reference may be",
            std_sync::Arc::strong_count(&std),
            std_sync::Arc::weak_count(&std)
        );
        let from = std_sync::Arc::into_raw(std);
        // SAFETY: there is no other reference to the value, and the value is not used in its old
        // place any more. The std `Arc` is freed as an `Arc` of a `ManuallyDrop`, which has the
        // same layout and drops nothing.
        unsafe {
            let value = block::adopt(from.cast_mut());
            drop(std_sync::Arc::from_raw(from as *const ManuallyDrop<T>));
            Arc::own(value)
        }
    }

    /// Turns the reference into a pointer, for [`Arc::from_raw`].
    #[must_use = "the reference is leaked if the pointer is lost"]
    pub fn into_raw(this: Arc<T>) -> *const T {
        this.into_pointer().as_ptr()
    }

    /// Turns a pointer from [`Arc::into_raw`] back into the reference.
    ///
    /// # Safety
    ///
    /// The pointer is from `into_raw`, possibly cast to another type of the same size and alignment
    /// for which the value is valid, and owns a reference that is not used otherwise.
    pub unsafe fn from_raw(pointer: *const T) -> Arc<T> {
        rt::note_raw_reference();
        // SAFETY: a pointer to a value is not null; the rest is the caller's promise.
        unsafe { Arc::own(NonNull::new_unchecked(pointer.cast_mut())) }
    }

    /// Returns a pointer to the value.
    #[must_use]
    pub fn as_ptr(this: &Arc<T>) -> *const T {
        this.value.as_ptr()
    }

    /// Adds a reference, given a pointer that [`Arc::into_raw`] returned.
    ///
    /// # Safety
    ///
    /// The pointer is from `into_raw`, and there is a reference during the call.
    ///
    /// # Panics
    ///
    /// Panics inside a model if the last reference has been dropped before the call. The model
    /// explores here whether another thread drops the last reference first. It does not explore
    /// this where an `Arc` is made from the pointer and then cloned: a thread that clones is
    /// assumed to have a reference.
    #[track_caller]
    pub unsafe fn increment_strong_count(pointer: *const T) {
        // SAFETY: the caller's promise; the borrowed reference is not given up.
        let this = ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        this.header().announce_another_raw();
        this.header().retain();
    }

    /// Drops a reference, given a pointer that [`Arc::into_raw`] returned.
    ///
    /// # Safety
    ///
    /// The pointer is from `into_raw`, and there is a reference that is not used any more.
    #[track_caller]
    pub unsafe fn decrement_strong_count(pointer: *const T) {
        // SAFETY: the caller's promise; the reference is given up once, here.
        let this = ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        this.give_up(Location::caller());
    }

    /// Creates a weak reference to the value.
    #[must_use = "this makes a weak reference and does nothing else"]
    #[track_caller]
    pub fn downgrade(this: &Arc<T>) -> Weak<T> {
        this.header().perform(OpKind::RetainWeak);
        this.header().downgrade();
        // SAFETY: the weak reference has just been counted.
        unsafe { Weak::own(this.value) }
    }

    /// Returns the number of weak references.
    #[must_use]
    #[track_caller]
    pub fn weak_count(this: &Arc<T>) -> usize {
        this.header().perform(OpKind::ReadCount { unique: false });
        this.header().weak_references()
    }

    /// Returns the number of references.
    #[must_use]
    #[track_caller]
    pub fn strong_count(this: &Arc<T>) -> usize {
        this.header().perform(OpKind::ReadCount { unique: false });
        this.header().strong.load(Acquire)
    }

    /// Returns whether both are references to the same value.
    #[must_use]
    pub fn ptr_eq(this: &Arc<T>, other: &Arc<T>) -> bool {
        ptr::addr_eq(this.value.as_ptr(), other.value.as_ptr())
    }

    /// Returns a mutable reference to the value, if this is the only reference and there are no
    /// weak ones.
    #[track_caller]
    pub fn get_mut(this: &mut Arc<T>) -> Option<&mut T> {
        this.header().perform(OpKind::ReadCount { unique: true });
        if this.header().is_unique() {
            // SAFETY: there is no other reference, no reference can be made while this one is
            // borrowed, and there is no weak reference that could become one.
            Some(unsafe { this.value.as_mut() })
        } else {
            None
        }
    }

    /// Returns a mutable reference to the value. If there are other references, the value first
    /// gets a block of its own.
    ///
    /// If some of the others are not weak, the value is cloned. Otherwise it is moved, and the weak
    /// references can no longer be upgraded.
    #[track_caller]
    #[expect(
        private_bounds,
        reason = "std's bound, `CloneToUninit`, is not stable; this one covers the same types"
    )]
    pub fn make_mut(this: &mut Arc<T>) -> &mut T
    where
        T: CloneToArc,
    {
        this.header().perform(OpKind::TakeUnique);
        if !this.header().take_unique() {
            *this = (**this).clone_to_arc();
        } else if this.header().weak_references() == 0 {
            // No other thread can see the count, so the count may be reset without an announcement.
            this.header().strong.store(1, Release);
        } else {
            // SAFETY: the last reference has been taken from the count, so no other code can reach
            // the value. The value is moved, and the weak reference that stood for it is dropped.
            // Between the two only `adopt` can panic, and only for a value that is too large, but
            // this value has been in a block before.
            unsafe {
                let old = this.value;
                this.value = block::adopt(old.as_ptr());
                block::value_is_gone(old);
            }
        }
        // SAFETY: in each of the cases this is now the only reference, and there is no weak one.
        unsafe { this.value.as_mut() }
    }
}

impl Arc<dyn Any + Send + Sync> {
    /// Converts to a reference to the concrete type of the value.
    ///
    /// # Errors
    ///
    /// Returns the reference unchanged in an error if the value has another type.
    pub fn downcast<T: Any + Send + Sync>(self) -> Result<Arc<T>, Self> {
        if (*self).is::<T>() {
            // SAFETY: the reference goes over to the new `Arc`, and the value is a `T`.
            Ok(unsafe { Arc::own(self.into_pointer().cast()) })
        } else {
            Err(self)
        }
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    /// Creates another reference to the same value.
    #[track_caller]
    fn clone(&self) -> Arc<T> {
        self.header().announce_another();
        self.header().retain();
        // SAFETY: the reference has just been counted.
        unsafe { Arc::own(self.value) }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this reference keeps the value, and there is no `&mut` to the value while the
        // reference is borrowed: `get_mut` needs the only reference.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> Arc<T> {
    /// Announces the drop of this reference at this place; the caller drops the reference.
    #[inline]
    fn give_up(&self, site: &'static Location<'static>) {
        /// Drops the reference even if the announcement does not return because the execution has
        /// ended.
        struct Release<T: ?Sized>(NonNull<T>);
        impl<T: ?Sized> Drop for Release<T> {
            fn drop(&mut self) {
                // SAFETY: the reference keeps the block until it is counted as released, and the
                // call that releases the last reference drops the value.
                unsafe {
                    if block::header(self.0).release() {
                        block::drop_value(self.0);
                    }
                }
            }
        }
        let has_quiet_glue = self.header().has_quiet_glue();
        let release = Release(self.value);
        self.header().announce_end(site);
        drop(release);
        // Another thread may drop the value while this one is delayed here.
        if has_quiet_glue {
            rt::is_done(site);
        }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        self.give_up(self.header().site());
    }
}
