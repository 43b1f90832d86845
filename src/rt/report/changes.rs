//! Which events give an atomic another value, and which one?

use std::ops::Range;

use crate::rt::event::Event;
use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::OpKind;
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::changes_value;

/// The positions of the events on an object that change its value, in a range.
pub(super) fn of(
    object: ObjectId,
    events: &[Event],
    range: Range<usize>,
    machine: &Machine,
) -> impl DoubleEndedIterator<Item = usize> {
    range.filter(move |&at| {
        events[at].operation.object == object && leaves_another(&events[at], machine)
    })
}

/// Whether the event changes the value of its object. A store or a swap of the value that is
/// already there is a write, but a thread that has seen the value before sees no difference
/// afterwards.
pub(super) fn leaves_another(event: &Event, machine: &Machine) -> bool {
    let found = event.before.or(event.outcome.value());
    let same = found.is_some() && left(event, machine) == found;
    changes_value(event.label.class()) && !same
}

/// The value that an event on an atomic wrote, if the event is a write.
pub(super) fn left(event: &Event, machine: &Machine) -> Option<u64> {
    let object = event.operation.object;
    if object == ObjectId::NONE {
        return None;
    }
    let State::Atomic { ty, .. } = *machine.state(object) else {
        return None;
    };
    match event.operation.kind {
        OpKind::Store { value, .. } => Some(value),
        OpKind::Rmw { rmw, operand, .. } => {
            let found = event.outcome.value()?;
            Some(rmw.apply(ty, found, operand))
        }
        OpKind::CompareExchange { new, .. } if event.outcome.succeeded() => Some(new),
        _ => None,
    }
}
