//! Which threads are enabled, from one step to the next?
//!
//! The answer takes a check of each thread, and most steps do not change it. So this set stays
//! valid until a step is made that may enable or disable another thread.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;

use crate::rt::engine::point::Point;

/// The enabled threads.
#[derive(Default, Debug)]
pub(super) struct Able {
    /// In the order of their spawns.
    threads: Vec<ThreadId>,
    /// Whether the set is still valid after a step that leaves the other threads as they are.
    lasting: bool,
}

impl Able {
    /// Makes the set invalid.
    pub(super) fn forget(&mut self) {
        self.lasting = false;
    }

    /// The enabled threads, in the order of their spawns.
    pub(super) fn threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// Computes the enabled threads at this point. Each step but the last one since the previous
    /// point has left the other threads as they were.
    #[inline]
    pub(super) fn update(&mut self, at: &Point<'_>) {
        let lasts = self.lasting && self.follow(at);
        if !lasts {
            self.look(at);
        }
        // A check of each thread must have the same result.
        #[cfg(test)]
        {
            let mut fresh = Able::default();
            fresh.look(at);
            assert_eq!(fresh.threads, self.threads);
        }
    }

    /// Updates the set after the last step. False if the step may have enabled or disabled threads
    /// that it does not name.
    #[inline]
    fn follow(&mut self, at: &Point<'_>) -> bool {
        let Some(event) = at.trace.events().last() else {
            return false;
        };
        match event.operation.kind {
            OpKind::Spawn { child } => self.threads.push(child),
            ref kind if leaves_the_others(kind) => {}
            _ => return false,
        }
        let Some(next) = at.machine.pending(at.last) else {
            return false;
        };
        match next.operation.kind {
            OpKind::Wait { .. } => return false,
            _ if !at.machine.enabled(at.last) => self.threads.retain(|&thread| thread != at.last),
            _ => {}
        }
        true
    }

    /// Checks each thread.
    #[inline(always)]
    fn look(&mut self, at: &Point<'_>) {
        self.threads.clear();
        let mut waits = false;
        for &thread in at.machine.live() {
            let Some(next) = at.machine.pending(thread) else {
                continue;
            };
            // Any step may end a wait for a change.
            waits |= matches!(next.operation.kind, OpKind::Wait { .. });
            if at.machine.can_perform(thread, &next.operation) {
                self.threads.push(thread);
            }
        }
        self.lasting = !waits;
    }

    /// The enabled threads, if the set is still valid after a step that leaves the other threads as
    /// they are.
    #[inline]
    pub(super) fn lasting(&self) -> Option<&[ThreadId]> {
        self.lasting.then_some(&self.threads)
    }
}

/// Whether a step of this kind neither enables nor disables another thread, where no thread waits
/// for a change.
#[inline]
pub(super) fn leaves_the_others(kind: &OpKind) -> bool {
    kind.is_atomic()
        || kind.counts()
        || matches!(kind, OpKind::Start | OpKind::Join { .. } | OpKind::Touch(_))
}
