//! Which object is at this address?
//!
//! A shim has nothing of its own but the value it would have in std, so that `new` is a `const fn`,
//! sizes and alignments are std's and zeroed memory is a valid atomic. The object behind it is found
//! by its address, once per operation, in a table; the address becomes a name (a [`Place`]) only the
//! first time in an execution. In front of the table are the objects that were met last, because most
//! operations are on one of few. An execution nearly always has its objects where the one before had
//! them, so what is not valid any more stays in the table to be recognised: that saves looking up
//! the name.
//!
//! Memory is the truth. If the value there is not the one the machine remembers, somebody wrote it
//! through `&mut`, or a new object was made in the same place: the next *generation* begins, and the
//! machine starts from what it found. `&mut` excludes every other thread, so nobody can be in the
//! middle of an operation. An object that is replaced by one of the same value may as well be the
//! same one: all accesses to the two are ordered by the program.

use std::mem::MaybeUninit;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::rt::Memory;
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::trace::id::{ObjectId, Place, Region};
use crate::rt::trace::operation::ObjectKind;
use crate::rt::trace::verdict::Gone;

use super::statics;

/// What puts the shim at an address back.
type Undo = unsafe fn(*mut u8);

/// The objects of an execution, by address.
pub(crate) struct Table {
    entries: FxHashMap<usize, Entry>,
    /// Valid entries, each at the place that its address has.
    recent: [(usize, ObjectId); RECENT],
    /// The number of this execution, from 1.
    execution: u64,
    /// The addresses of the valid entries, and maybe of some that were forgotten.
    met: Vec<usize>,
    /// For each [`LINE`] of memory whether an object in one with the same remainder was met.
    lines: [u64; LINES / 64],
    /// Whether an object on a stack was met.
    on_stacks: bool,
    /// Memory that is older than the execution, with what it held when it was met.
    elsewhere: Vec<(usize, ObjectKind, u64)>,
    /// Copies of shims that are more than a value, by their addresses.
    pristine: Vec<(Memory, Vec<MaybeUninit<u8>>)>,
    undo: Vec<(*mut u8, Undo)>,
    /// Memory older than the execution that got its contents during it: they are dropped with their
    /// owner and not put back.
    made: Vec<Range<usize>>,
    /// The right to use the statics of the process, which is kept from the first one on.
    turn: statics::Turn,
    /// Memory in statics that got its contents at run time, before the execution.
    filled: Vec<Range<usize>>,
}

#[derive(Clone, Copy)]
struct Entry {
    object: ObjectId,
    place: Place,
    /// The execution it is valid in.
    execution: u64,
}

/// How many objects are in front of the table.
const RECENT: usize = 64;

/// In bytes.
const LINE: usize = 64;
const LINES: usize = 1024;

/// If more addresses are known than this, those of earlier executions are forgotten.
const MOST: usize = 10_000;

impl Default for Table {
    fn default() -> Table {
        Table {
            entries: FxHashMap::default(),
            recent: [(0, ObjectId::NONE); RECENT],
            execution: 1,
            met: Vec::new(),
            lines: [0; LINES / 64],
            on_stacks: false,
            elsewhere: Vec::new(),
            pristine: Vec::new(),
            undo: Vec::new(),
            made: Vec::new(),
            turn: statics::Turn::default(),
            filled: Vec::new(),
        }
    }
}

/// The place of an address among the objects met last.
#[inline]
fn recent(address: usize) -> usize {
    address / 8 % RECENT
}

/// The word and the bit that stand for a line of memory.
#[inline]
fn line(number: usize) -> (usize, u64) {
    (number % LINES / 64, 1 << (number % 64))
}

impl Table {
    /// The object at `address`, whose shim is of this kind and holds `memory`. `locate` is asked
    /// for the region of an address that this execution has not met.
    #[inline]
    pub(crate) fn object(
        &mut self,
        machine: &mut Machine,
        address: usize,
        kind: ObjectKind,
        memory: u64,
        locate: impl FnOnce(usize) -> Result<Region, Gone>,
    ) -> Result<ObjectId, Gone> {
        let (known, object) = self.recent[recent(address)];
        if known == address && machine.state(object).may_be(kind, memory) {
            return Ok(object);
        }
        let object = self.meet(machine, address, kind, memory, locate)?;
        self.recent[recent(address)] = (address, object);
        Ok(object)
    }

