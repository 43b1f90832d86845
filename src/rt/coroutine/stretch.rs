//! Is the frame that runs in this part of a stack?

use std::mem::MaybeUninit;

/// Some of the addresses of a stack.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stretch {
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Stretch {
    /// Those of a stack from its lowest address to behind the highest below which `room` bytes are
    /// left.
    pub(crate) fn above((start, end): (usize, usize), room: usize) -> Stretch {
        let start = start + room;
        Stretch {
            start,
            length: end.saturating_sub(start),
        }
    }

    /// Whether this is called from a frame that lies there.
    #[inline(always)]
    pub(crate) fn is_here(self) -> bool {
        let frame = MaybeUninit::<u8>::uninit();
        (&raw const frame).addr().wrapping_sub(self.start) < self.length
    }
}
