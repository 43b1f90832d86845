//! How does an access to plain memory make itself known?

use std::cell as std_cell;
use std::fmt;
use std::mem::{ManuallyDrop, needs_drop, transmute_copy};

use crate::rt::{self, Accessing, Memory};

/// Drop-in replacement for `std::cell::UnsafeCell` that tells the model of accesses.
///
/// It has the layout of `T`. Accesses by [`with`](UnsafeCell::with),
/// [`with_mut`](UnsafeCell::with_mut), [`read`](UnsafeCell::read) and [`write`](UnsafeCell::write)
/// are watched. Accesses through the raw pointer of std's [`get`](UnsafeCell::get) are not, because
/// the model cannot see them. With loom's signatures `get` is `read`, and `get_mut` is `write`.
///
/// ```
/// use dpor::cell::UnsafeCell;
/// use dpor::sync::atomic::{AtomicBool, Ordering::{Acquire, Release}};
///
/// struct Slot {
///     value: UnsafeCell<usize>,
///     ready: AtomicBool,
/// }
///
/// // SAFETY: the value is written before `ready` is set, and read after it was seen set.
/// unsafe impl Sync for Slot {}
///
/// impl Slot {
///     fn set(&self, new: usize) {
///         // SAFETY: nobody reads it yet.
///         self.value.with_mut(|value| unsafe { *value = new });
///         // If this were `Relaxed`, the model would fail with a data race.
///         self.ready.store(true, Release);
///     }
///
///     fn get(&self) -> Option<usize> {
///         // SAFETY: it was written before.
///         let read = || self.value.with(|value| unsafe { *value });
///         self.ready.load(Acquire).then(read)
///     }
/// }
///
/// let outcomes = dpor::outcomes(|| {
///     let slot = Slot { value: UnsafeCell::new(0), ready: AtomicBool::new(false) };
///     dpor::thread::scope(|scope| {
///         scope.spawn(|| slot.set(7));
///         slot.get()
///     })
/// });
/// assert!(outcomes.into_keys().eq([None, Some(7)]));
/// ```
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std_cell::UnsafeCell<T>);

/// Drops the data of the cell at this address.
///
/// # Safety
///
/// A `T` is there, and nobody uses it again.
unsafe fn drop_data<T: ?Sized>(data: *mut u8) {
    assert!(is_thin::<T>(), "dpor bug: an address is no pointer to this");
    // SAFETY: a pointer to a `T` is an address and nothing else, so the two have the same layout.
    let data: *mut T = unsafe { transmute_copy(&data) };
    // SAFETY: the caller says so.
    unsafe { std::ptr::drop_in_place(data) };
}

/// Whether a pointer to a `T` is its address alone.
const fn is_thin<T: ?Sized>() -> bool {
    size_of::<*const T>() == size_of::<*const ()>()
}

/// The value of a cell. In a `const fn` it cannot be moved out of its field, because the compiler
/// does not see that nothing is left to drop.
///
/// # Safety
///
/// `C` is transparent over `T`.
pub(super) const unsafe fn peel<C, T>(cell: C) -> T {
    let cell = ManuallyDrop::new(cell);
    // SAFETY: the two have the same layout, and what is copied is not used or dropped again.
    unsafe { transmute_copy(&cell) }
}

impl<T> UnsafeCell<T> {
    /// Creates a cell that holds `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std_cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    pub const fn into_inner(self) -> T {
        // SAFETY: the cell is transparent over std's, which is transparent over `T`.
        unsafe { peel(self) }
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer to the value, which `f` may read through until it returns.
    ///
    /// The access lasts up to the last operation that `f` makes, which may be what lets another
    /// thread write. What `f` reads behind that operation is not seen; call `with` once more for
    /// it.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        let _access = self.access(false).map(Accessing::of_pointer);
        f(self.0.get().cast_const())
    }

    /// Calls `f` with a pointer to the value, which `f` may read and write through until it
    /// returns.
    ///
    /// The access lasts until `f` returns: what publishes the value has to come behind that.
    #[track_caller]
    pub fn with_mut<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        let _access = self.access(true);
        f(self.0.get())
    }

    /// Returns a pointer to read through, for as long as it lives. Loom calls this `get`.
    #[track_caller]
    pub fn read(&self) -> ConstPtr<T> {
        ConstPtr {
            access: self.access(false).map(Accessing::of_pointer),
            pointer: self.0.get().cast_const(),
        }
    }

    /// Returns a pointer to read and write through, for as long as it lives. Loom calls this
    /// `get_mut`.
    #[track_caller]
    pub fn write(&self) -> MutPtr<T> {
        MutPtr {
            access: self.access(true).map(Accessing::of_pointer),
            pointer: self.0.get(),
        }
    }

    #[track_caller]
    fn access(&self, write: bool) -> Option<Accessing> {
        let memory = Memory {
            start: self.0.get().cast(),
            size: size_of_val(&self.0),
            // A value whose type is not known where it ends is never in a static itself.
            drop: if needs_drop::<T>() && is_thin::<T>() {
                Some(drop_data::<T>)
            } else {
                None
            },
            fresh: true,
        };
        rt::access(memory, write)
    }
}

