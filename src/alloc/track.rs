//! Is a value dropped in every execution?

use std::alloc::{self as std_alloc, Layout};

use crate::config::LOOM;
use crate::rt::{self, Tracked};

/// A value that must be dropped, or taken out, before the execution ends, as `loom::alloc::Track`;
/// and only once.
///
/// Otherwise the test fails, and the report says where the value was made. That shows what a queue
/// loses, and what it hands out twice: two threads that copy an element out of the same slot have
/// one value each.
#[derive(Debug)]
pub struct Track<T> {
    // In front of the value: what is dropped twice is mostly no value any more the second time.
    tracked: Option<Tracked>,
    value: T,
}

impl<T> Track<T> {
    /// Tracks `value` from here on.
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

    /// Returns the value, which is no longer tracked.
    pub fn into_inner(self) -> T {
        drop(self.tracked);
        self.value
    }
}

/// Lets the heap block that holds `value` stay allocated when an execution ends.
///
/// Otherwise that would be a failure; see [`Builder::check_leaks`](crate::Builder::check_leaks).
/// This is about one block: what the value points to lies in others.
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

/// With loom's signatures: the block at this address is a tracked one, as those are in loom that
/// its `Arc` and its `alloc` have made.
pub(crate) fn track_block(address: usize) {
    if LOOM {
        rt::must_free(address);
    }
}

/// Allocates memory, as `std::alloc::alloc`.
///
/// With [loom's signatures](crate#looms-signatures) the block is tracked as a [`Track`] is.
///
/// # Safety
///
/// As for `std::alloc::alloc`.
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's contract is the same.
    let block = unsafe { std_alloc::alloc(layout) };
    track_block(block.addr());
    block
}

/// Allocates zeroed memory, as `std::alloc::alloc_zeroed`.
///
/// The block is tracked like one of [`alloc()`].
///
/// # Safety
///
/// As for `std::alloc::alloc_zeroed`.
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
/// As for `std::alloc::dealloc`.
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    // SAFETY: the caller's contract is the same.
    unsafe { std_alloc::dealloc(pointer, layout) }
}

/// Makes a block larger or smaller, as `std::alloc::realloc`.
///
/// The block is tracked like one of [`alloc()`].
///
/// # Safety
///
/// As for `std::alloc::realloc`.
pub unsafe fn realloc(pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller's contract is the same.
    let block = unsafe { std_alloc::realloc(pointer, layout, size) };
    track_block(block.addr());
    block
}
