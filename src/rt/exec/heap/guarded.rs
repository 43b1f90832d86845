//! How is a use of freed memory found that goes through nothing of this crate's?
//!
//! Where a thread is held up, to see what it does once others have gone on, each block of the model has pages of its own, which
//! are locked when it is freed. So who still uses it, in whatever way, has a fault ([`faults`](super::super::faults)). That takes
//! a system call for each block, and is done in the few executions that are made for it.
//!
//! A part of the addresses is set aside once in a process, and heaps get parts of that. Within one exploration no page is used
//! twice. Behind it all are unlocked with one call, and the next one uses them again, if each block was freed. Those of a part of
//! which one was not are not used again. If all is used up, or a block is large, the block comes from the allocator as ever. One
//! that outlives its execution is recognised by its address when it is freed.

use std::alloc::Layout;

use super::Heap;
use crate::rt::trace::schedule::Guarded;

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

/// The largest blocks that get pages of their own, in bytes: what threads hand to each other by pointers is small.
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
pub(super) use pages::{Pages, is_one, lock};

/// Whether a block can have pages of its own here.
pub(crate) const CAN_LOCK: bool = cfg!(all(unix, target_pointer_width = "64"));

/// Without pages there are no such blocks.
#[cfg(not(all(unix, target_pointer_width = "64")))]
mod none {
    use super::Layout;

    #[derive(Default)]
    pub(in super::super) struct Pages;

    impl Pages {
        pub(in super::super) fn block(&mut self, _: Layout) -> Option<*mut u8> {
            None
        }

        pub(in super::super) fn lock(&mut self, _: *mut u8, _: usize) {}

        pub(in super::super) fn give_up(&mut self) {}
    }

    pub(in super::super) fn is_one(_: usize) -> bool {
        false
    }

    pub(in super::super) fn lock(_: *mut u8, _: usize) {}

    pub(crate) fn was_refused() -> bool {
        false
    }
}

#[cfg(not(all(unix, target_pointer_width = "64")))]
pub(crate) use none::was_refused;
#[cfg(not(all(unix, target_pointer_width = "64")))]
pub(super) use none::{Pages, is_one, lock};

#[cfg(all(unix, target_pointer_width = "64"))]
mod pages {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
    use std::{mem, ptr};

    use super::{ARENA, Layout, PART, SIZE_MAX};

    /// Where the addresses begin that are set aside, as a pointer that may be used for all of them; null if there are none.
    struct Arena(*mut u8);

    // SAFETY: who gets a part of it has got it from `Part::new`, which gives no part twice.
    unsafe impl Send for Arena {}
    // SAFETY: as above.
    unsafe impl Sync for Arena {}

    static SET_ASIDE: OnceLock<Arena> = OnceLock::new();

    /// How many bytes of it are in parts.
    static GIVEN: AtomicUsize = AtomicUsize::new(0);

    /// Whether a block was not locked, because the system has no more mappings for this process, or all addresses are used up.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Whether a use of freed memory may have gone unseen because a block could not be locked.
    pub(crate) fn was_refused() -> bool {
        REFUSED.load(Relaxed)
    }

    /// The parts that no heap has.
    static IDLE: Mutex<Vec<Part>> = Mutex::new(Vec::new());

