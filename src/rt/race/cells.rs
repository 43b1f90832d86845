//! Which plain memory was accessed, and by which threads last?
//!
//! A cell keeps its place from one execution to the next, because mostly the next execution has a
//! cell at the same address. It counts only in the last execution that met it.

use std::collections::BTreeMap;

use super::clock::Clock;
use super::epoch::Epoch;
use crate::rt::event::id::{Region, ThreadId};
use crate::rt::event::verdict::{Access, Accessed, Block, DataRace, Effect, Lasts};

/// The cells of the current execution.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// By address and size: a cell may begin where another one that contains it begins.
    numbers: BTreeMap<(usize, usize), u32>,
    list: Vec<Cell>,
    /// The number of executions so far, and the number of cells that this execution has met.
    execution: u32,
    met: usize,
    /// The numbers of the cells that were looked up last, by [`Cells::near`].
    recent: [u32; NEAR],
    /// A set of the granules of memory that overlap a cell. Many granules share a bit.
    granules: u64,
    /// The first and the last address at which a cell begins.
    first: usize,
    last: usize,
}

/// The accesses to one cell that a later access may race with.
#[derive(Debug, Default)]
pub(super) struct Cell {
    memory: (usize, usize),
    /// The last execution that met this cell, or [`GONE`].
    execution: u32,
    pub(super) write: Option<Epoch>,
    /// Each thread that has written the cell, with the number of its events before its first write.
    writers: Vec<(ThreadId, u32)>,
    reads: Vec<Epoch>,
    /// The accesses that have begun and not ended.
    pub(super) open: Vec<Epoch>,
    /// The region of memory that contains the cell.
    region: Option<Region>,
}

/// No execution has this number.
const GONE: u32 = u32::MAX;

/// The number of cells that are found without a search.
const NEAR: usize = 16;

/// The number of removed cells that are kept, in addition to twice the number of cells of an
/// execution.
const SPARE: usize = 64;

/// The binary logarithm of the size of a granule in bytes.
const GRANULE: u32 = 6;

/// The bits of the granules in this memory.
#[inline]
fn granules(start: usize, length: usize) -> u64 {
    let first = start >> GRANULE;
    let more = ((start + length.max(1) - 1) >> GRANULE) - first;
    if more < u64::BITS as usize - 1 {
        ((2 << more) - 1_u64).rotate_left(first as u32 % u64::BITS)
    } else {
        u64::MAX
    }
}

impl Cells {
    #[inline]
    fn near(memory: (usize, usize)) -> usize {
        (memory.0 >> 3) % NEAR
    }

    #[inline]
    fn find(&self, memory: (usize, usize)) -> Option<u32> {
        let recent = self.recent[Cells::near(memory)];
        let is_it = |cell: &Cell| cell.memory == memory && cell.execution == self.execution;
        match self.list.get(recent as usize) {
            Some(cell) if is_it(cell) => Some(recent),
            _ => self.search(memory),
        }
    }

    #[inline(never)]
    fn search(&self, memory: (usize, usize)) -> Option<u32> {
        let &number = self.numbers.get(&memory)?;
        let is_met = self.list[number as usize].execution == self.execution;
        is_met.then_some(number)
    }

    /// The cell of this execution at this address, of this size in bytes.
    #[inline]
    pub(super) fn get(&self, memory: (usize, usize)) -> Option<&Cell> {
        let number = self.find(memory)?;
        self.list.get(number as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, memory: (usize, usize)) -> Option<&mut Cell> {
        let number = self.find(memory)?;
        self.list.get_mut(number as usize)
    }

    /// The same cell. If the execution has not met the cell yet, the cell is added with this first
    /// write and this region.
    #[inline]
    pub(super) fn meet(
        &mut self,
        memory: (usize, usize),
        made: impl FnOnce() -> (Option<Epoch>, Option<Region>),
    ) -> &mut Cell {
        let number = match self.find(memory) {
            Some(number) => number,
            None => self.add(memory, made()),
        };
        self.recent[Cells::near(memory)] = number;
        &mut self.list[number as usize]
    }

    #[inline(never)]
    fn add(&mut self, memory: (usize, usize), made: (Option<Epoch>, Option<Region>)) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(memory).or_insert(next);
        if number == next {
            self.list.push(Cell::default());
        }
        let cell = &mut self.list[number as usize];
        cell.memory = memory;
        cell.execution = self.execution;
        (cell.write, cell.region) = made;
        cell.writers.clear();
        cell.reads.clear();
        cell.open.clear();
        self.met += 1;
        self.granules |= granules(memory.0, memory.1);
        (self.first, self.last) = match self.met {
            1 => (memory.0, memory.0),
            _ => (self.first.min(memory.0), self.last.max(memory.0)),
        };
        number
    }

