//! Does `dpor` find a message that a disconnection hides (flume, issue 120)?
//!
//! A receiver that finds the queue empty checks whether any sender is left. If the last
//! sender pushes a message and leaves between the two checks, the receiver reports the end
//! although a message is queued. The fix checks the queue once more after the senders.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

/// A channel, as far as the receiver looks at it.
struct Channel {
    queued: AtomicUsize,
    senders: AtomicUsize,
}

#[derive(PartialEq)]
enum Received {
    Message,
    Empty,
    Disconnected,
}

impl Channel {
    fn send_and_leave(&self) {
        self.queued.fetch_add(1, AcqRel);
        self.senders.fetch_sub(1, AcqRel);
    }

    fn try_recv(&self, fixed: bool) -> Received {
        if self.queued.load(Acquire) != 0 {
            return Received::Message;
        }
        let disconnected = self.senders.load(Acquire) == 0;
        if fixed && self.queued.load(Acquire) != 0 {
            return Received::Message;
        }
        match disconnected {
            true => Received::Disconnected,
            false => Received::Empty,
        }
    }
}

fn one_message(fixed: bool) {
    let channel = Channel {
        queued: AtomicUsize::new(0),
        senders: AtomicUsize::new(1),
    };
    let received = thread::scope(|scope| {
        scope.spawn(|| channel.send_and_leave());
        channel.try_recv(fixed)
    });
    let lost = received == Received::Disconnected;
    assert!(!lost, "disconnected, though a message is queued");
}

pub fn buggy() {
    one_message(false);
}

#[test]
fn a_message_between_the_two_looks_is_lost() {
    let text = "disconnected, though a message is queued";
    finds(buggy, FailureKind::Panic, text);
    assert_eq!(census(buggy), (3, 1));
}

/// The sender comes before the first look; between the first and the last, with or without leaving
/// in time for the second; or after all of them.
#[test]
fn a_last_look_at_the_queue_finds_the_message() {
    passes(|| one_message(true), 4);
}
