//! Does `dpor` find a task that is never woken, because it came after the wake-up and before the end of the poll (futures-util 0.3.34, issue 2706)?
//!
//! Clones of a `Shared` future poll it one at a time. A clone that finds another one polling leaves its waker and
//! waits. If the future is woken while it is polled, all wakers that are there are woken, but not those that come
//! until the poll has ended. The clone that polled is woken, too; if it is dropped instead of polled again, the one
//! that came in between waits forever. The fix looks for such wakers when the poll has ended.
//!
//! In the crate as published, `benches/published/run bugs` finds it (`Shared::poll`, `Notifier::wake_by_ref`, and
//! `Shared::drop`, which wakes no other clone, in `future/future/shared.rs`), in execution 4, with a future that yields
//! once: `v2 main*7 main.1*4 main*3`.

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Mutex;
use dpor::sync::atomic::AtomicBool;
use dpor::thread::{self, Thread};
use dpor::{FailureKind, sync};

use super::{census, finds, passes};

#[derive(Default)]
struct Shared {
    polling: AtomicBool,
    waker: Mutex<Option<Thread>>,
}

impl Shared {
    fn wake(&self) {
        let waker = self.waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.unpark();
        }
    }

    /// Whether this clone polls now.
    fn begins(&self) -> bool {
        let begins = self.polling.compare_exchange(false, true, SeqCst, SeqCst);
        begins.is_ok()
    }

    /// Polls, the future is woken, and the clone is dropped. With the fix it looks for wakers again.
    fn poll_once(&self, looks_again: bool) {
        if !self.begins() {
            return;
        }
        self.wake();
        self.polling.store(false, SeqCst);
        if looks_again {
            self.wake();
        }
    }

    /// Waits for its turn to poll.
    fn poll(&self) {
        loop {
            *self.waker.lock().unwrap() = Some(thread::current());
            if self.begins() {
                return;
            }
            thread::park();
        }
    }
}

fn two_clones(looks_again: bool) {
    let shared = sync::Arc::new(Shared::default());
    let theirs = shared.clone();
    let waits = thread::spawn(move || theirs.poll());
    shared.poll_once(looks_again);
    waits.join().unwrap();
}

pub fn buggy() {
    two_clones(false);
}

/// The second clone polls first, which is one execution. Or the first one does, and the second
/// one leaves its waker after the wake-up, and looks before the end of the poll (the failure) or
/// after it. Or it leaves its waker before the wake-up, and looks for the first time after the end
/// of the poll, or before it; then it is woken, and looks again before that end (the failure) or
/// after it.
#[test]
fn a_clone_that_looks_after_the_wake_up_and_before_the_end_of_the_poll_waits_forever() {
    finds(buggy, FailureKind::Deadlock, "waits for ever");
    assert_eq!(census(buggy), (6, 2));
}

/// As above; and where the last look comes after the end of the poll, the waker is left before the
/// second wake-up or after it, unless it was left before the first one.
#[test]
fn a_clone_that_looks_before_the_end_of_the_poll_is_woken_then() {
    passes(|| two_clones(true), 8);
}
