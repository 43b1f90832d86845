//! Which failures of threads that wait have their reports kept?

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use dpor::{Failure, hint, thread};

use super::failures::{Named, builder, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("livelock_of_one", livelock_of_one),
    ("livelock_of_three", livelock_of_three),
    ("loop_that_counts", loop_that_counts),
    ("preempted_before_a_lock", preempted_before_a_lock),
    ("threads_of_one_name", threads_of_one_name),
    ("initialised_in_a_circle", initialised_in_a_circle),
    ("writer_among_readers", writer_among_readers),
    ("joined_under_a_lock", joined_under_a_lock),
    ("notified_while_deciding", notified_while_deciding),
    ("notified_for_something_else", notified_for_something_else),
    ("notified_for_the_first_only", notified_for_the_first_only),
    ("another_was_woken", another_was_woken),
    ("unparked_too_early", unparked_too_early),
    ("nobody_notifies", nobody_notifies),
    ("word_of_waiting_too_late", word_of_waiting_too_late),
];

/// The thread that could end the loop has seen too early that it is not there yet.
fn livelock_of_one() -> Failure {
    fails(|| {
        let flags = Arc::new((AtomicBool::new(true), AtomicBool::new(false)));
        let theirs = flags.clone();
        let spinner = thread::Builder::new().name("the spinning worker".to_owned());
        let spinner = spinner.spawn(move || {
            theirs.1.store(true, Release);
            while theirs.0.load(Acquire) {
                hint::spin_loop();
            }
        });
        if flags.1.load(Acquire) {
            flags.0.store(false, Release);
        }
        spinner.unwrap().join().unwrap();
    })
}

/// A round is one of each thread.
fn livelock_of_three() -> Failure {
    fails(|| {
        let taken = Arc::new(AtomicBool::new(false));
        let lock = |taken: &AtomicBool| {
            while taken.swap(true, Acquire) {
                while taken.load(Acquire) {
                    hint::spin_loop();
                }
            }
        };
        let others = [(), ()].map(|()| {
            let taken = taken.clone();
            thread::spawn(move || lock(&taken))
        });
        lock(&taken);
        for other in others {
            other.join().unwrap();
        }
    })
}

/// Says something else in each round.
fn loop_that_counts() -> Failure {
    let mut builder = builder();
    builder.max_branches = 300;
    let failure = builder.explore(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let theirs = counter.clone();
        let other = thread::spawn(move || {
            for _ in 0.. {
                let seen = theirs.load(Acquire);
                theirs.store(seen + 1, Release);
            }
        });
        counter.load(Acquire);
        other.join().unwrap();
    });
    *failure.expect_err("a failure")
}

/// The lock is free when its thread stops before it.
fn preempted_before_a_lock() -> Failure {
    fails(|| {
        let shared = Arc::new((AtomicUsize::new(0), Mutex::new(())));
        let theirs = shared.clone();
        let other = thread::spawn(move || assert!(theirs.0.load(Acquire) == 0, "it is set"));
        shared.0.store(1, Release);
        drop(shared.1.lock().unwrap());
        other.join().unwrap();
    })
}

/// Both are built with the same name, and wait for each other's lock.
fn threads_of_one_name() -> Failure {
    fails(|| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let workers = [false, true].map(|turned| {
            let locks = locks.clone();
            let worker = thread::Builder::new().name("worker".to_owned());
            let worker = worker.spawn(move || {
                let (first, second) = match turned {
                    false => (&locks.0, &locks.1),
                    true => (&locks.1, &locks.0),
                };
                let held = first.lock().unwrap();
                drop((second.lock().unwrap(), held));
            });
            worker.unwrap()
        });
        for worker in workers {
            worker.join().unwrap();
        }
    })
}

/// The initialisation of each of two values needs the other one.
fn initialised_in_a_circle() -> Failure {
    fails(|| {
        let cells = Arc::new((OnceLock::new(), OnceLock::new()));
        let theirs = Arc::clone(&cells);
        let other = thread::spawn(move || *theirs.0.get_or_init(|| *theirs.1.get_or_init(|| 1)));
        cells.1.get_or_init(|| *cells.0.get_or_init(|| 2));
        other.join().unwrap();
    })
}

