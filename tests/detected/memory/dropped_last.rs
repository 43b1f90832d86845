//! Is a use behind the free found, and a right one left in peace, where the last of several owners
//! frees a block, and it makes no difference to the program which one that is?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, FailureKind, thread};

use super::{each_finds_it, passes};

struct Node {
    used: AtomicUsize,
    plain: usize,
}

/// Two threads own nodes, and use one each. The `late` one goes on with `uses` when it has given up
/// its nodes.
fn owned_by_two(late: usize, uses: fn(*const Node)) {
    let nodes = || Node {
        used: AtomicUsize::new(0),
        plain: 7,
    };
    let all = Arc::new([(); 2].map(|()| nodes()).into_iter().collect::<Vec<_>>());
    let handles = [0, 1].map(|i| {
        let all = all.clone();
        thread::spawn(move || {
            let node = &raw const all[i];
            all[i].used.store(1, SeqCst);
            drop(all);
            if i == late {
                uses(node);
            }
        })
    });
    drop(all);
    handles.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn an_operation_behind_the_own_drop_is_found() {
    fn use_it(node: *const Node) {
        // SAFETY: none, which is what is to be found.
        unsafe { &*node }.used.store(2, SeqCst);
    }
    each_finds_it(|| owned_by_two(0, use_it));
    each_finds_it(|| owned_by_two(1, use_it));
}

#[cfg(all(unix, target_pointer_width = "64"))]
#[test]
fn a_plain_use_behind_the_own_drop_is_found_whichever_thread_frees_the_block() {
    for late in [0, 1] {
        super::fails(FailureKind::UseAfterFree, move || {
            owned_by_two(late, |node| {
                // SAFETY: as above.
                unsafe { (&raw const (*node).plain).read_volatile() };
            });
        });
    }
}

#[test]
fn what_is_used_before_the_own_drop_is_in_order() {
    passes(|| owned_by_two(2, |_| ()));
    // A thread puts a block into what both own, and the other one may free it.
    passes(|| {
        let place = Arc::new(Mutex::new(None));
        let mine = place.clone();
        let puts = thread::spawn(move || {
            let block = Box::new(AtomicUsize::new(0));
            block.store(1, SeqCst);
            *mine.lock().unwrap() = Some(block);
        });
        let owns = thread::spawn(move || drop(place));
        puts.join().unwrap();
        owns.join().unwrap();
    });
    // Nothing but the drops orders the two.
    struct Slot(AtomicPtr<AtomicUsize>);
    impl Drop for Slot {
        fn drop(&mut self) {
            let block = *self.0.get_mut();
            if !block.is_null() {
                // SAFETY: the slot owns the block.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
    passes(|| {
        let slot = Arc::new(Slot(AtomicPtr::new(null_mut())));
        let handles = [0, 1].map(|i| {
            let slot = slot.clone();
            thread::spawn(move || {
                if i == 0 {
                    let block = Box::into_raw(Box::new(AtomicUsize::new(0)));
                    slot.0.store(block, Relaxed);
                }
            })
        });
        drop(slot);
        handles.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn a_thread_that_happens_to_be_last_learns_nothing_for_what_it_does_afterwards() {
    struct Shared(UnsafeCell<usize>);
    // SAFETY: it is not, which is what is to be found.
    unsafe impl Sync for Shared {}
    let failure = Builder::new()
        .explore(|| {
            let cell = std::sync::Arc::new(Shared(UnsafeCell::new(0)));
            let all = Arc::new(vec![1]);
            let handles = [(); 2].map(|()| {
                let (cell, all) = (cell.clone(), all.clone());
                thread::spawn(move || {
                    cell.0.with(|_| ());
                    drop(all);
                    // SAFETY: none, as above.
                    cell.0.with_mut(|it| unsafe { *it += 1 });
                })
            });
            drop(all);
            handles.into_iter().for_each(|it| it.join().unwrap());
        })
        .expect_err("nothing orders the two");
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
}
