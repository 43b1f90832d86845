//! Is the memory that a thread uses still there, and may it be used now?
//!
//! The runtime's half of the memory checks: what the heap says of a block, what the detector says
//! of an access, and how the execution ends if one of them objects.

use super::context::{Inner, Runtime, with_any};
use crate::rt::coroutine::Fault;
use crate::rt::event::Site;
use crate::rt::event::id::{Extent, ObjectId, Place, Region, ThreadId};
use crate::rt::event::operation::{ADDRESS_MIN, ObjectKind, OpKind, Operation, Rmw, address_in};
use crate::rt::event::verdict::{Access, Accessed, BadMemory, Block, Effect, End, Gone, Wrong};
use crate::rt::heap;
use crate::rt::heap::contents;
use crate::rt::rare::rarely;
use crate::rt::shim::{Memory, Target};
use crate::rt::statics::segments;

impl Runtime {
    /// What was found at the address of a shim is no more.
    #[cold]
    pub(super) fn used_after_its_end<T>(
        &self,
        target: &Target,
        kind: OpKind,
        gone: Gone,
        site: Site,
    ) -> Option<T> {
        let object = {
            let inner = &mut *self.inner.borrow_mut();
            let region = self.region_of_gone(&inner.ended, target.address, gone);
            let machine = &mut inner.driver.machine;
            if let Gone::Block(..) = gone
                && let Some(found) = self.heap.find_gone(target.address)
            {
                self.heap.look_at_use(&found);
            }
            let place = Place {
                region,
                generation: 0,
            };
            machine.object_at(place, target.kind, target.memory)
        };
        let operation = Operation { object, kind };
        self.fail(self.bad_memory(Wrong::Operation(operation, site), gone))
    }

    /// Where an address was that is gone, in words that are the same in every execution with the
    /// same history.
    fn region_of_gone(
        &self,
        ended: &[(ThreadId, (usize, usize))],
        address: usize,
        gone: Gone,
    ) -> Region {
        let was = match gone {
            Gone::Block(block, _) => {
                let found = self.heap.find_gone(address);
                found.map(|found| region(block, address - found.start))
            }
            Gone::Stack(thread) => {
                let mut ended = ended.iter().rev();
                let stack = ended.find(|(owner, _)| *owner == thread);
                stack.map(|&(_, (_, top))| Region::Stack {
                    thread,
                    depth: top - address,
                })
            }
        };
        was.unwrap_or(Region::External { address })
    }

    /// A wrong use of memory by the thread that runs.
    pub(super) fn bad_memory(&self, wrong: Wrong, memory: Gone) -> End {
        self.inner
            .borrow()
            .bad_memory(self.current.get(), wrong, memory)
    }

    /// How the execution ends in which the thread that ran has used memory like this.
    pub(super) fn end_of_use(&self, thread: ThreadId, fault: &Fault) -> End {
        let address = fault.address;
        let block = |address| Some((address, self.heap.find_gone(address)?));
        match address.and_then(block) {
            Some((address, block)) => {
                let offset = address - block.start;
                self.bad_memory(Wrong::Raw { offset }, gone(&block))
            }
            None => End::MemoryFault {
                thread,
                address,
                is_constant: fault.is_write_to_constant(),
            },
        }
    }

    /// Whether an atomic or a cell that is older than the execution leads to a block of it. Such a
    /// block is not leaked where that keeps its value.
    pub(super) fn leads_somewhere(&self) -> bool {
        !self.heap.is_empty() && self.leads_to_a_block()
    }

    /// [`Runtime::leads_somewhere`] where there are blocks.
    #[inline(never)]
    fn leads_to_a_block(&self) -> bool {
        let inner = self.inner.borrow();
        let values = inner.table.values_elsewhere(&inner.driver.machine);
        let mut addresses = (values.map(address_in)).chain(inner.table.words_elsewhere());
        addresses.any(|address| self.heap.contains(address))
    }

    /// A pointer to a block has been published: the block is the model's.
    #[inline]
    pub(super) fn note_pointer(&self, target: &Target, kind: &OpKind) {
        if let Some(pointer) = published(target, kind) {
            self.note_published(&mut self.inner.borrow_mut(), pointer);
        }
    }

