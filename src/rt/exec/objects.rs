//! Which object is at this address?
//!
//! A shim holds only the value that its type holds in std, so that `new` is a `const fn`, sizes and
//! alignments are std's and zeroed memory is a valid atomic. Each operation looks its object up by
//! address in a table, once; the address becomes a name (a [`Place`]) only the first time in an
//! execution. In front of the table are the objects that were met last, because most operations are
//! on few objects. An execution nearly always has its objects at the addresses of the execution
//! before. So an entry that is not valid any more stays in the table: the check whether an address
//! is still the same place is cheaper than the search for its place.
//!
//! Memory is the truth. If the value in memory is not the one that the machine remembers, the
//! program has written it through `&mut`, or has made a new object in the same place: the next
//! *generation* begins, and the machine starts from the value in memory. `&mut` excludes every
//! other thread, so no thread can be within an operation on the object. An object that is replaced
//! by one of the same value may count as the same object: all accesses to the two are ordered by
//! the program.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::rt::event::NOWHERE;
use crate::rt::event::id::{ObjectId, Place, Region};
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::pooled::Empty;
use crate::rt::rare::{Roomy, cold_path};
use crate::rt::shim::{Memory, Target};

use super::front::{Front, PLACES, place};
use crate::rt::statics;
use crate::rt::statics::external_state::{Older, Undo};

/// The objects of an execution, by address.
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// By address.
    numbers: FxHashMap<usize, u32>,
    /// The valid entries that were met last.
    front: Front,
    /// By place of an address in the front, the number of the entry that was looked up last, in
    /// this execution or before.
    latest: [u32; PLACES],
    /// The number of this execution, from 1.
    execution: u64,
    /// The entries that were valid in this execution. The entries that still are valid are linked
    /// by their [`line`](fn@line)s.
    met: Vec<Met>,
    /// By remainder of a line of memory, whether there are valid entries in lines with that
    /// remainder, and if so, the last of them that was met.
    lines: [u64; LINES / 64],
    heads: [u32; LINES],
    /// The buffer of [`Table::find_inside`].
    inside: Vec<u32>,
    /// Whether the execution has met an object on a stack.
    on_stacks: bool,
    /// The memory that is older than the execution.
    pub(crate) older: Older,
    /// Memory older than the execution that got its contents during the execution: the owner drops
    /// these contents, and they are not put back.
    made: Vec<Range<usize>>,
    /// The right to use the statics of the process. The exploration keeps it from the first static
    /// on.
    turn: statics::Turn,
}

struct Entry {
    address: usize,
    region: Region,
    /// The first object that was met in this region.
    first: ObjectId,
    /// The object that is there now, and its generation.
    object: ObjectId,
    generation: u32,
    /// The execution that the entry is valid in.
    execution: u64,
}

#[derive(Clone, Copy)]
struct Met {
    /// The number of the entry.
    number: u32,
    /// The index of the entry that was met before in a line with the same remainder, or
    /// [`NOWHERE`].
    next: u32,
}

/// In bytes.
const LINE: usize = 64;
const LINES: usize = 512;

/// If the table has more addresses than this, those of earlier executions are forgotten.
const MOST: usize = 10_000;

impl Default for Table {
    fn default() -> Table {
        Table {
            entries: Vec::new(),
            numbers: FxHashMap::default(),
            front: Front::default(),
            latest: [0; PLACES],
            execution: 1,
            met: Vec::new(),
            lines: [0; LINES / 64],
            heads: [NOWHERE; LINES],
            inside: Vec::new(),
            on_stacks: false,
            older: Older::default(),
            made: Vec::new(),
            turn: statics::Turn::default(),
        }
    }
}

impl Empty for Table {
    fn empty(&mut self) {
        // The front of the table is empty, and no line has an entry. The rest of the data of lines
        // and places may stay, because the table compares it before it uses it.
        self.forget_all();
        let Table {
            entries,
            numbers,
            front: _,
            latest: _,
            execution,
            met,
            lines: _,
            heads: _,
            inside,
            on_stacks: _,
            older,
            made,
            turn,
        } = self;
        entries.empty();
        numbers.empty();
        *execution = 1;
        met.empty();
        inside.empty();
        *older = Older::default();
        made.empty();
        *turn = statics::Turn::default();
    }
}

