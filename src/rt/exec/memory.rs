//! Is the memory that a thread uses still there, and may the thread use it now?
//!
//! This file is the runtime's half of the memory checks: it combines the heap's answer for a block
//! with the detector's answer for an access, and ends the execution if one of them reports an
//! error.

use super::context::{Inner, Runtime, with_any};
use super::permitted::{Behaviour, Possible};
use crate::rt::coroutine::Fault;
use crate::rt::event::Site;
use crate::rt::event::held::Touched;
use crate::rt::event::id::{Extent, ObjectId, Place, Region, ThreadId};
use crate::rt::event::operation::{ADDRESS_MIN, ObjectKind, OpKind, Operation, Rmw, address_in};
use crate::rt::event::verdict::{
    Access, Accessed, BadMemory, Block, Effect, End, Gone, Pruned, Wrong,
};
use crate::rt::heap;
use crate::rt::heap::reach;
use crate::rt::object::contents::Unfit;
use crate::rt::rare::{mostly, rarely};
use crate::rt::shim::{Memory, Target};
use crate::rt::statics::segments;

impl Runtime {
    /// Ends the execution with a use of a shim in memory that is gone.
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

    /// The former place of an address that is gone, as a region that is the same in every execution
    /// with the same history.
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

    /// The end with a wrong use of memory by the thread that runs.
    pub(super) fn bad_memory(&self, wrong: Wrong, memory: Gone) -> End {
        self.inner
            .borrow()
            .bad_memory(self.current.get(), wrong, memory)
    }

    /// The end of the execution in which `thread` has used memory with this fault.
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

    /// Whether an atomic or a cell that is older than the execution points to a block of the
    /// execution. Such a block is not leaked where the atomic or the cell keeps its value.
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

    /// Marks the block as the model's if this operation has published a pointer to it.
    #[inline]
    pub(super) fn note_pointer(&self, target: &Target, kind: &OpKind) {
        if let Some(pointer) = published(target, kind) {
            self.note_published(&mut self.inner.borrow_mut(), pointer, true);
        }
    }

    /// Marks the block at this pointer, which has been published, as the model's. `is_now` says
    /// whether the last event of the current thread has published it.
    #[inline(never)]
    pub(super) fn note_published(&self, inner: &mut Inner, pointer: u64, is_now: bool) {
        if let Some((block, again)) = self.heap.publish(address_in(pointer)) {
            (inner.driver.machine.names).note_block(Extent {
                start: block.start,
                block: block.name(),
            });
            if rarely!(again) && (is_now || block.thread == self.current.get().0) {
                self.note_again(inner);
            }
        }
    }

    /// Notes that the current thread has published a block that has, or could have, the memory of a
    /// block that was freed.
    #[cold]
    fn note_again(&self, inner: &Inner) {
        let driver = &inner.driver;
        if let Some(last) = driver.last_of(self.current.get()) {
            let possible = Possible {
                behaviour: Behaviour::BlockAgain,
                site: driver.trace.at(last).site,
                explored: driver.machine.limits.blocks_again,
            };
            self.permitted.note(possible, false);
        }
    }

    /// The place of an address, as a region that is the same in every execution with the same
    /// history.
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

    /// [`Runtime::locate`] for memory of the model that is not gone: in a live block of this
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

