//! How does the model learn of each allocation?
//!
//! [`Tracking`] passes each call on to the inner allocator, and tells `rt::heap` of the block. On
//! an OS thread that runs no model this costs one test of a thread-local variable.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::rt::{
    self,
    heap::{self, Asked, Kept, behind, from_reserve},
};

/// An allocator that shows the blocks of an inner allocator to models.
///
/// All memory comes from the inner allocator, and no bytes are added to it: a block that
/// `Tracking<A>` has allocated may be freed by `A`, and the other way round. `Tracking` is useful
/// as the global allocator only; see the [module](super) for the programs that have to declare it
/// themselves.
///
/// A block that a model's thread frees is returned to the inner allocator, or allocated again, only
/// after the execution has ended, so that later uses of the block are found. (In a further pass,
/// see [`Builder::thorough`](crate::Builder::thorough), its thread may get it again before.) At
/// most 64 MiB of such blocks are held; beyond that, the oldest blocks are returned early. Up to 16
/// MiB of small blocks are kept for the next execution, until the exploration ends.
///
/// There is one exception to where memory comes from. In the few executions that delay a thread to
/// see whether it uses freed memory, blocks of up to 64 KiB are on pages of their own, which only
/// `Tracking` can free.
///
/// ```
/// use dpor::alloc::Tracking;
/// use std::alloc::System;
///
/// static ALLOCATOR: Tracking = Tracking::new(System);
/// # let _ = &ALLOCATOR;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracking<A = System> {
    inner: A,
}

impl<A> Tracking<A> {
    /// Creates an allocator that tracks the blocks of `inner`.
    pub const fn new(inner: A) -> Tracking<A> {
        Tracking { inner }
    }
}

impl<A: GlobalAlloc> Tracking<A> {
    /// Allocates a block from the inner allocator.
    ///
    /// # Safety
    ///
    /// The contract of `alloc` holds.
    #[inline(never)]
    unsafe fn alloc_anew(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract.
        let start = behind(Asked::Block, || unsafe { self.inner.alloc(layout) });
        let start = start.unwrap_or_else(|| from_reserve(layout));
        heap::allocated(start, layout, || self.kept(start, layout));
        start
    }

    /// Returns a block to the inner allocator.
    ///
    /// # Safety
    ///
    /// The contract of `dealloc` holds.
    #[inline(never)]
    unsafe fn dealloc_now(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract.
        let free = || unsafe { self.inner.dealloc(start, layout) };
        behind(Asked::Free(start.addr()), free);
    }

    /// The identity of this allocator.
    #[inline]
    fn allocator(&self) -> *const () {
        (&raw const self.inner).cast()
    }

    /// The function and the layout by which a block of this allocator is returned later.
    #[inline]
    fn kept(&self, start: *mut u8, layout: Layout) -> Kept {
        Kept {
            start,
            layout,
            allocator: self.allocator(),
            release: release::<A>,
        }
    }
}

/// Returns a block to an allocator.
///
/// # Safety
///
/// The pointer is to an `A` that is alive, and the contract of `dealloc` holds.
unsafe fn release<A: GlobalAlloc>(allocator: *const (), start: *mut u8, layout: Layout) {
    // SAFETY: the caller's contract.
    let free = || unsafe { (*allocator.cast::<A>()).dealloc(start, layout) };
    behind(Asked::Free(start.addr()), free);
}

