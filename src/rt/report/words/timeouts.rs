//! How is it worded that a wait on a condition variable ends without a notification?
//!
//! Its time is over, or it ends before that for no reason, if the test wants that explored. The
//! event is the same; a choice of the thread says which it is. A wait without a time has chosen
//! before it began, and its end is another event.

use std::collections::BTreeMap;

use super::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{Choice, OpKind};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;

/// How a wait has ended that nobody has notified.
#[derive(Clone, Copy)]
pub(super) enum Unnotified {
    TimedOut,
    ForNoReason,
    /// The execution ends before the choice.
    Undecided,
}

/// The waits that have ended like that, each by its thread and the index of its last event.
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
    // One with a time chooses afterwards, unless it may not end for no reason any more.
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
    /// What a wait did that has ended without a notification, after the name of the condition
    /// variable.
    pub(super) fn ended_unnotified(&self, event: &Event) -> &'static str {
        match self.unnotified.get(&(event.thread, event.index)) {
            Some(Unnotified::TimedOut) => "times out",
            Some(Unnotified::ForNoReason) => "ends for no reason",
            Some(Unnotified::Undecided) | None => "ends without a notification",
        }
    }
}
