//! Is the memory that a thread uses still there, and may it be used now?
//!
//! The runtime's half of the memory checks: what the heap says of a block, what the detector says of an
//! access, and how the execution ends if one of them objects.

use super::context::{Inner, Runtime};
use super::heap::{self, Fault};
use crate::rt::race::weak_link;
use crate::rt::trace::Site;
use crate::rt::trace::id::{ObjectId, Place, Region, ThreadId};
use crate::rt::trace::operation::{AtomicType, ObjectKind, OpKind, Operation, Outcome, Rmw};
use crate::rt::trace::verdict::{Access, BadMemory, Block, DataRace, Effect, End, Gone, Wrong};
use crate::rt::{Memory, Target};

impl Runtime {
    /// What was found at the address of a shim is no more.
    #[cold]
    pub(super) fn used_after_its_end<T>(
        &self,
        target: Target,
        kind: OpKind,
        gone: Gone,
        site: Site,
    ) -> Option<T> {
        let object = {
            let machine = &mut self.inner.borrow_mut().driver.machine;
            let region = match gone {
                Gone::Block(block, _) => self.heap.find_gone(target.address).map(|found| {
                    let offset = target.address - found.start;
                    region(block, offset)
                }),
                Gone::Stack(_) => None,
            };
            let region = region.unwrap_or(Region::Elsewhere {
                address: target.address,
            });
            let place = Place {
                region,
                generation: 0,
            };
            machine.object_at(place, target.kind, target.memory)
        };
        let operation = Operation { object, kind };
        self.fail(self.bad_memory(Wrong::Operation(operation, site), gone))
    }

    /// A wrong use of memory by the thread that runs.
    fn bad_memory(&self, wrong: Wrong, memory: Gone) -> End {
        let thread = self.current.get();
        End::BadMemory(Box::new(BadMemory {
            thread,
            after: self.inner.borrow().driver.machine.events_of(thread),
            wrong,
            memory,
        }))
    }

    /// What was wrong with a free of the thread that runs, or ran last.
    pub(crate) fn fault(&self) -> Option<End> {
        let (wrong, block) = match self.heap.take_fault()? {
            Fault::Again(block) => (Wrong::FreedTwice, block),
            Fault::Layout(block, layout) => {
                let (size, align) = (layout.size(), layout.align());
                (Wrong::Layout { size, align }, block)
            }
            Fault::Inside(block, offset) => (Wrong::Inside { offset }, block),
        };
        Some(self.bad_memory(wrong, gone(&block)))
    }

    /// Whether an atomic that is older than the execution leads to a block of it. Such a block is not
    /// leaked where the atomic keeps its value.
    pub(super) fn leads_somewhere(&self) -> bool {
        let inner = self.inner.borrow();
        let mut values = inner.table.values_elsewhere(&inner.driver.machine);
        values.any(|value| self.heap.contains(value as usize))
    }

    /// Learns of what the current thread has freed since its last operation. `None` if the execution
    /// ends with it.
    #[inline]
    pub(super) fn hear_of_frees(&self) -> Option<()> {
        match self.heap.has_news() {
            true => self.hear_of_some_frees(),
            false => Some(()),
        }
    }

    #[inline(never)]
    fn hear_of_some_frees(&self) -> Option<()> {
        let mut end = None;
        {
            let mut inner = self.inner.borrow_mut();
            let me = self.current.get();
            self.heap.drain_freed(|start, length| {
                if end.is_none() {
                    let block = || self.heap.find_gone(start).map(|block| block.name());
                    end = inner.freed(start, length, me, block);
                }
                let Inner { table, races, .. } = &mut *inner;
                table.forget(start, length);
                races.forget(start, length);
            });
        }
        match end.map(End::DataRace).or_else(|| self.fault()) {
            None => Some(()),
            Some(end) => self.fail(end),
        }
    }

    /// A pointer to a block has been published: the block is the model's.
    #[inline]
    pub(super) fn note_pointer(&self, target: Target, kind: &OpKind, outcome: Outcome) {
        if let Some(pointer) = published(target, kind, outcome) {
            self.heap.find(pointer as usize);
        }
    }