    /// This pointer has been published.
    #[inline(never)]
    pub(super) fn note_published(&self, inner: &mut Inner, pointer: u64) {
        if let Some(block) = self.heap.find(address_in(pointer)) {
            (inner.driver.machine.names).note_block(Extent {
                start: block.start,
                block: block.name(),
            });
        }
    }

    /// Where an address is, in words that are the same in every execution with the same history.
    pub(super) fn locate(
        &self,
        stacks: &[Option<(usize, usize)>],
        ended: &[(ThreadId, (usize, usize))],
        address: usize,
    ) -> Result<Region, Gone> {
        if let Some(region) = self.locate_own(stacks, address) {
            return Ok(region);
        }
        if let Some(block) = self.heap.find_gone(address) {
            return Err(gone(&block));
        }
        let on_stack =
            |(_, (bottom, top)): &&(ThreadId, (usize, usize))| (*bottom..*top).contains(&address);
        match ended.iter().rev().find(on_stack) {
            Some(&(thread, _)) => Err(Gone::Stack(thread)),
            None => Ok(Region::External { address }),
        }
    }

    /// [`Runtime::locate`] for what is the model's own and is not gone: in a live block of this
    /// execution, or on the stack of a thread.
    #[inline]
    pub(super) fn locate_own(
        &self,
        stacks: &[Option<(usize, usize)>],
        address: usize,
    ) -> Option<Region> {
        if let Some(block) = self.heap.find(address) {
            return Some(region(block.name(), address - block.start));
        }
        for (index, stack) in stacks.iter().enumerate() {
            let Some((bottom, top)) = *stack else {
                continue;
            };
            if (bottom..top).contains(&address) {
                let depth = top - address;
                return Some(Region::Stack {
                    thread: ThreadId(index as u32),
                    depth,
                });
            }
        }
        None
    }

    /// Whether [`Runtime::locate`] certainly says this of the address.
    #[inline]
    pub(super) fn is_still(
        &self,
        stacks: &[Option<(usize, usize)>],
        region: &Region,
        address: usize,
    ) -> bool {
        match *region {
            Region::Heap { size, offset, .. } => {
                let is_it = |block: &heap::Block| self::region(block.name(), offset) == *region;
                self.heap.is_still(address, (address - offset, size), is_it)
            }
            // No stack is in a block.
            Region::Stack { thread, depth } => match stacks.get(thread.index()) {
                Some(&Some((bottom, top))) => address >= bottom && address + depth == top,
                _ => false,
            },
            _ => false,
        }
    }

    /// An execution that is torn down uses this shim, which may be older than it.
    pub(super) fn meet_at_end(&self, inner: &mut Inner, target: &Target) {
        let region = self.locate(&inner.stacks, &inner.ended, target.address);
        if let Ok(Region::External { .. }) = region {
            inner.table.meet_at_end(target);
        }
    }

    /// The same of plain memory.
    pub(super) fn keep_at_end(&self, inner: &mut Inner, memory: Memory) {
        let region = self.locate(&inner.stacks, &inner.ended, memory.start.addr());
        if let Ok(Region::External { .. }) = region {
            inner.table.keep_foreign(memory);
        }
    }

    /// Begins an access to plain memory. `None` if the execution ends with it.
    pub(super) fn begin_access(&self, memory: Memory, effect: Effect, site: Site) -> Option<()> {
        let cell = (memory.start.addr(), memory.size);
        let region = {
            let inner = self.inner.borrow();
            match inner.races.knows(cell) {
                true => None,
                false => Some(self.locate(&inner.stacks, &inner.ended, cell.0)),
            }
        };
        let region = match region {
            Some(Err(gone)) => {
                let region = self.region_of_gone(&self.inner.borrow().ended, cell.0, gone);
                return self.fail(self.bad_memory(Wrong::Access(effect, site, region), gone));
            }
            Some(Ok(region)) => Some(region),
            None => None,
        };
        if let Some(Region::External { .. }) = region {
            self.inner.borrow_mut().table.keep_foreign(memory);
        }
        self.begin_access_to(cell, (None, region), effect, site)
    }

