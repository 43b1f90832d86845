//! Is it found if a block is freed twice, with the wrong layout, or from its middle?

use std::alloc::{Layout, dealloc};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Release};

use dpor::{FailureKind, thread};

use super::{Slot, beside, fails, free, node, passes, take_and_free, tells};

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
            "free again   at tests/memory/main.rs:",
            "free         at tests/memory/main.rs:",
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
