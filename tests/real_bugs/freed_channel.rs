//! Does `dpor` find a channel that its receiver frees while the sender still uses it (oneshot, issue 87)?
//!
//! The receiver waits in the state RECEIVING, with its waker in the channel. The sender changes the state
//! to UNPARKING, takes the waker, and announces with MESSAGE that it is done with the channel. A receiver
//! that is dropped in between swaps in DISCONNECTED, sees that the sender is busy, and waits until the
//! state is no longer UNPARKING before it frees the channel. But it no longer is: the receiver itself has
//! just overwritten it. The fix overwrites only RECEIVING, and leaves UNPARKING to the sender.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{finds, passes, wait_until};

const RECEIVING: usize = 0;
/// One more than `RECEIVING`: the sender adds without a look.
const UNPARKING: usize = 1;
const DISCONNECTED: usize = 2;
const MESSAGE: usize = 3;

struct Channel {
    state: AtomicUsize,
    /// Stands for the waker, which the sender reads.
    waker: UnsafeCell<u32>,
}

/// A channel on the heap, by its address. Its receiver has been polled.
struct OnHeap(*mut Channel);

// SAFETY: whether the channel is still there, and one thread at a time has its waker, is what the tests
// ask; the model keeps the memory until the execution ends.
unsafe impl Sync for OnHeap {}

impl OnHeap {
    fn new() -> OnHeap {
        OnHeap(Box::into_raw(Box::new(Channel {
            state: AtomicUsize::new(RECEIVING),
            waker: UnsafeCell::new(7),
        })))
    }

    fn channel(&self) -> &Channel {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }

    fn free(&self) {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(self.0) });
    }

    fn send(&self) {
        let channel = self.channel();
        if channel.state.fetch_add(1, AcqRel) == DISCONNECTED {
            return self.free();
        }
        // SAFETY: as above.
        channel.waker.with(|waker| unsafe { *waker });
        channel.state.swap(MESSAGE, AcqRel);
    }

    fn drop_buggy(&self) {
        let state = &self.channel().state;
        let mut before = state.swap(DISCONNECTED, AcqRel);
        if before == UNPARKING {
            before = state.load(Acquire);
            wait_until(before != UNPARKING);
        }
        if before != RECEIVING {
            self.free();
        }
    }

    fn drop_fixed(&self) {
        let state = &self.channel().state;
        let gone = state.compare_exchange(RECEIVING, DISCONNECTED, AcqRel, Acquire);
        if gone == Err(UNPARKING) {
            wait_until(state.load(Acquire) != UNPARKING);
        }
        if gone.is_err() {
            self.free();
        }
    }
}

fn send_to_a_receiver_that_is_dropped(drop_receiver: fn(&OnHeap)) {
    let heap = OnHeap::new();
    thread::scope(|scope| {
        scope.spawn(|| drop_receiver(&heap));
        heap.send();
    });
}

pub fn buggy() {
    send_to_a_receiver_that_is_dropped(OnHeap::drop_buggy);
}

#[test]
fn a_receiver_that_overwrites_what_it_waits_for_frees_the_channel_of_its_sender() {
    finds(buggy, FailureKind::UseAfterFree, "has been freed");
}

/// The receiver goes first, between the two steps of the sender, or last.
#[test]
fn a_receiver_that_leaves_the_state_to_the_sender_frees_the_channel_behind_it() {
    passes(|| send_to_a_receiver_that_is_dropped(OnHeap::drop_fixed), 3);
}
