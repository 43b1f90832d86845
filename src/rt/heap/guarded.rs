//! How is a use of freed memory found that goes through nothing of this crate's?
//!
//! Where a thread is held up, to see what it does once others have gone on, each block of the model
//! has pages of its own, which are locked when it is freed. So who still uses it, in whatever way,
//! has a fault ([`faults`](crate::rt::exec::faults)). That takes a system call for each block, and
//! is done in the few executions that are made for it.
//!
//! A part of the addresses is set aside once in a process, and heaps get parts of that. Within one
//! exploration no page is used twice. Behind it all are unlocked with one call, and nothing that it
//! has made is watched any more: a block that outlives it, as one of a list in which the test
//! collects something, is recognised by its address when it is freed, and its memory goes back to
//! the system, but is not locked. (To lock a page divides a mapping, of which the system has some
//! 65,000 for a process. Nobody would ever unlock it, so a process with many tests would have none
//! left for stacks.) The next exploration goes on behind the last block that has not been freed. If
//! all is used up, or a block is large, the block comes from the allocator as ever.
//!
//! Who frees a block may be on another OS thread, and the exploration may end at that moment. So
//! what is known of each block is in one atomic byte for its first page, which goes from one state
//! to the next as [`free`] and `Part::end` say.

use std::alloc::Layout;

use crate::rt::event::schedule::Guarded;
use crate::rt::heap::Heap;

impl Heap {
    /// From now on these blocks get pages of their own, and a use after their free is a fault.
    pub(crate) fn guard(&self, which: Guarded) {
        self.guarding.set(Some(which));
    }

    /// A block with pages of its own, if it is one of these.
    #[cold]
    pub(super) fn hand_out_guarded(&self, layout: Layout, which: Guarded) -> Option<*mut u8> {
        let (_, events) = self.thread.get();
        if !which.has(layout.size(), events) {
            return None;
        }
        let start = self.with(|state| state.pages.block(layout))??;
        self.note_allocated(start.addr(), layout, || None);
        Some(start)
    }
}

/// The largest blocks that get pages of their own, in bytes: what threads hand to each other by
/// pointers is small.
#[cfg(all(unix, target_pointer_width = "64"))]
const SIZE_MAX: usize = 64 << 10;

/// How many bytes of addresses are set aside.
#[cfg(all(unix, target_pointer_width = "64"))]
const ARENA: usize = 4 << 30;

/// How many bytes a heap gets of them at once.
#[cfg(all(unix, target_pointer_width = "64"))]
const PART: usize = 1 << 20;

#[cfg(all(unix, target_pointer_width = "64"))]
pub(crate) use pages::was_refused;
#[cfg(all(unix, target_pointer_width = "64"))]
pub(super) use pages::{Pages, free, is_one};