    /// The object that was met last at this address, if it is one of those in front of the table. What its
    /// memory holds is still to be compared.
    #[inline(always)]
    pub(crate) fn at_hand(&self, address: usize) -> Option<ObjectId> {
        let (known, object) = self.recent[recent(address)];
        (known == address).then_some(object)
    }

    /// [`Table::object`] for an object that is not the one met last at this address.
    fn meet(
        &mut self,
        machine: &mut Machine,
        address: usize,
        kind: ObjectKind,
        memory: u64,
        locate: impl FnOnce(usize) -> Result<Region, Gone>,
    ) -> Result<ObjectId, Gone> {
        let execution = self.execution;
        let entry = self.entries.get_mut(&address);
        if let Some(entry) = &entry
            && entry.execution == execution
        {
            if machine.state(entry.object).may_be(kind, memory) {
                return Ok(entry.object);
            }
            let place = Place {
                generation: entry.place.generation + 1,
                ..entry.place
            };
            let object = machine.object_at(place, kind, memory);
            let entry = Entry {
                object,
                place,
                execution,
            };
            self.entries.insert(address, entry);
            return Ok(object);
        }
        let region = locate(address)?;
        let place = Place {
            region,
            generation: 0,
        };
        let (line, bit) = line(address / LINE);
        self.lines[line] |= bit;
        self.met.push(address);
        self.on_stacks |= matches!(region, Region::Stack { .. });
        if let Some(entry) = entry
            && entry.place == place
            && !matches!(region, Region::Elsewhere { .. })
        {
            entry.execution = execution;
            machine.meet(entry.object, kind, memory);
            return Ok(entry.object);
        }
        let made = |range: &Range<usize>| range.contains(&address);
        let mut memory = memory;
        if matches!(region, Region::Elsewhere { .. }) && !self.made.iter().any(made) {
            if self.turn.take(address) {
                // Another exploration may have been in the middle of an execution until now.
                memory = statics::at_rest(address, kind).unwrap_or(memory);
            }
            self.elsewhere.push((address, kind, memory));
        }
        let object = machine.object_at(place, kind, memory);
        let entry = Entry {
            object,
            place,
            execution,
        };
        self.entries.insert(address, entry);
        Ok(object)
    }

    /// The object at this address, if the execution has met it.
    pub(crate) fn known(&self, address: usize) -> Option<ObjectId> {
        let entry = self.entries.get(&address);
        let entry = entry.filter(|entry| entry.execution == self.execution);
        entry.map(|entry| entry.object)
    }

    /// Whether this execution has certainly not met an object in the block.
    fn is_empty(&self, start: usize, length: usize) -> bool {
        let mut touched = start / LINE..(start + length).div_ceil(LINE);
        touched.len() < LINES
            && !touched.any(|at| {
                let (line, bit) = line(at);
                self.lines[line] & bit != 0
            })
    }

    /// The objects in a block.
    pub(crate) fn inside(&self, start: usize, length: usize) -> Vec<ObjectId> {
        let block = start..start + length;
        if self.is_empty(start, length) {
            Vec::new()
        } else if length <= self.met.len() {
            block.filter_map(|address| self.known(address)).collect()
        } else {
            let met = self.met.iter().filter(|address| block.contains(address));
            met.filter_map(|&address| self.known(address)).collect()
        }
    }

