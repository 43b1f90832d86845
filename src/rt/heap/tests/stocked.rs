//! Is freed memory reused, and only once?

use crate::rt::heap::tests::*;

/// A made-up block of an allocator with this number.
fn stocked(address: usize, layout: Layout, allocator: usize) -> Kept {
    unsafe fn release(_: *const (), start: *mut u8, _: Layout) {
        // The last blocks are released when the OS thread ends.
        let _ = RELEASED.try_with(|released| released.borrow_mut().push(start.addr()));
    }
    Kept {
        start: pointer(address),
        layout,
        allocator: ptr::without_provenance(allocator),
        release,
    }
}

/// Does the same as the tracking allocator, where the inner allocator has the next block at `new`.
fn get(heap: &Heap, new: usize, layout: Layout, allocator: usize) -> usize {
    let was = heap.record(true);
    let start = heap.attach(|| {
        let old = instead(layout, ptr::without_provenance(allocator));
        old.unwrap_or_else(|| {
            let kept = || stocked(new, layout, allocator);
            crate::rt::heap::allocated(pointer(new), layout, kept);
            pointer(new)
        })
    });
    heap.record(was);
    start.addr()
}

fn put_back(heap: &Heap, start: usize, layout: Layout) {
    let kept = || stocked(start, layout, 1);
    let now = heap.attach(|| freed(pointer(start), layout, kept));
    assert!(!now, "it is the model's");
}

#[test]
fn an_execution_gets_what_the_one_before_has_freed_in_the_order_of_its_allocations() {
    let heap = Heap::new();
    let (small, large) = (layout(16, 8), layout(2000, 8));
    let first = [0x1000, 0x2000, 0x3000].map(|new| get(&heap, new, small, 1));
    assert_eq!(first, [0x1000, 0x2000, 0x3000]);
    for start in [0x3000, 0x1000, 0x2000] {
        put_back(&heap, start, small);
    }
    assert_eq!(get(&heap, 0x4000, small, 1), 0x4000, "not in the same one");
    put_back(&heap, 0x4000, small);
    assert_eq!(get(&heap, 0x5000, large, 1), 0x5000);
    put_back(&heap, 0x5000, large);

    heap.reset();
    assert_eq!(RELEASED.take(), [0x5000], "too large to be stocked");
    heap.set_thread(2, 7);
    assert_eq!(get(&heap, 0x6000, layout(16, 16), 1), 0x6000, "alignment");
    assert_eq!(get(&heap, 0x7000, small, 1), 0x1000);
    assert_eq!(name(&heap, 0x1008), (2, 7, 0));
    assert_eq!(get(&heap, 0x8000, small, 2), 0x8000, "another allocator");
    assert_eq!(get(&heap, 0x9000, small, 1), 0x2000);
    assert_eq!(
        heap.attach(|| instead(small, ptr::without_provenance(1))),
        None,
        "nobody records"
    );
    for start in [0x1000, 0x2000] {
        put_back(&heap, start, small);
    }
    assert_eq!(heap.find_gone(0x2008).unwrap().start, 0x2000);
    put_back(&heap, 0x6000, layout(16, 16));
    put_back(&heap, 0x8000, small);

    drop(heap);

    let mut released = RELEASED.take();
    released.sort_unstable();
    assert_eq!(released, [0x1000, 0x2000, 0x3000, 0x4000, 0x6000, 0x8000]);
}

#[test]
fn a_block_that_outlives_its_execution_is_not_handed_out() {
    let heap = Heap::new();
    let small = layout(16, 8);
    for new in [0x1000, 0x2000, 0x3000] {
        get(&heap, new, small, 1);
    }
    put_back(&heap, 0x1000, small);
    put_back(&heap, 0x3000, small);
    heap.reset();
    let again = [0x4000, 0x5000, 0x6000].map(|new| get(&heap, new, small, 1));
    assert_eq!(again, [0x1000, 0x3000, 0x6000]);
    let late = heap.attach(|| freed(pointer(0x2000), small, || stocked(0x2000, small, 1)));
    assert!(late, "the allocator frees it");
    heap.reset();
    assert_eq!(get(&heap, 0x7000, small, 1), 0x7000, "nothing was freed");
    drop(heap);

    assert_eq!(RELEASED.take(), Vec::<usize>::new());
}

#[test]
fn a_block_that_was_freed_wrongly_is_in_stock_as_often_as_it_is_counted() {
    let heap = Heap::new();
    let small = layout(16, 8);
    for _ in 0..3 {
        assert_eq!(get(&heap, 0x1000, small, 1), 0x1000);
        heap.record(true);
        put_back(&heap, 0x1000, layout(32, 8));
        heap.reset();
    }
    assert_eq!(heap.with(|state| state.stock.bytes()), Some(16));
}

#[test]
fn memory_that_another_os_thread_has_given_back_is_in_stock_once() {
    let heap = Heap::new();
    let small = layout(16, 8);
    assert_eq!(get(&heap, 0x1000, small, 1), 0x1000);
    // The heap has missed the free of the block, and the allocator has reused its memory.
    assert_eq!(get(&heap, 0x1000, small, 1), 0x1000);
    put_back(&heap, 0x1000, small);
    heap.reset();
    let again = [0x2000, 0x3000].map(|new| get(&heap, new, small, 1));
    assert_eq!(again, [0x1000, 0x3000]);
    for start in again {
        put_back(&heap, start, small);
    }
    drop(heap);

    assert_eq!(RELEASED.take().len(), 2);
}

