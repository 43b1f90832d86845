//! Which label does the second event of a race have without the first one?
//!
//! Its operation runs in the state that its object then has: the state before the first event,
//! followed by all events that do not happen after the first event.

use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::object::State;
use crate::rt::relation::independence::{Label, Nature};

use crate::rt::engine::Execution;
use crate::rt::engine::sequence::ReversedEvent;
use crate::rt::engine::snapshots::{STEP, run};

/// The label of the second event where objects have the states that `state` returns, or `None` if
/// the operation is disabled there.
#[inline(always)]
pub(super) fn relabel(
    execution: &Execution<'_>,
    second: &ReversedEvent,
    state: impl Fn(ObjectId) -> State,
) -> Option<Label> {
    let Operation { object, kind } = second.operation;
    match kind {
        OpKind::Wait { set, seen, .. } => {
            // If only the waiting thread writes an object, the object is unchanged since that
            // thread read it. The trace has no positions of the events on such an object.
            let has_changed = |object, seen| {
                execution.clocks.is_contended(object) && state(object).has_changed(seen)
            };
            let changed = execution.machine.has_changed(set, seen, has_changed);
            changed.then(|| Label::new(object, &kind, Outcome::Done, Nature::Plain))
        }
        OpKind::GiveUp { .. } => None,
        _ if object == ObjectId::NONE || kind.is_always_alike() => {
            Some(Label::new(object, &kind, Outcome::Done, Nature::Plain))
        }
        _ => {
            let mut state = state(object);
            if !state.enabled(second.step.thread, &kind) {
                return None;
            }
            let step = second.step;
            if step.alternative >= state.alternatives(&kind) {
                return None;
            }
            let outcome = state.apply(step.thread, &kind, step.alternative);
            Some(state.label(&second.operation, outcome))
        }
    }
}

/// The state of `object` after `pre(E, first)` and everything that does not happen after `first`.
#[inline(never)]
pub(super) fn state_without(execution: &Execution<'_>, first: u32, object: ObjectId) -> State {
    let mut state = state_before(execution, first, object);
    if execution.trace.at(first).label.is_total_on(object) {
        // Everything behind `first` happens after it.
        return state;
    }
    let (_, later) = execution.clocks.split_on(object, first);
    // The first event counts as behind itself.
    for (&position, number) in later.iter().zip(1u32..) {
        let event = execution.trace.at(position);
        if execution.clocks.before(first, position) {
            if event.label.is_total_on(object) {
                // Everything behind this one happens after it, and so after `first`.
                break;
            }
            if execution.nothing_is_left(first, position, number) {
                break;
            }
        } else {
            execution.machine.apply(event, object, &mut state);
        }
    }
    state
}

/// The state of `object` directly before the event at `position`.
pub(super) fn state_before(execution: &Execution<'_>, position: u32, object: ObjectId) -> State {
    let state = execution.machine.state(object);
    // The event itself stores the state, if it is on this object and the state fits in a word.
    let event = execution.trace.at(position);
    if event.operation.object == object
        && let Some(word) = event.before
    {
        return state.unpack(word);
    }
    let (earlier, _) = execution.clocks.split_on(object, position);
    // Otherwise the search takes a state that an event shortly before it stores, or a snapshot.
    let near = &earlier[earlier.len().saturating_sub(STEP)..];
    let stored = near.iter().rposition(|&position| {
        let event = execution.trace.at(position);
        event.operation.object == object && event.before.is_some()
    });
    let word = stored.and_then(|index| execution.trace.at(near[index]).before);
    let (Some(index), Some(word)) = (stored, word) else {
        let initial = || execution.machine.initial(object);
        let of = (execution.trace, execution.machine);
        return (execution.snapshots).state_after(earlier, of, object, initial);
    };
    let mut state = state.unpack(word);
    let of = (execution.trace, execution.machine);
    run(&mut state, &near[index..], of, object);
    state
}
