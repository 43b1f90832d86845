//! Which threads need not run from here?
//!
//! A thread goes to sleep at a point when everything that begins with its next event there has been
//! explored, and it stays asleep until something happens that its event depends on. It sleeps with
//! the label of that event, which stays valid exactly because all that happens meanwhile is
//! independent of it; and it sleeps per outcome, where it has several.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::relation::independence::{Label, ReadSets, commutes};

/// A sleeping thread: the step it would make, and the event that step would be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sleeper {
    pub(crate) step: Step,
    pub(crate) label: Label,
}

impl Sleeper {
    /// Whether the thread sleeps on after `thread` has performed an event with this label.
    #[inline]
    pub(crate) fn survives(&self, sets: &ReadSets, thread: ThreadId, label: Label) -> bool {
        self.step.thread != thread && commutes(sets, self.label, label)
    }
}
