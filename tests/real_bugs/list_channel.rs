//! Are the null pointer of a channel and the double free of its repair found (crossbeam, issue 971 and
//! pull request 1187)?
//!
//! The first sender allocates a block and installs it in two steps: `tail_block` by a
//! compare-exchange, then `head_block`. In between another sender may find the tail, send, and drop
//! the receiver, which walks the messages from `head_block`: null. The repair waits for
//! `head_block`. It takes it with a swap, so that nobody frees it again; but in the loop that waits
//! it only loads it, and whoever drops the channel frees it a second time. The second repair swaps
//! in the loop too.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::AtomicUsize;
use dpor::{FailureKind, thread};

use super::{census, finds, passes, wait_until};

/// Pointers to blocks: none, and the only one.
const NULL: usize = 0;
const BLOCK: usize = 1;

/// What the tail's index consists of: a mark that the receiver is gone, and messages.
const MARK: usize = 1;
const MESSAGE: usize = 2;

#[derive(Default)]
struct Channel {
    tail_index: AtomicUsize,
    tail_block: AtomicUsize,
    head_block: AtomicUsize,
}

impl Channel {
    fn send(&self) {
        loop {
            // The slot of the message, if it turns out to be free.
            self.tail_index.load(Acquire);
            if self.tail_block.load(Acquire) != NULL {
                break;
            }
            let install = self
                .tail_block
                .compare_exchange(NULL, BLOCK, AcqRel, Acquire);
            if install.is_ok() {
                self.head_block.store(BLOCK, Release);
                break;
            }
        }
        self.tail_index.fetch_add(MESSAGE, AcqRel);
    }

    /// Drops the receiver: `discard` gives the block that is walked and freed, if there are messages.
    fn disconnect(&self, discard: fn(&Channel) -> usize) -> Option<usize> {
        self.tail_index.fetch_or(MARK, AcqRel);
        let messages = self.tail_index.load(Acquire) / MESSAGE;
        (messages > 0).then(|| discard(self))
    }

    fn discard_at_first(&self) -> usize {
        let block = self.head_block.load(Acquire);
        if block != NULL {
            self.head_block.store(NULL, Release);
        }
        block
    }

    fn discard_repaired(&self) -> usize {
        let mut block = self.head_block.swap(NULL, AcqRel);
        if block == NULL {
            block = self.head_block.load(Acquire);
            wait_until(block != NULL);
        }
        block
    }

    fn discard_repaired_again(&self) -> usize {
        let mut block = self.head_block.swap(NULL, AcqRel);
        if block == NULL {
            block = self.head_block.swap(NULL, AcqRel);
            wait_until(block != NULL);
        }
        block
    }
}

fn two_senders(discard: fn(&Channel) -> usize) {
    let channel = Channel::default();
    let walked = thread::scope(|scope| {
        scope.spawn(|| channel.send());
        let last = scope.spawn(|| {
            channel.send();
            channel.disconnect(discard)
        });
        last.join().unwrap()
    });
    assert_ne!(walked, Some(NULL), "the receiver walks a null pointer");
    // The channel is dropped and frees what is left.
    let left = channel.head_block.load(Acquire);
    let freed_twice = walked == Some(left);
    assert!(!freed_twice, "the block is freed twice");
}

pub fn null_dereference() {
    two_senders(Channel::discard_at_first);
}

pub fn double_free() {
    two_senders(Channel::discard_repaired);
}

#[test]
fn a_receiver_that_is_dropped_between_two_steps_of_a_sender_walks_a_null_pointer() {
    let text = "the receiver walks a null pointer";
    finds(null_dereference, FailureKind::Panic, text);
    assert_eq!(census(null_dereference), (30, 2));
}

#[test]
fn a_block_that_is_loaded_and_not_taken_is_freed_twice() {
    finds(double_free, FailureKind::Panic, "the block is freed twice");
    assert_eq!(census(double_free), (30, 2));
}

#[test]
fn a_block_that_is_taken_in_the_loop_too_is_freed_once() {
    passes(|| two_senders(Channel::discard_repaired_again), 30);
}
