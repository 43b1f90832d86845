//! How does the model learn of an access to plain memory?

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
///         // SAFETY: no thread reads it yet.
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
/// A `T` is at this address and is not used again.
unsafe fn drop_data<T: ?Sized>(data: *mut u8) {
    assert!(is_thin::<T>(), "dpor bug: an address is no pointer to this");
    // SAFETY: a pointer to a `T` consists of its address only, so the two have the same layout.
    let data: *mut T = unsafe { transmute_copy(&data) };
    // SAFETY: by the caller's promise a `T` is there and is not used again.
    unsafe { std::ptr::drop_in_place(data) };
}

/// Whether a pointer to a `T` consists of its address only.
const fn is_thin<T: ?Sized>() -> bool {
    size_of::<*const T>() == size_of::<*const ()>()
}

/// The value of a cell. A `const fn` cannot move the value out of its field, because the compiler
/// does not see that nothing else of the cell needs a drop.
///
/// # Safety
///
/// `C` is transparent over `T`.
pub(super) const unsafe fn peel<C, T>(cell: C) -> T {
    let cell = ManuallyDrop::new(cell);
    // SAFETY: the two have the same layout, and the source of the copy is neither used nor dropped
    // again.
    unsafe { transmute_copy(&cell) }
}

impl<T> UnsafeCell<T> {
    /// Creates a cell that holds `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std_cell::UnsafeCell::new(value))
    }

    /// Consumes the cell and returns the value.
    pub const fn into_inner(self) -> T {
        // SAFETY: the cell is transparent over std's, which is transparent over `T`.
        unsafe { peel(self) }
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer to the value, which `f` may read through until it returns.
    ///
    /// The access lasts until the last operation that `f` performs; that operation may be the one
    /// that lets another thread write. Reads of `f` behind that operation are not watched; call
    /// `with` once more for them.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        let access = self.access(false).map(Accessing::of_pointer);
        rt::note_found::<T>(access.as_ref());
        f(self.0.get().cast_const())
    }

    /// Calls `f` with a pointer to the value, which `f` may read and write through until it
    /// returns.
    ///
    /// The access lasts until `f` returns, so the operation that publishes the value must come
    /// after the call.
    #[track_caller]
    pub fn with_mut<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        let access = self.access(true);
        rt::note_found::<T>(access.as_ref());
        let result = f(self.0.get());
        rt::note_left::<T>(access.as_ref());
        result
    }

    /// Returns a pointer for reading. The access lasts as long as the pointer. Loom calls this
    /// `get`.
    #[track_caller]
    pub fn read(&self) -> ConstPtr<T> {
        let access = self.access(false).map(Accessing::of_pointer);
        rt::note_found::<T>(access.as_ref());
        ConstPtr {
            access,
            pointer: self.0.get().cast_const(),
        }
    }

    /// Returns a pointer for reading and writing. The access lasts as long as the pointer. Loom
    /// calls this `get_mut`.
    #[track_caller]
    pub fn write(&self) -> MutPtr<T> {
        let access = self.access(true).map(Accessing::of_pointer);
        rt::note_found::<T>(access.as_ref());
        MutPtr {
            access,
            pointer: self.0.get(),
        }
    }

    #[track_caller]
    fn access(&self, write: bool) -> Option<Accessing> {
        let memory = Memory {
            start: self.0.get().cast(),
            size: size_of_val(&self.0),
            // An unsized value is never in a static itself, because its type is unknown at its end.
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

/// The methods under std's names.
#[cfg(not(any(loom, feature = "loom")))]
impl<T: ?Sized> UnsafeCell<T> {
    /// Returns a pointer to the value.
    ///
    /// Accesses through the pointer are not watched; those by [`with`](UnsafeCell::with) and
    /// [`with_mut`](UnsafeCell::with_mut) are.
    pub const fn get(&self) -> *mut T {
        self.unwatched()
    }

    /// Returns a mutable reference to the value. This is safe because the borrow is exclusive.
    pub const fn get_mut(&mut self) -> &mut T {
        self.exclusive()
    }
}

/// The methods under loom's names.
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
        // was exclusive and is borrowed for the same time.
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

/// A pointer that represents a read access.
///
/// The access begins with the creation of the pointer. It lasts until the last operation that its
/// thread performs before the drop of the pointer, so that a guard may unlock first and then drop
/// the pointer.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized> {
    access: Option<Accessing>,
    pointer: *const T,
}

/// A pointer that represents a write access.
///
/// The access begins with the creation of the pointer. It lasts until the last operation that its
/// thread performs before the drop of the pointer, so that a guard may unlock first and then drop
/// the pointer.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized> {
    access: Option<Accessing>,
    pointer: *mut T,
}

/// Tells the model that the access of a pointer has not ended yet.
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
    /// The same as for a dereference of a raw pointer: the cell must be alive, and no thread may
    /// write to it while the reference is used.
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
    /// The same as for a dereference of a raw pointer: the cell must be alive, and no other code
    /// may use it while the reference is used.
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
