//! How is a use of freed memory found that goes through nothing of this crate's?
//!
//! Where a thread is held up, to see what it does once others have gone on, each block of the model has pages of its own, which
//! are locked when it is freed. So who still uses it, in whatever way, has a fault ([`faults`](super::super::faults)). That takes
//! system calls for each block, and is done in the few executions that are made for it.
//!
//! The pages are never used twice: a part of the addresses is set aside once in a process, and blocks get them from its beginning
//! on. If it is used up, or a block is large, the block comes from the allocator as ever. One that outlives its execution is
//! recognised by its address when it is freed.

use std::alloc::Layout;

/// The largest blocks that get pages of their own, in bytes: what threads hand to each other by pointers is small.
#[cfg(all(unix, target_pointer_width = "64"))]
const SIZE_MAX: usize = 64 << 10;

/// How many bytes of addresses are set aside.
#[cfg(all(unix, target_pointer_width = "64"))]
const ARENA: usize = 4 << 30;

#[cfg(all(unix, target_pointer_width = "64"))]
pub(super) use pages::{block, is_one, lock};

/// Whether a block can have pages of its own here.
pub(crate) const CAN_LOCK: bool = cfg!(all(unix, target_pointer_width = "64"));

/// Without pages there are no such blocks.
#[cfg(not(all(unix, target_pointer_width = "64")))]
mod none {
    use super::Layout;

    pub(in super::super) fn block(_: Layout) -> Option<*mut u8> {
        None
    }

    pub(in super::super) fn is_one(_: usize) -> bool {
        false
    }

    pub(in super::super) fn lock(_: *mut u8, _: usize) {}
}

#[cfg(not(all(unix, target_pointer_width = "64")))]
pub(super) use none::{block, is_one, lock};

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::{ARENA, Layout, SIZE_MAX};

    /// Where the addresses begin that are set aside, as a pointer that may be used for all of them; null if there are none.
    struct Arena(*mut u8);

    // SAFETY: who gets a part of it has got it from `block`, which gives no part twice.
    unsafe impl Send for Arena {}
    // SAFETY: as above.
    unsafe impl Sync for Arena {}

    static SET_ASIDE: OnceLock<Arena> = OnceLock::new();

    /// How many bytes of it have been given out.
    static GIVEN: AtomicUsize = AtomicUsize::new(0);

    fn set_aside() -> Arena {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping anywhere changes nothing that there is.
        let start = unsafe { libc::mmap(ptr::null_mut(), ARENA, libc::PROT_NONE, flags, -1, 0) };
        Arena(match start == libc::MAP_FAILED {
            true => ptr::null_mut(),
            false => start.cast(),
        })
    }

    /// The size of a page in bytes.
    fn page() -> usize {
        static PAGE: OnceLock<usize> = OnceLock::new();
        *PAGE.get_or_init(|| {
            // SAFETY: it only asks.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            usize::try_from(page).unwrap_or(super::SIZE_MAX)
        })
    }

    /// A block with pages of its own.
    pub(in super::super) fn block(layout: Layout) -> Option<*mut u8> {
        let page = page();
        let Arena(arena) = *SET_ASIDE.get_or_init(set_aside);
        if arena.is_null()
            || layout.size() == 0
            || layout.size() > SIZE_MAX
            || layout.align() > page
        {
            return None;
        }
        let size = layout.size().next_multiple_of(page);
        let fits = |given: usize| Some(given + size).filter(|&end| end <= ARENA);
        let given = GIVEN.fetch_update(Relaxed, Relaxed, fits).ok()?;
        // SAFETY: that many bytes from there on are in the arena.
        let start = unsafe { arena.add(given) };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: nobody else has been given these pages.
        let set = unsafe { libc::mprotect(start.cast(), size, access) };
        (set == 0).then_some(start)
    }

    /// Whether there is such a block at this address.
    #[inline]
    pub(in super::super) fn is_one(start: usize) -> bool {
        match SET_ASIDE.get() {
            None => false,
            Some(Arena(arena)) => !arena.is_null() && start.wrapping_sub(arena.addr()) < ARENA,
        }
    }

    /// Makes a fault of each use of a block of so many bytes from now on, which has been freed. Its memory goes back to the system.
    pub(in super::super) fn lock(start: *mut u8, size: usize) {
        let size = size.next_multiple_of(page());
        // SAFETY: the pages are the block's alone, which nobody may use any more.
        unsafe {
            libc::madvise(start.cast(), size, libc::MADV_DONTNEED);
            libc::mprotect(start.cast(), size, libc::PROT_NONE);
        }
    }
}
