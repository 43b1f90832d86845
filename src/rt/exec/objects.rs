//! Which object is at this address?
//!
//! A shim has nothing of its own but the value it would have in std, so that `new` is a `const fn`,
//! sizes and alignments are std's and zeroed memory is a valid atomic. The object behind it is found
//! by its address, once per operation, in a table; the address becomes a name (a [`Place`]) only the
//! first time in an execution.
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
#[derive(Default)]
pub(crate) struct Table {
    entries: FxHashMap<usize, Entry>,
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
        if let Some(&Entry { object, place }) = self.entries.get(&address) {
            let state = machine.state(object);
            if state.kind() == kind && state.agrees(memory) {
                return Ok(object);
            }
            let place = Place {
                generation: place.generation + 1,
                ..place
            };
            let object = machine.object_at(place, kind, memory);
            self.entries.insert(address, Entry { object, place });
            return Ok(object);
        }
        let region = locate(address)?;
        let made = |range: &Range<usize>| range.contains(&address);
        let mut memory = memory;
        if matches!(region, Region::Elsewhere { .. }) && !self.made.iter().any(made) {
            if self.turn.take(address) {
                // Another exploration may have been in the middle of an execution until now.
                memory = statics::at_rest(address, kind).unwrap_or(memory);
            }
            self.elsewhere.push((address, kind, memory));
        }
        let place = Place {
            region,
            generation: 0,
        };
        let object = machine.object_at(place, kind, memory);
        self.entries.insert(address, Entry { object, place });
        Ok(object)
    }

    /// The object at this address, if the execution has met it.
    pub(crate) fn known(&self, address: usize) -> Option<ObjectId> {
        self.entries.get(&address).map(|entry| entry.object)
    }

    /// The objects in a block.
    pub(crate) fn inside(&self, start: usize, length: usize) -> Vec<ObjectId> {
        let block = start..start + length;
        if length <= 8 * self.entries.len() {
            block.filter_map(|address| self.known(address)).collect()
        } else {
            let entries = self.entries.iter();
            let inside = entries.filter(|(address, _)| block.contains(address));
            inside.map(|(_, entry)| entry.object).collect()
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
        if length <= 8 * self.entries.len() {
            for address in block.clone() {
                self.entries.remove(&address);
            }
        } else {
            self.entries.retain(|address, _| !block.contains(address));
        }
        self.elsewhere
            .retain(|(address, ..)| !block.contains(address));
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

    /// Ends the execution: memory that is older than it gets back what it held before.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
        self.made.clear();
        self.filled.clear();
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
