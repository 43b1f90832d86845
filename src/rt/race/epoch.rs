//! An access to plain memory with the time of its thread, in place of a whole clock. (*FastTrack*,
//! PLDI 2009)

use crate::rt::event::verdict::Access;
use crate::rt::race::clock::Clock;

/// An access, and the time of its thread. A thread knows of the access if its clock has a later
/// time for the thread of the access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) access: Access,
    pub(super) time: u32,
    /// The number of events that its thread had performed by then.
    pub(super) until: u32,
}

impl Epoch {
    /// Whether this access races with `access`, by a thread with this clock.
    pub(super) fn races(&self, access: &Access, clock: &Clock) -> bool {
        let Access { thread, effect, .. } = self.access;
        thread != access.thread && effect.conflicts(access.effect) && self.time >= clock.get(thread)
    }
}
