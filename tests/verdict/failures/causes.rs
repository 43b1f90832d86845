//! Is a failure called a lost update, check-then-act or ABA only where it is one?

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use dpor::thread;

use super::failure;

#[test]
fn what_was_seen_before_it_was_overwritten_is_no_lost_update() {
    let report = |looks_again: bool| {
        let found = failure(move || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let early = x.load(SeqCst);
            other.join().unwrap();
            let late = if looks_again { x.load(SeqCst) } else { early };
            x.store(late + 1, SeqCst);
            assert_eq!(early, 1);
        });
        found.to_string()
    };
    let (lost, seen) = (report(false), report(true));
    assert!(lost.contains("a lost update: main read x"), "{lost}");
    assert!(!seen.contains("lost update"), "{seen}");
    // Who looks again does not act on what it saw before either.
    assert!(!seen.contains("check, then act"), "{seen}");
}

#[test]
fn a_loop_that_looks_until_something_changes_does_not_check_and_act() {
    let found = failure(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        let mut rounds = 0;
        while !flag.load(SeqCst) {
            rounds += 1;
            dpor::hint::spin_loop();
        }
        other.join().unwrap();
        assert!(rounds < 3, "it has not come soon");
    });
    let text = found.to_string();
    assert!(
        text.contains("it fails because main's \"flag = false\""),
        "{text}"
    );
    assert!(!text.contains("check, then act"), "{text}");
}

#[test]
fn a_lock_that_was_taken_and_released_meanwhile_is_no_aba() {
    struct Locked {
        held: AtomicBool,
        count: AtomicUsize,
    }
    impl Locked {
        fn with<T>(&self, f: impl FnOnce(&AtomicUsize) -> T) -> T {
            let free = || !self.held.load(Relaxed);
            let take = || self.held.compare_exchange(false, true, Acquire, Relaxed);
            while !free() || take().is_err() {
                dpor::hint::spin_loop();
            }
            let result = f(&self.count);
            self.held.store(false, Release);
            result
        }
        // The mistake is here: two sections instead of one.
        fn increment(&self) {
            let seen = self.with(|count| count.load(Relaxed));
            self.with(|count| count.store(seen + 1, Relaxed));
        }
    }
    let found = failure(|| {
        let locked = Arc::new(Locked {
            held: AtomicBool::new(false),
            count: AtomicUsize::new(0),
        });
        let theirs = locked.clone();
        let other = thread::spawn(move || theirs.increment());
        locked.increment();
        other.join().unwrap();
        assert_eq!(locked.count.load(Relaxed), 2);
    });
    let text = found.to_string();
    assert!(!text.contains("ABA"), "{text}");
}

/// A receiver that goes away: it says so, and then takes what is there for the last time.
#[test]
fn a_swap_of_the_value_that_is_there_already_is_no_aba() {
    let found = failure(|| {
        let list = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
        let theirs = list.clone();
        let sender = thread::spawn(move || {
            let (head, closed) = &*theirs;
            let seen = head.load(Acquire);
            if !closed.load(Acquire) {
                let _ = head.compare_exchange(seen, 1, Release, Relaxed);
            }
        });
        let (head, closed) = &*list;
        closed.store(true, Release);
        head.swap(0, Acquire);
        sender.join().unwrap();
        assert_eq!(head.load(Relaxed), 0, "what is sent now is never taken");
    });
    let text = found.to_string();
    assert!(
        text.contains("it fails because main's \"head swap: 0 -> 0\""),
        "{text}"
    );
    assert!(!text.contains("ABA"), "{text}");
}

/// A list of free slots whose head has no tag. Two threads are given the same slot.
#[test]
fn a_data_race_that_comes_of_aba_is_called_that() {
    struct Slots {
        head: AtomicUsize,
        next: [AtomicUsize; 4],
        slots: [UnsafeCell<usize>; 4],
    }
    // SAFETY: what the test is about.
    unsafe impl Sync for Slots {}
    impl Slots {
        fn take(&self) -> Option<usize> {
            loop {
                let head = self.head.load(Acquire);
                if head == 0 {
                    return None;
                }
                let next = self.next[head].load(Relaxed);
                let taken = self.head.compare_exchange(head, next, SeqCst, Relaxed);
                if taken.is_ok() {
                    return Some(head);
                }
            }
        }
        fn put(&self, slot: usize) {
            let head = self.head.load(Relaxed);
            self.next[slot].store(head, Relaxed);
            let _ = self.head.compare_exchange(head, slot, SeqCst, Relaxed);
        }
        fn write(&self, slot: Option<usize>) {
            // SAFETY: wrong, which the model finds.
            slot.inspect(|&slot| self.slots[slot].with_mut(|it| unsafe { *it += 1 }));
        }
    }
    let found = failure(|| {
        let slots = Arc::new(Slots {
            head: AtomicUsize::new(1),
            next: [0, 2, 3, 0].map(AtomicUsize::new),
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
        });
        let theirs = slots.clone();
        let other = thread::spawn(move || {
            let (first, second) = (theirs.take(), theirs.take());
            first.inspect(|&slot| theirs.put(slot));
            theirs.write(second);
        });
        slots.write(slots.take());
        slots.write(slots.take());
        other.join().unwrap();
    });
    assert_eq!(found.kind(), dpor::FailureKind::DataRace);
    let text = found.to_string();
    assert!(text.contains("ABA: self.head had changed"), "{text}");
}

#[test]
fn a_block_that_an_overwritten_pointer_led_to_is_lost_by_a_lost_update() {
    let found = failure(|| {
        let shared = Arc::new(AtomicPtr::new(std::ptr::null_mut::<AtomicUsize>()));
        let init = |shared: &AtomicPtr<AtomicUsize>| {
            if shared.load(SeqCst).is_null() {
                shared.store(Box::into_raw(Box::new(AtomicUsize::new(7))), SeqCst);
            }
        };
        let theirs = shared.clone();
        let other = thread::spawn(move || init(&theirs));
        init(&shared);
        other.join().unwrap();
        // SAFETY: it comes from a box, and nobody else uses it.
        drop(unsafe { Box::from_raw(shared.load(SeqCst)) });
    });
    assert_eq!(found.kind(), dpor::FailureKind::Leak);
    let text = found.to_string();
    assert!(text.contains("a lost update: main read "), "{text}");
}
