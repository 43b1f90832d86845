//! Where does the memory of jobs come from?
//!
//! It is the memory of earlier jobs: an execution has about as many threads as the one before it. A
//! block that the program can see must come from the allocator, which tracks the block under a name
//! and keeps it when it is freed; that costs as much time as a few steps. But a job contains no
//! shim while the job is used, and no pointer of the program leads to it, except if a result is
//! dropped in it ([`Packet`](super::job)). So all other jobs are in blocks that are reused from one
//! job to the next on their OS thread, and that no model knows of.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::rt::{self, heap};

/// The sizes of blocks are multiples of this, in bytes, and they are aligned to it.
const UNIT: usize = 32;

/// The number of block sizes. Larger blocks come from the allocator.
const SIZES: usize = 16;

/// The most idle blocks of an OS thread.
const IDLE: usize = 1024;

thread_local! {
    static ROOM: Room = const { Room::new() };
}

/// The idle blocks of an OS thread.
struct Room {
    /// For each size, the block that became idle last.
    latest: [Cell<*mut Idle>; SIZES],
    blocks: Cell<usize>,
}

/// The content of an idle block.
struct Idle {
    /// The idle block of the same size before this one, or null.
    before: *mut Idle,
}

impl Room {
    const fn new() -> Room {
        Room {
            latest: [const { Cell::new(ptr::null_mut()) }; SIZES],
            blocks: Cell::new(0),
        }
    }

    #[inline]
    fn take(&self, size: usize) -> Option<NonNull<u8>> {
        let latest = &self.latest[size];
        let block = NonNull::new(latest.get())?;
        // SAFETY: `put` has written the block, and no other code has it.
        latest.set(unsafe { block.as_ref() }.before);
        self.blocks.set(self.blocks.get() - 1);
        Some(block.cast())
    }

    /// Keeps a block of this size. Returns false if there are too many.
    ///
    /// # Safety
    ///
    /// The block has the layout [`of`] of this size, and is not used any more.
    #[inline]
    unsafe fn put(&self, block: NonNull<u8>, size: usize) -> bool {
        let (latest, blocks) = (&self.latest[size], self.blocks.get());
        if rt::rarely!(blocks >= IDLE) {
            return false;
        }
        let block: NonNull<Idle> = block.cast();
        let before = latest.get();
        // SAFETY: each block is large enough and aligned, and by the caller's promise this one is
        // not used.
        unsafe { block.write(Idle { before }) };
        latest.set(block.as_ptr());
        self.blocks.set(blocks + 1);
        true
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        for size in 0..SIZES {
            while let Some(block) = self.take(size) {
                // SAFETY: the block came from the allocator with this layout.
                unsafe { dealloc(block.as_ptr(), of(size)) };
            }
        }
    }
}

/// The index of the smallest block size for this layout, if there is one.
const fn size_for(layout: Layout) -> Option<usize> {
    let size = layout.size().saturating_sub(1) / UNIT;
    if size < SIZES && layout.align() <= UNIT {
        Some(size)
    } else {
        None
    }
}

/// The layout of the blocks with this size index.
const fn of(size: usize) -> Layout {
    match Layout::from_size_align((size + 1) * UNIT, UNIT) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    }
}

/// A block for a job of this layout.
#[inline(always)]
pub(super) fn take(layout: Layout) -> NonNull<u8> {
    let Some(size) = size_for(layout) else {
        return unseen(layout);
    };
    // At the end of an OS thread its room is gone.
    match ROOM.try_with(|room| room.take(size)) {
        Ok(Some(block)) => block,
        _ => {
            rt::cold_path();
            unseen(of(size))
        }
    }
}

/// Takes back a block that [`take`] has returned for a job of this layout.
///
/// # Safety
///
/// The block is not used any more.
#[inline(always)]
pub(super) unsafe fn put(block: NonNull<u8>, layout: Layout) {
    let size = size_for(layout);
    if let Some(size) = size {
        // SAFETY: by the caller's promise the block is not used, and `take` returned it for this
        // size.
        let is_kept = ROOM.try_with(|room| unsafe { room.put(block, size) });
        if rt::mostly!(is_kept == Ok(true)) {
            return;
        }
    }
    rt::cold_path();
    let layout = size.map_or(layout, of);
    // SAFETY: the block came from the allocator with this layout, and by the caller's promise it is
    // not used.
    heap::unrecorded(|| unsafe { dealloc(block.as_ptr(), layout) });
}

/// Allocates a block that is hidden from the model.
#[cold]
#[inline(never)]
fn unseen(layout: Layout) -> NonNull<u8> {
    // SAFETY: a job is never of size 0.
    let block = heap::unrecorded(|| unsafe { alloc(layout) });
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_block_goes_to_the_next_job_of_about_its_size_and_to_no_other() {
        let first = take(layout(100));
        let second = take(layout(100));
        assert_ne!(first, second);
        // SAFETY: the blocks are not used any more.
        unsafe {
            put(first, layout(100));
            put(second, layout(100));
        }
        let other = take(layout(97 + UNIT));
        assert!(other != first && other != second);
        assert_eq!([take(layout(97)), take(layout(128))], [second, first]);
        // SAFETY: as above.
        unsafe {
            put(other, layout(97 + UNIT));
            put(first, layout(128));
            put(second, layout(97));
        }
    }

    #[test]
    fn no_more_blocks_are_kept_than_that() {
        let idle = || ROOM.with(|room| room.blocks.get());
        let before = idle();
        let blocks: Vec<_> = (0..IDLE + 9).map(|_| take(layout(1))).collect();
        for block in blocks {
            // SAFETY: the block is not used any more.
            unsafe { put(block, layout(1)) };
        }
        assert_eq!((before, idle()), (0, IDLE));
        let large = take(layout(UNIT * SIZES + 1));
        // SAFETY: as above.
        unsafe { put(large, layout(UNIT * SIZES + 1)) };
        assert_eq!(idle(), IDLE);
    }
}
