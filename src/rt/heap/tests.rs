//! Does the heap know its blocks, name them alike in each execution, and forget them in time?
//!
//! Most tests call the hooks by hand, with made-up addresses, and record only in between. So the
//! real allocations of the test do not get into the heap.

use crate::rt::heap::attached::with_attached;
use crate::rt::heap::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::thread;

mod stocked;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn pointer(address: usize) -> *mut u8 {
    ptr::without_provenance_mut(address)
}

/// Pretends that the allocator has made a block that does not belong to the stock.
fn allocated(start: *mut u8, layout: Layout) {
    with_attached(|heap| heap.note_allocated(start.addr(), layout, || None));
}

/// Pretends that user code allocates a block.
fn allocate(heap: &Heap, start: usize, size: usize) {
    let was = heap.record(true);
    heap.attach(|| allocated(pointer(start), layout(size, 8)));
    heap.record(was);
}

/// Stands for a block that no allocator has made.
fn nothing(address: usize) -> Kept {
    unsafe fn release(_: *const (), _: *mut u8, _: Layout) {}
    Kept {
        start: pointer(address),
        layout: layout(8, 8),
        allocator: ptr::null(),
        release,
    }
}

/// Pretends that user code frees a block.
fn free(heap: &Heap, start: usize, size: usize) {
    let was = heap.record(true);
    heap.attach(|| freed(pointer(start), layout(size, 8), || nothing(start)));
    heap.record(was);
}

fn drained(heap: &Heap) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    heap.drain_freed(|start, size| all.push((start, size)));
    all
}

/// (thread, events, nth) of the block at `address`.
fn name(heap: &Heap, address: usize) -> (u32, u32, u32) {
    let block = heap.find(address).unwrap();
    (block.thread, block.events, block.nth)
}

/// A pseudo-random sequence that is the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

#[test]
fn a_block_is_found_at_each_of_its_addresses_and_at_no_other() {
    for size in [1, 2, 63, 64, 65, 100, 4096, 4097, 1 << 20, (1 << 33) + 1] {
        for start in [0x1_0000_0000, 0x1_0000_0008, 0x1_2345_6780] {
            let heap = Heap::new();
            allocate(&heap, start, size);
            let block = heap.find(start).unwrap();
            assert_eq!((block.start, block.size, block.align), (start, size, 8));
            for inside in [start, start + size / 3, start + size / 2, start + size - 1] {
                assert_eq!(heap.find(inside).unwrap().start, start);
            }
            for outside in [start - 1, start + size, start + size + 1, 0, usize::MAX] {
                assert_eq!(heap.find(outside), None, "{size} bytes at {start:#x}");
            }
            free(&heap, start, size);
            assert_eq!(heap.find(start), None);
        }
    }
}

#[test]
fn neighbours_are_told_apart() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 16);
    allocate(&heap, 0x1010, 200);
    allocate(&heap, 0x1010 + 200, 8);
    assert_eq!(heap.find(0x100f).unwrap().start, 0x1000);
    assert_eq!(heap.find(0x1010).unwrap().start, 0x1010);
    assert_eq!(heap.find(0x1010 + 199).unwrap().start, 0x1010);
    assert_eq!(heap.find(0x1010 + 200).unwrap().start, 0x1010 + 200);
}

