//! What does an operation on another object than an atomic tell other threads, and what does it
//! learn from them?
//!
//! An operation *tells* its object what its thread knows, and *learns* what the object was told.
//! The rules are the promises of std's docs for locks, threads and channels. The detector of data
//! races and the graphs of C11 both follow them.
//!
//! Operations that commute tell and learn the same in either order, or equal traces would not have
//! equal races: a reader's unlock tells writers and not readers, a release of a count only tells.

use crate::rt::event::class::Class;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Outcome, Touch};

/// The synchronisation of an operation. An object has two clocks, one that all learn and one that
/// some learn, and clocks of numbered messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    Nothing,
    Learn,
    LearnSome,
    LearnAll,
    Tell,
    TellSome,
    /// Tells, and then learns.
    TellAndLearn,
    /// Tells some. The last arrival of a group learns what the group was told, and leaves that as
    /// the message with the number of the group.
    Arrive {
        group: Option<u64>,
    },
    /// Learns the message of the group.
    Leave {
        group: u64,
    },
    Send {
        number: u64,
    },
    /// Learns the first message, and tells the sender that waits for that.
    Receive {
        number: u64,
    },
    /// Learns that the message was taken.
    Taken {
        number: u64,
    },
    /// Tells some; a message that is discarded counts as a received one.
    DropReceiver {
        discards: bool,
    },
    Spawn {
        child: ThreadId,
    },
    Join {
        child: ThreadId,
    },
    /// Learns what the operations have told that it may not be swapped with, and tells those that
    /// may not be swapped with it.
    Touch(Touch),
}

impl Grant {
    /// The synchronisation of an operation that is not on an atomic, with this outcome and class.
    pub(crate) fn of(kind: &OpKind, outcome: Outcome, class: Class) -> Grant {
        let ok = outcome.succeeded();
        let value = outcome.value().unwrap_or(0);
        match *kind {
            OpKind::Lock | OpKind::ReadLock => Grant::Learn,
            OpKind::TryLock | OpKind::TryRead if ok => Grant::Learn,
            OpKind::WriteLock => Grant::LearnAll,
            OpKind::TryWrite if ok => Grant::LearnAll,
            OpKind::TryLock | OpKind::TryRead | OpKind::TryWrite => Grant::Nothing,
            OpKind::Unlock { .. } | OpKind::UnlockWrite { .. } => Grant::Tell,
            OpKind::UnlockRead => Grant::TellSome,
            // Readers may follow at once; the former writer keeps reading.
            OpKind::Downgrade => Grant::Tell,
            OpKind::Retain | OpKind::RetainWeak | OpKind::RetainRaw => Grant::Nothing,
            OpKind::FirstReference => Grant::Tell,
            // Only `get_mut` examines weak references.
            OpKind::ReleaseWeak => Grant::TellSome,
            // Where no thread can see which release is the last, no thread can rely on its release
            // being the last.
            OpKind::Release { .. } if value == 1 && class == Class::Drop => Grant::TellAndLearn,
            OpKind::Release { .. } => Grant::Tell,
            // Where there are weak references, `get_mut` gives up before it examines the others.
            OpKind::ReadCount { unique: true } if value == 1 => Grant::LearnAll,
            OpKind::ReadCount { .. } => Grant::Nothing,
            OpKind::TakeUnique | OpKind::Upgrade if ok => Grant::Learn,
            OpKind::TakeUnique | OpKind::Upgrade => Grant::Nothing,
            OpKind::Spawn { child } => Grant::Spawn { child },
            OpKind::Join { child } => Grant::Join { child },
            OpKind::Exit | OpKind::IsFinished => Grant::Nothing,
            OpKind::Unpark => Grant::Tell,
            OpKind::Park => Grant::Learn,
            OpKind::ParkTimeout if ok => Grant::Learn,
            OpKind::ParkTimeout | OpKind::EndForNoReason => Grant::Nothing,
            // The mutex orders a notification and the wake-up that it causes.
            OpKind::Enqueue { .. }
            | OpKind::Awake { .. }
            | OpKind::NotifyOne
            | OpKind::NotifyAll => Grant::Nothing,
            OpKind::Arrive => Grant::Arrive {
                group: (value as u32 == 1).then_some(value >> 32),
            },
            // Without the clocks of later groups: their arrivals may come before or after.
            OpKind::Leave { generation } => Grant::Leave {
                group: u64::from(generation),
            },
            OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } => Grant::Learn,
            OpKind::CheckOnce if value == 1 => Grant::Learn,
            OpKind::CheckOnce => Grant::Nothing,
            OpKind::EndOnce { .. } => Grant::Tell,
            OpKind::Send | OpKind::TrySend if ok => Grant::Send { number: value },
            OpKind::Send | OpKind::TrySend => Grant::LearnSome,
            OpKind::Taken { index } if ok => Grant::Taken { number: index },
            OpKind::Taken { .. } => Grant::LearnSome,
            OpKind::RecvWait => Grant::Nothing,
            OpKind::Recv { .. } | OpKind::TryRecv if ok => Grant::Receive { number: value },
            // The value 1 means that all senders are gone.
            OpKind::Recv { .. } | OpKind::TryRecv if value == 1 => Grant::Learn,
            OpKind::Recv { .. } | OpKind::TryRecv => Grant::Nothing,
            OpKind::AddSender => Grant::Nothing,
            OpKind::DropSender => Grant::Tell,
            OpKind::DropReceiver { discards } => Grant::DropReceiver { discards },
            OpKind::Touch(touch) => Grant::Touch(touch),
            // The clocks of atomics are not those of other objects.
            OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::Rmw { .. }
            | OpKind::CompareExchange { .. }
            | OpKind::Choose { .. }
            | OpKind::GiveUp { .. }
            | OpKind::Start
            | OpKind::Resume
            // The parts of a block have grants of their own.
            | OpKind::Atomically { .. }
            | OpKind::Wait { .. } => Grant::Nothing,
        }
    }
}
