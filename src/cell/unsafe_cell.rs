//! How does an access to plain memory make itself known?

use std::cell as std_cell;
use std::fmt;
use std::mem::needs_drop;

use crate::rt::{self, Accessing, Memory};

/// Drop-in replacement for `std::cell::UnsafeCell` that tells the model of accesses.
///
/// It has the layout of `T`. Accesses by [`with`](UnsafeCell::with), [`with_mut`](UnsafeCell::with_mut),
/// [`read`](UnsafeCell::read) and [`write`](UnsafeCell::write) are watched. What is done through the raw
/// pointer of [`get`](UnsafeCell::get) is not: nobody can see it.
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std_cell::UnsafeCell<T>);

/// Drops the data of the cell at this address.
///
/// # Safety
///
/// A `T` is there, and nobody uses it again.
unsafe fn drop_data<T>(data: *mut u8) {
    // SAFETY: the caller says so.
    unsafe { std::ptr::drop_in_place(data.cast::<T>()) };
}

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std_cell::UnsafeCell::new(value))
    }

    /// The value, when nobody shares the cell any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> UnsafeCell<T> {
    /// Calls `f` with a pointer to the value, which it may read from until it returns.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        let _access = self.access(false);
        f(self.0.get().cast_const())
    }

    /// Calls `f` with a pointer to the value, which it may read from and write to until it returns.
    #[track_caller]
    pub fn with_mut<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        let _access = self.access(true);
        f(self.0.get())
    }

    /// A pointer to read through, for as long as it lives. Loom calls this `get`.
    #[track_caller]
    pub fn read(&self) -> ConstPtr<T> {
        ConstPtr {
            _access: self.access(false),
            pointer: self.0.get().cast_const(),
        }
    }

    /// A pointer to read and write through, for as long as it lives. Loom calls this `get_mut`.
    #[track_caller]
    pub fn write(&self) -> MutPtr<T> {
        MutPtr {
            _access: self.access(true),
            pointer: self.0.get(),
        }
    }

    #[track_caller]
    fn access(&self, write: bool) -> Option<Accessing> {
        let memory = Memory {
            start: self.0.get().cast(),
            size: size_of::<T>(),
            drop: if needs_drop::<T>() {
                Some(drop_data::<T>)
            } else {
                None
            },
            fresh: true,
        };
        rt::access(memory, write)
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// A pointer to the value. What is done through it is not watched; that is what
    /// [`with`](UnsafeCell::with) and [`with_mut`](UnsafeCell::with_mut) are for.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }

    /// The value; the reference is exclusive.
    pub const fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// A pointer to the value of the cell at a pointer.
    pub const fn raw_get(this: *const Self) -> *mut T {
        std_cell::UnsafeCell::raw_get(this as *const std_cell::UnsafeCell<T>)
    }

    /// The cell around a value that is borrowed exclusively.
    pub const fn from_mut(value: &mut T) -> &mut UnsafeCell<T> {
        let pointer = value as *mut T as *mut UnsafeCell<T>;
        // SAFETY: the cell is transparent over std's, which is transparent over `T`; the reference was
        // exclusive and is borrowed as long.
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

/// A read access that lasts as long as this value.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized> {
    _access: Option<Accessing>,
    pointer: *const T,
}

/// A write access that lasts as long as this value.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized> {
    _access: Option<Accessing>,
    pointer: *mut T,
}

impl<T: ?Sized> ConstPtr<T> {
    /// The value.
    ///
    /// # Safety
    ///
    /// As dereferencing a raw pointer: the cell must be alive, and nobody may write to it meanwhile.
    pub unsafe fn deref(&self) -> &T {
        // SAFETY: the caller's contract.
        unsafe { &*self.pointer }
    }

    /// Calls `f` with the pointer.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        f(self.pointer)
    }
}

impl<T: ?Sized> MutPtr<T> {
    /// The value.
    ///
    /// # Safety
    ///
    /// As dereferencing a raw pointer: the cell must be alive, and nobody else may use it meanwhile.
    #[expect(
        clippy::mut_from_ref,
        reason = "loom's signature; the pointer stands for an exclusive access"
    )]
    pub unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.pointer }
    }

    /// Calls `f` with the pointer.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        f(self.pointer)
    }
}

/// A cell for one thread at a time whose accesses are watched, as `loom::cell::Cell`.
#[derive(Default)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    /// A copy of the value.
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: the cell is not `Sync`, so nobody else accesses it meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    /// Replaces the value and drops the old one.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Replaces the value and gives the old one.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: the cell is not `Sync`, so nobody else accesses it meanwhile.
        self.0
            .with_mut(|old| unsafe { std::mem::replace(&mut *old, value) })
    }

    /// Takes the value and leaves the default.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// Exchanges the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Cell<T>) {
        if std::ptr::eq(self, other) {
            return;
        }
        self.0.with_mut(|a| {
            // SAFETY: the cells are two, and not `Sync`, so nobody else accesses them meanwhile.
            other.0.with_mut(|b| unsafe { std::ptr::swap(a, b) });
        });
    }

    /// The value, when nobody shares the cell any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// The value; the reference is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> From<T> for Cell<T> {
    fn from(value: T) -> Self {
        Cell::new(value)
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cell").field(&self.get()).finish()
    }
}
