//! May a thread free what another one has made, and what is no shim's?
//!
//! The contents were written by who made the block, and the free must be ordered behind that ([expr.delete],
//! [intro.races] 21). It is told only of who has got the pointer by an atomic: what has come otherwise may have come in
//! order by something that is not seen.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicPtr, fence};
use dpor::thread;

use super::{check, race};

/// What threads share.
#[derive(Default)]
struct Shared {
    slot: AtomicPtr<u64>,
    other: AtomicPtr<u64>,
    told: AtomicBool,
}

impl Shared {
    /// Makes a block and publishes it.
    fn make(&self, order: Ordering) {
        self.slot.store(Box::into_raw(Box::new(7)), order);
    }
}

/// Frees what was taken, without a look at what is in it.
fn free(taken: *mut u64) {
    if !taken.is_null() {
        // SAFETY: only who has taken it frees it.
        drop(unsafe { Box::from_raw(taken) });
    }
}

/// One thread makes a block and publishes it with this ordering; another one takes it out of the slot like this, and
/// frees it.
fn taken(
    order: Ordering,
    take: impl Fn(&AtomicPtr<u64>) -> *mut u64 + Copy + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let maker = thread::spawn(move || theirs.make(order));
        free(take(&shared.slot));
        maker.join().unwrap();
        free(shared.slot.swap(null_mut(), Relaxed));
    }
}

#[test]
fn who_takes_a_block_and_frees_it_must_have_learnt_of_its_making() {
    for (write, read, racy) in [
        (Release, Acquire, false),
        (Release, AcqRel, false),
        (SeqCst, SeqCst, false),
        (Relaxed, Acquire, true),
        (Release, Relaxed, true),
        (Release, Release, true),
        (Relaxed, Relaxed, true),
    ] {
        let why = match racy {
            false => "the pointer is published",
            true => "the block is made without the other thread being told",
        };
        let swapped = taken(write, move |slot| slot.swap(null_mut(), read));
        check("a swap", why, racy, swapped);
        let exchanged = taken(write, move |slot| {
            let found = slot.load(Relaxed);
            match slot.compare_exchange(found, null_mut(), read, Relaxed) {
                Ok(taken) => taken,
                Err(_) => null_mut(),
            }
        });
        check("a compare-exchange", why, racy, exchanged);
    }
    for (fails, racy) in [(Acquire, false), (Relaxed, true)] {
        let found = taken(Release, move |slot| {
            let found = slot.compare_exchange(null_mut(), null_mut(), SeqCst, fails);
            let found = found.unwrap_or_else(|found| found);
            if !found.is_null() {
                slot.store(null_mut(), Relaxed);
            }
            found
        });
        check("a failed compare-exchange", "it only reads", racy, found);
    }
    let fenced = taken(Release, |slot| {
        let taken = slot.swap(null_mut(), Relaxed);
        fence(Acquire);
        taken
    });
    check("a fence", "[atomics.fences] 4", false, fenced);
}

#[test]
fn a_report_says_which_orderings_would_have_told_of_the_making() {
    let text = race(taken(Release, |slot| slot.swap(null_mut(), Relaxed))).expect("a race");
    assert!(
        text.contains("main frees the block, and nothing orders the making of it by main.1"),
        "{text}"
    );
    assert!(text.contains("is Relaxed: with at least "), "{text}");
}

#[test]
fn what_is_handed_on_is_as_good_as_its_weakest_hand() {
    let handed_on = |[write, read, write_again, read_again]: [Ordering; 4]| {
        move || {
            let shared = Arc::new(Shared::default());
            let [makes, hands_on] = [shared.clone(), shared.clone()];
            let maker = thread::spawn(move || makes.make(write));
            let other = thread::spawn(move || {
                let taken = hands_on.slot.swap(null_mut(), read);
                hands_on.other.store(taken, write_again);
            });
            free(shared.other.swap(null_mut(), read_again));
            maker.join().unwrap();
            other.join().unwrap();
            free(shared.slot.swap(null_mut(), Relaxed));
            free(shared.other.swap(null_mut(), Relaxed));
        }
    };
    let right = [Release, Acquire, Release, Acquire];
    let why = "[intro.races] 9";
    check("each tells the next", why, false, handed_on(right));
    for at in 0..4 {
        let mut weak = right;
        weak[at] = Relaxed;
        check("one does not", why, true, handed_on(weak));
    }
}