    /// The values that atomics older than the execution have now.
    pub(crate) fn values_elsewhere<'a>(
        &'a self,
        machine: &'a Machine,
    ) -> impl Iterator<Item = u64> + 'a {
        let entries = self.elsewhere.iter().filter_map(|(at, ..)| self.known(*at));
        entries.filter_map(|object| match machine.state(object) {
            State::Atomic { value, .. } => Some(*value),
            _ => None,
        })
    }

    /// Forgets the objects in a block that was freed.
    pub(crate) fn forget(&mut self, start: usize, length: usize) {
        let block = start..start + length;
        if self.is_empty(start, length) {
            return;
        }
        for word in (start / 8..(start + length).div_ceil(8)).take(RECENT) {
            let known = &mut self.recent[word % RECENT];
            if block.contains(&known.0) {
                *known = (0, ObjectId::NONE);
            }
        }
        let mut forget = |address: &usize| {
            if let Some(entry) = self.entries.get_mut(address) {
                entry.execution = 0;
            }
        };
        if length <= self.met.len() {
            block.clone().for_each(|address| forget(&address));
        } else {
            let met = self.met.extract_if(.., |address| block.contains(address));
            met.for_each(|address| forget(&address));
        }
        self.elsewhere
            .retain(|(address, ..)| !block.contains(address));
    }

    /// Forgets the objects on a stack whose thread has ended.
    pub(crate) fn forget_stack(&mut self, start: usize, length: usize) {
        if self.on_stacks {
            self.forget(start, length);
        }
    }

    /// Whether the object at this address is older than the execution.
    pub(crate) fn is_elsewhere(&self, address: usize) -> bool {
        self.elsewhere.iter().any(|&(known, ..)| known == address)
    }

    /// Keeps the bytes of a shim, unless they are kept already.
    pub(crate) fn keep(&mut self, memory: Memory) {
        let Memory { start, size, .. } = memory;
        if self.pristine.iter().any(|(known, _)| known.start == start) {
            return;
        }
        let mut bytes = vec![MaybeUninit::uninit(); size];
        // SAFETY: the caller is a shim that gives its own address and size; the destination has
        // that size. Bytes that are not initialised stay so.
        unsafe { std::ptr::copy_nonoverlapping(start.cast(), bytes.as_mut_ptr(), size) };
        self.pristine.push((memory, bytes));
    }

    /// Keeps the bytes of plain memory that is older than the execution, if they can be put back: what
    /// owns something can only be if it is still what the compiler put there.
    pub(crate) fn keep_foreign(&mut self, memory: Memory) {
        let made = |range: &Range<usize>| range.contains(&memory.start.addr());
        if self.made.iter().any(made) {
            return;
        }
        self.turn.take(memory.start.addr());
        if memory.drop.is_none() || self.is_constant(memory.start) {
            self.keep(memory);
        }
    }

    /// Notes what is to be undone at `start` when the execution has ended.
    pub(crate) fn undo_at_end(&mut self, start: *mut u8, size: usize, undo: Undo) {
        if self.undo.iter().all(|&(known, _)| known != start) {
            self.undo.push((start, undo));
            self.made.push(start.addr()..start.addr() + size);
        }
    }

    /// Notes that the contents of this memory were not put there by the compiler.
    pub(crate) fn note_filled(&mut self, start: *const u8, size: usize) {
        let range = start.addr()..start.addr() + size;
        if !self.filled.contains(&range) {
            self.filled.push(range);
        }
    }

    /// Whether what is at the address is in a static and has been there since the program began.
    pub(crate) fn is_constant(&self, address: *const u8) -> bool {
        let filled = |range: &Range<usize>| range.contains(&address.addr());
        statics::contain(address) && !self.filled.iter().any(filled)
    }

    /// Ends the execution if it has met nothing that is older than it, and says whether that is so.
    pub(crate) fn reset_if_nothing_is_older(&mut self) -> bool {
        let nothing = self.pristine.is_empty() && self.undo.is_empty() && self.elsewhere.is_empty();
        if nothing {
            self.forget_all();
        }
        nothing
    }

    /// Forgets the objects of the execution.
    fn forget_all(&mut self) {
        if self.entries.len() > MOST {
            self.entries.clear();
        }
        self.recent = [(0, ObjectId::NONE); RECENT];
        self.execution += 1;
        self.met.clear();
        self.lines = [0; LINES / 64];
        self.on_stacks = false;
        self.made.clear();
        self.filled.clear();
    }

    /// Ends the execution: memory that is older than it gets back what it held before.
    pub(crate) fn reset(&mut self) {
        self.forget_all();
        for (memory, bytes) in self.pristine.drain(..) {
            // SAFETY: the shim is older than the execution and lives on after it, and no guard of it
            // exists any more: every stack is unwound. What it holds now is dropped. What it held
            // before owns nothing: either its type has no drop glue, or it is the value of a constant
            // in a static. So the bytes are as good as when they were copied.
            unsafe {
                if let Some(drop) = memory.drop {
                    drop(memory.start);
                }
                let start = memory.start.cast();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            }
        }
        for (start, undo) in self.undo.drain(..) {
            // SAFETY: the shim that asked for it is older than the execution and lives on, and every
            // stack that could use it is unwound.
            unsafe { undo(start) };
        }
        for (address, kind, value) in self.elsewhere.drain(..) {
            statics::restore(address, kind, value);
        }
    }
}
