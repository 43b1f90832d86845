//! How does memory that is written soon get into the cache in time?
//!
//! By a prefetch. The events of a long execution do not fit into the second-level cache. A
//! processor that writes one event after the other waits for each cache line from beyond that
//! cache, though the next line is known long before.

/// The distance in bytes between the written and the prefetched address. Some fifty steps write
/// that much, and they take longer than a line needs to arrive.
#[cfg(target_arch = "x86_64")]
const BYTES: usize = 4608;

/// Prefetches the memory that is written in a while, if items like `next` are written one after the
/// other. On other processors it does nothing.
#[inline(always)]
pub(crate) fn ask_ahead<T>(next: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint. It neither reads nor writes as far as a program can tell,
        // and does not fault where there is no memory, so any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_byte_add(BYTES).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = next;
}
