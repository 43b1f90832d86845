//! Is a use of a freed block found whose pointer was given away, or went through what a lock protects or a message?

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use dpor::sync::atomic::{AtomicBool, AtomicPtr};
use dpor::sync::mpsc::{channel, sync_channel};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use dpor::{Builder, FailureKind, replay, thread};

use super::{each_finds_it, fails};

/// A pointer to a block that nothing of dpor's is in.
#[derive(Clone, Copy)]
struct Block(*mut u64);

// SAFETY: the tests say who uses it when.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new() -> Block {
        Block(Box::into_raw(Box::new(7)))
    }

    fn read(self) -> u64 {
        // SAFETY: none, if it has been freed, which is what is to be found.
        unsafe { *self.0 }
    }

    fn free(self) {
        // SAFETY: each test frees it once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// When a thread uses the block.
#[derive(Clone, Copy, PartialEq)]
enum Uses {
    InTime,
    TooLate,
}

impl Uses {
    /// Reads it now, if this is the time.
    fn read(self, now: Uses, block: Block) {
        if self == now {
            assert_eq!(block.read(), 7);
        }
    }
}

/// What reads in time is right, and what reads too late is found.
fn is_found<M: Fn() + Copy + Send + Sync + 'static>(program: impl Fn(Uses) -> M) {
    let mut builder = Builder::new();
    // A `park` of these tests waits for one `unpark` and stands in no loop.
    builder.thorough = dpor::Thorough::Off;
    assert!(builder.check(program(Uses::InTime)).complete);
    let failure = fails(FailureKind::UseAfterFree, program(Uses::TooLate));
    assert!(failure.schedule().contains("held"), "{failure}");
    let text = failure.to_string();
    assert!(
        text.contains("use byte 0 of it   at tests/detected/memory/given_away.rs:28"),
        "{text}"
    );
    each_finds_it(program(Uses::TooLate));
}