/// The number of the line of memory that an address is in.
#[inline]
fn line(address: usize) -> usize {
    address / LINE % LINES
}

/// Whether `lines` contains `line`.
#[inline]
fn has(lines: &[u64; LINES / 64], line: usize) -> bool {
    lines[line / 64] >> (line % 64) & 1 == 1
}

/// Calls `each` for those of the lines that hold a part of the block, and maybe for others.
fn lines_of(lines: &[u64; LINES / 64], block: &Range<usize>, mut each: impl FnMut(usize)) {
    let touched = block.start / LINE..block.end.div_ceil(LINE);
    if touched.len() < LINES {
        let touched = touched.map(|number| number % LINES);
        touched.filter(|&line| has(lines, line)).for_each(each);
        return;
    }
    for (word, &bits) in lines.iter().enumerate() {
        let mut left = bits;
        while left != 0 {
            each(word * 64 + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

impl Table {
    /// The object that was met last at this address, if it is in front of the table. The caller
    /// still compares it with the value in memory.
    #[inline(always)]
    pub(crate) fn at_hand(&self, address: usize) -> Option<ObjectId> {
        self.front.find(address)
    }

    /// The object behind a shim at an address that this execution has not met yet, if `is_still`
    /// confirms that the address is certainly in the same region as before. Only the entry that was
    /// looked up last is checked.
    #[inline(always)]
    pub(crate) fn meet_again(
        &mut self,
        machine: &mut Machine,
        target: &Target,
        is_still: impl FnOnce(&Region) -> bool,
    ) -> Option<ObjectId> {
        let address = target.address;
        let number = self.latest[place(address)];
        let entry = self.entries.get_mut(number as usize)?;
        if entry.address != address || entry.execution == self.execution || !is_still(&entry.region)
        {
            return None;
        }
        let object = entry.first;
        entry.execution = self.execution;
        entry.object = object;
        entry.generation = 0;
        self.on_stacks |= matches!(entry.region, Region::Stack { .. });
        machine.meet(object, target.kind, target.memory);
        self.note_met(number, address);
        self.front.put(address, object);
        Some(object)
    }

    /// Whether an earlier execution had an object at this address that was older than that
    /// execution. Only the entry that was looked up last is checked.
    #[inline(always)]
    pub(crate) fn was_elsewhere(&self, address: usize) -> bool {
        let latest = self.entries.get(self.latest[place(address)] as usize);
        latest.is_some_and(|entry| {
            entry.address == address && matches!(entry.region, Region::External { .. })
        })
    }

    /// The object behind a shim. If this execution has not met its address yet, `locate` gives the
    /// region; if it gives none, nothing was done.
    #[inline]
    pub(crate) fn object<E>(
        &mut self,
        machine: &mut Machine,
        target: &Target,
        locate: impl FnOnce() -> Result<Region, E>,
    ) -> Result<ObjectId, E> {
        let address = target.address;
        let number = self.numbers.get(&address).copied();
        let valid = number.filter(|&number| self.valid(number).is_some());
        let (number, object) = match valid {
            Some(number) => (number, self.find_again(machine, target, number)),
            None => self.meet(machine, target, number, locate()?),
        };
        self.latest[place(address)] = number;
        self.front.put(address, object);
        Ok(object)
    }

    /// The object behind a shim with a valid entry, or the next generation.
    #[inline(never)]
    fn find_again(&mut self, machine: &mut Machine, target: &Target, number: u32) -> ObjectId {
        let entry = &mut self.entries[number as usize];
        if !machine
            .state(entry.object)
            .may_be(target.kind, target.memory)
        {
            entry.generation += 1;
            let place = Place {
                region: entry.region,
                generation: entry.generation,
            };
            entry.object = machine.object_at(place, target.kind, target.memory);
        }
        entry.object
    }

    /// Other OS threads run the same closure.
    pub(crate) fn share(&mut self) {
        self.turn.share();
    }

    /// Whether an execution of this exploration has met memory that is older than itself.
    pub(crate) fn has_met_older(&self) -> bool {
        self.turn.has_met()
    }

    /// Notes a shim that is older than the execution, unless it was made in the execution. Returns
    /// its value.
    #[inline(never)]
    fn note_older(&mut self, target: &Target) -> u64 {
        let Target {
            address,
            kind,
            mut memory,
        } = *target;
        let made = |range: &Range<usize>| range.contains(&address);
        if !self.made.iter().any(made) {
            // Another exploration may have been within an execution until now, or a thread outside
            // of all models within an operation.
            let just_now = self.turn.take(address);
            memory = self.turn.at_rest((address, kind), memory, just_now);
            self.older.note(address, kind, memory);
        }
        memory
    }

    /// Notes a shim that is older than the execution, and that the execution meets only after its
    /// end.
    pub(crate) fn meet_at_end(&mut self, target: &Target) {
        if !self.is_elsewhere(target.address) {
            self.note_older(target);
        }
    }

    /// The object behind a shim that this execution meets for the first time, in this region.
    fn meet(
        &mut self,
        machine: &mut Machine,
        target: &Target,
        number: Option<u32>,
        region: Region,
    ) -> (u32, ObjectId) {
        let Target { address, kind, .. } = *target;
        let memory = match region {
            Region::External { .. } => self.note_older(target),
            _ => target.memory,
        };
        let known = number.map(|number| &self.entries[number as usize]);
        let object = match known.filter(|entry| entry.region == region) {
            Some(entry) => {
                machine.meet(entry.first, kind, memory);
                entry.first
            }
            None => {
                let place = Place {
                    region,
                    generation: 0,
                };
                machine.object_at(place, kind, memory)
            }
        };
        let entry = Entry {
            address,
            region,
            first: object,
            object,
            generation: 0,
            execution: self.execution,
        };
        let number = match number {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                let number = self.entries.len() as u32;
                self.entries.put(entry);
                self.numbers.insert(address, number);
                number
            }
        };
        self.on_stacks |= matches!(region, Region::Stack { .. });
        self.note_met(number, address);
        (number, object)
    }

    /// Notes that this execution has met the object of an entry.
    #[inline]
    fn note_met(&mut self, number: u32, address: usize) {
        let line = line(address);
        let next = if has(&self.lines, line) {
            self.heads[line]
        } else {
            NOWHERE
        };
        self.lines[line / 64] |= 1 << (line % 64);
        self.heads[line] = self.met.len() as u32;
        self.met.put(Met { number, next });
    }

    /// The object at this address, if the execution has met it.
    pub(crate) fn known(&self, address: usize) -> Option<ObjectId> {
        self.valid(*self.numbers.get(&address)?)
    }

    /// The object that was met last at this address, in this execution or an earlier one; it may be
    /// gone.
    pub(crate) fn last_at(&self, address: usize) -> Option<ObjectId> {
        let number = *self.numbers.get(&address)?;
        Some(self.entries[number as usize].object)
    }

    /// The object of an entry, if it is valid.
    fn valid(&self, number: u32) -> Option<ObjectId> {
        let entry = &self.entries[number as usize];
        (entry.execution == self.execution).then_some(entry.object)
    }

    /// Adds the objects in a block to `found`, in the order in which they were met.
    pub(crate) fn find_inside(&mut self, start: usize, length: usize, found: &mut Vec<ObjectId>) {
        let block = start..start + length;
        let mut inside = std::mem::take(&mut self.inside);
        lines_of(&self.lines, &block, |line| {
            let mut at = self.heads[line];
            while let Some(met) = self.met.get(at as usize) {
                if block.contains(&self.entries[met.number as usize].address) {
                    inside.push(at);
                }
                at = met.next;
            }
        });
        inside.sort_unstable();
        let objects = inside.drain(..).filter_map(|at| {
            let number = self.met[at as usize].number;
            self.valid(number)
        });
        found.extend(objects);
        self.inside = inside;
    }

    /// The present values of atomics that are older than the execution.
    pub(crate) fn values_elsewhere<'a>(
        &'a self,
        machine: &'a Machine,
    ) -> impl Iterator<Item = u64> + 'a {
        let entries = self.older.addresses().filter_map(|at| self.known(at));
        entries.filter_map(|object| match machine.state(object) {
            State::Atomic { value, .. } => Some(*value),
            _ => None,
        })
    }

    /// The present words of other memory that is older than the execution, as in a cell or behind a
    /// lock.
    pub(crate) fn words_elsewhere(&self) -> impl Iterator<Item = usize> {
        self.older.words()
    }

    /// Forgets the objects in a block that was freed.
    pub(crate) fn forget(&mut self, start: usize, length: usize) {
        let block = start..start + length;
        // Some of the memory that is put back is no object.
        self.older.forget(block.clone());
        let lines = self.lines;
        lines_of(&lines, &block, |line| self.forget_in(line, &block));
    }

    /// Forgets the objects in entries of this line that are in the block.
    fn forget_in(&mut self, line: usize, block: &Range<usize>) {
        let (mut before, mut at) = (NOWHERE, self.heads[line]);
        while let Some(&Met { number, next }) = self.met.get(at as usize) {
            let entry = &mut self.entries[number as usize];
            if !block.contains(&entry.address) {
                (before, at) = (at, next);
                continue;
            }
            entry.execution = 0;
            self.front.forget(entry.address);
            match self.met.get_mut(before as usize) {
                Some(before) => before.next = next,
                None => self.heads[line] = next,
            }
            at = next;
        }
        if self.heads[line] == NOWHERE {
            self.lines[line / 64] &= !(1 << (line % 64));
        }
    }

    /// Whether the execution has met objects on stacks.
    #[inline]
    pub(crate) fn has_some_on_stacks(&self) -> bool {
        self.on_stacks
    }

    /// Whether the object at this address is older than the execution.
    pub(crate) fn is_elsewhere(&self, address: usize) -> bool {
        self.older.addresses().any(|known| known == address)
    }

    /// Keeps the bytes of a shim that are not [kept](Table::keeps) yet.
    pub(crate) fn keep(&mut self, memory: Memory) {
        self.older.keep(memory);
    }

    /// Keeps the bytes of plain memory that is older than the execution, if the bytes can be put
    /// back. The bytes of a value with a destructor can be put back only if they are still as the
    /// compiler made them.
    pub(crate) fn keep_foreign(&mut self, memory: Memory) {
        let made = |range: &Range<usize>| range.contains(&memory.start.addr());
        if self.made.iter().any(made) || self.keeps(memory.start) {
            return;
        }
        self.turn.take(memory.start.addr());
        if memory.drop.is_none() || statics::are_constant(&memory) {
            self.keep(memory);
        }
    }

    /// Notes the undo function for the memory at `start`, to be called when the execution has
    /// ended.
    pub(crate) fn undo_at_end(&mut self, start: *mut u8, size: usize, undo: Undo) {
        if self.older.undo_at_end(start, undo) {
            self.made.push(start.addr()..start.addr() + size);
        }
    }

    /// Whether the bytes of this shim are kept.
    pub(crate) fn keeps(&self, start: *const u8) -> bool {
        self.older.keeps(start)
    }

    /// Forgets the objects of the execution, which has ended. The memory that is older than the
    /// execution is still to be put back.
    pub(crate) fn forget_all(&mut self) {
        // The objects in front of the table are among these.
        for Met { number, .. } in self.met.drain(..) {
            let address = self.entries[number as usize].address;
            self.front.forget(address);
        }
        if self.entries.len() > MOST {
            cold_path();
            self.entries.clear();
            self.numbers.clear();
        }
        self.execution += 1;
        self.lines = [0; LINES / 64];
        self.on_stacks = false;
        self.made.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::rt::engine::rng::Rng;
    use crate::rt::event::id::ThreadId;
    use crate::rt::event::operation::AtomicType;
    use crate::rt::object::machine::Limits;

    /// Compares the table with a list of addresses in the order in which they were met.
    #[test]
    fn the_objects_in_a_block_are_those_that_were_met_there_and_not_forgotten() {
        const FROM: usize = 1 << 20;
        let mut table = Table::default();
        let mut machine = Machine::new(Limits::default());
        let mut rng = Rng::new(7, 0);
        let mut below = |most: usize| rng.below(most as u64) as usize;
        let (mut several, mut long) = (0, 0);
        for _ in 0..30 {
            machine.reset(Location::caller());
            let mut known: Vec<(usize, ObjectId)> = Vec::new();
            for step in 0..400 {
                // Some addresses are near each other, others on lines with the same remainder.
                let address = FROM + below(40) * 8 + below(3) * LINE * LINES;
                let length = [0, 8, 24, 200, 4000, 3 * LINE * LINES][below(6)];
                if step % 4 != 0 {
                    let target = Target::atomic(address, AtomicType::Usize, 0);
                    let region = Region::Heap {
                        thread: ThreadId::MAIN,
                        events: 0,
                        size: 0,
                        align: 8,
                        nth: 0,
                        offset: address,
                    };
                    let again = table.meet_again(&mut machine, &target, |_| below(2) == 0);
                    let object = match again {
                        Some(object) => object,
                        None => table
                            .object::<()>(&mut machine, &target, || Ok(region))
                            .unwrap(),
                    };
                    match known.iter().find(|&&(at, _)| at == address) {
                        Some(&(_, before)) => assert_eq!(object, before),
                        None => known.push((address, object)),
                    }
                    continue;
                }
                let block = address..address + length;
                let is_in = |&(at, _): &(usize, ObjectId)| block.contains(&at);
                let inside = known.iter().copied().filter(is_in);
                let inside: Vec<ObjectId> = inside.map(|(_, object)| object).collect();
                several += usize::from(inside.len() > 1);
                long += usize::from(inside.len() > 1 && length > LINE * LINES);
                let mut found = Vec::new();
                table.find_inside(address, length, &mut found);
                assert_eq!(found, inside, "{block:x?}");
                if below(2) == 0 {
                    table.forget(address, length);
                    known.retain(|entry| !is_in(entry));
                }
                for &(at, object) in &known {
                    assert_eq!(table.known(at), Some(object));
                }
                table.find_inside(FROM, 4 * LINE * LINES, &mut found);
                assert_eq!(found.len(), inside.len() + known.len());
            }
            table.forget_all();
            assert_eq!(table.known(FROM), None);
        }
        assert!(several > 100 && long > 100, "{several} {long}");
    }

    #[test]
    fn an_object_of_which_nobody_tells_where_it_is_is_not_met() {
        let mut table = Table::default();
        let mut machine = Machine::new(Limits::default());
        machine.reset(Location::caller());
        let (address, other) = (1 << 20, (1 << 20) + 8);
        let target = |address, memory| Target::atomic(address, AtomicType::Usize, memory);
        let met = table.object(&mut machine, &target(address, 1), || Err(()));
        assert_eq!(met, Err(()));
        assert_eq!(table.known(address), None);
        assert_eq!(table.at_hand(address), None);
        let region = Region::External { address };
        let met = table.object::<()>(&mut machine, &target(address, 2), || Ok(region));
        let region = Region::Stack {
            thread: ThreadId::MAIN,
            depth: 8,
        };
        (table.object::<()>(&mut machine, &target(other, 3), || Ok(region))).unwrap();
        // The failed look-up has left no generation behind.
        assert_eq!(table.known(address), met.ok());
        table.forget_all();
        assert!(table.was_elsewhere(address) && !table.was_elsewhere(other));
        assert!(
            !table.was_elsewhere(address + PLACES * 8),
            "another one has the same place"
        );
    }
}