    /// Begins an access to memory that is there, maybe that of an object. Where it is has to be
    /// said if the cell is not known.
    pub(super) fn begin_access_to(
        &self,
        cell: (usize, usize),
        (object, region): (Option<ObjectId>, Option<Region>),
        effect: Effect,
        site: Site,
    ) -> Option<()> {
        let race = {
            let mut inner = self.inner.borrow_mut();
            inner.watch_races();
            let thread = self.current.get();
            let access = Access {
                thread,
                effect,
                site,
                after: inner.driver.machine.events_of(thread),
            };
            match inner.races.begin(cell, object, region, access) {
                Ok(()) => {
                    inner.note_contents(&self.heap, access, cell);
                    return Some(());
                }
                Err(mut race) => {
                    let found = || self.locate(&inner.stacks, &inner.ended, cell.0).ok();
                    race.memory = Accessed {
                        shim: object,
                        region: race.memory.region.or(region).or_else(found),
                        std_local: segments::is_local(cell.0),
                    };
                    race
                }
            }
        };
        self.fail(End::DataRace(race))
    }
}

impl Inner {
    /// What is in memory that a thread is about to write to belongs to what it sees in a loop that
    /// changes things and changes them back. Where it leads to much, or to the stack of a thread,
    /// nothing is known of it.
    #[inline]
    fn note_contents(&mut self, heap: &heap::Heap, access: Access, (start, size): (usize, usize)) {
        if access.effect == Effect::Write
            && let Some(log) = self.driver.machine.follows(access.thread)
        {
            // SAFETY: it can be read: it is that of a cell or a shim to which there is a reference.
            let contents = unsafe { contents::of_reach(heap, &self.stacks, (start, size)) };
            log.touch_memory(contents.unwrap_or(0));
        }
    }

    /// From here on the accesses to plain memory are watched.
    pub(super) fn watch_races(&mut self) {
        if !self.races.is_active() {
            self.races.activate(self.driver.past(), self.driver.gone());
        }
    }

    /// A wrong use of memory by this thread.
    pub(super) fn bad_memory(&self, thread: ThreadId, wrong: Wrong, memory: Gone) -> End {
        End::BadMemory(Box::new(BadMemory {
            thread,
            after: self.driver.machine.events_of(thread),
            wrong,
            memory,
        }))
    }
}

pub(super) fn gone(block: &heap::Block) -> Gone {
    let freed = block.freed.map(|(thread, after)| (ThreadId(thread), after));
    Gone::Block(block.name(), freed)
}

/// The place at an offset in bytes in a block.
fn region(block: Block, offset: usize) -> Region {
    Region::Heap {
        thread: block.thread,
        events: block.events,
        size: block.size,
        align: block.align,
        nth: block.nth,
        offset,
    }
}

/// The pointer that an operation has put into the memory behind a shim, or was to put there: what a
/// failed compare-exchange has offered is the model's, too, and its thread has to free it.
#[inline(always)]
pub(super) fn published(target: &Target, kind: &OpKind) -> Option<u64> {
    let word = match *kind {
        OpKind::Store { value, .. }
        | OpKind::Rmw {
            rmw: Rmw::Swap,
            operand: value,
            ..
        } => value,
        OpKind::CompareExchange { new, .. } => new,
        _ => return None,
    };
    may_be_pointer(target.kind, word).then_some(word)
}

/// Whether this word may be a pointer to a block, in an atomic of this kind.
#[inline(always)]
pub(super) fn may_be_pointer(kind: ObjectKind, word: u64) -> bool {
    rarely!(word >= ADDRESS_MIN) && matches!(kind, ObjectKind::Atomic(ty) if ty.holds_pointers())
}

/// [`contents::of_reach`] of this memory in the execution that runs here; `None` also if the thread
/// that runs here, if any, is not in a loop, so that the answer is not needed.
///
/// # Safety
///
/// The memory can be read.
pub(crate) unsafe fn reached_contents(start: usize, size: usize) -> Option<u64> {
    with_any(|runtime| {
        let me = runtime.current.get();
        let inner = runtime.inner.borrow();
        if runtime.stopping.get() || !inner.driver.machine.may_loop(me) {
            return None;
        }
        // SAFETY: the caller says so.
        unsafe { contents::of_reach(&runtime.heap, &inner.stacks, (start, size)) }
    })?
}
