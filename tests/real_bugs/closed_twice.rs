//! Does `dpor` find a channel that one side frees while the other one wakes it (s2n-quic-core 0.91.0, `sync::spsc`)?
//!
//! A side that is dropped swaps `open` for false, and wakes the other side by a waker in the channel. If it was
//! false before, the other side has gone, and the channel is freed. But the other side may still be between its own
//! swap and its wake-up. The fix counts the sides that are done with the channel.
//!
//! In the crate as published, `State::close` in `sync/spsc/state.rs` is that. `benches/published/run bugs` finds it, in
//! execution 2, where each of two threads drops a side: `v2 main*4 main.1*11`. So do the crate's own
//! loom tests (`benches/published/run s2n-quic-core`). Loom passes them, because it does not know that the memory of the
//! waker is freed.

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{FailureKind, thread};

use super::{finds, passes};

struct Channel {
    open: AtomicBool,
    /// Stand for the wakers of the two sides.
    wakers: [AtomicUsize; 2],
    /// How many sides are done with the channel.
    done: AtomicUsize,
}

/// A channel on the heap, by its address.
struct OnHeap(*mut Channel);

// SAFETY: whether the channel is still there is what the tests ask; the model keeps the memory until
// the execution ends.
unsafe impl Sync for OnHeap {}

impl OnHeap {
    fn new() -> OnHeap {
        OnHeap(Box::into_raw(Box::new(Channel {
            open: AtomicBool::new(true),
            wakers: [AtomicUsize::new(1), AtomicUsize::new(1)],
            done: AtomicUsize::new(0),
        })))
    }

    fn channel(&self) -> &Channel {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }

    /// Takes what is left of the waker of this side, and frees the channel.
    fn free(&self, side: usize) {
        self.channel().wakers[side].swap(0, SeqCst);
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(self.0) });
    }

    /// This side has gone, and wakes the other one.
    fn close_buggy(&self, side: usize) {
        let channel = self.channel();
        let was_open = channel.open.swap(false, SeqCst);
        channel.wakers[1 - side].swap(0, SeqCst);
        if !was_open {
            self.free(side);
        }
    }

    fn close_fixed(&self, side: usize) {
        let channel = self.channel();
        channel.open.swap(false, SeqCst);
        channel.wakers[1 - side].swap(0, SeqCst);
        if channel.done.fetch_add(1, SeqCst) == 1 {
            self.free(side);
        }
    }
}

fn both_close(close: fn(&OnHeap, usize)) {
    let heap = OnHeap::new();
    thread::scope(|scope| {
        scope.spawn(|| close(&heap, 1));
        close(&heap, 0);
    });
}

pub fn buggy() {
    both_close(OnHeap::close_buggy);
}

#[test]
fn a_side_that_wakes_the_other_one_after_its_swap_uses_what_that_one_has_freed() {
    finds(buggy, FailureKind::UseAfterFree, "has been freed");
}

/// Either side swaps first, and either one is done first.
#[test]
fn a_channel_is_freed_behind_both_sides() {
    passes(|| both_close(OnHeap::close_fixed), 4);
}