#[test]
fn a_block_from_stock_is_found_in_its_slot_and_hidden_by_a_newer_one() {
    let heap = Heap::new();
    let small = layout(16, 8);
    let is_still = |address| heap.is_still(address, (0x1000, 16), |block| block.nth == 0);
    for _ in 0..3 {
        heap.reset();
        assert!(!is_still(0x1008), "of an earlier execution");
        get(&heap, 0x1000, small, 1);
        assert!(is_still(0x1008));
        // Another OS thread has freed the block.
        allocate(&heap, 0x1008, 100);
        assert!(is_still(0x1004) && !is_still(0x1008));
        free(&heap, 0x1008, 100);
        put_back(&heap, 0x1000, small);
        assert!(!is_still(0x1004), "gone");
    }
}

#[test]
fn a_block_is_owed_in_its_own_execution_only() {
    let heap = Heap::new();
    let small = layout(16, 8);
    let left = |must_free| heap.left(must_free).len();
    assert!(heap.owes_nothing(MustFree::Owed) && !heap.owes_nothing(MustFree::Found));
    heap.owe(get(&heap, 0x1000, small, 1) + 8);
    assert!(!heap.owes_nothing(MustFree::Owed));
    assert_eq!((left(MustFree::Owed), left(MustFree::Found)), (1, 1));
    heap.forgive(0x1000);
    assert_eq!((left(MustFree::Owed), left(MustFree::Found)), (0, 0));
    put_back(&heap, 0x1000, small);

    heap.reset();
    assert!(heap.owes_nothing(MustFree::Owed));
    assert_eq!(get(&heap, 0x2000, small, 1), 0x1000, "the same memory");
    assert_eq!((left(MustFree::Owed), left(MustFree::Found)), (0, 0));
    assert!(heap.find(0x1000).is_some());
    assert_eq!((left(MustFree::Owed), left(MustFree::Found)), (0, 1));
}

#[test]
fn a_size_whose_blocks_have_not_come_back_is_stocked_for_another_alignment() {
    let heap = Heap::new();
    let (kept, small) = (layout(16, 16), layout(16, 8));
    // A block that is made once and stays does not keep the others of its size out of the stock.
    get(&heap, 0x1000, kept, 1);
    heap.reset();
    assert_eq!(get(&heap, 0x2000, small, 1), 0x2000);
    put_back(&heap, 0x2000, small);
    heap.reset();
    assert_eq!(get(&heap, 0x3000, small, 1), 0x2000);
}

#[test]
fn a_heap_leaves_its_tables_and_its_stock_to_the_next_exploration_and_nothing_else() {
    let (small, large) = (layout(16, 8), layout(2000, 8));
    let tables = |heap: &Heap| heap.with(|state| ptr::from_mut(state).addr());
    let mut heap = Heap::new();
    let before = tables(&heap);
    heap.set_thread(1, 3);
    for (new, layout) in [
        (0x1000, small),
        (0x2000, small),
        (0x3000, large),
        (0x4000, large),
    ] {
        get(&heap, new, layout, 1);
    }
    heap.find(0x2000);
    put_back(&heap, 0x2000, small);
    put_back(&heap, 0x3000, large);
    heap.record(true);
    put_back(&heap, 0x2000, small);
    assert!(heap.has_news(), "it was freed twice");
    heap.empty();
    assert_eq!(RELEASED.take(), [0x3000]);

    let mut next = heap;
    assert!(!next.has_news());
    assert_eq!(tables(&next), before);
    assert_eq!((next.live_count(), next.take_fault()), (0, None));
    for address in [0x1000, 0x2000, 0x3000, 0x4000] {
        assert_eq!(next.find(address), None);
        assert_eq!(next.find_gone(address), None);
    }
    next.drain_some_freed(|start, _| panic!("{start:x} was freed before"));
    next.set_thread(1, 3);
    assert_eq!(get(&next, 0x5000, small, 1), 0x2000, "it was in stock");
    assert_eq!(get(&next, 0x5000, small, 1), 0x5000, "no other one was");
    assert_eq!(name(&next, 0x2000), (1, 3, 0));
    assert_eq!(name(&next, 0x5000), (1, 3, 1));
    put_back(&next, 0x5000, small);
    put_back(&next, 0x2000, small);
    next.reset();
    assert_eq!(get(&next, 0x6000, small, 1), 0x2000);
    put_back(&next, 0x2000, small);
    next.reset();
    // Many blocks need large tables. These are not passed on to the next heap, and neither is the
    // stock then.
    let many = (0x10_0000..).step_by(16).take(1000);
    let got: Vec<_> = many.map(|new| get(&next, new, small, 1)).collect();
    assert_eq!(got[..2], [0x2000, 0x5000]);
    got.iter().for_each(|&start| put_back(&next, start, small));
    next.empty();
    let mut released = RELEASED.take();
    released.sort_unstable();
    assert_eq!(
        (released.len(), &released[..2]),
        (1000, &[0x2000, 0x5000][..])
    );
    let are_few = next.with(|state| state.blocks.are_few());
    assert_eq!(are_few, Some(true));
}

#[test]
fn much_in_stock_is_given_back_at_the_end_of_the_exploration() {
    let large = layout(1000, 8);
    let mut heap = Heap::new();
    let got: Vec<_> = (0x10_0000..)
        .step_by(1000)
        .take(80)
        .map(|new| get(&heap, new, large, 1))
        .collect();
    got.iter().for_each(|&start| put_back(&heap, start, large));
    heap.empty();
    assert_eq!(RELEASED.take(), got);
}
