//! Is a free told that comes after a use only by way of something too weak, if that way is a long one?
//!
//! In no execution the free comes first, so nothing but what the language promises says that it may.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{FailureKind, thread};

use super::{Slot, fails, passes, take_and_free, value};

/// One thread uses a node and says so, another one passes that on, and the main one then frees it: with these orderings
/// of a store, a load, a store and a load.
fn passed_on([said, read, told, heard]: [Ordering; 4]) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((Slot::full(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let [uses, between] = [shared.clone(), shared.clone()];
        let user = thread::spawn(move || {
            value(uses.0.0.load(Acquire));
            uses.1.store(1, said);
        });
        let other = thread::spawn(move || {
            if between.1.load(read) == 1 {
                between.2.store(1, told);
            }
        });
        if shared.2.load(heard) == 1 {
            take_and_free(&shared.0);
        }
        user.join().unwrap();
        other.join().unwrap();
        take_and_free(&shared.0);
    }
}

#[test]
fn by_a_third_thread() {
    let right = [Release, Acquire, Release, Acquire];
    passes(passed_on(right));
    for at in 0..4 {
        let mut weak = right;
        weak[at] = Relaxed;
        let failure = fails(FailureKind::DataRace, passed_on(weak));
        let text = failure.to_string();
        assert!(text.contains("free"), "{text}");
    }
}

#[test]
fn by_the_use_itself() {
    let seen = |marked: Ordering| {
        move || {
            let shared = Arc::new((Slot::full(), AtomicUsize::new(0)));
            let [marks, looks] = [shared.clone(), shared.clone()];
            let user = thread::spawn(move || marks.0.with(|node| node.value.store(1, marked)));
            let other = thread::spawn(move || {
                if looks.0.with(|node| node.value.load(Acquire)) == 1 {
                    looks.1.store(1, Release);
                }
            });
            if shared.1.load(Acquire) == 1 {
                take_and_free(&shared.0);
            }
            user.join().unwrap();
            other.join().unwrap();
            take_and_free(&shared.0);
        }
    };
    passes(seen(Release));
    fails(FailureKind::DataRace, seen(Relaxed));
}

/// One thread uses a node and does something that the main one can tell, which then frees the node.
fn told<T: Send + Sync + 'static>(
    made: fn() -> T,
    tells: fn(&T, &mut Option<Arc<()>>),
    hears: fn(&T, &Arc<()>) -> bool,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (slot, way, count) = (Arc::new(Slot::full()), Arc::new(made()), Arc::new(()));
        let theirs = (slot.clone(), way.clone(), Some(count.clone()));
        let user = thread::spawn(move || {
            let (slot, way, mut count) = theirs;
            value(slot.0.load(Acquire));
            tells(&way, &mut count);
        });
        if hears(&way, &count) {
            take_and_free(&slot);
        }
        user.join().unwrap();
        take_and_free(&slot);
    }
}

#[test]
fn by_what_tells_and_does_not_order() {
    let by_count = told(
        || (),
        |(), count| *count = None,
        |(), count| Arc::strong_count(count) == 1,
    );
    fails(FailureKind::DataRace, by_count);
    // Who cannot have the lock knows that somebody has it.
    let by_lock = told(
        || Mutex::new(()),
        |lock, _| std::mem::forget(lock.lock()),
        |lock, _| lock.try_lock().is_err(),
    );
    fails(FailureKind::DataRace, by_lock);
    let by_end = || {
        let slot = Arc::new(Slot::full());
        let theirs = slot.clone();
        let user = thread::spawn(move || {
            value(theirs.0.load(Acquire));
        });
        if user.is_finished() {
            take_and_free(&slot);
        }
        user.join().unwrap();
        take_and_free(&slot);
    };
    fails(FailureKind::DataRace, by_end);
}

#[test]
fn by_a_thread_that_is_spawned_or_joined_in_between() {
    let spawned = || {
        let shared = Arc::new((Slot::full(), AtomicUsize::new(0)));
        let uses = shared.clone();
        let user = thread::spawn(move || {
            value(uses.0.0.load(Acquire));
            uses.1.store(1, Relaxed);
        });
        if shared.1.load(Acquire) == 1 {
            let frees = shared.clone();
            let freeing = thread::spawn(move || take_and_free(&frees.0));
            freeing.join().unwrap();
        }
        user.join().unwrap();
        take_and_free(&shared.0);
    };
    fails(FailureKind::DataRace, spawned);
    let joined = || {
        let shared = Arc::new((Slot::full(), AtomicUsize::new(0)));
        let [uses, looks] = [shared.clone(), shared.clone()];
        let user = thread::spawn(move || {
            value(uses.0.0.load(Acquire));
            uses.1.store(1, Relaxed);
        });
        let other = thread::spawn(move || looks.1.load(Acquire) == 1);
        if other.join().unwrap() {
            take_and_free(&shared.0);
        }
        user.join().unwrap();
        take_and_free(&shared.0);
    };
    fails(FailureKind::DataRace, joined);
}
