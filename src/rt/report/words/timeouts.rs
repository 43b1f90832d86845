//! Which words describe a wait on a condition variable that ends without a notification?
//!
//! Either the time of the wait is over, or the wait ends spuriously before that, if the test has
//! spurious wake-ups explored. The event is the same; a later choice of the thread says which of
//! the two it is. A wait without a time limit has chosen before it began, and its end is another
//! event.

use std::collections::BTreeMap;

use super::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{Choice, OpKind};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;

/// How a wait ended that no notification ended.
#[derive(Clone, Copy)]
pub(super) enum Unnotified {
    TimedOut,
    ForNoReason,
    /// The execution ends before the choice.
    Undecided,
}

/// The waits that ended without a notification, each by its thread and the index of its last event.
pub(super) fn unnotified(
    trace: &Trace,
    machine: &Machine,
) -> BTreeMap<(ThreadId, u32), Unnotified> {
    let events = trace.events().iter().enumerate();
    let ended = events.filter(|(_, event)| {
        matches!(event.operation.kind, OpKind::Awake { .. }) && !event.outcome.succeeded()
    });
    let ended = ended.map(|(at, event)| ((event.thread, event.index), how(trace, machine, at)));
    ended.collect()
}

fn how(trace: &Trace, machine: &Machine, at: usize) -> Unnotified {
    let events = trace.events();
    let awake = &events[at];
    let chooses = |kind: &OpKind, asked: Choice| matches!(kind, OpKind::Choose { what, .. } if *what == asked);
    // A wait with a time limit chooses afterwards, unless no more spurious wake-ups are allowed.
    let next = events[at + 1..].iter().find(|it| it.thread == awake.thread);
    match next {
        Some(next) if chooses(&next.operation.kind, Choice::HasWokenUp) => {
            return match next.outcome.value() {
                Some(0) => Unnotified::TimedOut,
                _ => Unnotified::ForNoReason,
            };
        }
        Some(_) => {}
        None => {
            let pending = machine.pending(awake.thread);
            if pending.is_some_and(|it| chooses(&it.operation.kind, Choice::HasWokenUp)) {
                return Unnotified::Undecided;
            }
        }
    }
    Unnotified::TimedOut
}

impl Names<'_> {
    /// The words for a wait that ended without a notification, behind the name of the condition
    /// variable.
    pub(super) fn ended_unnotified(&self, event: &Event) -> &'static str {
        match self.unnotified.get(&(event.thread, event.index)) {
            Some(Unnotified::TimedOut) => "times out",
            Some(Unnotified::ForNoReason) => "ends for no reason",
            Some(Unnotified::Undecided) | None => "ends without a notification",
        }
    }
}
