//! How is a use of freed memory found that goes through no function of this crate?
//!
//! In an execution that delays a thread, to see a use behind the steps of other threads, each block
//! of the model has pages of its own, which are locked when the block is freed. So any later use of
//! the block, in whatever way, causes a fault ([`faults`](crate::rt::exec::faults)). This takes a
//! system call for each block, and happens only in the few executions that are made for it.
//!
//! A range of addresses is set aside once in a process, and heaps get parts of the range. Within
//! one exploration no page is used twice. When the exploration ends, one call unlocks all pages,
//! and its blocks are no longer watched. A block that outlives the exploration, for example one of
//! a list in which the test collects results, is recognised by its address when it is freed. Its
//! memory goes back to the system, but is not locked. (Locking a page divides a mapping, and the
//! system has some 65,000 mappings for a process. No exploration would ever unlock such a page, so
//! a process with many tests would have no mappings left for stacks.) The next exploration begins
//! behind the last block that has not been freed. If the range is used up, or a block is large, the
//! block comes from the allocator as usual.
//!
//! The free of a block may happen on another OS thread, and the exploration may end at that moment.
//! So the state of each block is in one atomic byte for its first page. [`free`] and `Part::end`
//! make its transitions.

use std::alloc::Layout;

/// The largest blocks that get pages of their own, in bytes. Data that threads pass to each other
/// by pointers is small.
#[cfg(all(unix, target_pointer_width = "64"))]
const SIZE_MAX: usize = 64 << 10;

/// The number of bytes of addresses that are set aside.
#[cfg(all(unix, target_pointer_width = "64"))]
const ARENA: usize = 4 << 30;

/// The number of these bytes that a heap gets at once.
#[cfg(all(unix, target_pointer_width = "64"))]
const PART: usize = 1 << 20;

#[cfg(all(unix, target_pointer_width = "64"))]
pub(crate) use pages::was_refused;
#[cfg(all(unix, target_pointer_width = "64"))]
pub(super) use pages::{Pages, free, is_one};

/// Whether this platform supports blocks with pages of their own.
pub(crate) const CAN_LOCK: bool = cfg!(all(unix, target_pointer_width = "64"));

/// Without pages there are no such blocks.
#[cfg(not(all(unix, target_pointer_width = "64")))]
mod none {
    use crate::rt::heap::guarded::Layout;

    #[derive(Default)]
    pub(in super::super) struct Pages;

    impl Pages {
        pub(in super::super) fn block(&mut self, _: Layout) -> Option<*mut u8> {
            None
        }

        pub(in super::super) fn give_up(&mut self) {}
    }

    pub(in super::super) fn is_one(_: usize) -> bool {
        false
    }

    pub(in super::super) fn free(_: *mut u8) {}

    pub(crate) fn was_refused() -> bool {
        false
    }
}

