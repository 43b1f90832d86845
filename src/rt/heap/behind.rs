//! Is the allocator behind the tracking one at work, and what if it fails?
//!
//! It ends the process where it is handed a pointer that it has never handed out, or finds its
//! lists overwritten. Whoever tells of the execution then (`ends.rs` and `faults.rs` beside this
//! room) needs memory for that, and the allocator may be left with its lock held. So from then on
//! this OS thread gets its memory from a *reserve*, and gives nothing back.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;

use crate::rt::rare::cold_path;

/// What the allocator behind is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// A block, or a larger one.
    Block,
    /// To free what is at this address.
    Free(usize),
}

impl Asked {
    /// As one word, because this is written and read with each call of the allocator. No block is
    /// at these addresses.
    #[inline]
    fn word(self) -> usize {
        match self {
            Asked::Block => BLOCK,
            Asked::Free(address) => address,
        }
    }
}

/// The words for nothing, for a block, and for anything on an OS thread where the allocator behind
/// has failed.
const NOTHING: usize = 0;
const BLOCK: usize = 1;
const FAILED: usize = usize::MAX;

thread_local! {
    /// What this OS thread asks the allocator behind for at the moment. As a constant without a
    /// destructor, it can be read at any time in a thread's life without allocating.
    static ASKED: Cell<usize> = const { Cell::new(NOTHING) };
    /// Where the reserve of this OS thread goes on, and where it ends.
    static RESERVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The size of the reserve in bytes. It is mapped only when it is needed, and written to only as
/// far as it is used.
#[cfg(unix)]
const BYTES: usize = 64 << 20;

/// Calls the allocator behind the tracking one for this. `None` if it has failed, and nothing was
/// called.
#[inline]
pub(crate) fn behind<R>(asked: Asked, call: impl FnOnce() -> R) -> Option<R> {
    // A program may have an allocator that calls itself.
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

/// What this OS thread asks the allocator behind for, if that is at work and has not failed yet.
#[cfg(unix)]
pub(crate) fn asked() -> Option<Asked> {
    match ASKED.get() {
        NOTHING | FAILED => None,
        BLOCK => Some(Asked::Block),
        address => Some(Asked::Free(address)),
    }
}

/// The allocator behind has failed on this OS thread, which never comes back from it. False if
/// there is no memory to go on with.
#[cfg(unix)]
pub(crate) fn fail() -> bool {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANON,
    );
    // SAFETY: a new mapping anywhere changes nothing that there is.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return false;
    }
    RESERVE.set((start.expose_provenance(), start.addr() + BYTES));
    ASKED.set(FAILED);
    true
}

/// A block of the reserve, all zeroes; null if it is used up, or there is none.
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
        // What has failed stays so, on an OS thread of its own.
        let on_its_own = std::thread::spawn(move || {
            assert_eq!(behind(Asked::Free(8), asked), Some(Some(Asked::Free(8))));
            assert_eq!(asked(), None);
            assert!(from_reserve(layout(8, 8)).is_null());
            // It does not come back.
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
            // SAFETY: the block has that size, and nobody else uses it.
            assert_eq!(unsafe { second.cast::<[u8; 64]>().read() }, [0; 64]);
        });
        on_its_own.join().unwrap();
    }
}
