//! Which threads hold the object that a thread waits for?
//!
//! The machine knows the thread that holds a mutex or writes. It only counts readers, so the
//! reading threads are found in the events: a guard stays with the thread that took it.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;
use crate::rt::object::once::Once;
use crate::rt::object::{NOBODY, State};

/// A thread that others wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    pub(super) thread: ThreadId,
    pub(super) way: Way,
    /// The position of the event with which the thread began.
    pub(super) since: Option<usize>,
}

/// The thread's relation to the object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Holds,
    Reads,
    Writes,
    Initialises,
}

/// The threads without which the operation could happen, in the order in which they began.
pub(super) fn holders(trace: &Trace, machine: &Machine, operation: &Operation) -> Vec<Holder> {
    let object = operation.object;
    let locks = matches!(
        operation.kind,
        OpKind::Lock
            | OpKind::ReadLock
            | OpKind::WriteLock
            | OpKind::CallOnce { .. }
            | OpKind::WaitOnce { .. }
    );
    // A wait for several objects has no holder.
    if !locks || object == ObjectId::NONE {
        return Vec::new();
    }
    let (thread, way) = match machine.state(object) {
        State::Mutex(mutex) => (mutex.holder, Way::Holds),
        State::RwLock(lock) => match lock.writer {
            Some(writer) => (Some(writer), Way::Writes),
            None => return readers(trace, object, lock.readers),
        },
        State::Once(Once::Running(thread)) => (Some(*thread), Way::Initialises),
        _ => (None, Way::Holds),
    };
    let known = thread.filter(|&thread| thread != NOBODY);
    let holder = known.map(|thread| Holder {
        thread,
        way,
        since: trace.events().iter().rposition(|event| {
            event.thread == thread && event.operation.object == object && takes(event)
        }),
    });
    holder.into_iter().collect()
}

/// Whether the object is a lock that was held at its first event in the execution, and still is.
pub(super) fn held_before(machine: &Machine, object: ObjectId) -> bool {
    if object == ObjectId::NONE {
        return false;
    }
    let before = match machine.initial(object) {
        State::Mutex(mutex) => mutex.holder.is_some(),
        State::RwLock(lock) => lock.writer.is_some() || lock.readers > 0,
        _ => false,
    };
    before
        && match machine.state(object) {
            State::Mutex(mutex) => mutex.holder == Some(NOBODY),
            State::RwLock(lock) => lock.writer == Some(NOBODY) || lock.readers > 0,
            _ => false,
        }
}

/// Whether the event gives its thread exclusive access to the object.
fn takes(event: &Event) -> bool {
    matches!(
        event.operation.kind,
        OpKind::Lock
            | OpKind::TryLock
            | OpKind::WriteLock
            | OpKind::TryWrite
            | OpKind::CallOnce { .. }
    ) && event.outcome.succeeded()
}

/// The present readers; empty if the events do not name all of them.
fn readers(trace: &Trace, lock: ObjectId, count: u32) -> Vec<Holder> {
    let mut reading: Vec<Holder> = Vec::new();
    let events = trace.events().iter().enumerate();
    for (position, event) in events.filter(|(_, event)| event.operation.object == lock) {
        match event.operation.kind {
            OpKind::ReadLock | OpKind::TryRead | OpKind::Downgrade if event.outcome.succeeded() => {
                reading.push(Holder {
                    thread: event.thread,
                    way: Way::Reads,
                    since: Some(position),
                });
            }
            OpKind::UnlockRead => {
                let last = reading.iter().rposition(|it| it.thread == event.thread);
                last.map(|last| reading.remove(last));
            }
            _ => {}
        }
    }
    if reading.len() == count as usize {
        reading
    } else {
        Vec::new()
    }
}
