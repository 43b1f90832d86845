//! Is a value dropped in every execution?

use std::alloc::{self as std_alloc, Layout};

use crate::config::LOOM;
use crate::rt::{self, Tracked};

/// A value that must be dropped, or taken out, exactly once before the execution ends, as
/// `loom::alloc::Track`.
///
/// Otherwise the test fails, and the report shows where the `Track` was created. This finds
/// elements that a queue loses, and elements that it returns twice: if two threads copy an element
/// out of the same slot, each has a value of its own.
#[derive(Debug)]
pub struct Track<T> {
    // This field is in front of the value: a `Track` that is dropped twice mostly has no valid
    // value the second time.
    tracked: Option<Tracked>,
    value: T,
}

impl<T> Track<T> {
    /// Creates a `Track` that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Track<T> {
        Track {
            tracked: rt::track(),
            value,
        }
    }

    /// Returns a reference to the value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Consumes the `Track` and returns the value, which is no longer tracked.
    pub fn into_inner(self) -> T {
        drop(self.tracked);
        self.value
    }
}

/// Allows the heap block that holds `value` to stay allocated at the end of an execution.
///
/// Without this call such a block is a failure; see
/// [`Builder::check_leaks`](crate::Builder::check_leaks). The call is for one block; memory that
/// the value points to is in other blocks.
///
/// ```
/// use dpor::sync::atomic::{AtomicUsize, Ordering};
///
/// dpor::model(|| {
///     let counter: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
///     dpor::alloc::may_leak(counter);
///     counter.store(1, Ordering::Relaxed);
/// });
/// ```
pub fn may_leak<T: ?Sized>(value: &T) {
    rt::may_leak((&raw const *value).addr());
}

/// With loom's signatures, tracks the block at this address, as loom tracks the blocks of its `Arc`
/// and its `alloc`.
pub(crate) fn track_block(address: usize) {
    if LOOM {
        rt::must_free(address);
    }
}

/// Allocates memory, as `std::alloc::alloc`.
///
/// With [loom's signatures](crate#looms-signatures) the block is tracked like a [`Track`].
///
/// # Safety
///
/// The same as for `std::alloc::alloc`.
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's contract is the same.
    let block = unsafe { std_alloc::alloc(layout) };
    track_block(block.addr());
    block
}

/// Allocates zeroed memory, as `std::alloc::alloc_zeroed`.
///
/// The block is tracked like a block of [`alloc()`].
///
/// # Safety
///
/// The same as for `std::alloc::alloc_zeroed`.
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's contract is the same.
    let block = unsafe { std_alloc::alloc_zeroed(layout) };
    track_block(block.addr());
    block
}

/// Frees memory, as `std::alloc::dealloc`.
///
/// # Safety
///
/// The same as for `std::alloc::dealloc`.
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    // SAFETY: the caller's contract is the same.
    unsafe { std_alloc::dealloc(pointer, layout) }
}

/// Changes the size of a block, as `std::alloc::realloc`.
///
/// The block is tracked like a block of [`alloc()`].
///
/// # Safety
///
/// The same as for `std::alloc::realloc`.
pub unsafe fn realloc(pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller's contract is the same.
    let block = unsafe { std_alloc::realloc(pointer, layout, size) };
    track_block(block.addr());
    block
}
