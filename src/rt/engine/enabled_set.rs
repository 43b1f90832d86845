//! Who can go on, from one step to the next?
//!
//! It takes a look at each thread to find that out, and most steps change nothing in it. So what
//! was found is kept until a step is made that may let another thread go on or keep it from that.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;

use crate::rt::engine::Point;

/// The threads that can go on.
#[derive(Default, Debug)]
pub(super) struct Able {
    /// In the order of their spawns.
    threads: Vec<ThreadId>,
    /// Whether they still are after a step that leaves the others as they are.
    lasting: bool,
}

impl Able {
    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.lasting = false;
    }

    /// The threads that can go on, in the order of their spawns.
    pub(super) fn threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// Finds out who can go on at this point, where each step but the last one since the point
    /// before has left the others as they were.
    #[inline]
    pub(super) fn update(&mut self, at: &Point<'_>) {
        let lasts = self.lasting && self.follow(at);
        if !lasts {
            self.look(at);
        }
        // To look at each must come to the same.
        #[cfg(test)]
        {
            let mut fresh = Able::default();
            fresh.look(at);
            assert_eq!(fresh.threads, self.threads);
        }
    }

    /// Follows the last step. False if another thread than those that it names may be concerned.
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

    /// Looks at each thread.
    #[inline(always)]
    fn look(&mut self, at: &Point<'_>) {
        self.threads.clear();
        let mut waits = false;
        for &thread in at.machine.live() {
            let Some(next) = at.machine.pending(thread) else {
                continue;
            };
            // What ends a wait for a change may be any step.
            waits |= matches!(next.operation.kind, OpKind::Wait { .. });
            if at.machine.can_perform(thread, &next.operation) {
                self.threads.push(thread);
            }
        }
        self.lasting = !waits;
    }

    /// The threads that can go on, if these are the same after a step that leaves the others as
    /// they are.
    #[inline]
    pub(super) fn lasting(&self) -> Option<&[ThreadId]> {
        self.lasting.then_some(&self.threads)
    }
}

/// Whether a step of this kind leaves it as it is which of the others can go on, where none waits
/// for a change: no thread has to wait because of what the step does, or goes on because of it.
#[inline]
pub(super) fn leaves_the_others(kind: &OpKind) -> bool {
    kind.is_atomic() || kind.counts() || matches!(kind, OpKind::Start | OpKind::Join { .. })
}
