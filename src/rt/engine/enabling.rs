//! Did the second event of a race have to wait for the first?
//!
//! Then the race is not reversible. This file finds the frequent cases quickly. The model finds the
//! others, when it executes the operation without the first event.

use crate::rt::event::Event;
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::object::State;
use crate::rt::relation::happens_before::Race;
use crate::rt::relation::independence::Class;

use crate::rt::engine::Execution;

/// Whether the second event had to wait for the first, as far as a quick check can tell. It can if
/// the kinds of the two events show it, or if no event changed the object between the two and the
/// second operation was disabled before the first event. Every other event that might enable the
/// second event is dependent on it. Such an event behind the second event happens after it, and so
/// cannot be moved before it.
#[inline(never)]
pub(super) fn is_enabling_pair(execution: &Execution<'_>, race: &Race) -> bool {
    let (first, second) = (
        execution.trace.at(race.first),
        execution.trace.at(race.second),
    );
    let Operation { object, kind } = second.operation;
    if is_enabling(execution, first, second) {
        return true;
    }
    let Some(before) = first.before else {
        return false;
    };
    let is_next = || (execution.clocks).is_next_on_its_object(race.first, race.second);
    first.operation.object == object && is_next() && {
        let state = execution.machine.state(object);
        !state.enabled_in(before, second.thread, &kind)
    }
}

/// Whether the kinds of the two events show that the second one had to wait for the first.
///
/// A receive waits for its own message, and a send for the receive that makes room for it. Messages
/// are sent and received in one order each, so every other send or receive comes after the first
/// event, as does the end of the handle that it used.
#[inline]
fn is_enabling(execution: &Execution<'_>, first: &Event, second: &Event) -> bool {
    let class = first.label.class();
    match second.operation.kind {
        OpKind::Lock | OpKind::ReadLock => class == Class::Release,
        OpKind::WriteLock => matches!(class, Class::Release | Class::ReadRelease),
        OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } => class == Class::OnceEnd,
        OpKind::Taken { .. } => class == Class::Received,
        OpKind::Recv { timed: false } => {
            let sends = matches!(first.operation.kind, OpKind::Send | OpKind::TrySend);
            sends && is_message(second, message(first))
        }
        OpKind::Send => {
            let receives = matches!(first.operation.kind, OpKind::Recv { .. } | OpKind::TryRecv);
            let room = || match execution.machine.state(first.operation.object) {
                State::Channel(channel) => channel.capacity.filter(|&room| room > 0),
                _ => None,
            };
            receives
                && is_message(
                    second,
                    message(first).zip(room()).map(|(it, room)| it + room),
                )
        }
        _ => false,
    }
}

/// The number of the message that is sent or received.
fn message(event: &Event) -> Option<u64> {
    match event.outcome {
        Outcome::Success(number) => Some(number),
        _ => None,
    }
}

fn is_message(event: &Event, number: Option<u64>) -> bool {
    number.is_some() && message(event) == number
}
