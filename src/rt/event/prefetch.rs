//! How does memory that is to be written come near the processor in time?
//!
//! By being asked for. The events of a long execution do not fit into the second cache, and a
//! processor that writes one after the other waits for each line of them that comes from behind it,
//! though it could know long before which is next.

/// So many bytes are between what is written and what is asked for: the time that some fifty steps
/// take is more than a line needs to come.
#[cfg(target_arch = "x86_64")]
const BYTES: usize = 4608;

/// Asks for the memory that is to be written in a while if it is written one `next` after the
/// other. Where there is none nothing happens.
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
