//! How large is a page of memory?
//!
//! The system maps and locks whole pages, and only the system knows their size: with the same
//! processor one may have pages of 4 KiB, and another of 16 or 64.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The size of a page in bytes, a power of two.
pub(crate) fn page() -> usize {
    // Whoever comes before it is known asks as well, and is told the same. So nobody waits here for
    // another thread, also in the middle of the allocator.
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    match KNOWN.load(Relaxed) {
        0 => {
            // SAFETY: it only asks.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            // With a guess, memory would be locked or opened that is another's.
            let page = usize::try_from(page).expect("the system knows its pages");
            KNOWN.store(page, Relaxed);
            page
        }
        known => known,
    }
}
