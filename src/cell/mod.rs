//! Cells of plain memory in which data races are found.
//!
//! | type | like |
//! |---|---|
//! | [`UnsafeCell`] | `std::cell::UnsafeCell`, with loom's closures |
//! | [`ConstPtr`], [`MutPtr`] | loom's: accesses that last as long as a value |
//! | [`Cell`] | loom's and `std::cell::Cell` |
//! | `RefCell`, `OnceCell`, `LazyCell` and their kin | std's own |
//!
//! std's own cells are not modelled: they count their borrows themselves, and no two threads share
//! them.
//!
//! An access is neither a scheduling point nor an event: its order among the other accesses of its
//! thread does not matter, as long as it is ordered with the accesses of other threads. If it is
//! not, the test fails. Only guarantees of the language count as an order: a `Relaxed` access
//! orders nothing, in any execution.
//!
//! Where std and loom use one name for two methods (`get`, `get_mut`), it has std's meaning here,
//! unless [loom's signatures](crate#looms-signatures) are selected. Loom's methods are also called
//! [`UnsafeCell::read`] and [`UnsafeCell::write`].

mod single;
mod unsafe_cell;

pub use single::Cell;
pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};
pub use unsafe_cell::{ConstPtr, MutPtr, UnsafeCell};
