//! What does a channel do with an operation?
//!
//! The state numbers the messages; the shim stores their contents. Sends are ordered among
//! themselves, and so are receives. A send behind a queue that is not empty commutes with a receive
//! from the front of the queue.
//!
//! In a channel with capacity 0, a send consists of an offer, which never blocks, and a wait until
//! the message is taken. A receiver that blocks announces its wait before, because `try_send`
//! succeeds only while a receiver waits.

use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::relation::independence::Nature;

/// The state of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Channel {
    /// The number of messages that the queue holds at most; `None` if the queue is unbounded.
    pub(crate) capacity: Option<u64>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) senders: u64,
    pub(crate) receiver: bool,
    /// Whether the receiver has announced that it waits.
    pub(crate) waiting: bool,
}

/// A send failed because the queue is full, or a receive failed because the queue is empty.
const WOULD_BLOCK: u64 = 0;
/// A send or a receive failed because the other end of the channel has been dropped.
const DISCONNECTED: u64 = 1;

impl Channel {
    /// A channel with one sender. `capacity` is 0 for an unbounded queue, and otherwise one more
    /// than the capacity.
    pub(crate) fn new(capacity: u64) -> Channel {
        Channel {
            capacity: capacity.checked_sub(1),
            sent: 0,
            received: 0,
            senders: 1,
            receiver: true,
            waiting: false,
        }
    }

    /// The property of the channel that the dependency of its events needs.
    pub(crate) fn nature(self) -> Nature {
        match self.capacity {
            None => Nature::Plain,
            Some(0) => Nature::Rendezvous,
            Some(room) => Nature::Bounded(room.min(255) as u8),
        }
    }

    fn queued(self) -> u64 {
        self.sent - self.received
    }

    fn has_room(self) -> bool {
        match self.capacity {
            None | Some(0) => true,
            Some(room) => self.queued() < room,
        }
    }

    fn pushed(self) -> (Channel, Outcome) {
        let sent = self.sent + 1;
        (Channel { sent, ..self }, Outcome::Success(self.sent))
    }

    /// The state in one word, if it fits.
    pub(crate) fn pack(self) -> Option<u64> {
        let fits = self.sent < 1 << 22 && self.received < 1 << 22 && self.senders < 1 << 16;
        let ends = (self.receiver as u64) << 60 | (self.waiting as u64) << 61;
        fits.then_some(self.sent | self.received << 22 | self.senders << 44 | ends)
    }

    /// The state of the same channel, unpacked from `word`.
    pub(crate) fn unpack(self, word: u64) -> Channel {
        Channel {
            capacity: self.capacity,
            sent: word & 0x3f_ffff,
            received: word >> 22 & 0x3f_ffff,
            senders: word >> 44 & 0xffff,
            receiver: word >> 60 & 1 == 1,
            waiting: word >> 61 & 1 == 1,
        }
    }
}

/// Whether `kind` is enabled in this state.
pub(crate) fn enabled(channel: Channel, kind: &OpKind) -> bool {
    match *kind {
        OpKind::Send => channel.has_room() || !channel.receiver,
        OpKind::Recv { timed: false } => channel.queued() > 0 || channel.senders == 0,
        OpKind::Taken { index } => channel.received > index || !channel.receiver,
        _ => true,
    }
}

/// Applies an enabled operation. The success value of a send or a receive is the number of the
/// message.
pub(crate) fn apply(channel: Channel, kind: &OpKind) -> (Channel, Outcome) {
    match *kind {
        OpKind::Send | OpKind::TrySend if !channel.receiver => {
            (channel, Outcome::Failure(DISCONNECTED))
        }
        OpKind::Send => channel.pushed(),
        OpKind::TrySend if channel.capacity == Some(0) => {
            if channel.waiting && channel.queued() == 0 {
                channel.pushed()
            } else {
                (channel, Outcome::Failure(WOULD_BLOCK))
            }
        }
        OpKind::TrySend if channel.has_room() => channel.pushed(),
        OpKind::TrySend => (channel, Outcome::Failure(WOULD_BLOCK)),
        OpKind::Taken { index } if channel.received > index => (channel, Outcome::Success(index)),
        OpKind::Taken { index } => (channel, Outcome::Failure(index)),
        OpKind::RecvWait => {
            let waiting = Channel {
                waiting: true,
                ..channel
            };
            (waiting, Outcome::Done)
        }
        OpKind::Recv { .. } | OpKind::TryRecv => {
            let after = Channel {
                waiting: false,
                ..channel
            };
            if channel.queued() > 0 {
                let received = channel.received + 1;
                let taken = Channel { received, ..after };
                (taken, Outcome::Success(channel.received))
            } else if channel.senders == 0 {
                (after, Outcome::Failure(DISCONNECTED))
            } else {
                (after, Outcome::Failure(WOULD_BLOCK))
            }
        }
        OpKind::AddSender => {
            let senders = channel.senders + 1;
            (Channel { senders, ..channel }, Outcome::Done)
        }
        OpKind::DropSender => {
            let senders = channel.senders.saturating_sub(1);
            (Channel { senders, ..channel }, Outcome::Done)
        }
        OpKind::DropReceiver { .. } => {
            let gone = Channel {
                receiver: false,
                waiting: false,
                ..channel
            };
            (gone, Outcome::Done)
        }
        ref other => super::misplaced(other),
    }
}