#[cfg(not(all(unix, target_pointer_width = "64")))]
pub(crate) use none::was_refused;
#[cfg(not(all(unix, target_pointer_width = "64")))]
pub(super) use none::{Pages, free, is_one};

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use std::ops::Range;
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
    use std::{ptr, slice};

    use crate::rt::heap::attached::unrecorded;
    use crate::rt::heap::guarded::{ARENA, Layout, PART, SIZE_MAX};
    use crate::rt::process::page::page;

    /// The addresses that are set aside.
    struct Arena {
        /// The start of the range, as a pointer that is valid for the full range.
        start: *mut u8,
        /// For each page the state of the block that begins there: its number of pages, and its
        /// flags. 0 if no block begins there.
        marks: &'static [AtomicU8],
    }

    // SAFETY: each user of a part of the arena has got it from `Part::new`, which returns no part
    // that is in use.
    unsafe impl Send for Arena {}
    // SAFETY: as above.
    unsafe impl Sync for Arena {}

    /// The bits of a mark that hold the length of a block, in pages.
    const LENGTH: u8 = 0x1f;

    /// A thread is freeing the block.
    const LEAVES: u8 = 0x20;

    /// The block was freed, and is locked until its exploration ends.
    const GONE: u8 = 0x40;

    /// The exploration that made the block has ended.
    const OLD: u8 = 0x80;

    /// The smallest page size of any supported system.
    const PAGE_MIN: usize = 4096;

    const _: () = assert!(SIZE_MAX / PAGE_MIN <= LENGTH as usize);

    /// `None` if the system has no such range of addresses.
    static SET_ASIDE: OnceLock<Option<Arena>> = OnceLock::new();

    /// The number of bytes of the range that are in parts.
    static GIVEN: AtomicUsize = AtomicUsize::new(0);

    /// Whether a block was not locked, because the system has no more mappings for this process, or
    /// all addresses are used up.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Whether a use of freed memory may have been missed because a block could not be locked.
    pub(crate) fn was_refused() -> bool {
        REFUSED.load(Relaxed)
    }

    /// The parts that no heap has. Some of them have no room until blocks are freed.
    static IDLE: Mutex<Vec<Part>> = Mutex::new(Vec::new());

    fn idle() -> MutexGuard<'static, Vec<Part>> {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_aside() -> Option<Arena> {
        let start = map(ARENA, libc::PROT_NONE)?;
        let length = ARENA / page();
        let marks = map(length, ALL)?.cast::<AtomicU8>();
        // SAFETY: these bytes are mapped for good, no other code has them, and zeroes, which they
        // are, are values of the type.
        let marks = unsafe { slice::from_raw_parts(marks, length) };
        Some(Arena { start, marks })
    }

    /// Maps this number of new bytes.
    fn map(size: usize, access: libc::c_int) -> Option<*mut u8> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping at an address that the system chooses changes no existing mapping.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| start.cast())
    }

    fn arena() -> Option<&'static Arena> {
        SET_ASIDE.get()?.as_ref()
    }

    /// Whether a guarded block begins at this address.
    #[inline]
    pub(in super::super) fn is_one(start: usize) -> bool {
        arena().is_some_and(|arena| start.wrapping_sub(arena.start.addr()) < ARENA)
    }

    /// Frees the block that begins at this address. From now on each use of the block is a fault,
    /// until the exploration that made the block ends. If the block was freed before, or no block
    /// begins there, the call does nothing: only the program claims that there is a block.
    #[cold]
    pub(in super::super) fn free(start: *mut u8) {
        let Some(arena) = arena() else {
            return;
        };
        let at = start.addr().wrapping_sub(arena.start.addr());
        let mark = arena.marks.get(at / page());
        let Some(mark) = mark.filter(|_| at.is_multiple_of(page())) else {
            return;
        };
        let is_there = |mark: u8| mark & LENGTH != 0 && mark & (LEAVES | GONE) == 0;
        let leaves = |mark| is_there(mark).then_some(mark | LEAVES);
        let Ok(before) = mark.fetch_update(Acquire, Relaxed, leaves) else {
            return;
        };
        let size = usize::from(before & LENGTH) * page();
        if before & OLD == 0 {
            // SAFETY: the pages belong to this block alone, which no code may use any more, and
            // while its mark has the bit `LEAVES`, no other block gets the pages.
            if !unsafe { allow(libc::PROT_NONE, start, size) } {
                REFUSED.store(true, Relaxed);
            }
            let gone = before | GONE;
            if (mark.compare_exchange(before | LEAVES, gone, Release, Acquire)).is_ok() {
                return;
            }
            // The exploration has ended in the meantime, and may have unlocked its pages before
            // these were locked. SAFETY: as above.
            if !unsafe { allow(ALL, start, size) } {
                // The pages stay locked, and no block gets them.
                return;
            }
        }
        // SAFETY: as above.
        unsafe { give_back(start, size) };
        mark.store(0, Release);
    }

    /// Gives the memory of `size` bytes from `start` on back to the system.
    ///
    /// # Safety
    ///
    /// The bytes are in the arena, and only the caller has them.
    unsafe fn give_back(start: *mut u8, size: usize) {
        // SAFETY: the caller guarantees it.
        unsafe { libc::madvise(start.cast(), size, libc::MADV_DONTNEED) };
    }

    /// Sets the permitted accesses for `size` bytes from `start` on, and returns whether the system
    /// agrees.
    ///
    /// # Safety
    ///
    /// The bytes are in the arena, and each holder of some of them may make these accesses there.
    unsafe fn allow(access: libc::c_int, start: *mut u8, size: usize) -> bool {
        // SAFETY: the caller guarantees it.
        unsafe { libc::mprotect(start.cast(), size, access) == 0 }
    }

    const ALL: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

    /// A part of the arena.
    struct Part {
        start: *mut u8,
        /// The marks of its pages.
        marks: &'static [AtomicU8],
        /// The bytes before this offset may contain blocks of explorations that have ended. `from`
        /// and `used` are in bytes.
        from: usize,
        used: usize,
    }

    // SAFETY: a `Part` is the only value that has this part of the arena.
    unsafe impl Send for Part {}

    impl Part {
        /// A part that no heap has.
        fn new() -> Option<Part> {
            let mut idle = idle();
            if let Some(at) = idle.iter_mut().rposition(Part::gets_room) {
                return Some(idle.swap_remove(at));
            }
            drop(idle);
            let arena = SET_ASIDE.get_or_init(set_aside).as_ref()?;
            let fits = |given: usize| Some(given + PART).filter(|&end| end <= ARENA);
            let given = GIVEN.fetch_update(Relaxed, Relaxed, fits).ok()?;
            // SAFETY: the arena has that many bytes from its start on.
            let start = unsafe { arena.start.add(given) };
            // SAFETY: no other part has these pages.
            let is_open = unsafe { allow(ALL, start, PART) };
            is_open.then_some(Part {
                start,
                marks: &arena.marks[given / page()..(given + PART) / page()],
                from: 0,
                used: 0,
            })
        }

        /// Whether there is room for a block of any size behind the last block that is not known to
        /// be freed. No heap has the part.
        fn gets_room(&mut self) -> bool {
            self.used = self.end_of_left(0..self.used);
            self.from = self.used;
            self.used + SIZE_MAX <= PART
        }

        /// The offset behind the last block in this range that has not been freed. The range begins
        /// and ends with blocks.
        fn end_of_left(&self, within: Range<usize>) -> usize {
            let first = within.start / page();
            let marks = &self.marks[first..within.end / page()];
            // Acquire: the thread that freed a block has finished its work there.
            let left = marks.iter().map(|mark| mark.load(Acquire));
            let mut left = left.enumerate().rev();
            let last = left.find(|(_, mark)| mark & LENGTH != 0 && mark & GONE == 0);
            last.map_or(within.start, |(at, mark)| {
                (first + at + usize::from(mark & LENGTH)) * page()
            })
        }

        fn block(&mut self, size: usize) -> Option<*mut u8> {
            let at = self.used;
            self.used = Some(at + size).filter(|&end| end <= PART)?;
            self.marks[at / page()].store((size / page()) as u8, Relaxed);
            // SAFETY: the address is within the part.
            Some(unsafe { self.start.add(at) })
        }

        /// Ends the exploration that has the part: unlocks the locked pages. The pages behind the
        /// last block that was not freed can be used again. Returns false if the system does not
        /// agree.
        fn end(&mut self) -> bool {
            let pages = self.from / page()..self.used / page();
            let mut some_gone = false;
            for mark in &self.marks[pages.clone()] {
                // As long as a block is not old, its mark does not become 0. A free from now on
                // does not lock the block.
                if mark.load(Relaxed) != 0 {
                    some_gone |= mark.fetch_or(OLD, AcqRel) & GONE != 0;
                }
            }
            // SAFETY: the bytes are within the part. No block uses the locked pages, and the
            // holders of the rest may use it already.
            let open = || unsafe { allow(ALL, self.start.add(self.from), self.used - self.from) };
            if some_gone && !open() {
                return false;
            }
            let used = self.end_of_left(self.from..self.used);
            for at in pages {
                let mark = self.marks[at].load(Relaxed);
                if mark & GONE == 0 {
                    continue;
                }
                let (at, size) = (at * page(), usize::from(mark & LENGTH) * page());
                // The pages behind it are used again soon.
                if at < used {
                    // SAFETY: the bytes are within the part, and their blocks were freed.
                    unsafe { give_back(self.start.add(at), size) };
                }
                self.marks[at / page()].store(0, Release);
            }
            self.used = used;
            self.from = used;
            true
        }
    }

    /// The parts that a heap has. New blocks come from the last one.
    #[derive(Default)]
    pub(in super::super) struct Pages(Vec<Part>);

    impl Pages {
        /// A block with pages of its own.
        pub(in super::super) fn block(&mut self, layout: Layout) -> Option<*mut u8> {
            let page = page();
            if layout.size() == 0 || layout.size() > SIZE_MAX || layout.align() > page {
                return None;
            }
            let size = layout.size().next_multiple_of(page);
            if let Some(block) = self.0.last_mut().and_then(|part| part.block(size)) {
                return Some(block);
            }
            match Part::new() {
                Some(part) => self.0.push(part),
                None => REFUSED.store(true, Relaxed),
            }
            self.0.last_mut()?.block(size)
        }

        /// Ends the exploration: from now on no use of its pages is a fault.
        pub(in super::super) fn give_up(&mut self) {
            for mut part in self.0.drain(..) {
                if part.end() {
                    // The list may grow, and an attached heap must not request a part in the
                    // meantime.
                    unrecorded(|| idle().push(part));
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn write(block: *mut u8, byte: u8) {
            // SAFETY: the block has a page, which is not locked.
            unsafe { block.write_bytes(byte, page()) };
        }

        fn read(block: *mut u8) -> u8 {
            // SAFETY: the byte has been written, and its page is not locked.
            unsafe { block.read() }
        }

        fn blocks<const N: usize>(part: &mut Part) -> [*mut u8; N] {
            [(); N].map(|()| part.block(page()).expect("it fits"))
        }

        /// The mark of this block.
        fn mark(part: &Part, block: *mut u8) -> u8 {
            part.marks[(block.addr() - part.start.addr()) / page()].load(Relaxed)
        }

        #[test]
        fn pages_are_used_again_where_all_blocks_were_freed() {
            let mut part = Part::new().expect("there is room");
            let first: [_; 3] = blocks(&mut part);
            for block in first {
                write(block, 1);
                free(block);
                assert_eq!(mark(&part, block), 1 | GONE);
            }
            assert!(part.end());
            let second = blocks(&mut part);
            assert_eq!(first, second);
            for block in second {
                write(block, 2);
            }
            assert_eq!(second.map(read), [2; 3]);
        }

        #[test]
        fn what_was_not_freed_is_left_alone() {
            let mut part = Part::new().expect("there is room");
            let [freed, left] = blocks(&mut part);
            write(freed, 1);
            write(left, 1);
            free(freed);
            assert!(part.end());
            assert_eq!(mark(&part, left), 1 | OLD);
            let [other, stays] = blocks(&mut part);
            write(other, 2);
            write(stays, 2);
            free(other);
            // A second free changes nothing.
            free(freed);
            free(other);
            assert!(part.end());
            let last: [_; 2] = blocks(&mut part);
            for block in last {
                write(block, 3);
                assert!(![freed, left, other, stays].contains(&block));
            }
            assert_eq!([left, stays].map(read), [1, 2]);
        }

        #[test]
        fn what_is_freed_behind_its_exploration_is_not_locked_and_used_again() {
            let mut part = Part::new().expect("there is room");
            let from = part.used;
            let [first, second] = blocks(&mut part);
            assert!(part.end());
            let [third] = blocks(&mut part);
            for block in [first, second, third] {
                write(block, 1);
            }
            for block in [first, second] {
                free(block);
                assert_eq!(mark(&part, block), 0);
                // The page is the system's again, and accessible.
                assert_eq!(read(block), 0);
            }
            assert_eq!(read(third), 1);
            free(third);
            assert_eq!(mark(&part, third), 1 | GONE);
            assert!(part.end() && part.gets_room());
            assert!(part.used <= from);
        }

        #[test]
        fn what_is_freed_while_its_exploration_ends_is_not_locked() {
            for _ in 0..200 {
                let mut part = Part::new().expect("there is room");
                let all: [_; 4] = blocks(&mut part);
                let addresses = all.map(|block| block.expose_provenance());
                let frees = std::thread::spawn(move || {
                    for address in addresses {
                        free(ptr::with_exposed_provenance_mut(address));
                    }
                });
                assert!(part.end());
                frees.join().expect("it frees");
                for block in all {
                    assert_eq!(mark(&part, block), 0);
                    write(block, 1);
                }
                assert!(part.gets_room());
                idle().push(part);
            }
        }

        #[test]
        fn what_is_no_start_of_a_block_is_not_freed() {
            let mut part = Part::new().expect("there is room");
            let block = part.block(2 * page()).expect("it fits");
            write(block, 1);
            for within in [1, 16, page()] {
                free(block.wrapping_add(within));
            }
            assert_eq!((mark(&part, block), read(block)), (2, 1));
        }

        #[test]
        fn what_pages_do_not_suit_has_none() {
            let (mut pages, page) = (Pages::default(), page());
            for (size, align, suits) in [
                (1, 1, true),
                (SIZE_MAX, page, true),
                (0, 1, false),
                (SIZE_MAX + 1, 1, false),
                // The block may begin on an odd page.
                (1, 2 * page, false),
            ] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                assert_eq!(pages.block(layout).is_some(), suits, "{layout:?}");
            }
            pages.give_up();
        }

        #[test]
        fn a_part_has_an_end() {
            let mut part = Part::new().expect("there is room");
            let before = part.used;
            let all = std::iter::from_fn(|| part.block(SIZE_MAX)).count();
            assert_eq!(all, (PART - before) / SIZE_MAX);
            assert!(part.block(page()).is_none_or(|_| before > 0));
            assert!(!part.gets_room());
        }
    }
}
