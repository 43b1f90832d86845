//! Does `dpor` find a wake-up that a futex loses because it compares too early (unikraft, issue 1763)?
//!
//! `wait` compares the futex with the value it expects, takes the lock of the
//! queue, joins the queue and sleeps. A change and its `wake` may come between the
//! comparison and the lock, and then wake nobody. The fix compares under the lock.

use std::sync::atomic::Ordering::{Acquire, Release};

use dpor::sync::Mutex;
use dpor::sync::atomic::AtomicBool;
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

#[derive(Default)]
struct Futex {
    changed: AtomicBool,
    /// Who sleeps.
    queue: Mutex<Option<thread::Thread>>,
}

impl Futex {
    fn wait_buggy(&self) {
        if self.changed.load(Acquire) {
            return;
        }
        *self.queue.lock().unwrap() = Some(thread::current());
        thread::park();
    }

    fn wait_fixed(&self) {
        let mut queue = self.queue.lock().unwrap();
        if self.changed.load(Acquire) {
            return;
        }
        *queue = Some(thread::current());
        drop(queue);
        thread::park();
    }

    fn change_and_wake(&self) {
        self.changed.store(true, Release);
        if let Some(sleeper) = self.queue.lock().unwrap().take() {
            sleeper.unpark();
        }
    }
}

fn one_sleeper(wait: fn(&Futex)) {
    let futex = Futex::default();
    thread::scope(|scope| {
        scope.spawn(|| wait(&futex));
        scope.spawn(|| futex.change_and_wake());
    });
}

pub fn buggy() {
    one_sleeper(Futex::wait_buggy);
}

#[test]
fn a_change_between_the_comparison_and_the_queue_wakes_nobody() {
    finds(buggy, FailureKind::Deadlock, "deadlock");
    assert_eq!(census(buggy), (3, 1));
}

/// The sleeper has the lock first, and compares before or after the change; or it has it second.
#[test]
fn a_comparison_under_the_lock_sees_the_change_or_is_woken() {
    passes(|| one_sleeper(Futex::wait_fixed), 3);
}