#[test]
fn the_table_agrees_with_a_plain_list_on_thousands_of_blocks() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let heap = Heap::new();
    for round in 0..20 {
        heap.reset();
        let mut listed: Vec<(usize, usize)> = Vec::new();
        let mut end = 0x7f00_0000_0000;
        for _ in 0..3000 {
            match random.below(10) {
                0..5 => {
                    let size = match random.below(20) {
                        0 => 1 + random.below(1 << 16),
                        1..5 => 1 + random.below(1000),
                        _ => 1 + random.below(80),
                    };
                    allocate(&heap, end, size);
                    listed.push((end, size));
                    // Some blocks touch, and some have a distance.
                    end += size + random.below(3) * 16;
                }
                5..8 if !listed.is_empty() => {
                    let (start, size) = listed.swap_remove(random.below(listed.len()));
                    free(&heap, start, size);
                }
                _ => {
                    let address = 0x7f00_0000_0000 + random.below(end - 0x7f00_0000_0000 + 100);
                    let expected = listed
                        .iter()
                        .find(|(start, size)| (*start..start + size).contains(&address));
                    let found = heap.find(address).map(|block| (block.start, block.size));
                    assert_eq!(found, expected.copied(), "round {round}, {address:#x}");
                }
            }
        }
        assert_eq!(heap.live_count(), listed.len());
        let mut live: Vec<_> = heap.live().iter().map(|b| (b.start, b.size)).collect();
        live.sort_unstable();
        listed.sort_unstable();
        assert_eq!(live, listed);
    }
}

#[test]
fn blocks_are_counted_by_layout_since_the_last_event_of_their_thread() {
    let heap = Heap::new();
    heap.set_thread(2, 7);
    allocate(&heap, 0x1000, 16);
    allocate(&heap, 0x2000, 16);
    allocate(&heap, 0x3000, 24);
    allocate(&heap, 0x4000, 16);
    assert_eq!(name(&heap, 0x1000), (2, 7, 0));
    assert_eq!(name(&heap, 0x2000), (2, 7, 1));
    assert_eq!(name(&heap, 0x3000), (2, 7, 0));
    assert_eq!(name(&heap, 0x4000), (2, 7, 2));
    free(&heap, 0x4000, 16);
    allocate(&heap, 0x4000, 16);
    assert_eq!(name(&heap, 0x4000), (2, 7, 3), "a name is given once");
    heap.set_thread(2, 8);
    allocate(&heap, 0x5000, 16);
    assert_eq!(name(&heap, 0x5000), (2, 8, 0));

    let was = heap.record(true);
    heap.attach(|| allocated(pointer(0x6000), layout(16, 16)));
    heap.record(was);
    assert_eq!(heap.find(0x6000).unwrap().align, 16);
    assert_eq!(name(&heap, 0x6000), (2, 8, 0), "alignment is part of it");
}

#[test]
fn a_thread_goes_on_counting_after_another_one_has_allocated() {
    let heap = Heap::new();
    heap.set_thread(0, 3);
    allocate(&heap, 0x1000, 16);
    heap.set_thread(1, 0);
    allocate(&heap, 0x2000, 16);
    heap.set_thread(0, 3);
    allocate(&heap, 0x3000, 16);
    assert_eq!(name(&heap, 0x2000), (1, 0, 0));
    assert_eq!(name(&heap, 0x3000), (0, 3, 1));
}

#[test]
fn many_layouts_between_two_events_are_all_counted() {
    let heap = Heap::new();
    for nth in 0..4 {
        for size in 1..100 {
            let start = 0x10_0000 * (nth + 1) + 0x1000 * size;
            allocate(&heap, start, size);
            assert_eq!(name(&heap, start), (0, 0, nth as u32));
        }
    }
}

#[test]
fn names_are_the_same_in_the_next_execution_and_at_other_addresses() {
    let heap = Heap::new();
    let mut executions = Vec::new();
    for base in [0x10_0000, 0x90_0000, 0x10_0000] {
        heap.reset();
        for (thread, events) in [(0, 0), (0, 1), (1, 0), (0, 1)] {
            heap.set_thread(thread, events);
            let at = base + 0x1000 * heap.live_count();
            allocate(&heap, at, 32);
        }
        executions.push(heap.live().iter().map(Block::name).collect::<Vec<_>>());
    }
    assert_eq!(executions[0].len(), 4);
    assert_eq!(executions[0], executions[1]);
    assert_eq!(executions[0], executions[2]);
}

