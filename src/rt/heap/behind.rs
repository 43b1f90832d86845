//! Is the inner allocator at work, and what happens if it fails?
//!
//! The inner allocator is the one that the tracking allocator calls. It ends the process if it gets
//! a pointer that it has never returned, or finds its lists overwritten. The report of the
//! execution that `ends.rs` and `faults.rs` then write needs memory, and the allocator may be left
//! with its lock held. So from then on this OS thread gets its memory from a *reserve*, and frees
//! nothing.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;

use crate::rt::rare::cold_path;

/// A request to the inner allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// A block, or a larger one.
    Block,
    /// A free of the block at this address.
    Free(usize),
}

impl Asked {
    /// The request as one word, because each call of the allocator writes and reads it. No block is
    /// at the addresses of the other words.
    #[inline]
    fn word(self) -> usize {
        match self {
            Asked::Block => BLOCK,
            Asked::Free(address) => address,
        }
    }
}

/// The words for no request, for a block, and for any request on an OS thread where the inner
/// allocator has failed.
const NOTHING: usize = 0;
const BLOCK: usize = 1;
const FAILED: usize = usize::MAX;

thread_local! {
    /// The request that this OS thread makes to the inner allocator at the moment. The initial
    /// value is a constant and there is no destructor, so it can be read at any time in a thread's
    /// life without allocating.
    static ASKED: Cell<usize> = const { Cell::new(NOTHING) };
    /// The unused rest of the reserve of this OS thread: its start and its end.
    static RESERVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The size of the reserve in bytes. The reserve is mapped only when it is needed, and written to
/// only as far as it is used.
#[cfg(unix)]
const BYTES: usize = 64 << 20;

/// Calls the inner allocator for this request. `None` if the allocator has failed; then `call` was
/// not called.
#[inline]
pub(crate) fn behind<R>(asked: Asked, call: impl FnOnce() -> R) -> Option<R> {
    // The allocator of a program may call itself.
    let before = ASKED.replace(asked.word());
    if before == FAILED {
        cold_path();
        ASKED.set(FAILED);
        return None;
    }
    let result = call();
    ASKED.set(before);
    Some(result)
}

/// The request that this OS thread makes to the inner allocator, if the allocator is at work and
/// has not failed yet.
#[cfg(unix)]
pub(crate) fn asked() -> Option<Asked> {
    match ASKED.get() {
        NOTHING | FAILED => None,
        BLOCK => Some(Asked::Block),
        address => Some(Asked::Free(address)),
    }
}

/// Notes that the inner allocator has failed on this OS thread and never returns. Returns false if
/// there is no memory for the reserve.
#[cfg(unix)]
pub(crate) fn fail() -> bool {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANON,
    );
    // SAFETY: a new mapping at an address that the system chooses changes no existing mapping.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return false;
    }
    RESERVE.set((start.expose_provenance(), start.addr() + BYTES));
    ASKED.set(FAILED);
    true
}

/// A block of the reserve, all zeroes; null if the reserve is used up, or there is none.
#[cold]
pub(crate) fn from_reserve(layout: Layout) -> *mut u8 {
    let (next, end) = RESERVE.get();
    let start = next.next_multiple_of(layout.align());
    if end.saturating_sub(start) < layout.size() {
        return ptr::null_mut();
    }
    RESERVE.set((start + layout.size(), end));
    ptr::with_exposed_provenance_mut(start)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn once_it_has_failed_blocks_come_from_the_reserve() {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        // A failed allocator stays failed, so the test has an OS thread of its own.
        let on_its_own = std::thread::spawn(move || {
            assert_eq!(behind(Asked::Free(8), asked), Some(Some(Asked::Free(8))));
            assert_eq!(asked(), None);
            assert!(from_reserve(layout(8, 8)).is_null());
            // The call does not return to the allocator.
            let within = fail();
            let (first, second) = (from_reserve(layout(3, 1)), from_reserve(layout(64, 64)));
            let too_much = from_reserve(layout(BYTES, 1));
            let called = behind(Asked::Block, || ());
            // An assertion that fails needs memory, too.
            ASKED.set(NOTHING);
            assert_eq!((within, called), (true, None));
            assert!(!first.is_null() && too_much.is_null());
            assert_eq!(second.addr() % 64, 0);
            assert!(second.addr() >= first.addr() + 3);
            // SAFETY: the block has that size, and no other code uses it.
            assert_eq!(unsafe { second.cast::<[u8; 64]>().read() }, [0; 64]);
        });
        on_its_own.join().unwrap();
    }
}