/// Two threads read what a third one wants to write, and one of them waits for its end.
fn writer_among_readers() -> Failure {
    fails(|| {
        let page = Arc::new((RwLock::new(0), Mutex::new(())));
        let theirs = Arc::clone(&page);
        let busy = page.1.lock().unwrap();
        let reader = thread::spawn(move || {
            let seen = theirs.0.read().unwrap();
            drop(theirs.1.lock().unwrap());
            *seen
        });
        let seen = page.0.read().unwrap();
        let theirs = Arc::clone(&page);
        let writer = thread::spawn(move || *theirs.0.write().unwrap() += 1);
        writer.join().unwrap();
        drop((seen, busy));
        reader.join().unwrap();
    })
}

/// The lock that the other thread needs is held until that has ended.
fn joined_under_a_lock() -> Failure {
    fails(|| {
        let total = Arc::new(Mutex::new(0));
        let theirs = Arc::clone(&total);
        let held = total.lock().unwrap();
        let adder = thread::spawn(move || *theirs.lock().unwrap() += 1);
        adder.join().unwrap();
        drop(held);
    })
}

/// A number of items, and where to wait for one.
struct Items {
    count: Mutex<u32>,
    changed: Condvar,
}

impl Items {
    fn new(count: u32) -> Arc<Items> {
        let (count, changed) = (Mutex::new(count), Condvar::new());
        Arc::new(Items { count, changed })
    }

    fn take(&self) {
        let count = self.count.lock().unwrap();
        let mut count = self.changed.wait_while(count, |count| *count == 0).unwrap();
        *count -= 1;
    }
}

/// The waiter gives the lock back between its look and its wait, and the earlier notification is of no interest.
fn notified_while_deciding() -> Failure {
    fails(|| {
        let items = Items::new(0);
        let theirs = Arc::clone(&items);
        items.changed.notify_one();
        let other = thread::spawn(move || {
            if *theirs.count.lock().unwrap() == 0 {
                let count = theirs.count.lock().unwrap();
                drop(theirs.changed.wait(count).unwrap());
            }
        });
        let mut count = items.count.lock().unwrap();
        *count += 1;
        items.changed.notify_one();
        drop(count);
        other.join().unwrap();
    })
}

/// What the waiter needs comes without a notification; the one before had nothing to do with it.
fn notified_for_something_else() -> Failure {
    fails(|| {
        let items = Items::new(0);
        items.changed.notify_all();
        let theirs = Arc::clone(&items);
        let other = thread::spawn(move || theirs.take());
        *items.count.lock().unwrap() += 1;
        other.join().unwrap();
    })
}

/// The first item has been found without a notification, and there is no second one.
fn notified_for_the_first_only() -> Failure {
    fails(|| {
        let items = Items::new(0);
        let theirs = Arc::clone(&items);
        let other = thread::spawn(move || [(), ()].map(|()| theirs.take()));
        *items.count.lock().unwrap() += 1;
        items.changed.notify_one();
        other.join().unwrap();
    })
}

/// Two wait for what concerns them both, and one is told.
fn another_was_woken() -> Failure {
    fails(|| {
        let closed = Arc::new((Mutex::new(false), Condvar::new()));
        let others = [(), ()].map(|()| {
            let theirs = Arc::clone(&closed);
            thread::spawn(move || {
                let open = theirs.0.lock().unwrap();
                drop(theirs.1.wait_while(open, |closed| !*closed).unwrap());
            })
        });
        *closed.0.lock().unwrap() = true;
        closed.1.notify_one();
        for other in others {
            other.join().unwrap();
        }
    })
}

/// The thread is unparked before there is what it waits for, and not again.
fn unparked_too_early() -> Failure {
    fails(|| {
        let ready = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ready);
        let other = thread::spawn(move || {
            while !theirs.load(Acquire) {
                thread::park();
            }
        });
        other.thread().unpark();
        ready.store(true, Release);
        other.join().unwrap();
    })
}

/// What is waited for comes without a word.
fn nobody_notifies() -> Failure {
    fails(|| {
        let items = Items::new(0);
        let theirs = Arc::clone(&items);
        let other = thread::spawn(move || theirs.take());
        *items.count.lock().unwrap() += 1;
        other.join().unwrap();
    })
}

/// Who waits says so without looking whether there is what it waits for meanwhile.
fn word_of_waiting_too_late() -> Failure {
    const WAITS: usize = 1;
    const SENT: usize = 2;
    fails(|| {
        let state = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&state);
        let receiver = thread::current();
        let sender = thread::spawn(move || {
            if theirs.swap(SENT, AcqRel) == WAITS {
                receiver.unpark();
            }
        });
        if state.load(Acquire) != SENT {
            state.store(WAITS, Release);
            while state.load(Acquire) != SENT {
                thread::park();
            }
        }
        sender.join().unwrap();
    })
}