#[test]
fn allocations_count_only_while_recording_and_frees_of_known_blocks_always() {
    let heap = Heap::new();
    heap.attach(|| {
        assert!(!heap.record(false));
        allocated(pointer(0x1000), layout(8, 8));
        assert!(!heap.record(true));
        allocated(pointer(0x2000), layout(8, 8));
        allocated(pointer(0x3000), layout(8, 8));
        assert!(heap.record(false));
        freed(pointer(0x3000), layout(8, 8), || nothing(0x3000));
        freed(pointer(0x1000), layout(8, 8), || nothing(0x1000));
    });
    assert_eq!(heap.find(0x1000), None);
    assert_eq!(name(&heap, 0x2000), (0, 0, 0));
    assert_eq!(heap.find(0x3000), None);
    assert!(drained(&heap).is_empty());
    assert_eq!(heap.live_count(), 1);
}

#[test]
fn nothing_is_known_of_failed_allocations_and_of_blocks_without_a_byte() {
    let heap = Heap::new();
    allocate(&heap, 0, 8);
    allocate(&heap, 0x1000, 0);
    assert_eq!(heap.find(0), None);
    assert_eq!(heap.find(0x1000), None);
    assert_eq!(heap.live_count(), 0);
    free(&heap, 0x1000, 0);
    allocate(&heap, 0x2000, 8);
    free(&heap, 0x2000, 0);
    assert_eq!(heap.live_count(), 1);
}

#[test]
fn a_reallocation_is_a_new_block_even_in_place() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 16);
    heap.find(0x1000);
    for (old, size, new, new_size) in [
        (0x1000, 16, 0x1000, 32),
        (0x1000, 32, 0x2000, 64),
        (0x2000, 64, 0x2000, 64),
    ] {
        let before = heap.find(old).unwrap();
        let was = heap.record(true);
        heap.attach(|| {
            reallocated(
                pointer(old),
                layout(size, 8),
                pointer(new),
                layout(new_size, 8),
            );
        });
        heap.record(was);
        let after = heap.find(new).unwrap();
        assert_eq!((after.start, after.size), (new, new_size));
        assert_ne!(before.name(), after.name());
        assert_eq!(drained(&heap), [(old, size)]);
        assert_eq!(heap.live_count(), 1);
    }
    assert_eq!(name(&heap, 0x2000), (0, 0, 1), "the second of 64 bytes");
}

#[test]
fn frees_are_reported_once_for_blocks_that_were_asked_for_and_for_unknown_ones() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 16);
    allocate(&heap, 0x2000, 16);
    assert!(heap.find(0x2004).is_some());
    free(&heap, 0x1000, 16);
    free(&heap, 0x2000, 16);
    free(&heap, 0x3000, 48);
    assert_eq!(drained(&heap), [(0x2000, 16), (0x3000, 48)]);
    assert!(drained(&heap).is_empty());
}

#[test]
fn the_heap_can_be_used_while_frees_are_handed_over() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 16);
    free(&heap, 0x8000, 16);
    let mut seen = Vec::new();
    heap.drain_freed(|start, _| {
        seen.push(start);
        assert!(heap.find(0x1008).is_some());
        free(&heap, 0x1000, 16);
    });
    assert_eq!(seen, [0x8000]);
    assert_eq!(drained(&heap), [(0x1000, 16)]);
}

#[test]
fn a_block_that_outlives_its_execution_is_unknown_in_the_next() {
    let heap = Heap::new();
    heap.set_thread(4, 4);
    allocate(&heap, 0x1000, 16);
    free(&heap, 0x2000, 16);
    heap.record(true);
    heap.reset();
    assert!(!heap.record(false), "a new execution begins unrecorded");
    assert_eq!(heap.live_count(), 0);
    assert!(heap.live().is_empty());
    assert_eq!(heap.find(0x1000), None);
    assert!(drained(&heap).is_empty());
    free(&heap, 0x1000, 16);
    assert_eq!(drained(&heap), [(0x1000, 16)]);
    allocate(&heap, 0x1000, 16);
    assert_eq!(name(&heap, 0x1000), (0, 0, 0));
}