/// A thread looks for the block in what is shared, and another one takes it from there and frees it. `look` reads it in time.
fn is_found_behind_a_look<L: Send + Sync + 'static>(
    new: fn() -> L,
    look: fn(&L, Uses) -> Option<Block>,
    take: fn(&L) -> Option<Block>,
) {
    is_found(|uses| {
        move || {
            let place = Arc::new(new());
            let theirs = place.clone();
            let reader = thread::spawn(move || {
                if let Some(block) = look(&theirs, uses) {
                    uses.read(Uses::TooLate, block);
                }
            });
            take(&place).unwrap().free();
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_pointer_that_a_mutex_protects_is_not_to_be_used_behind_the_unlock() {
    is_found_behind_a_look(
        || Mutex::new(Some(Block::new())),
        |place, uses| {
            let guard = place.lock().unwrap();
            guard.inspect(|&block| uses.read(Uses::InTime, block))
        },
        |place| place.lock().unwrap().take(),
    );
}

#[test]
fn a_pointer_in_a_list_that_a_mutex_protects_is_not_to_be_used_behind_the_unlock() {
    is_found_behind_a_look(
        || Mutex::new(vec![Block::new()]),
        |list, uses| {
            let guard = list.lock().unwrap();
            let first = guard.first().copied();
            first.inspect(|&block| uses.read(Uses::InTime, block))
        },
        |list| list.lock().unwrap().pop(),
    );
}

#[test]
fn a_pointer_that_a_lock_protects_is_not_to_be_used_behind_the_end_of_reading() {
    is_found_behind_a_look(
        || RwLock::new(Some(Block::new())),
        |place, uses| {
            let guard = place.read().unwrap();
            guard.inspect(|&block| uses.read(Uses::InTime, block))
        },
        |place| place.write().unwrap().take(),
    );
}

#[test]
fn what_is_counted_under_a_lock_is_not_to_be_used_behind_the_unlock() {
    struct Owned {
        size: u64,
        owners: Mutex<usize>,
    }
    struct Owner(*mut Owned);
    // SAFETY: that is what the count is for.
    unsafe impl Send for Owner {}
    impl Owner {
        fn give_up(self, too_late: bool) -> u64 {
            // SAFETY: this owner has not given it up yet.
            let (owners, size) = unsafe { (&(*self.0).owners, (*self.0).size) };
            let mut count = owners.lock().unwrap();
            *count -= 1;
            let last = *count == 0;
            drop(count);
            if last {
                // SAFETY: it was the last one.
                drop(unsafe { Box::from_raw(self.0) });
            } else if too_late {
                // SAFETY: none, which is what is to be found.
                return unsafe { (*self.0).size };
            }
            size
        }
    }
    fn two_owners(too_late: bool) {
        let owned = Box::into_raw(Box::new(Owned {
            size: 3,
            owners: Mutex::new(2),
        }));
        let (one, other) = (Owner(owned), Owner(owned));
        let other = thread::spawn(move || other.give_up(too_late));
        assert_eq!(one.give_up(too_late), 3);
        assert_eq!(other.join().unwrap(), 3);
    }
    assert!(Builder::new().check(|| two_owners(false)).complete);
    let failure = fails(FailureKind::UseAfterFree, || two_owners(true));
    assert!(failure.schedule().contains("held"), "{failure}");
}

#[test]
fn a_block_is_not_to_be_used_behind_the_store_that_gives_it_away() {
    is_found(|uses| {
        move || {
            let place = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
            let theirs = place.clone();
            let giver = thread::spawn(move || {
                let block = Block::new();
                uses.read(Uses::InTime, block);
                theirs.store(block.0, Release);
                uses.read(Uses::TooLate, block);
            });
            let taken = place.swap(std::ptr::null_mut(), AcqRel);
            if !taken.is_null() {
                Block(taken).free();
            }
            giver.join().unwrap();
            let left = place.swap(std::ptr::null_mut(), AcqRel);
            if !left.is_null() {
                Block(left).free();
            }
        }
    });
}

#[test]
fn a_block_is_not_to_be_used_behind_the_message_that_gives_it_away() {
    is_found(|uses| {
        move || {
            let (sender, receiver) = channel();
            let giver = thread::spawn(move || {
                let block = Block::new();
                uses.read(Uses::InTime, block);
                sender.send(block).unwrap();
                uses.read(Uses::TooLate, block);
            });
            receiver.recv().unwrap().free();
            giver.join().unwrap();
        }
    });
    is_found(|uses| {
        move || {
            let (sender, receiver) = sync_channel(0);
            let giver = thread::spawn(move || {
                let block = Block::new();
                uses.read(Uses::InTime, block);
                sender.send(block).unwrap();
                uses.read(Uses::TooLate, block);
            });
            receiver.recv().unwrap().free();
            giver.join().unwrap();
        }
    });
}

#[test]
fn a_block_is_not_to_be_used_behind_the_notification_that_gives_it_away() {
    is_found(|uses| {
        move || {
            let done = Arc::new((Mutex::new(false), Condvar::new()));
            let block = Block::new();
            let theirs = done.clone();
            let worker = thread::spawn(move || {
                *theirs.0.lock().unwrap() = true;
                theirs.1.notify_one();
                uses.read(Uses::TooLate, block);
            });
            let is_running = |done: &mut bool| !*done;
            drop(done.1.wait_while(done.0.lock().unwrap(), is_running));
            uses.read(Uses::InTime, block);
            block.free();
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_block_is_not_to_be_used_behind_the_unpark_that_gives_it_away() {
    is_found(|uses| {
        move || {
            let block = Block::new();
            let waiter = thread::current();
            let worker = thread::spawn(move || {
                uses.read(Uses::InTime, block);
                waiter.unpark();
                uses.read(Uses::TooLate, block);
            });
            thread::park();
            block.free();
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_block_is_not_to_be_used_behind_the_barrier_behind_which_it_is_freed() {
    is_found(|uses| {
        move || {
            let block = Block::new();
            let barrier = Arc::new(Barrier::new(2));
            let theirs = barrier.clone();
            let worker = thread::spawn(move || {
                uses.read(Uses::InTime, block);
                theirs.wait();
                uses.read(Uses::TooLate, block);
            });
            barrier.wait();
            block.free();
            worker.join().unwrap();
        }
    });
}

#[test]
fn who_uses_what_it_has_freed_itself_does_so_again_by_the_schedule() {
    fn frees_too_soon() {
        let place = Arc::new(AtomicPtr::new(Block::new().0));
        let theirs = place.clone();
        let reader = thread::spawn(move || theirs.load(Acquire).is_null());
        let block = Block(place.swap(std::ptr::null_mut(), AcqRel));
        block.free();
        assert_ne!(block.read(), 1);
        reader.join().unwrap();
    }
    let failure = fails(FailureKind::UseAfterFree, frees_too_soon);
    let schedule = failure.schedule().to_owned();
    let again = std::panic::catch_unwind(|| replay(&schedule, frees_too_soon));
    again.expect_err("it fails again");
}

#[test]
fn a_block_is_not_to_be_used_behind_the_flag_that_gives_it_away() {
    is_found(|uses| {
        move || {
            let block = Block::new();
            let done = Arc::new(AtomicBool::new(false));
            let theirs = done.clone();
            let worker = thread::spawn(move || {
                uses.read(Uses::InTime, block);
                theirs.store(true, Release);
                uses.read(Uses::TooLate, block);
            });
            while !done.load(Acquire) {
                thread::yield_now();
            }
            block.free();
            worker.join().unwrap();
        }
    });
}