    /// Whether a cell may begin in this memory. Mostly no cell does, and the set of granules shows
    /// that without a search.
    #[inline]
    fn may_be_within(&self, start: usize, length: usize) -> bool {
        self.met > 0
            && self.last >= start
            && self.first < start + length
            && self.granules & granules(start, length) != 0
    }

    /// Whether a cell of this execution begins in this memory.
    #[inline]
    pub(super) fn any_within(&self, start: usize, length: usize) -> bool {
        self.may_be_within(start, length) && self.within(start, length).next().is_some()
    }

    /// The cells of this execution that begin in this memory.
    pub(super) fn within(&self, start: usize, length: usize) -> impl Iterator<Item = &Cell> {
        let numbers = self.numbers.range((start, 0)..(start + length, 0));
        let cells = numbers.map(|(_, &number)| &self.list[number as usize]);
        cells.filter(|cell| cell.execution == self.execution)
    }

    /// Removes the cells that begin in this memory.
    #[inline]
    pub(super) fn forget(&mut self, start: usize, length: usize) {
        if self.may_be_within(start, length) {
            self.forget_some(start, length);
        }
    }

    #[inline(never)]
    fn forget_some(&mut self, start: usize, length: usize) {
        let numbers = self.numbers.range((start, 0)..(start + length, 0));
        for (_, &number) in numbers {
            self.list[number as usize].execution = GONE;
        }
    }

    /// A new execution begins.
    pub(super) fn reset(&mut self) {
        if self.list.len() > 2 * self.met + SPARE || self.execution == GONE - 1 {
            *self = Cells::default();
        }
        self.execution += 1;
        self.met = 0;
        self.granules = 0;
    }
}

impl Cell {
    /// The race of an access with an earlier one that is neither in `clock`, the clock of the
    /// thread of `access`, nor known to be `in_order`.
    pub(super) fn check(
        &self,
        access: &Access,
        clock: &Clock,
        is_in_order: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<DataRace>> {
        let open = |earlier: &&Epoch| {
            let Access { thread, effect, .. } = earlier.access;
            thread != access.thread
                && effect.conflicts(access.effect)
                && !is_in_order(&earlier.access)
        };
        let unordered =
            |earlier: &&Epoch| earlier.races(access, clock) && !is_in_order(&earlier.access);
        let earlier = (self.write.iter().find(unordered))
            .or_else(|| self.reads.iter().find(unordered))
            .or_else(|| self.open.iter().find(open));
        match earlier {
            None => Ok(()),
            Some(earlier) => {
                let lasts = if self.is_open(&earlier.access) {
                    Lasts::OnAndOn
                } else {
                    Lasts::Until(earlier.until)
                };
                Err(Box::new(DataRace {
                    block: match earlier.access.effect {
                        Effect::Make => self.region.as_ref().and_then(Block::around),
                        _ => None,
                    },
                    written: self.written_by(earlier.access.thread),
                    memory: Accessed {
                        region: self.region,
                        ..Accessed::default()
                    },
                    ..DataRace::between(earlier.access, *access, lasts, earlier.time)
                }))
            }
        }
    }

    /// Whether this access has not ended.
    fn is_open(&self, access: &Access) -> bool {
        let key = |it: &Access| (it.thread, it.site, it.after);
        let mut open = self.open.iter();
        open.any(|other| key(&other.access) == key(access))
    }

    /// The number of events of this thread before its first write to the cell. None if the thread
    /// has not written the cell.
    fn written_by(&self, thread: ThreadId) -> Option<u32> {
        let mut writers = self.writers.iter();
        writers.find_map(|&(who, after)| (who == thread).then_some(after))
    }

    /// Notes an access that has lasted up to this epoch. A pointer to the cell may outlive later
    /// accesses by its own thread; those accesses still count when the access through the pointer
    /// ends.
    pub(super) fn note(&mut self, epoch: Epoch) {
        let Access { thread, after, .. } = epoch.access;
        let later = |earlier: &Epoch| earlier.access.thread == thread && earlier.time > epoch.time;
        if epoch.access.effect == Effect::Write {
            if !self.write.as_ref().is_some_and(later) {
                self.write = Some(epoch);
            }
            self.reads.retain(later);
            if self.written_by(thread).is_none() {
                self.writers.push((thread, after));
            }
        } else {
            match self.reads.iter_mut().find(|e| e.access.thread == thread) {
                Some(read) if later(read) => {}
                Some(read) => *read = epoch,
                None => self.reads.push(epoch),
            }
        }
    }
}
