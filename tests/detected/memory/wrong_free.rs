//! Is it found if a block is freed twice, with the wrong layout, or from its middle?

use std::alloc::{Layout, dealloc};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Release};

use dpor::sync::Arc;
use dpor::{Builder, FailureKind, thread};

use super::{Node, Slot, beside, fails, free, node, passes, take_and_free, tells, value};

#[test]
fn a_block_that_two_threads_free() {
    let free_it = |slot: &Slot| {
        let node = slot.0.load(Acquire);
        if !node.is_null() {
            free(node);
            slot.0.store(null_mut(), Release);
        }
    };
    let failure = fails(FailureKind::WrongFree, beside(free_it, free_it));
    tells(
        &failure,
        &[
            "double free: ",
            "free again   at tests/detected/memory/mod.rs:",
            "free         at tests/detected/memory/mod.rs:",
        ],
    );
    assert_eq!(passes(beside(take_and_free, take_and_free)), 2);
}

#[test]
fn a_block_that_is_freed_with_another_layout_or_from_its_middle() {
    let wrong = |size: usize, align: usize, offset: usize| {
        fails(FailureKind::WrongFree, move || {
            let node = node().cast::<u8>();
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: it is not: that is what is to be found before it does any harm.
            unsafe { dealloc(node.add(offset), layout) };
            thread::yield_now();
        })
    };
    tells(
        &wrong(24, 8, 0),
        &["free with a wrong layout: main frees 16 bytes aligned to 8 as 24 bytes aligned to 8"],
    );
    tells(
        &wrong(16, 4, 0),
        &["free with a wrong layout: main frees 16 bytes aligned to 8 as 16 bytes aligned to 4"],
    );
    tells(
        &wrong(8, 8, 8),
        &["free of no block: main frees an address 8 bytes inside a block of 16 bytes"],
    );
}

#[test]
fn a_free_that_must_not_be_is_found_even_if_nothing_follows_it() {
    let twice = || {
        let node = node();
        free(node);
        free(node);
    };
    fails(FailureKind::WrongFree, twice);
    let twice_and_panic = || {
        let node = node();
        free(node);
        free(node);
        panic!("what it led to");
    };
    fails(FailureKind::WrongFree, twice_and_panic);
}

#[test]
fn what_the_last_thread_frees_last_of_all_is_looked_at() {
    // It has joined the others, so nothing is asked about the objects in what it has freed.
    let last = |ends: fn(*mut Node)| {
        move || {
            let slot = Arc::new(Slot::full());
            let theirs = slot.clone();
            let other = thread::spawn(move || value(theirs.0.load(Acquire)));
            let node = slot.0.load(Acquire);
            other.join().unwrap();
            drop(slot);
            ends(node);
        }
    };
    assert_eq!(passes(last(free)), 1);
    let again = fails(
        FailureKind::WrongFree,
        last(|node| {
            free(node);
            free(node);
        }),
    );
    tells(
        &again,
        &[
            "double free: main frees a block that has been freed before",
            "free again   at tests/detected/memory/",
            "free         at tests/detected/memory/",
        ],
    );
    let layout = fails(
        FailureKind::WrongFree,
        last(|node| {
            // SAFETY: it is not: that is what is to be found before it does any harm.
            unsafe { dealloc(node.cast(), Layout::new::<[u64; 3]>()) };
        }),
    );
    tells(
        &layout,
        &["free with a wrong layout: main frees 16 bytes aligned to 8 as 24 bytes aligned to 8"],
    );

    /// Frees a node at the end of its thread, once more than there is need to.
    struct Frees(Cell<*mut Node>);
    impl Drop for Frees {
        fn drop(&mut self) {
            free(self.0.get());
            free(self.0.get());
        }
    }
    dpor::thread_local! {
        static FREES: Frees = Frees(Cell::new(node()));
    }
    fails(
        FailureKind::WrongFree,
        last(|node| FREES.with(|frees| free(frees.0.replace(node)))),
    );
}

#[test]
fn a_schedule_that_goes_on_behind_a_wrong_free_does_not_hide_it() {
    let frees = |times: u32| {
        let mut builder = Builder::new();
        builder.replay = Some("v2 main*9".to_owned());
        let failure = builder.explore(move || {
            let node = node();
            value(node);
            for _ in 0..times {
                free(node);
            }
        });
        failure.expect_err("no execution has so many steps").kind()
    };
    assert_eq!(frees(2), FailureKind::WrongFree);
    assert_eq!(frees(1), FailureKind::Schedule);
}
