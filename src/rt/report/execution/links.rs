//! Which event does each event get its value from, and which event enabled it?
//!
//! An event *reads from* the latest write of the atomic that it reads, or from the send of the
//! message that it receives; it reads from no event if the value is the initial one. An event is
//! *enabled by* the event without which its thread would still wait: the release of a lock, a
//! notification, the end of a thread that is joined, or, for a thread's first event, the spawn of
//! the thread. One pass over the events, one look-up each.

use rustc_hash::FxHashMap;

use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::object::State;
use crate::rt::object::channel::Channel;
use crate::rt::relation::independence::ReadSets;

/// The effect of an event that a later event may be linked to.
#[derive(PartialEq, Eq, Hash)]
enum Deed {
    /// Wrote the atomic.
    Wrote,
    /// Released the lock: as its only holder, or as one of its readers.
    Freed,
    FreedByReader,
    /// Ended the thread, or the initialisation.
    Ended,
    /// Set the park token.
    Unparked,
    /// Was the last arrival at the barrier.
    Completed,
    /// Sent, or received, the message with this number.
    Sent(u64),
    Received(u64),
    /// Dropped an end of the channel.
    DroppedSender,
    DroppedReceiver,
    /// Notified the thread.
    Notified(ThreadId),
    /// Changed a value that a spinning thread may wait for.
    Changed,
}

/// For each effect, the position of the latest event that had it.
#[derive(Default)]
pub(super) struct Links {
    latest: FxHashMap<(ObjectId, Deed), usize>,
}

/// The positions of the events that an event is linked to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Linked {
    pub(super) reads_from: Option<usize>,
    pub(super) enabled_by: Option<usize>,
}

impl Links {
    /// The links of the next event, which is neither a thread's first event nor a join. `before` is
    /// the state of its object before the event.
    pub(super) fn of(&self, event: &Event, before: Option<&State>, sets: &ReadSets) -> Linked {
        let object = event.operation.object;
        let last = |deed| self.latest.get(&(object, deed)).copied();
        let ok = event.outcome.succeeded();
        let value = event.outcome.value().unwrap_or_default();
        let by = |enabled_by| Linked {
            enabled_by,
            ..Linked::default()
        };
        match event.operation.kind {
            OpKind::Load { .. } | OpKind::Rmw { .. } | OpKind::CompareExchange { .. } => Linked {
                reads_from: last(Deed::Wrote),
                enabled_by: None,
            },
            OpKind::Recv { .. } | OpKind::TryRecv if ok => Linked {
                reads_from: last(Deed::Sent(value)),
                enabled_by: last(Deed::Sent(value)),
            },
            // The value 1 says that all senders are dropped.
            OpKind::Recv { .. } | OpKind::TryRecv if value == 1 => by(last(Deed::DroppedSender)),
            OpKind::Send | OpKind::TrySend if ok => {
                let made_room = match before {
                    Some(State::Channel(Channel {
                        capacity: Some(room),
                        ..
                    })) if *room > 0 => value.checked_sub(*room),
                    _ => None,
                };
                by(made_room.and_then(|index| last(Deed::Received(index))))
            }
            OpKind::Send | OpKind::TrySend => by(last(Deed::DroppedReceiver)),
            OpKind::Taken { index } if ok => by(last(Deed::Received(index))),
            OpKind::Taken { .. } => by(last(Deed::DroppedReceiver)),
            OpKind::Lock => by(last(Deed::Freed)),
            OpKind::TryLock if ok => by(last(Deed::Freed)),
            OpKind::ReadLock => by(last(Deed::Freed)),
            OpKind::TryRead if ok => by(last(Deed::Freed)),
            OpKind::WriteLock => by(last(Deed::Freed).max(last(Deed::FreedByReader))),
            OpKind::TryWrite if ok => by(last(Deed::Freed).max(last(Deed::FreedByReader))),
            OpKind::IsFinished => by(last(Deed::Ended)),
            OpKind::CallOnce { .. } | OpKind::CheckOnce | OpKind::WaitOnce { .. } => {
                by(last(Deed::Ended))
            }
            OpKind::Park => by(last(Deed::Unparked)),
            OpKind::ParkTimeout if ok => by(last(Deed::Unparked)),
            OpKind::Awake { .. } if ok => by(last(Deed::Notified(event.thread))),
            OpKind::Leave { .. } => by(last(Deed::Completed)),
            OpKind::Wait { set, .. } if !event.outcome.is_released() => {
                let changes = sets.get(set).iter();
                let changes = changes.map(|&it| self.latest.get(&(it, Deed::Changed)).copied());
                by(changes.max().flatten())
            }
            _ => Linked::default(),
        }
    }

    /// Records the event at `position`; `states` are the states of its object before and after.
    pub(super) fn happened(&mut self, position: usize, event: &Event, states: (&State, &State)) {
        let object = event.operation.object;
        let ok = event.outcome.succeeded();
        let value = event.outcome.value().unwrap_or_default();
        let (before, after) = states;
        let mut note = |deed| {
            self.latest.insert((object, deed), position);
        };
        if before.polled() != after.polled() {
            note(Deed::Changed);
        }
        if let (State::Condvar(before), State::Condvar(after)) = (before, after) {
            for &(thread, _) in &after.notified {
                if !before.has_notified(thread) {
                    note(Deed::Notified(thread));
                }
            }
        }
        match event.operation.kind {
            OpKind::Store { .. } | OpKind::Rmw { .. } => note(Deed::Wrote),
            OpKind::CompareExchange { .. } if ok => note(Deed::Wrote),
            OpKind::Unlock { .. } | OpKind::UnlockWrite { .. } | OpKind::Downgrade => {
                note(Deed::Freed);
            }
            OpKind::UnlockRead => note(Deed::FreedByReader),
            OpKind::Exit | OpKind::EndOnce { .. } => note(Deed::Ended),
            OpKind::Unpark => note(Deed::Unparked),
            OpKind::Arrive if value as u32 == 1 => note(Deed::Completed),
            OpKind::Send | OpKind::TrySend if ok => note(Deed::Sent(value)),
            OpKind::Recv { .. } | OpKind::TryRecv if ok => note(Deed::Received(value)),
            OpKind::DropSender => note(Deed::DroppedSender),
            OpKind::DropReceiver { .. } => note(Deed::DroppedReceiver),
            _ => {}
        }
    }
}
