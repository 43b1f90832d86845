//! Why did each thread stop where another thread continued?
//!
//! The events are played again on the states of their objects, so the state that the thread's next
//! operation would have met tells whether the thread was enabled. One pass over the events.

use std::collections::HashMap;

use super::view::View;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::verdict::End;
use crate::rt::object::State;

/// Why a thread has stopped.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// The thread was enabled.
    Preempted,
    /// The thread was not enabled: this operation had to wait.
    Waits(Operation),
    /// The thread wanted to give the execution up, or to make one round more than the bound allows.
    GaveUp,
    /// The thread has ended.
    Ended,
    /// The next action of the thread is not shown: after the panic that ended the execution, the
    /// thread continued only for another thread that waited for it while unwinding.
    AfterThePanic,
}

/// For each event after which another thread ran, or none did, why the event's thread stopped
/// there.
pub(super) fn stops(view: &View<'_>) -> HashMap<usize, Stop> {
    let events = view.trace.events();
    let mut states: HashMap<ObjectId, State> = HashMap::new();
    let mut stops = HashMap::new();
    for (position, event) in events.iter().enumerate() {
        let object = event.operation.object;
        if object != ObjectId::NONE {
            let state = states.entry(object);
            let state = state.or_insert_with(|| view.machine.initial(object));
            state.apply(event.thread, &event.operation.kind, event.alternative);
        }
        let next = events.get(position + 1);
        if next.is_none_or(|next| next.thread != event.thread) {
            let stop = match event.operation.kind {
                OpKind::Exit => Stop::Ended,
                _ => stop(view, &states, event.thread, event.index),
            };
            stops.insert(position, stop);
        }
    }
    stops
}

/// Why the thread does not continue behind its event with this index.
fn stop(view: &View<'_>, states: &HashMap<ObjectId, State>, thread: ThreadId, index: u32) -> Stop {
    let later = view.trace.positions_of(thread).get(index as usize + 1);
    let next = match later {
        Some(&position) => Some(view.trace.at(position).operation),
        None => view.machine.pending(thread).map(|it| it.operation),
    };
    let Some(next) = next else {
        return match view.end {
            _ if view.machine.ends_behind(thread, index + 1) => Stop::Ended,
            End::Panicked { .. } => Stop::AfterThePanic,
            // The execution ended between two events of the thread.
            _ => Stop::Preempted,
        };
    };
    let can_happen = match next.kind {
        // The thread spins, even if its objects have changed while it was not running.
        OpKind::Wait { .. } => false,
        OpKind::GiveUp { .. } => return Stop::GaveUp,
        _ if next.object == ObjectId::NONE => true,
        ref kind => match states.get(&next.object) {
            Some(state) => state.enabled(thread, kind),
            None => view.machine.initial(next.object).enabled(thread, kind),
        },
    };
    if can_happen {
        Stop::Preempted
    } else {
        Stop::Waits(next)
    }
}
