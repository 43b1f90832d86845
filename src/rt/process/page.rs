//! How large is a page of memory?
//!
//! The system maps and locks full pages, and only the system knows their size: with the same
//! processor one system may have pages of 4 KiB, and another of 16 or 64.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The size of a page in bytes, a power of two.
pub(crate) fn page() -> usize {
    // Each caller before the size is known queries the system as well, and gets the same answer. So
    // no caller waits here for another thread, also in the middle of the allocator.
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    match KNOWN.load(Relaxed) {
        0 => {
            // SAFETY: the call only queries the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            // With a guess, memory of other code would be locked or opened.
            let page = usize::try_from(page).expect("the system knows its pages");
            KNOWN.store(page, Relaxed);
            page
        }
        known => known,
    }
}
