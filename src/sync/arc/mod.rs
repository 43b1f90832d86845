//! Shared ownership, as `std::sync::Arc`.
//!
//! Every operation on the counts is announced as one visible operation and then done to the block's
//! own counters, with the orderings that it needs outside of a model. Making and dropping
//! references commutes, so that it costs no executions unless somebody looks: at the counts, or at
//! the moment when the value is dropped.

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
/// A value without drop glue vanishes unseen, so it makes no difference which thread drops the last
/// reference. For any other value, a model explores each thread that may be the last one.
///
/// Reports show an operation at the caller's line. The end of a reference has no caller; they show
/// it at the line where the value was put into its `Arc`.
///
/// Three things need compiler support that only std's `Arc` has:
///
/// * An `Arc<T>` does not coerce to an `Arc<dyn Trait>`. Make that from a box,
///   `Arc::from(Box::new(value) as Box<dyn Trait>)`, or from a std `Arc` with [`Arc::from_std`].
/// * A method cannot take `self: Arc<Self>`. Take `this: Arc<Self>`, or `&self` in a trait that is
///   implemented for `Arc<T>`.
/// * A `Waker` is made of a `std::sync::Arc` of a `std::task::Wake`, whose methods take std's. What
///   such a waker does may use this `Arc`; the counting of the waker itself is not explored.
///
/// A reference to a value that borrows something must be dropped before what it borrows, even if
/// the value does not look at it when it is dropped.
pub struct Arc<T: ?Sized> {
    value: NonNull<T>,
}

// SAFETY: several threads may share the value through their references (`Sync`), and the one that
// drops the last of them drops it (`Send`). The counters are atomic.
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
    /// `make` may clone the weak reference that it gets. Neither it nor a clone can be upgraded
    /// until the value is there.
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
        // It is lent only, and what stands for the value keeps the block, so it is not counted.
        // SAFETY: `ManuallyDrop` keeps it from being given up.
        let weak = ManuallyDrop::new(unsafe { Weak::own(value) });
        let made = make(&weak);
        // SAFETY: the block has room for a `T`, and nobody can upgrade to see it yet.
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

    /// Creates an `Arc` whose value is still to be written, through [`Arc::get_mut`].
    #[must_use]
    #[track_caller]
    pub fn new_uninit() -> Arc<MaybeUninit<T>> {
        // SAFETY: the new block counts one reference, and any bytes are a `MaybeUninit`.
        unsafe { Arc::own(Self::allocate(1, false).cast()) }
    }

    /// Creates an `Arc` whose value has zero in all its bytes.
    #[must_use]
    #[track_caller]
    pub fn new_zeroed() -> Arc<MaybeUninit<T>> {
        // SAFETY: as in `new_uninit`.
        unsafe { Arc::own(Self::allocate(1, true).cast()) }
    }

    /// Creates an `Arc` that holds `value`, which will never be moved.
    #[must_use]
    #[track_caller]
    pub fn pin(value: T) -> Pin<Arc<T>> {
        // SAFETY: the value stays in its block, and nobody gets it out of a pinned reference.
        unsafe { Pin::new_unchecked(Arc::new(value)) }
    }

    /// Returns the value if this is the only reference. Weak references can then no longer be
    /// upgraded.
    ///
    /// # Errors
    ///
    /// Returns the reference if there are others.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        this.header().perform(OpKind::TakeUnique);
        if this.header().take_unique() {
            let this = ManuallyDrop::new(this);
            // SAFETY: the last reference is gone from the count.
            Ok(unsafe { move_out(this.value) })
        } else {
            Err(this)
        }
    }

    /// Drops the reference, and returns the value if it was the last one.
    ///
    /// If all references are given up in this way, exactly one of the calls gets the value.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
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

/// Moves the value out of a block without references, and gives up what stood for it.
///
/// # Safety
///
/// The caller has taken the last reference from the count, and this is done once.
unsafe fn move_out<T>(value: NonNull<T>) -> T {
    // SAFETY: nobody else can reach the value, and nobody will drop it where it was.
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

    /// Creates an `Arc` of a slice whose elements are still to be written, through
    /// [`Arc::get_mut`].
    #[must_use]
    #[track_caller]
    pub fn new_uninit_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        let slice = Self::allocate_slice(length, false);
        // SAFETY: the new block counts one reference, and any bytes are `MaybeUninit`s.
        unsafe { Arc::own(as_uninit(slice)) }
    }

    /// Creates an `Arc` of a slice that has zero in all its bytes.
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
    /// Converts to a reference to a value that has been written.
    ///
    /// # Safety
    ///
    /// The value has been written.
    #[must_use]
    pub unsafe fn assume_init(self) -> Arc<T> {
        // SAFETY: the reference goes over to the new `Arc`; the value is a `T`, says the caller.
        unsafe { Arc::own(self.into_pointer().cast()) }
    }
}

