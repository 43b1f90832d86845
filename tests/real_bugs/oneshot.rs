//! Does `dpor` find a sender and a receiver that take the same value (tokio, pull request 4225)?
//!
//! The receiver closes the channel, then checks whether a value was sent before. The sender
//! writes its value, announces it, and takes it back if the channel turns out to be closed.
//! If the receiver closes first, the sender still announces its value; if the receiver
//! checks after that, both take it. The fix does not announce a value in a closed channel.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

const SENT: usize = 1;
const CLOSED: usize = 2;

#[derive(Default)]
struct Oneshot {
    state: AtomicUsize,
    /// 0 is no value.
    value: AtomicUsize,
}

impl Oneshot {
    /// Whether the value was taken back.
    fn send(&self, fixed: bool) -> bool {
        self.value.store(7, Release);
        let closed = if fixed {
            let announce = |state| (state & CLOSED == 0).then_some(state | SENT);
            let announced = self.state.fetch_update(AcqRel, Acquire, announce);
            announced.is_err()
        } else {
            self.state.fetch_or(SENT, AcqRel) & CLOSED != 0
        };
        if closed {
            self.value.swap(0, AcqRel);
        }
        closed
    }

    /// Whether there was a value.
    fn close_and_receive(&self) -> bool {
        self.state.fetch_or(CLOSED, AcqRel);
        let sent = self.state.load(Acquire) & SENT != 0;
        if sent {
            self.value.swap(0, AcqRel);
        }
        sent
    }
}

fn send_into_a_channel_that_closes(fixed: bool) {
    let channel = Oneshot::default();
    let (taken_back, received) = thread::scope(|scope| {
        let sender = scope.spawn(|| channel.send(fixed));
        let received = channel.close_and_receive();
        (sender.join().unwrap(), received)
    });
    assert!(!(taken_back && received), "the value was taken twice");
}

pub fn buggy() {
    send_into_a_channel_that_closes(false);
}

#[test]
fn a_value_that_is_announced_in_a_closed_channel_is_taken_twice() {
    finds(buggy, FailureKind::Panic, "the value was taken twice");
    assert_eq!(census(buggy), (4, 2));
}

/// The sender announces before the close, finds the channel closed at once, or on its second attempt.
#[test]
fn a_value_is_not_announced_in_a_closed_channel() {
    passes(|| send_into_a_channel_that_closes(true), 3);
}
