//! What does the tracking allocator report, and to which heap?
//!
//! `dpor::alloc::Tracking` calls these functions for every block of the process. They find the heap
//! of their OS thread in a thread-local pointer. [`Heap::attach`] sets the pointer for the length
//! of an exploration; otherwise it is null.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

use crate::rt::rare::rarely;

use crate::rt::coroutine::leave_room_on_coroutine;
use crate::rt::heap::{Free, Heap, Kept, guarded};

thread_local! {
    /// The heap of the exploration that runs on this OS thread. The initial value is a constant and
    /// there is no destructor, so the allocator can read the pointer at any time in a thread's life
    /// without allocating.
    static ATTACHED: Cell<*const Heap> = const { Cell::new(ptr::null()) };
}

impl Heap {
    /// Makes this the heap of the OS thread while `run` runs. The heap that was attached before is
    /// attached again afterwards, also if `run` panics.
    #[inline(always)]
    pub(crate) fn attach<R>(&self, run: impl FnOnce() -> R) -> R {
        struct Restore(*const Heap);
        impl Drop for Restore {
            fn drop(&mut self) {
                ATTACHED.set(self.0);
            }
        }
        let _restore = Restore(ATTACHED.replace(self));
        run()
    }
}

/// Calls `work` if a heap is attached to this OS thread.
#[inline(always)]
pub(super) fn with_attached<R>(work: impl FnOnce(&Heap) -> R) -> Option<R> {
    // Without a thread-local there is no exploration.
    let heap = ATTACHED.try_with(Cell::get).ok()?;
    if rarely!(heap.is_null()) {
        return None;
    }
    // SAFETY: `attach` borrows the heap for as long as the pointer is here, and a heap has no
    // method that needs it exclusively.
    Some(work(unsafe { &*heap }))
}

/// Calls `call`, which makes allocations that do not belong to the model. `call` may call no other
/// function of this crate.
pub(crate) fn unrecorded<R>(call: impl FnOnce() -> R) -> R {
    let record = |on| with_attached(|heap| heap.record(on));
    let recorded = record(false);
    let result = call();
    recorded.and_then(record);
    result
}

/// The tracking allocator calls this function before it asks the inner allocator to enlarge a
/// block. So a coroutine with too small a stack overflows here and not in the inner allocator: see
/// [`coroutine`](crate::rt::coroutine). The other functions that are called before the inner
/// allocator do the same themselves.
#[inline]
pub(crate) fn entered() {
    with_attached(|_| leave_room_on_coroutine::<ROOM>());
}

/// The stack that an allocator may need, in bytes.
const ROOM: usize = 2048;

/// The tracking allocator calls this function before each allocation. Returns a block to be used
/// instead of a new one; `allocator` made the block earlier, and the model has freed it.
#[inline]
pub(crate) fn instead(layout: Layout, allocator: *const ()) -> Option<*mut u8> {
    with_attached(|heap| {
        leave_room_on_coroutine::<ROOM>();
        heap.hand_out(layout, allocator)
    })?
}

/// The tracking allocator calls this function after each other allocation, also after a failed one
/// (then `start` is null). `kept` tells how the block is given back.
#[inline]
pub(crate) fn allocated(start: *mut u8, layout: Layout, kept: impl FnOnce() -> Kept) {
    with_attached(|heap| heap.note_allocated(start.addr(), layout, || Some(kept())));
}

/// The tracking allocator calls this function before each free. Returns whether the inner allocator
/// is to free the block now. Otherwise the heap frees the block later, by means of `kept`.
#[inline]
pub(crate) fn freed(start: *mut u8, layout: Layout, kept: impl FnOnce() -> Kept) -> bool {
    let now = with_attached(|heap| {
        leave_room_on_coroutine::<ROOM>();
        let free = heap.note_freed(start.addr(), layout);
        if rarely!(free == Free::AtTheEnd) {
            heap.keep(kept());
        }
        free == Free::Now
    });
    let now = now.unwrap_or(true);
    if rarely!(now) && guarded::is_one(start.addr()) {
        guarded::free(start);
        return false;
    }
    now
}

/// Whether the block belongs to a model, so that it must not be enlarged in place: a later use of
/// the old block is to be found. Or the block belonged to a model, and the inner allocator does not
/// know it.
#[inline]
pub(crate) fn knows(start: *mut u8, layout: Layout) -> bool {
    let knows = with_attached(|heap| {
        let (start, size) = (start.addr(), layout.size());
        heap.with(|state| state.blocks.get(start, size).is_some())
    });
    knows.flatten() == Some(true) || guarded::is_one(start.addr())
}

/// The tracking allocator calls this function after each successful reallocation of an unknown
/// block at `old`.
#[inline]
pub(crate) fn reallocated(old: *mut u8, layout: Layout, new: *mut u8, new_layout: Layout) {
    with_attached(|heap| {
        heap.note_freed(old.addr(), layout);
        heap.note_allocated(new.addr(), new_layout, || None);
    });
}

/// Whether the global allocator of this program reports to this module. Otherwise no object on the
/// heap has a stable name.
pub(crate) fn installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let heap = Heap::new();
        heap.attach(|| {
            heap.record(true);
            let probe = std::hint::black_box(Box::new(0_u64));
            heap.record(false);
            heap.find((&raw const *probe).addr()).is_some()
        })
    })
}