// SAFETY: each method passes its arguments to the same method of the inner allocator. It returns
// one of four blocks: the result of that method; a block that the inner allocator has returned for
// the same layout and that has been freed since; a block on pages of its own, which is recognised
// when it is freed; or a block of a reserve, which is never returned twice. So the contract is
// fulfilled if `A` fulfils it. A block that is freed may stay allocated for longer, and a block
// that is enlarged may move; callers cannot observe either. The other work of `rt::heap` neither
// unwinds nor touches the block; before it allocates itself, it makes sure that it is not entered
// again.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tracking<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match heap::instead(layout, self.allocator()) {
            Some(start) => start,
            None => {
                rt::cold_path();
                // SAFETY: the caller fulfils the contract of `alloc`.
                unsafe { self.alloc_anew(layout) }
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(start) = heap::instead(layout, self.allocator()) {
            // SAFETY: the block has this size, and no other code has the block.
            unsafe { start.write_bytes(0, layout.size()) };
            return start;
        }
        // SAFETY: the caller fulfils the contract of `alloc_zeroed`.
        let start = behind(Asked::Block, || unsafe { self.inner.alloc_zeroed(layout) });
        let start = start.unwrap_or_else(|| from_reserve(layout));
        heap::allocated(start, layout, || self.kept(start, layout));
        start
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        let now = heap::freed(start, layout, || self.kept(start, layout));
        if rt::rarely!(now) {
            // SAFETY: the caller fulfils the contract of `dealloc`.
            unsafe { self.dealloc_now(start, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        heap::entered();
        // SAFETY: the alignment is one of a layout, and the contract of `realloc` demands that the
        // new size, rounded up to it, fits into an `isize`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if heap::knows(old, layout) {
            // SAFETY: the new size is not 0 by the contract of `realloc`. Both blocks have at least
            // as many bytes as are copied, and a new block overlaps no other one. The old block is
            // not used again.
            unsafe {
                let new = self.alloc(new_layout);
                if !new.is_null() {
                    new.copy_from_nonoverlapping(old, layout.size().min(new_size));
                    self.dealloc(old, layout);
                }
                return new;
            }
        }
        // SAFETY: the caller fulfils the contract of `realloc`.
        let new = behind(Asked::Block, || unsafe {
            self.inner.realloc(old, layout, new_size)
        });
        let Some(new) = new else {
            let new = from_reserve(new_layout);
            if !new.is_null() {
                // SAFETY: both blocks have at least as many bytes as are copied, and a new block
                // overlaps no other one.
                unsafe { new.copy_from_nonoverlapping(old, layout.size().min(new_size)) };
            }
            return new;
        };
        if !new.is_null() {
            heap::reallocated(old, layout, new, new_layout);
        }
        new
    }
}

#[cfg(feature = "allocator")]
#[global_allocator]
static GLOBAL: Tracking<System> = Tracking::new(System);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::ThreadMain;
    use crate::rt::coroutine::Resumed;
    use crate::rt::exec::run::stacks;
    use crate::rt::heap::Heap;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    static TRACKING: Tracking = Tracking::new(System);

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// An allocator that is always behind the tracking one.
    #[cfg(unix)]
    struct Behind;

    // SAFETY: all methods are std's.
    #[cfg(unix)]
    unsafe impl GlobalAlloc for Behind {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            assert_eq!(heap::asked(), Some(Asked::Block));
            // SAFETY: the caller fulfils the contract.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
            assert!(heap::asked().is_some());
            // SAFETY: the caller fulfils the contract.
            unsafe { System.dealloc(start, layout) }
        }
    }

    #[cfg(unix)]
    #[test]
    fn it_is_known_whether_the_allocator_behind_is_at_work() {
        static BEHIND: Tracking<Behind> = Tracking::new(Behind);
        // SAFETY: the layouts have a size, and each block is freed with its own.
        unsafe {
            let zeroed = BEHIND.alloc_zeroed(layout(24, 8));
            BEHIND.dealloc(BEHIND.realloc(zeroed, layout(24, 8), 48), layout(48, 8));
            BEHIND.dealloc(BEHIND.alloc(layout(8, 8)), layout(8, 8));
        }
        // A block that a model frees is returned to the allocator when the model's execution ends.
        let heap = Heap::new();
        heap.record(true);
        heap.attach(|| {
            // SAFETY: as above.
            unsafe { BEHIND.dealloc(BEHIND.alloc(layout(40, 8)), layout(40, 8)) };
        });
        drop(heap);
        assert_eq!(heap::asked(), None);
    }

    #[test]
    fn each_call_reaches_the_inner_allocator_and_the_heap() {
        let heap = Heap::new();
        heap.record(true);
        heap.attach(|| {
            for (size, align) in [(1, 1), (24, 8), (100, 64), (5000, 4096)] {
                let (small, large) = (layout(size, align), layout(3 * size, align));
                // SAFETY: the layouts have a size, and each block is freed with its own.
                unsafe {
                    let first = TRACKING.alloc(small);
                    let second = TRACKING.alloc_zeroed(small);
                    assert!(!first.is_null() && !second.is_null());
                    assert_eq!(first.addr() % align, 0);
                    assert!((0..size).all(|at| *second.add(at) == 0));
                    assert_eq!(heap.find(second.addr()).unwrap().nth, 1);
                    second.add(size - 1).write(7);
                    let third = TRACKING.realloc(second, small, 3 * size);
                    assert_eq!(*third.add(size - 1), 7);

                    let block = heap.find(first.addr() + size - 1).unwrap();
                    assert_eq!((block.start, block.nth), (first.addr(), 0));
                    assert_eq!((block.size, block.align), (size, align));
                    let block = heap.find(third.addr() + 3 * size - 1).unwrap();
                    assert_eq!((block.start, block.nth), (third.addr(), 0));
                    assert_eq!((block.size, block.align), (3 * size, align));

                    TRACKING.dealloc(first, small);
                    TRACKING.dealloc(third, large);
                    assert_eq!(heap.find(first.addr()), None);
                    assert_eq!(heap.find(third.addr()), None);
                }
            }
        });
        heap.record(false);
        assert_eq!(heap.live_count(), 0);
    }

    #[test]
    fn a_block_is_used_again_and_zeroed_where_that_is_asked_for() {
        let heap = Heap::new();
        let layout = layout(48, 8);
        heap.attach(|| {
            let mut earlier = None;
            for zeroed in [false, true, false] {
                heap.reset();
                heap.record(true);
                // SAFETY: the layout has a size; the block is written within its bounds and freed
                // with the same layout.
                let start = unsafe {
                    let start = if zeroed {
                        TRACKING.alloc_zeroed(layout)
                    } else {
                        TRACKING.alloc(layout)
                    };
                    assert!(!zeroed || (0..48).all(|at| *start.add(at) == 0));
                    start.write_bytes(7, 48);
                    TRACKING.dealloc(start, layout);
                    start
                };
                heap.record(false);
                assert_eq!(*earlier.get_or_insert(start), start);
            }
        });
    }

    #[test]
    fn a_stack_never_overflows_inside_of_the_inner_allocator() {
        /// An allocator that records its calls, needs some stack for them, and returns one block
        /// only.
        struct Deep;

        static INSIDE: AtomicBool = AtomicBool::new(false);
        static BLOCK: AtomicUsize = AtomicUsize::new(0);
        const LAYOUT: Layout = Layout::new::<AtomicUsize>();

        impl Deep {
            #[inline(never)]
            fn work(&self) -> *mut u8 {
                INSIDE.store(true, Ordering::Relaxed);
                std::hint::black_box(&mut [0_u8; 1000]);
                INSIDE.store(false, Ordering::Relaxed);
                BLOCK.as_ptr().cast()
            }
        }

        // SAFETY: the block is large enough for the requests of this test, and no code uses its
        // content.
        unsafe impl GlobalAlloc for Deep {
            unsafe fn alloc(&self, _: Layout) -> *mut u8 {
                self.work()
            }

            unsafe fn alloc_zeroed(&self, _: Layout) -> *mut u8 {
                self.work()
            }

            unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
                self.work();
            }

            unsafe fn realloc(&self, _: *mut u8, _: Layout, _: usize) -> *mut u8 {
                self.work()
            }
        }

        const DEEP: Tracking<Deep> = Tracking::new(Deep);

        /// Makes the same call of the allocator on each level until the stack ends.
        #[inline(never)]
        fn recurse(call: fn(), depth: usize) -> usize {
            call();
            if depth == usize::MAX {
                return 0;
            }
            recurse(call, depth + 1) + std::hint::black_box([depth; 3])[depth % 3]
        }

        // SAFETY: the layout has a size, and `Deep` accepts any pointer.
        let calls: [fn(); 4] = unsafe {
            [
                || assert!(!DEEP.alloc(LAYOUT).is_null()),
                || assert!(!DEEP.alloc_zeroed(LAYOUT).is_null()),
                || {
                    assert!(
                        !DEEP
                            .realloc(BLOCK.as_ptr().cast(), LAYOUT, LAYOUT.size())
                            .is_null()
                    )
                },
                || DEEP.dealloc(BLOCK.as_ptr().cast(), LAYOUT),
            ]
        };
        let heap = Heap::new();
        let mut pool = stacks(64 * 1024);
        heap.attach(|| {
            for call in calls {
                let mut coroutine = pool.start(ThreadMain::of(move || {
                    recurse(call, 0);
                }));
                assert!(matches!(coroutine.resume(), Resumed::Overflowed));
                assert!(!INSIDE.load(Ordering::Relaxed));
            }
        });
    }

    #[test]
    #[cfg(feature = "allocator")]
    fn boxes_and_growing_vectors_are_seen() {
        let heap = Heap::new();
        heap.attach(|| {
            heap.record(true);
            heap.set_thread(3, 9);
            let boxes: Vec<Box<[u64; 4]>> = (0..5000).map(|n| Box::new([n; 4])).collect();
            let nothing = std::hint::black_box(Box::new(()));
            let mut grown = Vec::new();
            for n in 0..1000_u64 {
                grown.push(n);
            }
            heap.record(false);
            for (nth, of_four) in boxes.iter().enumerate() {
                let block = heap.find((&raw const of_four[3]).addr()).unwrap();
                assert_eq!((block.thread, block.events), (3, 9));
                assert_eq!((block.size, block.nth as usize), (32, nth));
            }
            assert_eq!(heap.find((&raw const *nothing).addr()), None);
            let block = heap.find((&raw const grown[999]).addr()).unwrap();
            assert_eq!(block.start, grown.as_ptr().addr());
            assert_eq!(block.size, grown.capacity() * 8);
            // The list of boxes, the boxes, and the last state of the vector that grew.
            assert_eq!(heap.live_count(), 1 + 5000 + 1);
            heap.record(true);
            drop((boxes, grown));
            heap.record(false);
        });
        assert_eq!(heap.live_count(), 0);
    }

    #[test]
    fn an_os_thread_without_a_model_is_not_seen_by_one_with_a_model() {
        let heap = Heap::new();
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel::<usize>();
        let other = thread::spawn(move || {
            for () in asked {
                // SAFETY: the layout has a size, and the block is freed with it.
                unsafe {
                    let start = TRACKING.alloc(layout(40, 8));
                    answer.send(start.addr()).unwrap();
                    TRACKING.dealloc(start, layout(40, 8));
                }
            }
        });
        heap.attach(|| {
            for _ in 0..100 {
                heap.record(true);
                ask.send(()).unwrap();
                let start = answered.recv().unwrap();
                heap.record(false);
                assert_eq!(heap.find(start), None);
                heap.reset();
            }
        });
        drop(ask);
        other.join().unwrap();
    }

    #[test]
    fn a_thread_may_allocate_while_its_locals_are_destroyed() {
        struct Last(mpsc::Sender<usize>);
        impl Drop for Last {
            fn drop(&mut self) {
                // SAFETY: the layout has a size, and the block is freed with it.
                unsafe {
                    let start = TRACKING.alloc(layout(40, 8));
                    TRACKING.dealloc(start, layout(40, 8));
                    self.0.send(start.addr()).unwrap();
                }
            }
        }
        thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
        let (sender, receiver) = mpsc::channel();
        let dying = thread::spawn(move || {
            let heap = Heap::new();
            heap.attach(|| LAST.set(Some(Last(sender))));
        });
        dying.join().unwrap();
        assert_ne!(receiver.recv().unwrap(), 0);
    }
}