    fn idle() -> MutexGuard<'static, Vec<Part>> {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_aside() -> Arena {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping anywhere changes nothing that there is.
        let start = unsafe { libc::mmap(ptr::null_mut(), ARENA, libc::PROT_NONE, flags, -1, 0) };
        Arena(match start == libc::MAP_FAILED {
            true => ptr::null_mut(),
            false => start.cast(),
        })
    }

    /// The size of a page in bytes.
    fn page() -> usize {
        static PAGE: OnceLock<usize> = OnceLock::new();
        *PAGE.get_or_init(|| {
            // SAFETY: it only asks.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            usize::try_from(page).unwrap_or(super::SIZE_MAX)
        })
    }

    /// Whether there is such a block at this address.
    #[inline]
    pub(in super::super) fn is_one(start: usize) -> bool {
        match SET_ASIDE.get() {
            None => false,
            Some(Arena(arena)) => !arena.is_null() && start.wrapping_sub(arena.addr()) < ARENA,
        }
    }

    /// Makes a fault of each use of a block of so many bytes from now on, which has been freed by who has not given it out.
    pub(in super::super) fn lock(start: *mut u8, size: usize) {
        give_back(start, size);
        // SAFETY: the pages are the block's alone, which nobody may use any more.
        unsafe { allow(libc::PROT_NONE, start, size.next_multiple_of(page())) };
    }

    /// Gives the memory of a block of so many bytes back to the system.
    fn give_back(start: *mut u8, size: usize) {
        // SAFETY: the pages are the block's alone, which was freed.
        unsafe {
            libc::madvise(
                start.cast(),
                size.next_multiple_of(page()),
                libc::MADV_DONTNEED,
            );
        }
    }

    /// Says what may be done to so many bytes from there on, and whether the system agrees.
    ///
    /// # Safety
    ///
    /// They are in the arena, and nobody does anything else there.
    unsafe fn allow(access: libc::c_int, start: *mut u8, size: usize) -> bool {
        // SAFETY: the caller says so.
        unsafe { libc::mprotect(start.cast(), size, access) == 0 }
    }

    const ALL: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

    /// A part of the arena.
    struct Part {
        start: *mut u8,
        /// What lies before may be used by blocks that were not freed, and is left alone. In bytes, as what is used.
        from: usize,
        used: usize,
        /// How many blocks there are behind the former, and which of them are locked: from where, and how many bytes.
        blocks: usize,
        locked: Vec<(usize, usize)>,
    }

    // SAFETY: it is the only one that has this part of the arena.
    unsafe impl Send for Part {}

    impl Part {
        /// One that nobody has.
        fn new() -> Option<Part> {
            if let Some(part) = idle().pop() {
                return Some(part);
            }
            let Arena(arena) = *SET_ASIDE.get_or_init(set_aside);
            if arena.is_null() {
                return None;
            }
            let fits = |given: usize| Some(given + PART).filter(|&end| end <= ARENA);
            let given = GIVEN.fetch_update(Relaxed, Relaxed, fits).ok()?;
            // SAFETY: that many bytes from there on are in the arena.
            let start = unsafe { arena.add(given) };
            // SAFETY: nobody else has been given these pages.
            let is_open = unsafe { allow(ALL, start, PART) };
            is_open.then_some(Part {
                start,
                from: 0,
                used: 0,
                blocks: 0,
                locked: Vec::new(),
            })
        }

        fn block(&mut self, size: usize) -> Option<*mut u8> {
            let at = self.used;
            self.used = Some(at + size).filter(|&end| end <= PART)?;
            self.blocks += 1;
            // SAFETY: it is within the part.
            Some(unsafe { self.start.add(at) })
        }

        fn lock(&mut self, start: *mut u8, size: usize) {
            let at = start.addr() - self.start.addr();
            if at < self.from {
                // It is not among those that are counted.
                return lock(start, size);
            }
            self.locked.push((at, size));
            // SAFETY: the pages are the block's alone, which nobody may use any more.
            if !unsafe { allow(libc::PROT_NONE, start, size) } {
                REFUSED.store(true, Relaxed);
            }
        }

        /// Unlocks what is locked, to be used again unless a block there was not freed. False if the system does not agree.
        fn unlock(&mut self) -> bool {
            let (from, length) = (self.from, self.used - self.from);
            let (blocks, locked) = (mem::take(&mut self.blocks), self.locked.len());
            match blocks == locked {
                true => self.used = from,
                false => self.from = self.used,
            }
            for (at, size) in self.locked.drain(..).filter(|_| blocks != locked) {
                // SAFETY: it is within the part.
                give_back(unsafe { self.start.add(at) }, size);
            }
            // SAFETY: it is within the part. What is locked there is nobody's, and who has the rest may use it already.
            locked == 0 || unsafe { allow(ALL, self.start.add(from), length) }
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

        /// Makes a fault of each use of a block of so many bytes from now on, which has been freed.
        pub(in super::super) fn lock(&mut self, start: *mut u8, size: usize) {
            let has = |part: &&mut Part| start.addr().wrapping_sub(part.start.addr()) < PART;
            match self.0.iter_mut().rev().find(has) {
                Some(part) => part.lock(start, size.next_multiple_of(page())),
                None => lock(start, size),
            }
        }

        /// From now on nothing that was locked so is a fault.
        pub(in super::super) fn give_up(&mut self) {
            for mut part in self.0.drain(..) {
                // One that is nearly full is left alone.
                if part.unlock() && part.used + SIZE_MAX <= PART {
                    idle().push(part);
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

        #[test]
        fn pages_are_used_again_where_all_blocks_were_freed() {
            let mut part = Part::new().expect("there is room");
            let first: [_; 3] = blocks(&mut part);
            for block in first {
                write(block, 1);
                part.lock(block, page());
            }
            assert!(part.unlock());
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
            part.lock(freed, page());
            assert!(part.unlock());
            // One that is freed later does not count for another one.
            let [other, stays] = blocks(&mut part);
            write(other, 2);
            write(stays, 2);
            part.lock(other, page());
            part.lock(freed, page());
            assert!(part.unlock());
            let last: [_; 2] = blocks(&mut part);
            for block in last {
                write(block, 3);
                assert!(![freed, left, other, stays].contains(&block));
            }
            assert_eq!([left, stays].map(read), [1, 2]);
        }

        #[test]
        fn a_part_has_an_end() {
            let mut part = Part::new().expect("there is room");
            let before = part.used;
            let all = std::iter::from_fn(|| part.block(SIZE_MAX)).count();
            assert_eq!(all, (PART - before) / SIZE_MAX);
            assert!(part.block(page()).is_none_or(|_| before > 0));
        }
    }
}
