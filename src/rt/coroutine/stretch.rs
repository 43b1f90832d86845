//! Is the running frame in this part of a stack?

use std::mem::MaybeUninit;

/// A range of addresses of a stack.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stretch {
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Stretch {
    /// The addresses of a stack above its lowest `room` bytes.
    pub(crate) fn above((start, end): (usize, usize), room: usize) -> Stretch {
        let start = start + room;
        Stretch {
            start,
            length: end.saturating_sub(start),
        }
    }

    /// Whether the frame of the caller lies in this range.
    #[inline(always)]
    pub(crate) fn is_here(self) -> bool {
        let frame = MaybeUninit::<u8>::uninit();
        (&raw const frame).addr().wrapping_sub(self.start) < self.length
    }
}