impl<T> Arc<[MaybeUninit<T>]> {
    /// Converts to a reference to elements that have been written.
    ///
    /// # Safety
    ///
    /// All elements have been written.
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
    /// One reference to this value is counted that the result is to own.
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

    /// Takes over the value of a std `Arc` that nobody shares, as in loom.
    ///
    /// # Panics
    ///
    /// If there are other references to it, weak ones included.
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
        // SAFETY: nobody else has the value, and it is not used there any more. The std `Arc` is
        // freed as one of a `ManuallyDrop`, which has the same layout and drops nothing.
        unsafe {
            let value = block::adopt(from.cast_mut());
            drop(std_sync::Arc::from_raw(from as *const ManuallyDrop<T>));
            Arc::own(value)
        }
    }

    /// Turns the reference into a pointer, which [`Arc::from_raw`] turns back.
    #[must_use = "the reference is leaked if the pointer is lost"]
    pub fn into_raw(this: Arc<T>) -> *const T {
        this.into_pointer().as_ptr()
    }

    /// Turns a pointer that [`Arc::into_raw`] returned back into the reference.
    ///
    /// # Safety
    ///
    /// The pointer is from `into_raw`, maybe cast to a type of the same size and alignment whose
    /// value it also is, and owns a reference that is not used otherwise.
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
    /// The pointer is from `into_raw`, and there is a reference while this runs.
    ///
    /// # Panics
    ///
    /// Inside a model, if the last reference has been dropped before. It is explored here whether
    /// another thread drops it first. It is not where an `Arc` made from the pointer is cloned:
    /// whoever clones is taken to have a reference.
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
    /// The pointer is from `into_raw`, and there is a reference that nobody uses any more.
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
        // SAFETY: it has just been counted.
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
            // SAFETY: there is no other reference, none can be made while this one is borrowed, and
            // there is no weak one that could become one.
            Some(unsafe { this.value.as_mut() })
        } else {
            None
        }
    }

    /// Returns a mutable reference to the value, which gets a block of its own first if there are
    /// other references.
    ///
    /// If some of those are not weak, the value is cloned. Otherwise it is moved, and the weak
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
            // Nobody else can see the count, so that it may be put back without being announced.
            this.header().strong.store(1, Release);
        } else {
            // SAFETY: the last reference is gone from the count, so nobody else reaches the value.
            // It is moved, and what stood for it given up; nothing in between can panic but `adopt`
            // on a value that is too large, and this one has been in a block before.
            unsafe {
                let old = this.value;
                this.value = block::adopt(old.as_ptr());
                block::value_is_gone(old);
            }
        }
        // SAFETY: whichever way, this is now the only reference and there is no weak one.
        unsafe { this.value.as_mut() }
    }
}

impl Arc<dyn Any + Send + Sync> {
    /// Converts to a reference to the type that the value has.
    ///
    /// # Errors
    ///
    /// Returns the reference as it was if the value has another type.
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
        // SAFETY: it has just been counted.
        unsafe { Arc::own(self.value) }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this reference keeps the value, and nobody has a `&mut` to it while it is
        // borrowed: `get_mut` needs the only reference.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> Arc<T> {
    /// The end of this reference, which whoever calls this gives up at this place.
    #[inline]
    fn give_up(&self, site: &'static Location<'static>) {
        /// Gives the reference up even if the announcement does not return, because its execution
        /// has ended.
        struct Release<T: ?Sized>(NonNull<T>);
        impl<T: ?Sized> Drop for Release<T> {
            fn drop(&mut self) {
                // SAFETY: the reference keeps the block until it is counted as released, and the
                // value is dropped by whoever releases the last one.
                unsafe {
                    if block::header(self.0).release() {
                        block::drop_value(self.0);
                    }
                }
            }
        }
        let _release = Release(self.value);
        self.header().announce_end(site);
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        self.give_up(self.header().site());
    }
}