    /// Whether [`Runtime::locate`] certainly gives this region for the address.
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
            // No stack lies in a block.
            Region::Stack { thread, depth } => match stacks.get(thread.index()) {
                Some(&Some((bottom, top))) => address >= bottom && address + depth == top,
                _ => false,
            },
            _ => false,
        }
    }

    /// Notes a shim that an execution uses while it is torn down, if the shim is older than the
    /// execution.
    pub(super) fn meet_at_end(&self, inner: &mut Inner, target: &Target) {
        let region = self.locate(&inner.stacks, &inner.ended, target.address);
        if let Ok(Region::External { .. }) = region {
            inner.table.meet_at_end(target);
        }
    }

    /// Keeps plain memory that an execution uses while it is torn down, if it is older than the
    /// execution.
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
            if inner.races.knows(cell) {
                None
            } else {
                Some(self.locate(&inner.stacks, &inner.ended, cell.0))
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

    /// Whether the execution is compared with others by its states, of which plain memory is no
    /// part. Notes that.
    fn refuses_memory(&self, is_shim: bool, site: Site) -> bool {
        let machine = &mut self.inner.borrow_mut().driver.machine;
        if mostly!(!machine.limits.compares_states) {
            return false;
        }
        let what = match is_shim {
            true => "it knows nothing of a plain access to an atomic (`get_mut`): load the atomic",
            false => {
                "it knows nothing of plain memory (`UnsafeCell`): put the data into a `dpor::Shared`"
            }
        };
        let what = what.to_owned();
        machine.unfit = Some(Unfit { what, site });
        true
    }

    /// Begins an access to memory that is there, and may be that of an object. The region is needed
    /// if the cell is not known.
    pub(super) fn begin_access_to(
        &self,
        cell: (usize, usize),
        (object, region): (Option<ObjectId>, Option<Region>),
        effect: Effect,
        site: Site,
    ) -> Option<()> {
        if rarely!(self.refuses_memory(object.is_some(), site)) {
            return self.fail(End::Pruned(Pruned::Asleep));
        }
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
                // A void exploration fails for no race.
                Err(_) if self.loud.get().is_some() => return Some(()),
                Ok(()) => {
                    inner.note_contents(&self.heap, access, cell);
                    if rarely!(self.callers.are_asked_for()) {
                        self.note_touched(&inner, access, cell, region);
                    }
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

impl Runtime {
    /// Notes an access for the report.
    #[cold]
    fn note_touched(
        &self,
        inner: &Inner,
        access: Access,
        (start, _): (usize, usize),
        region: Option<Region>,
    ) {
        let located = || self.locate(&inner.stacks, &inner.ended, start).ok();
        if let Some(region) = region.or_else(located) {
            let trace = &inner.driver.trace;
            self.callers.note_touched(Touched {
                access,
                events: trace.len() as u32,
                fences: trace.fences().len() as u32,
                region,
                start,
                found: None,
                left: None,
            });
        }
    }
}

impl Inner {
    /// Adds the contents of memory that a thread is about to write to the log of a loop that
    /// changes memory and changes it back. The contents count as unknown where they lead to much
    /// memory, or to the stack of a thread.
    #[inline]
    fn note_contents(&mut self, heap: &heap::Heap, access: Access, (start, size): (usize, usize)) {
        if access.effect == Effect::Write
            && let Some(log) = self.driver.machine.follows(access.thread)
        {
            // SAFETY: the memory can be read: it belongs to a cell or a shim to which there is a
            // reference.
            let contents = unsafe { reach::of_reach(heap, &self.stacks, (start, size)) };
            log.touch_memory(contents.unwrap_or(0));
        }
    }

    /// Watches the accesses to plain memory from here on.
    pub(super) fn watch_races(&mut self) {
        let is_off = self.driver.machine.limits.compares_states;
        if !self.races.is_active() && !is_off {
            self.races.activate(self.driver.past(), self.driver.gone());
        }
    }

    /// The end with a wrong use of memory by this thread.
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

/// The pointer that an operation has put into the memory behind a shim, or has tried to put there.
/// The pointer of a failed compare-exchange is the model's, too, and its thread has to free the
/// block.
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

/// [`reach::of_reach`] of this memory in the execution that runs here. `None` also if the thread
/// that runs here, if any, is not in a loop, because then the contents are not needed.
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
        // SAFETY: the caller guarantees that the memory can be read.
        unsafe { reach::of_reach(&runtime.heap, &inner.stacks, (start, size)) }
    })?
}
