//! Why does the model watch a cell for one thread at all?
//!
//! Types that contain the cell may claim to be `Sync`, as types of loom's users do, and the claim
//! may be wrong. Then two threads use the cell at once, and the model reports the data race.

use std::cell as std_cell;
use std::cmp::Ordering;
use std::fmt;

use super::unsafe_cell::{UnsafeCell, peel};

/// Drop-in replacement for `std::cell::Cell` that tells the model of accesses, as
/// `loom::cell::Cell`.
///
/// Accesses through the pointer of [`as_ptr`](Cell::as_ptr) are not watched.
#[repr(transparent)]
pub struct Cell<T: ?Sized>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// Creates a cell that holds `value`.
    pub const fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    /// Replaces the value and drops the old one.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Replaces the value and returns the old one.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: the cell is not `Sync`, so no other code accesses it meanwhile.
        self.0
            .with_mut(|old| unsafe { std::mem::replace(&mut *old, value) })
    }

    /// Takes the value and leaves the default in its place.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// Swaps the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Cell<T>) {
        if std::ptr::eq(self, other) {
            return;
        }
        self.0.with_mut(|a| {
            // SAFETY: the two cells are different ones and not `Sync`, so no other code accesses
            // them meanwhile.
            other.0.with_mut(|b| unsafe { std::ptr::swap(a, b) });
        });
    }

    /// Consumes the cell and returns the value.
    pub const fn into_inner(self) -> T {
        // SAFETY: the cell is transparent over its value.
        unsafe { peel(self) }
    }
}

impl<T: Copy> Cell<T> {
    /// Returns a copy of the value.
    #[track_caller]
    pub fn get(&self) -> T {
        // SAFETY: the cell is not `Sync`, so no other code accesses it meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    /// Replaces the value with the result of `f`.
    #[track_caller]
    pub fn update(&self, f: impl FnOnce(T) -> T) {
        self.set(f(self.get()));
    }
}

impl<T: ?Sized> Cell<T> {
    /// Returns a pointer to the value; accesses through it are not watched.
    pub const fn as_ptr(&self) -> *mut T {
        self.0.unwatched()
    }

    /// Returns a mutable reference to the value. This is safe because the borrow is exclusive.
    pub const fn get_mut(&mut self) -> &mut T {
        self.0.exclusive()
    }

    /// Returns a cell around a value that is borrowed exclusively.
    pub const fn from_mut(value: &mut T) -> &Cell<T> {
        let pointer = value as *mut T as *const Cell<T>;
        // SAFETY: the cell is transparent over the value; the reference was exclusive and is
        // borrowed for the same time, so only this thread can reach the value.
        unsafe { &*pointer }
    }
}

impl<T> Cell<[T]> {
    /// Returns a slice of the elements' cells.
    pub const fn as_slice_of_cells(&self) -> &[Cell<T>] {
        let pointer = self as *const Cell<[T]> as *const [Cell<T>];
        // SAFETY: a cell has the layout of its value, so a cell of a slice is a slice of cells.
        unsafe { &*pointer }
    }
}

impl<T, const N: usize> Cell<[T; N]> {
    /// Returns an array of the elements' cells.
    pub const fn as_array_of_cells(&self) -> &[Cell<T>; N] {
        let pointer = self as *const Cell<[T; N]> as *const [Cell<T>; N];
        // SAFETY: a cell has the layout of its value, so a cell of an array is an array of cells.
        unsafe { &*pointer }
    }
}

impl<T, const N: usize> AsRef<[Cell<T>; N]> for Cell<[T; N]> {
    fn as_ref(&self) -> &[Cell<T>; N] {
        self.as_array_of_cells()
    }
}

impl<T, const N: usize> AsRef<[Cell<T>]> for Cell<[T; N]> {
    fn as_ref(&self) -> &[Cell<T>] {
        self.as_array_of_cells()
    }
}

impl<T> AsRef<[Cell<T>]> for Cell<[T]> {
    fn as_ref(&self) -> &[Cell<T>] {
        self.as_slice_of_cells()
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Cell<T> {
        Cell::new(self.get())
    }
}

impl<T: Default> Default for Cell<T> {
    fn default() -> Cell<T> {
        Cell::new(T::default())
    }
}

impl<T: PartialEq + Copy> PartialEq for Cell<T> {
    #[track_caller]
    fn eq(&self, other: &Cell<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq + Copy> Eq for Cell<T> {}

impl<T: PartialOrd + Copy> PartialOrd for Cell<T> {
    #[track_caller]
    fn partial_cmp(&self, other: &Cell<T>) -> Option<Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Ord + Copy> Ord for Cell<T> {
    #[track_caller]
    fn cmp(&self, other: &Cell<T>) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl<T> From<T> for Cell<T> {
    fn from(value: T) -> Self {
        Cell::new(value)
    }
}

/// Prints the value. The read is watched like any other access.
impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std_cell::Cell::new(self.get()).fmt(f)
    }
}