/// Std's names.
#[cfg(not(any(loom, feature = "loom")))]
impl<T: ?Sized> UnsafeCell<T> {
    /// Returns a pointer to the value.
    ///
    /// Accesses through it are not watched; those by [`with`](UnsafeCell::with) and
    /// [`with_mut`](UnsafeCell::with_mut) are.
    pub const fn get(&self) -> *mut T {
        self.unwatched()
    }

    /// Returns a mutable reference to the value. The exclusive borrow makes that safe.
    pub const fn get_mut(&mut self) -> &mut T {
        self.exclusive()
    }
}

/// Loom's names.
#[cfg(any(loom, feature = "loom"))]
impl<T: ?Sized> UnsafeCell<T> {
    /// Same as [`UnsafeCell::read`], under loom's name. Std's `get` is [`UnsafeCell::raw_get`].
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        self.read()
    }

    /// Same as [`UnsafeCell::write`], under loom's name.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        self.write()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Std's `get`.
    pub(super) const fn unwatched(&self) -> *mut T {
        self.0.get()
    }

    /// Std's `get_mut`.
    pub(super) const fn exclusive(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Returns a pointer to the value of the cell that `this` points to.
    pub const fn raw_get(this: *const Self) -> *mut T {
        std_cell::UnsafeCell::raw_get(this as *const std_cell::UnsafeCell<T>)
    }

    /// Returns a cell around a value that is borrowed exclusively.
    pub const fn from_mut(value: &mut T) -> &mut UnsafeCell<T> {
        let pointer = value as *mut T as *mut UnsafeCell<T>;
        // SAFETY: the cell is transparent over std's, which is transparent over `T`; the reference
        // was exclusive and is borrowed as long.
        unsafe { &mut *pointer }
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        UnsafeCell::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    fn from(value: T) -> Self {
        UnsafeCell::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

/// A pointer that stands for a read access.
///
/// The access begins where the pointer is made. It lasts up to the last operation that its thread
/// makes before the pointer is dropped, so that a guard may unlock first and then drop the pointer.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized> {
    access: Option<Accessing>,
    pointer: *const T,
}

/// A pointer that stands for a write access.
///
/// The access begins where the pointer is made. It lasts up to the last operation that its thread
/// makes before the pointer is dropped, so that a guard may unlock first and then drop the pointer.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized> {
    access: Option<Accessing>,
    pointer: *mut T,
}

/// The access that a pointer stands for has not ended yet.
fn resume(access: &Option<Accessing>) {
    if let Some(access) = access {
        access.resume();
    }
}

impl<T: ?Sized> ConstPtr<T> {
    /// Returns a reference to the value.
    ///
    /// # Safety
    ///
    /// As for dereferencing a raw pointer: the cell must be alive, and nobody may write to it while
    /// the reference is used.
    pub unsafe fn deref(&self) -> &T {
        resume(&self.access);
        // SAFETY: the caller's contract.
        unsafe { &*self.pointer }
    }

    /// Calls `f` with the pointer.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        resume(&self.access);
        f(self.pointer)
    }
}

impl<T: ?Sized> MutPtr<T> {
    /// Returns a mutable reference to the value.
    ///
    /// # Safety
    ///
    /// As for dereferencing a raw pointer: the cell must be alive, and nobody else may use it while
    /// the reference is used.
    #[expect(
        clippy::mut_from_ref,
        reason = "loom's signature; the pointer stands for an exclusive access"
    )]
    pub unsafe fn deref(&self) -> &mut T {
        resume(&self.access);
        // SAFETY: the caller's contract.
        unsafe { &mut *self.pointer }
    }

    /// Calls `f` with the pointer.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        resume(&self.access);
        f(self.pointer)
    }
}
