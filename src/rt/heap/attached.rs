//! What does the tracking allocator tell, and which heap does it tell it to?
//!
//! `dpor::alloc::Tracking` calls these functions for every block of the process. They find the heap
//! of their OS thread in a thread-local pointer, which is set for the length of an exploration by
//! [`Heap::attach`] and null everywhere else.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;

use crate::rt::rare::rarely;

use crate::rt::coroutine::leave_room_on_coroutine;
use crate::rt::heap::{Free, Heap, Kept, guarded};

thread_local! {
    /// The heap of the exploration that runs on this OS thread. A constant without a destructor, so
    /// that the allocator can read it at any time in a thread's life without allocating.
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
    // Without a thread-local there is no exploration to tell.
    let heap = ATTACHED.try_with(Cell::get).ok()?;
    if rarely!(heap.is_null()) {
        return None;
    }
    // SAFETY: `attach` borrows the heap for as long as the pointer is here, and a heap has no
    // method that needs it exclusively.
    Some(work(unsafe { &*heap }))
}

/// Calls `call`, which asks the allocator for what is not the model's. It may call nothing else of
/// this crate.
pub(crate) fn unrecorded<R>(call: impl FnOnce() -> R) -> R {
    let record = |on| with_attached(|heap| heap.record(on));
    let recorded = record(false);
    let result = call();
    recorded.and_then(record);
    result
}

/// Called by the tracking allocator before it calls the allocator behind it to make a block larger,
/// so that a coroutine that runs out of stack does so here and not in there: see
/// [`coroutine`](crate::rt::coroutine). The other functions that are called before that one do so
/// themselves.
#[inline]
pub(crate) fn entered() {
    with_attached(|_| leave_room_on_coroutine::<ROOM>());
}

/// What an allocator may need of the stack, in bytes.
const ROOM: usize = 2048;

/// Called by the tracking allocator before each allocation. Gives a block that is to be used
/// instead of a new one; it came from the allocator behind it at this address, and was freed.
#[inline]
pub(crate) fn instead(layout: Layout, allocator: *const ()) -> Option<*mut u8> {
    with_attached(|heap| {
        leave_room_on_coroutine::<ROOM>();
        heap.hand_out(layout, allocator)
    })?
}

/// Called by the tracking allocator after each other allocation, also a failed one (`start` is null
/// then). `kept` gives how the block is given back.
#[inline]
pub(crate) fn allocated(start: *mut u8, layout: Layout, kept: impl FnOnce() -> Kept) {
    with_attached(|heap| heap.note_allocated(start.addr(), layout, || Some(kept())));
}

/// Called by the tracking allocator before each free; says whether the allocator behind it is to
/// free the block now. If it is to do so later, it is told by what `kept` gives.
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

/// Whether the block is one of a model, so that it must not be made larger in place: who still uses
/// the old one is to be found. Or it was one, and the allocator behind does not know it.
#[inline]
pub(crate) fn knows(start: *mut u8, layout: Layout) -> bool {
    let knows = with_attached(|heap| {
        let (start, size) = (start.addr(), layout.size());
        heap.with(|state| state.blocks.get(start, size).is_some())
    });
    knows.flatten() == Some(true) || guarded::is_one(start.addr())
}

/// Called by the tracking allocator after each successful reallocation of an unknown block at
/// `old`.
#[inline]
pub(crate) fn reallocated(old: *mut u8, layout: Layout, new: *mut u8, new_layout: Layout) {
    with_attached(|heap| {
        heap.note_freed(old.addr(), layout);
        heap.note_allocated(new.addr(), new_layout, || None);
    });
}

/// Whether the global allocator of this program reports to this module. Without it, no object on
/// the heap has a stable name.
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