/// Whether a block can have pages of its own here.
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
        /// Where they begin, as a pointer that may be used for all of them.
        start: *mut u8,
        /// For each page what is known of the block that begins there: how many pages it has, and
        /// what has become of it. 0 if none does.
        marks: &'static [AtomicU8],
    }

    // SAFETY: who gets a part of it has got it from `Part::new`, which gives none that somebody
    // has.
    unsafe impl Send for Arena {}
    // SAFETY: as above.
    unsafe impl Sync for Arena {}

    /// What a mark says of the length of a block, in pages.
    const LENGTH: u8 = 0x1f;

    /// Somebody is freeing the block.
    const LEAVES: u8 = 0x20;

    /// It was freed, and is locked until its exploration ends.
    const GONE: u8 = 0x40;

    /// The exploration that has made it has ended.
    const OLD: u8 = 0x80;

    /// The smallest page size of any supported system.
    const PAGE_MIN: usize = 4096;

    const _: () = assert!(SIZE_MAX / PAGE_MIN <= LENGTH as usize);

    /// `None` if the system has no addresses to be set aside.
    static SET_ASIDE: OnceLock<Option<Arena>> = OnceLock::new();

    /// How many bytes of it are in parts.
    static GIVEN: AtomicUsize = AtomicUsize::new(0);

    /// Whether a block was not locked, because the system has no more mappings for this process, or
    /// all addresses are used up.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Whether a use of freed memory may have gone unseen because a block could not be locked.
    pub(crate) fn was_refused() -> bool {
        REFUSED.load(Relaxed)
    }

    /// The parts that no heap has. In some there is no room until blocks are freed.
    static IDLE: Mutex<Vec<Part>> = Mutex::new(Vec::new());

    fn idle() -> MutexGuard<'static, Vec<Part>> {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_aside() -> Option<Arena> {
        let start = map(ARENA, libc::PROT_NONE)?;
        let length = ARENA / page();
        let marks = map(length, ALL)?.cast::<AtomicU8>();
        // SAFETY: these bytes are mapped for good, nobody else has them, and zeroes, which they
        // are, are values of the type.
        let marks = unsafe { slice::from_raw_parts(marks, length) };
        Some(Arena { start, marks })
    }

    /// So many bytes that nobody has.
    fn map(size: usize, access: libc::c_int) -> Option<*mut u8> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping anywhere changes nothing that there is.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| start.cast())
    }

    fn arena() -> Option<&'static Arena> {
        SET_ASIDE.get()?.as_ref()
    }

    /// Whether there is such a block at this address.
    #[inline]
    pub(in super::super) fn is_one(start: usize) -> bool {
        arena().is_some_and(|arena| start.wrapping_sub(arena.start.addr()) < ARENA)
    }

    /// Frees the block that begins at this address. Each use of it is a fault from now on, as long
    /// as the exploration that has made it goes on. If it was freed before, or none begins there,
    /// nothing is done: it is only the program that says so.
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
            // SAFETY: the pages are the block's alone, which nobody may use any more, and while its
            // mark says that it leaves, nobody else gets them.
            if !unsafe { allow(libc::PROT_NONE, start, size) } {
                REFUSED.store(true, Relaxed);
            }
            let gone = before | GONE;
            if (mark.compare_exchange(before | LEAVES, gone, Release, Acquire)).is_ok() {
                return;
            }
            // The exploration has ended meanwhile, and may have unlocked all before this was
            // locked. SAFETY: as above.
            if !unsafe { allow(ALL, start, size) } {
                // It stays locked, and nobody's.
                return;
            }
        }
        // SAFETY: as above.
        unsafe { give_back(start, size) };
        mark.store(0, Release);
    }

    /// Gives the memory of so many bytes from there on back to the system.
    ///
    /// # Safety
    ///
    /// They are in the arena, and nobody has them but the caller.
    unsafe fn give_back(start: *mut u8, size: usize) {
        // SAFETY: the caller says so.
        unsafe { libc::madvise(start.cast(), size, libc::MADV_DONTNEED) };
    }

    /// Says what may be done to so many bytes from there on, and whether the system agrees.
    ///
    /// # Safety
    ///
    /// They are in the arena, and whoever has some of them may do there what is said.
    unsafe fn allow(access: libc::c_int, start: *mut u8, size: usize) -> bool {
        // SAFETY: the caller says so.
        unsafe { libc::mprotect(start.cast(), size, access) == 0 }
    }

    const ALL: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

    /// A part of the arena.
    struct Part {
        start: *mut u8,
        /// Those of its pages.
        marks: &'static [AtomicU8],
        /// In what lies before there may be blocks of explorations that have ended. In bytes, as
        /// what is used.
        from: usize,
        used: usize,
    }

    // SAFETY: it is the only one that has this part of the arena.
    unsafe impl Send for Part {}

    impl Part {
        /// One that nobody has.
        fn new() -> Option<Part> {
            let mut idle = idle();
            if let Some(at) = idle.iter_mut().rposition(Part::gets_room) {
                return Some(idle.swap_remove(at));
            }
            drop(idle);
            let arena = SET_ASIDE.get_or_init(set_aside).as_ref()?;
            let fits = |given: usize| Some(given + PART).filter(|&end| end <= ARENA);
            let given = GIVEN.fetch_update(Relaxed, Relaxed, fits).ok()?;
            // SAFETY: that many bytes from there on are in the arena.
            let start = unsafe { arena.start.add(given) };
            // SAFETY: nobody else has been given these pages.
            let is_open = unsafe { allow(ALL, start, PART) };
            is_open.then_some(Part {
                start,
                marks: &arena.marks[given / page()..(given + PART) / page()],
                from: 0,
                used: 0,
            })
        }

        /// Whether there is room for a block of any size behind the last one that has not been
        /// freed, as is known now. Nobody has the part.
        fn gets_room(&mut self) -> bool {
            self.used = self.end_of_left(0..self.used);
            self.from = self.used;
            self.used + SIZE_MAX <= PART
        }

        /// Behind which of these bytes, which begin and end with blocks, there are none but freed
        /// ones.
        fn end_of_left(&self, within: Range<usize>) -> usize {
            let first = within.start / page();
            let marks = &self.marks[first..within.end / page()];
            // Acquire: whoever has freed a block has done what it has to do there.
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
            // SAFETY: it is within the part.
            Some(unsafe { self.start.add(at) })
        }

        /// The exploration that has the part has ended: unlocks what is locked. What lies behind
        /// the last block that was not freed can be used again. False if the system does not agree.
        fn end(&mut self) -> bool {
            let pages = self.from / page()..self.used / page();
            let mut some_gone = false;
            for mark in &self.marks[pages.clone()] {
                // As long as a block is not old, its mark does not become 0. Who frees one from now
                // on does not lock it.
                if mark.load(Relaxed) != 0 {
                    some_gone |= mark.fetch_or(OLD, AcqRel) & GONE != 0;
                }
            }
            // SAFETY: it is within the part. What is locked there is nobody's, and who has the rest
            // may use it already.
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
                // What lies behind is used again soon.
                if at < used {
                    // SAFETY: it is within the part, and was freed.
                    unsafe { give_back(self.start.add(at), size) };
                }
                self.marks[at / page()].store(0, Release);
            }
            self.used = used;
            self.from = used;
            true
        }
    }

    /// The parts that a heap has. Blocks come from the last one.
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

        /// The exploration has ended: from now on nothing is a fault that was locked in it.
        pub(in super::super) fn give_up(&mut self) {
            for mut part in self.0.drain(..) {
                if part.end() {
                    // The list may get longer, and a heap that is attached must not ask for a part
                    // meanwhile.
                    unrecorded(|| idle().push(part));
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn write(block: *mut u8, byte: u8) {
            // SAFETY: it has a page, which is not locked.
            unsafe { block.write_bytes(byte, page()) };
        }

        fn read(block: *mut u8) -> u8 {
            // SAFETY: it has been written, and is not locked.
            unsafe { block.read() }
        }

        fn blocks<const N: usize>(part: &mut Part) -> [*mut u8; N] {
            [(); N].map(|()| part.block(page()).expect("it fits"))
        }

        /// What the mark of this block says.
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
            // Whoever frees something once more changes nothing.
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
                // It is the system's, and accessible.
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
                // It may come to lie on an odd page.
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
