//! The waker of a task, which knows when it is cloned.
//!
//! Std makes a waker from an `Arc`, and its clones are clones of the `Arc`, which no code of this
//! crate sees. So the table of functions is one of this crate's own. Each function calls std's, and
//! a clone is noted before.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::Signal;

/// The functions of a waker with the pointer of an `Arc<Signal>`, which owns one reference.
static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// Returns a waker that wakes the task of this signal.
pub(super) fn of(signal: Arc<Signal>) -> Waker {
    let data = Arc::into_raw(signal).cast();
    // SAFETY: the functions are thread-safe, because `Signal` is `Sync`, and each of them takes the
    // pointer as the one of an `Arc<Signal>` with a reference of its own.
    unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) }
}

/// The `Arc` of a waker with this pointer.
///
/// # Safety
///
/// The pointer is from [`Arc::into_raw`] of an `Arc<Signal>`, and its reference is not used again.
unsafe fn signal_at(data: *const ()) -> Arc<Signal> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(data.cast()) }
}

/// # Safety
///
/// As for [`signal_at`], except that the waker keeps its reference.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the reference stays the waker's, because the `Arc` is not dropped here.
    let signal = ManuallyDrop::new(unsafe { signal_at(data) });
    signal.note_clone();
    RawWaker::new(Arc::into_raw(Arc::clone(&signal)).cast(), &TABLE)
}

/// # Safety
///
/// As for [`signal_at`].
unsafe fn wake(data: *const ()) {
    // SAFETY: the caller's promise.
    Waker::from(unsafe { signal_at(data) }).wake();
}

/// # Safety
///
/// As for [`signal_at`], except that the waker keeps its reference.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the reference stays the waker's, because std's waker is not dropped here.
    let waker = ManuallyDrop::new(Waker::from(unsafe { signal_at(data) }));
    waker.wake_by_ref();
}

/// # Safety
///
/// As for [`signal_at`].
unsafe fn release(data: *const ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { signal_at(data) });
}
