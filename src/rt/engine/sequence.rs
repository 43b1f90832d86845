//! The events of a sequence that reverses a race, and the reversed event at its end.

use crate::rt::engine::Execution;
use crate::rt::event::Site;
use crate::rt::event::operation::{Operation, Step};
use crate::rt::relation::independence::Label;

/// One event of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SequenceEvent {
    pub(crate) step: Step,
    pub(crate) label: Label,
    /// Its index among the events of its thread.
    pub(crate) index: u32,
    /// Its position in the execution; [`NOWHERE`](crate::rt::event::NOWHERE) for the reversed
    /// event, which is the last.
    pub(crate) position: u32,
}

/// The event that is executed without the first one of the pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReversedEvent {
    pub(crate) step: Step,
    pub(crate) operation: Operation,
    /// The event directly before it: of its own thread, or the spawn.
    pub(crate) predecessor: Option<u32>,
    /// The race of which it is the second event, if the race has only this reversal.
    pub(crate) race: Option<ReversibleRace>,
}

/// The second event of a race as it was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReversibleRace {
    /// The number of the race.
    pub(crate) number: usize,
    pub(crate) position: u32,
    /// Its index among the events of its thread.
    pub(crate) index: u32,
    pub(crate) label: Label,
}

impl ReversedEvent {
    /// Whether the event at `first` happens before the predecessor of this event, so that this
    /// event cannot run before it.
    #[inline]
    pub(crate) fn is_behind(&self, execution: &Execution<'_>, first: u32) -> bool {
        (self.predecessor).is_some_and(|predecessor| execution.clocks.before(first, predecessor))
    }

    /// Its index among the events of its thread.
    pub(crate) fn index(&self, execution: &Execution<'_>) -> u32 {
        let before = self.predecessor.map(|before| execution.trace.at(before));
        // The predecessor of a thread's first event is its spawn, an event of another thread.
        let before = before.filter(|event| event.thread == self.step.thread);
        before.map_or(0, |event| event.index + 1)
    }

    /// The label that the event has in every state, if its operation has only one.
    #[inline]
    pub(crate) fn known_label(&self) -> Option<Label> {
        let alike = self.race.filter(|_| self.operation.kind.is_always_alike());
        alike.map(|race| race.label)
    }

    /// Its position in the execution; `None` if it is pending there.
    pub(crate) fn position(&self, execution: &Execution<'_>) -> Option<u32> {
        match self.predecessor {
            Some(before) => execution.trace.next_of(self.step.thread, before),
            None => Some(0),
        }
    }

    /// Its place in the source.
    pub(crate) fn site(&self, execution: &Execution<'_>) -> Option<Site> {
        match self.position(execution) {
            Some(position) => Some(execution.trace.at(position).site),
            None => {
                let mut blocked = execution.blocked.iter();
                let found = blocked.find(|blocked| blocked.thread == self.step.thread);
                found.map(|blocked| blocked.site)
            }
        }
    }
}
