//! Plain memory that is watched: data races on it are found.
//!
//! | type | like |
//! |---|---|
//! | [`UnsafeCell`] | `std::cell::UnsafeCell`, with the closures of loom's |
//! | [`ConstPtr`], [`MutPtr`] | loom's: accesses that last as long as a value |
//! | [`Cell`] | loom's and `std::cell::Cell` |
//! | `RefCell`, `OnceCell`, `LazyCell` and their kin | std's own: they count their borrows themselves, and no two threads share them |
//!
//! An access is no scheduling point and no event: where it stands between its neighbours does not matter
//! as long as it is ordered with the accesses of other threads, and if it is not, the test fails. Ordered
//! means by what the language grants: a `Relaxed` access orders nothing, however the model ran.
//!
//! Where std and loom have one name for two things (`get`, `get_mut`) it is std's here, unless
//! [loom's signatures](crate#looms-signatures) are asked for. Loom's are also called [`UnsafeCell::read`] and
//! [`UnsafeCell::write`].

mod single;
mod unsafe_cell;

pub use single::Cell;
pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};
pub use unsafe_cell::{ConstPtr, MutPtr, UnsafeCell};
