//! Does `dpor` find a wake-up that a broadcast loses because it does not take a lock (eio, issue 324)?
//!
//! A waiter checks the event under the event's lock E, takes the queue's lock T,
//! releases E, joins the queue and sleeps. The broadcast raises the event under E and
//! wakes every thread in the queue, but does not take T. A waiter that has released E
//! and has not yet joined the queue is missed, and sleeps forever. The fix takes T.

use std::sync::atomic::Ordering::{AcqRel, Release};

use dpor::sync::Mutex;
use dpor::sync::atomic::AtomicBool;
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

#[derive(Default)]
struct Event {
    raised: Mutex<bool>,
    queue: Mutex<()>,
    /// The queue of one waiter.
    waiting: AtomicBool,
}

impl Event {
    fn wait(&self) {
        let raised = self.raised.lock().unwrap();
        if *raised {
            return;
        }
        let queue = self.queue.lock().unwrap();
        drop(raised);
        self.waiting.store(true, Release);
        drop(queue);
        thread::park();
    }

    fn broadcast(&self, waiter: &thread::Thread, fixed: bool) {
        *self.raised.lock().unwrap() = true;
        let _queue = fixed.then(|| self.queue.lock().unwrap());
        if self.waiting.swap(false, AcqRel) {
            waiter.unpark();
        }
    }
}

fn one_waiter(fixed: bool) {
    let event = Event::default();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| event.wait());
        event.broadcast(waiter.thread(), fixed);
    });
}

pub fn buggy() {
    one_waiter(false);
}

#[test]
fn a_waiter_that_is_not_in_the_queue_yet_sleeps_for_ever() {
    finds(buggy, FailureKind::Deadlock, "deadlock");
    assert_eq!(census(buggy), (3, 1));
}

/// The waiter looks before the event is raised, or after that; the lock T orders the rest.
#[test]
fn a_broadcast_that_takes_the_queues_lock_wakes_everybody() {
    passes(|| one_waiter(true), 2);
}
