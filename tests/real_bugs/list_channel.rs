//! Does `dpor` find the null pointer of a channel, and the double
//! free of its repair (crossbeam, issue 971 and pull request 1187)?
//!
//! The first sender allocates a block and installs it in two steps: `tail_block` by a
//! compare-exchange, then `head_block`. In between, another sender may find the tail, send,
//! and drop the receiver. Dropping it walks the messages from `head_block`, which is still
//! null. The repair waits for `head_block`. It first tries to take the block with a swap, so
//! that nobody frees it again. But the loop that waits only loads the pointer, so whoever
//! drops the channel frees the block a second time. The second repair swaps in the loop too.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{FailureKind, thread};

use super::{census, finds, passes, wait_until};

/// Room for messages.
type Block = [u64; 4];

/// What the tail's index consists of: a mark that the receiver is gone, and messages.
const MARK: usize = 1;
const MESSAGE: usize = 2;

#[derive(Default)]
struct Channel {
    tail_index: AtomicUsize,
    tail_block: AtomicPtr<Block>,
    head_block: AtomicPtr<Block>,
}

#[derive(PartialEq)]
enum Walked {
    Nothing,
    Null,
    Freed,
}

fn free(block: *mut Block) {
    // SAFETY: every block comes from a box. Whether it is freed once is what the tests ask; the model
    // keeps the memory until the execution ends.
    drop(unsafe { Box::from_raw(block) });
}

impl Channel {
    fn send(&self) {
        loop {
            // The slot of the message, if it turns out to be free.
            self.tail_index.load(Acquire);
            if !self.tail_block.load(Acquire).is_null() {
                break;
            }
            let new = Box::into_raw(Box::new(Block::default()));
            let tail = &self.tail_block;
            let installed = tail.compare_exchange(null_mut(), new, AcqRel, Acquire);
            if installed.is_ok() {
                self.head_block.store(new, Release);
                break;
            }
            free(new);
        }
        self.tail_index.fetch_add(MESSAGE, AcqRel);
    }

    /// Drops the receiver: if there are messages, the block that `discard` gives is walked and freed.
    fn disconnect(&self, discard: fn(&Channel) -> *mut Block) -> Walked {
        self.tail_index.fetch_or(MARK, AcqRel);
        if self.tail_index.load(Acquire) < MESSAGE {
            return Walked::Nothing;
        }
        let block = discard(self);
        if block.is_null() {
            return Walked::Null;
        }
        free(block);
        Walked::Freed
    }

    fn discard_at_first(&self) -> *mut Block {
        let block = self.head_block.load(Acquire);
        if !block.is_null() {
            self.head_block.store(null_mut(), Release);
        }
        block
    }

    fn discard_repaired(&self) -> *mut Block {
        let mut block = self.head_block.swap(null_mut(), AcqRel);
        if block.is_null() {
            block = self.head_block.load(Acquire);
            wait_until(!block.is_null());
        }
        block
    }

    fn discard_repaired_again(&self) -> *mut Block {
        let mut block = self.head_block.swap(null_mut(), AcqRel);
        if block.is_null() {
            block = self.head_block.swap(null_mut(), AcqRel);
            wait_until(!block.is_null());
        }
        block
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let left = *self.head_block.get_mut();
        if !left.is_null() {
            free(left);
        }
    }
}

fn two_senders(discard: fn(&Channel) -> *mut Block) {
    let channel = Channel::default();
    let walked = thread::scope(|scope| {
        scope.spawn(|| channel.send());
        let last = scope.spawn(|| {
            channel.send();
            channel.disconnect(discard)
        });
        last.join().unwrap()
    });
    let null = walked == Walked::Null;
    assert!(!null, "the receiver walks a null pointer");
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
    finds(double_free, FailureKind::WrongFree, "free");
    // A wrong free does not stop its execution: the closure runs once for each of the 30 executions,
    // the 2 that fail among them.
    assert_eq!(census(double_free), (30, 0));
}

#[test]
fn a_block_that_is_taken_in_the_loop_too_is_freed_once() {
    passes(|| two_senders(Channel::discard_repaired_again), 30);
}