    /// Where an address is, in words that are the same in every execution with the same history.
    pub(super) fn locate(
        &self,
        stacks: &[Option<(usize, usize)>],
        ended: &[(ThreadId, (usize, usize))],
        address: usize,
    ) -> Result<Region, Gone> {
        if let Some(block) = self.heap.find(address) {
            return Ok(region(block.name(), address - block.start));
        }
        for (index, stack) in stacks.iter().enumerate() {
            let Some((bottom, top)) = *stack else {
                continue;
            };
            if (bottom..top).contains(&address) {
                let depth = top - address;
                return Ok(Region::Stack {
                    thread: ThreadId(index as u32),
                    depth,
                });
            }
        }
        if let Some(block) = self.heap.find_gone(address) {
            return Err(gone(&block));
        }
        let on_stack =
            |(_, (bottom, top)): &&(ThreadId, (usize, usize))| (*bottom..*top).contains(&address);
        match ended.iter().rev().find(on_stack) {
            Some(&(thread, _)) => Err(Gone::Stack(thread)),
            None => Ok(Region::Elsewhere { address }),
        }
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
                return self.fail(self.bad_memory(Wrong::Access(effect, site), gone));
            }
            Some(Ok(region)) => Some(region),
            None => None,
        };
        if let Some(Region::Elsewhere { .. }) = region {
            self.inner.borrow_mut().table.keep_foreign(memory);
        }
        self.begin_access_to(cell, (None, region), effect, site)
    }

    /// Begins an access to memory that is there, maybe that of an object. Where it is has to be said if the cell
    /// is not known.
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
                Ok(()) => return Some(()),
                Err(race) => inner.explained(race),
            }
        };
        self.fail(End::DataRace(race))
    }
}

impl Inner {
    /// Forgets what was on the stack of a thread that has ended.
    #[inline]
    pub(super) fn forget_stack(&mut self, thread: ThreadId) {
        if let Some((bottom, top)) = self.stacks[thread.index()].take() {
            self.table.forget_stack(bottom, top - bottom);
            if self.races.is_active() {
                self.races.forget(bottom, top - bottom);
            }
            self.ended.push((thread, (bottom, top)));
        }
    }

    /// From here on the accesses to plain memory are watched.
    pub(super) fn watch_races(&mut self) {
        if !self.races.is_active() {
            self.races.activate(self.driver.executed());
        }
    }

    /// The race, with what could have prevented it.
    pub(super) fn explained(&self, mut race: Box<DataRace>) -> Box<DataRace> {
        race.weak = weak_link(&race, self.driver.executed());
        race
    }

    /// A thread has freed this memory: the race of that with a use of it.
    fn freed(
        &mut self,
        start: usize,
        length: usize,
        thread: ThreadId,
        block: impl FnOnce() -> Option<Block>,
    ) -> Option<Box<DataRace>> {
        // What a closure owned is freed by the main thread, after it has joined the others.
        if self.driver.machine.is_alone(thread) {
            return None;
        }
        let objects = self.table.inside(start, length);
        let counted = |object: &ObjectId| {
            let kind = self.driver.machine.state(*object).kind();
            matches!(
                kind,
                ObjectKind::Count { .. } | ObjectKind::Channel | ObjectKind::Token
            )
        };
        // These lie in blocks that our own shims count the references to. Whoever drops the last one
        // has waited for the others, whether the model had to look at their order or not.
        if objects.iter().any(counted) || objects.is_empty() && !self.races.knows_in(start, length)
        {
            return None;
        }
        self.watch_races();
        let mut latest = self.driver.executed().iter().rev();
        let last = latest.find(|event| event.thread == thread)?;
        let access = Access {
            thread,
            effect: Effect::Free,
            site: last.site,
            after: self.driver.machine.events_of(thread),
        };
        let free = self.races.free((start, length), &objects, access, block());
        free.err().map(|race| self.explained(race))
    }
}

fn gone(block: &heap::Block) -> Gone {
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

/// The pointer that an operation has put into the memory behind a shim.
#[inline(always)]
pub(super) fn published(target: Target, kind: &OpKind, outcome: Outcome) -> Option<u64> {
    if target.kind != ObjectKind::Atomic(AtomicType::Ptr) {
        return None;
    }
    match *kind {
        OpKind::Store { value, .. }
        | OpKind::Rmw {
            rmw: Rmw::Swap,
            operand: value,
            ..
        } => Some(value),
        OpKind::CompareExchange { new, .. } if outcome.succeeded() => Some(new),
        _ => None,
    }
}
