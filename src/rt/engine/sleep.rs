//! Which steps need not run from a point?
//!
//! A step enters the sleep set of a point when all executions that continue there with this step
//! have been explored. It stays in the sleep sets behind this point until a dependent event
//! happens. A sleeper keeps the label of its event. The label stays valid because all events in
//! between are independent of it. Where an operation has several outcomes, each outcome is a
//! sleeper of its own.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::relation::independence::{Label, ReadSets, commutes};

/// A step in a sleep set, and the label of the event that the step would be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sleeper {
    pub(crate) step: Step,
    pub(crate) label: Label,
}

impl Sleeper {
    /// Whether the step stays in the sleep set after `thread` has performed an event with this
    /// label.
    #[inline]
    pub(crate) fn survives(&self, sets: &ReadSets, thread: ThreadId, label: Label) -> bool {
        self.step.thread != thread && commutes(sets, self.label, label)
    }
}