#[test]
fn memory_that_was_freed_unheard_belongs_to_the_newest_block() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 64);
    allocate(&heap, 0x1000, 64);
    assert_eq!(name(&heap, 0x1000), (0, 0, 1));
    assert_eq!(heap.live_count(), 1);
    allocate(&heap, 0x1000, 1024);
    allocate(&heap, 0x1020, 16);
    assert_eq!(heap.find(0x1028).unwrap().size, 16);
    assert_eq!(heap.find(0x1038).unwrap().size, 1024);
    free(&heap, 0x1020, 16);
    assert_eq!(heap.find(0x1028).unwrap().size, 1024);
}

#[test]
fn live_blocks_come_in_the_order_of_their_names() {
    let heap = Heap::new();
    for (start, thread, events, size) in [
        (0x9000, 1, 0, 8),
        (0x8000, 0, 2, 16),
        (0x7000, 0, 2, 8),
        (0x6000, 0, 2, 8),
        (0x5000, 0, 1, 8),
    ] {
        heap.set_thread(thread, events);
        allocate(&heap, start, size);
    }
    let starts: Vec<_> = heap.live().iter().map(|block| block.start).collect();
    assert_eq!(starts, [0x5000, 0x7000, 0x6000, 0x8000, 0x9000]);
}

#[test]
fn a_heap_inside_another_hides_it_and_gives_it_back() {
    let outer = Heap::new();
    let inner = Heap::new();
    outer.record(true);
    inner.record(true);
    outer.attach(|| {
        inner.attach(|| allocated(pointer(0x1000), layout(8, 8)));
        allocated(pointer(0x2000), layout(8, 8));
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            inner.attach(|| std::panic::resume_unwind(Box::new(())))
        }));
        assert!(unwound.is_err());
        allocated(pointer(0x3000), layout(8, 8));
        outer.record(false);
        inner.record(false);
    });
    allocated(pointer(0x4000), layout(8, 8));
    assert!(inner.find(0x1000).is_some() && outer.find(0x1000).is_none());
    for start in [0x2000, 0x3000] {
        assert!(inner.find(start).is_none() && outer.find(start).is_some());
    }
    assert!(outer.find(0x4000).is_none() && inner.find(0x4000).is_none());
}

#[test]
fn a_freed_block_is_known_as_gone_and_its_memory_is_kept_until_the_execution_ends() {
    let heap = Heap::new();
    let given_back = || GIVEN_BACK.with(|list| list.borrow_mut().drain(..).collect::<Vec<_>>());
    thread_local!(static GIVEN_BACK: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) });
    unsafe fn release(_: *const (), start: *mut u8, _: Layout) {
        GIVEN_BACK.with(|list| list.borrow_mut().push(start.addr()));
    }
    let free = |start: usize, size: usize| {
        let was = heap.record(true);
        let kept = || Kept {
            start: pointer(start),
            layout: layout(size, 8),
            allocator: ptr::null(),
            release,
        };
        let now = heap.attach(|| freed(pointer(start), layout(size, 8), kept));
        heap.record(was);
        now
    };
    heap.set_thread(1, 3);
    allocate(&heap, 0x1000, 16);
    allocate(&heap, 0x2000, 16);
    heap.set_thread(2, 5);
    assert!(!free(0x1000, 16));
    assert_eq!(heap.find(0x1008), None);
    let gone = heap.find_gone(0x1008).unwrap();
    assert_eq!((gone.thread, gone.events, gone.freed), (1, 3, Some((2, 5))));
    assert_eq!(heap.find_gone(0x2008), None, "it is alive");
    assert!(given_back().is_empty());
    heap.reset();
    assert_eq!(given_back(), [0x1000]);
    assert_eq!(heap.find_gone(0x1008), None);
    // The blocks beyond the limit are given back early, the oldest first, and are no longer known
    // then.
    const HALF: usize = 33 << 20;
    for start in [0x1_0000_0000, 0x2_0000_0000, 0x3_0000_0000] {
        allocate(&heap, start, HALF);
        assert!(!free(start, HALF));
    }
    assert_eq!(given_back(), [0x1_0000_0000, 0x2_0000_0000]);
    assert_eq!(heap.find_gone(0x2_0000_0000), None);
    assert!(heap.find_gone(0x3_0000_0000).is_some());
    drop(heap);
    assert_eq!(given_back(), [0x3_0000_0000]);
}

