//! Does `dpor` find a taker that sleeps although a slot is free (rustfs, pull request 4498)?
//!
//! `take` waits for a free slot, `wait` waits until all slots are free, and both use one notification.
//! `give` frees a slot and notifies one thread. If that thread is the one in `wait`, it returns
//! without notifying anybody, and the taker sleeps forever. Here, the fix notifies all threads.

use dpor::sync::{Condvar, Mutex};
use dpor::{FailureKind, thread};

use super::{census, finds, passes};

/// How many slots there are.
const LIMIT: usize = 1;

struct Workers {
    free: Mutex<usize>,
    changed: Condvar,
    notify: fn(&Condvar),
}

impl Workers {
    fn take(&self) {
        let free = self.free.lock().unwrap();
        let none = |free: &mut usize| *free == 0;
        *self.changed.wait_while(free, none).unwrap() -= 1;
    }

    fn give(&self) {
        let mut free = self.free.lock().unwrap();
        *free += 1;
        (self.notify)(&self.changed);
    }

    /// Waits until nobody works.
    fn wait(&self) {
        let free = self.free.lock().unwrap();
        let some = |free: &mut usize| *free < LIMIT;
        drop(self.changed.wait_while(free, some).unwrap());
    }
}

/// The only slot is taken; one thread gives it back, one takes it and gives it back, one waits
/// until it is free.
fn giver_taker_and_drainer(notify: fn(&Condvar)) {
    let workers = Workers {
        free: Mutex::new(LIMIT - 1),
        changed: Condvar::new(),
        notify,
    };
    thread::scope(|scope| {
        scope.spawn(|| workers.give());
        scope.spawn(|| {
            workers.take();
            workers.give();
        });
        scope.spawn(|| workers.wait());
    });
}

pub fn buggy() {
    giver_taker_and_drainer(Condvar::notify_one);
}

/// Everything happens under one mutex, so an execution is an order of the critical sections of the
/// giver G, the taker's T (take) and t (give), and the drainer D; a waiting thread's next attempt
/// has a prime. The giver first: `G D T t`, `G T D t D'`, `G T t D`. The taker first: `T G D T' t`,
/// `T G T' D t D'`, `T G T' t D`. The drainer first: `D G D' T t`, `D G T D' t D''`, `D G T t D'`.
/// Both first, in either order, and the taker is notified: `G T' t D'`; or the drainer: `G D'`, and
/// the taker sleeps. That makes 13, 2 of them deadlocks.
#[test]
fn a_taker_sleeps_if_the_drainer_gets_the_notification() {
    finds(buggy, FailureKind::Deadlock, "deadlock");
    assert_eq!(census(buggy), (13, 2));
}

/// As above, but if both wait first both are notified, in either order of waiting: `G D' T' t`,
/// `G T' D' t D''`, `G T' t D'`. That makes 9 and 6.
#[test]
fn a_notification_for_all_wakes_the_taker() {
    passes(|| giver_taker_and_drainer(Condvar::notify_all), 15);
}