#[test]
fn what_was_joined_is_in_order() {
    let joined = || {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let maker = thread::spawn(move || theirs.make(Relaxed));
        // Others are there, and the main thread is not alone.
        let waits = shared.clone();
        let other = thread::spawn(move || waits.told.store(true, Relaxed));
        maker.join().unwrap();
        free(shared.slot.swap(null_mut(), Relaxed));
        other.join().unwrap();
    };
    check("a join", "[thread.thread.member]", false, joined);
}

#[test]
fn what_came_by_something_that_is_not_seen_may_be_in_order() {
    // The lock is none of dpor's, and there is much that tells of the block in a way that is too weak: that it is there,
    // and where.
    let garbage = || {
        let bag = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let drained = bag.clone();
        let shared = Arc::new(Shared::default());
        let [makes, unlinks] = [shared.clone(), shared.clone()];
        let maker = thread::spawn(move || makes.make(Release));
        let other = thread::spawn(move || {
            let taken = unlinks.slot.swap(null_mut(), AcqRel);
            bag.lock().unwrap().push(taken as usize);
            unlinks.told.store(true, Relaxed);
        });
        shared.slot.load(Relaxed);
        if shared.told.load(Relaxed) {
            let taken = drained.lock().unwrap().pop();
            free(taken.unwrap_or_default() as *mut u64);
        }
        maker.join().unwrap();
        other.join().unwrap();
        free(shared.slot.swap(null_mut(), Relaxed));
        let left = std::mem::take(&mut *drained.lock().unwrap());
        left.into_iter().for_each(|taken| free(taken as *mut u64));
    };
    check("garbage", "the lock orders it", false, garbage);
    // Who publishes it has not made it, and has it by a lock that is not seen.
    let passed_by = || {
        let hand = std::sync::Arc::new(std::sync::Mutex::new(0));
        let [gives, gets] = [hand.clone(), hand.clone()];
        let shared = Arc::new(Shared::default());
        let [makes, publishes] = [shared.clone(), shared.clone()];
        let maker = thread::spawn(move || {
            let made = Box::into_raw(Box::new(7_u64));
            makes.other.store(made, Relaxed);
            *gives.lock().unwrap() = made as usize;
            makes.told.store(true, Relaxed);
        });
        let publisher = thread::spawn(move || {
            if publishes.told.load(Relaxed) {
                let made = std::mem::take(&mut *gets.lock().unwrap());
                publishes.slot.store(made as *mut u64, Release);
            }
        });
        free(shared.slot.swap(null_mut(), Acquire));
        maker.join().unwrap();
        publisher.join().unwrap();
        free(shared.slot.swap(null_mut(), Relaxed));
        free(std::mem::take(&mut *hand.lock().unwrap()) as *mut u64);
    };
    check("another publisher", "the lock orders it", false, passed_by);
    // The last owner frees it, who has the others' word for that by the counts of std's.
    let counted = || {
        let drop_it = |taken: *mut u64| {
            if !taken.is_null() {
                // SAFETY: it is the reference of the one who published it.
                drop(unsafe { std::sync::Arc::from_raw(taken) });
            }
        };
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let one = thread::spawn(move || {
            let mine = std::sync::Arc::new(7_u64);
            let other = std::sync::Arc::into_raw(mine.clone());
            theirs.slot.store(other.cast_mut(), Relaxed);
            drop(mine);
        });
        drop_it(shared.slot.swap(null_mut(), Relaxed));
        one.join().unwrap();
        drop_it(shared.slot.swap(null_mut(), Relaxed));
    };
    check("an Arc of std's", "the counts order it", false, counted);
}

#[test]
fn who_has_failed_to_take_it_has_not_got_it() {
    check(
        "a compare-exchange that fails behind the store",
        "[intro.races] 21",
        true,
        || {
            let shared = Arc::new(Shared::default());
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.make(Relaxed);
                let (slot, null) = (&theirs.slot, null_mut());
                assert!(slot.compare_exchange(null, null, Relaxed, Relaxed).is_err());
                theirs.told.store(true, Relaxed);
            });
            if shared.told.load(Relaxed) {
                free(shared.slot.swap(null_mut(), Relaxed));
            }
            other.join().unwrap();
            free(shared.slot.load(Relaxed));
        },
    );
}