#[test]
fn a_block_is_the_models_from_when_it_was_got() {
    let heap = Heap::new();
    let _watch = outside_use::Watch::begin();
    heap.reset();
    allocate(&heap, 0x1000, 16);
    let before = outside_use::noted();
    outside_use::note(0x2000, Location::caller());
    allocate(&heap, 0x2000, 16);
    let after = outside_use::noted();
    assert!(after > before);
    assert!(!heap.had(0x1008, before), "nobody has asked for it");
    let found = [0x1008, 0x2008].map(|address| heap.find(address).is_some());
    assert_eq!(found, [true, true]);
    assert!(heap.had(0x1008, before));
    assert!(!heap.had(0x2008, before), "it was somebody else's");
    assert!(heap.had(0x2008, after));
    free(&heap, 0x1000, 16);
    assert!(heap.had(0x1008, before), "its memory is kept");
    heap.reset();
    assert!(!heap.had(0x1008, after));
}

#[test]
fn frees_that_must_not_be_are_kept_from_the_allocator_and_told() {
    let heap = Heap::new();
    let free = |start: usize, size: usize, align: usize| {
        let was = heap.record(true);
        let now = heap.attach(|| freed(pointer(start), layout(size, align), || nothing(start)));
        heap.record(was);
        (now, heap.take_fault())
    };
    allocate(&heap, 0x1000, 16);
    let block = heap.find(0x1000).unwrap();
    let (now, fault) = free(0x1004, 8, 4);
    assert_eq!((now, fault), (false, Some(Fault::Inside(block, 4))));
    let (now, fault) = free(0x1000, 100, 8);
    assert_eq!(
        (now, fault),
        (false, Some(Fault::Layout(block, layout(100, 8))))
    );
    let (now, fault) = free(0x1000, 16, 4);
    assert_eq!(
        (now, fault),
        (false, Some(Fault::Layout(block, layout(16, 4))))
    );
    allocate(&heap, 0x2000, 16);
    assert_eq!(free(0x2000, 16, 8), (false, None));
    let (now, fault) = free(0x2000, 16, 8);
    assert!(!now);
    assert!(matches!(fault, Some(Fault::Again(gone)) if gone.start == 0x2000));
    assert_eq!(free(0x3000, 16, 8), (true, None), "nobody knows it");
}

#[test]
fn other_os_threads_are_not_recorded() {
    let heap = Heap::new();
    heap.record(true);
    heap.attach(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                allocated(pointer(0x1000), layout(8, 8));
                freed(pointer(0x2000), layout(8, 8), || nothing(0x2000));
            });
        });
        heap.record(false);
    });
    assert_eq!(heap.find(0x1000), None);
    assert!(!drained(&heap).contains(&(0x2000, 8)));
}

#[test]
fn a_heap_whose_work_was_cut_off_is_inert_until_the_next_execution() {
    let heap = Heap::new();
    allocate(&heap, 0x1000, 16);
    // A stack overflow inside of a hook leaves the heap like this.
    mem::forget(heap.state.take());
    allocate(&heap, 0x2000, 16);
    free(&heap, 0x1000, 16);
    assert_eq!(heap.find(0x1000), None);
    assert_eq!(heap.live_count(), 0);
    assert!(drained(&heap).is_empty() && heap.live().is_empty());
    heap.reset();
    allocate(&heap, 0x3000, 16);
    assert_eq!(name(&heap, 0x3000), (0, 0, 0));
}

#[test]
fn the_allocator_is_installed_exactly_if_the_feature_says_so() {
    assert_eq!(installed(), cfg!(feature = "allocator"));
}

thread_local! {
    /// The blocks that were given back to the allocator of [`stocked`].
    static RELEASED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}
