//! What does an execution have to put back?
//!
//! Memory that is older than it gets back what it held before: each execution begins like the first
//! one. What has to be put back is noted when the execution first meets the memory.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use crate::rt::event::operation::ObjectKind;
use crate::rt::shim::Memory;

use crate::rt::statics;

/// So many words at most are looked at in the memory of one shim.
const WORDS_MAX: usize = 512;

/// Undoes, given a shim's own address, what the execution did to it.
pub(crate) type Undo = unsafe fn(*mut u8);

/// What is older than the execution and was met by it.
#[derive(Default)]
pub(crate) struct Older {
    /// Addresses of values, with what they held when they were met.
    values: Vec<(usize, ObjectKind, u64)>,
    /// Copies of shims that are more than a value, by their addresses.
    pristine: Vec<(Memory, Vec<MaybeUninit<u8>>)>,
    undo: Vec<(*mut u8, Undo)>,
    /// On which pages all that is.
    pages: Pages,
}

/// Some pages of memory, by their numbers modulo 64. Most of what is freed is on others.
#[derive(Clone, Copy, Default)]
struct Pages(u64);

impl Pages {
    /// Those of an address.
    fn of(address: usize) -> Pages {
        Pages::of_block(&(address..address + 1))
    }

    /// Those of a block that is not empty.
    fn of_block(block: &Range<usize>) -> Pages {
        let number = |address: usize| address >> 12;
        let (first, last) = (number(block.start), number(block.end - 1));
        let some = match last - first {
            more @ ..63 => (2 << more) - 1,
            _ => u64::MAX,
        };
        Pages(some.rotate_left(first as u32 % u64::BITS))
    }

    fn add(&mut self, others: Pages) {
        self.0 |= others.0;
    }

    /// Whether none is among the others.
    fn are_apart(self, others: Pages) -> bool {
        self.0 & others.0 == 0
    }
}

impl Older {
    pub(crate) fn is_empty(&self) -> bool {
        self.pristine.is_empty() && self.undo.is_empty() && self.values.is_empty()
    }

    /// Notes an object that holds this value.
    pub(crate) fn note(&mut self, address: usize, kind: ObjectKind, value: u64) {
        self.values.push((address, kind, value));
        self.pages.add(Pages::of(address));
    }

    /// The addresses of the objects that were noted.
    pub(crate) fn addresses(&self) -> impl ExactSizeIterator<Item = usize> {
        self.values.iter().map(|&(address, ..)| address)
    }

    /// Forgets what is in a block that is `gone`: that memory is somebody else's now.
    pub(crate) fn forget(&mut self, block: Range<usize>) {
        if block.is_empty() || self.pages.are_apart(Pages::of_block(&block)) {
            return;
        }
        let gone = |address: usize| block.contains(&address);
        self.values.retain(|&(address, ..)| !gone(address));
        self.pristine
            .retain(|(memory, _)| !gone(memory.start.addr()));
        self.undo.retain(|(start, _)| !gone(start.addr()));
    }

    /// Whether the bytes of this shim are kept.
    pub(crate) fn keeps(&self, start: *const u8) -> bool {
        (self.pristine.iter()).any(|(known, _)| ptr::eq(known.start, start))
    }

    /// Keeps the bytes of a shim, which are not [kept](Older::keeps).
    pub(crate) fn keep(&mut self, memory: Memory) {
        let Memory { start, size, .. } = memory;
        debug_assert!(!self.keeps(start));
        let mut bytes = vec![MaybeUninit::uninit(); size];
        // SAFETY: the caller is a shim that gives its own address and size; the destination has
        // that size. Bytes that are not initialised stay so.
        unsafe { ptr::copy_nonoverlapping(start.cast(), bytes.as_mut_ptr(), size) };
        self.pristine.push((memory, bytes));
        self.pages.add(Pages::of(start.addr()));
    }

    /// The words that are now where bytes are kept, as far as there are not too many.
    pub(crate) fn words(&self) -> impl Iterator<Item = usize> {
        const WORD: usize = size_of::<usize>();
        let there = |(memory, _): &&(Memory, _)| statics::is_still_there(memory.start);
        self.pristine.iter().filter(there).flat_map(|(memory, _)| {
            let size = memory.size.min(WORDS_MAX * WORD);
            let begin = memory.start.align_offset(WORD).min(size);
            let places = (begin..size).step_by(WORD);
            let places = places.filter(move |at| at + WORD <= size);
            places.map(|at| {
                let word = memory.start.wrapping_add(at).cast::<usize>();
                // SAFETY: it is in the memory of a shim that is still there, and aligned. What is
                // in it is the program's, so it is read as a debugger would, to be taken for no
                // more than a number that may mean anything.
                unsafe { word.read_volatile() }
            })
        })
    }

    /// Notes what is to be undone at `start`; false if that has been noted before.
    pub(crate) fn undo_at_end(&mut self, start: *mut u8, undo: Undo) -> bool {
        let new = self.undo.iter().all(|&(known, _)| known != start);
        if new {
            self.undo.push((start, undo));
            self.pages.add(Pages::of(start.addr()));
        }
        new
    }

    /// Forgets what `other` knows better: that is still to be put back there as it was before, or
    /// is being put back.
    pub(crate) fn leave_to(&mut self, other: &Older, in_progress: Option<*const u8>) {
        let Older {
            values,
            pristine,
            undo,
            pages: _,
        } = self;
        values.retain(|&(address, ..)| !other.addresses().any(|known| known == address));
        pristine.retain(|(memory, _)| {
            let start = memory.start.cast_const();
            !other.keeps(start) && in_progress != Some(start)
        });
        undo.retain(|(start, _)| !other.undo.iter().any(|(known, _)| known == start));
    }

    /// Where the shim is that is put back next, if what it holds is dropped then.
    pub(crate) fn next_dropped(&self) -> Option<*const u8> {
        let (memory, _) = self.pristine.last()?;
        Some(memory.start.cast_const())
    }

    /// Puts one thing back, if there is one left. What was in its memory is dropped, which may free
    /// what is still to be put back: that has to be [forgotten](Older::forget) before the next one.
    /// What is not mapped any more is passed over.
    pub(crate) fn put_back_next(&mut self) -> bool {
        if let Some((memory, bytes)) = self.pristine.pop() {
            if !statics::is_still_there(memory.start) {
                return true;
            }
            /// Puts the bytes there in the end, also if what was there panics when it is dropped.
            struct PutBack(*mut u8, Vec<MaybeUninit<u8>>);
            impl Drop for PutBack {
                fn drop(&mut self) {
                    let PutBack(start, ref bytes) = *self;
                    // SAFETY: the shim is older than the execution and was not freed by it, and no
                    // guard of it exists any more: every stack is unwound. What it has held
                    // meanwhile was dropped. What it held before has nothing to drop: its type has
                    // no drop glue, or it is in a static, was not written there while the program
                    // ran as far as anybody has noted, and leads to no other memory
                    // (`statics::are_constant`). So the bytes are as good as when they were copied.
                    // This trusts the program in three things: that it has not put something else
                    // in the place of the shim; that it does not use it outside of the model
                    // meanwhile; and that what has no destructor may be there twice, if it was
                    // moved out, which the guide says of an exclusive reference.
                    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
                }
            }
            let put_back = PutBack(memory.start, bytes);
            if let Some(drop) = memory.drop {
                // SAFETY: as above; nobody uses what is dropped again.
                unsafe { drop(put_back.0) };
            }
        } else if let Some((start, undo)) = self.undo.pop() {
            if !statics::is_still_there(start) {
                return true;
            }
            // SAFETY: the shim that asked for it is older than the execution and was not freed by
            // it, and every stack that could use it is unwound. The program is trusted as above.
            unsafe { undo(start) };
        } else if let Some((address, kind, value)) = self.values.pop() {
            if statics::is_still_there(ptr::without_provenance(address)) {
                statics::restore(address, kind, value);
            }
        } else {
            self.pages = Pages::default();
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_block_that_is_gone_is_forgotten_and_nothing_else() {
        let page = |number: usize| number << 12;
        // One page, two, across the 64th, a long block, and pages that have the same number modulo
        // 64.
        let blocks = [
            page(5) + 8..page(5) + 16,
            page(6) - 8..page(6) + 8,
            page(63) + 8..page(65) + 8,
            page(100)..page(161),
            page(100)..page(163),
            page(100)..page(164),
            page(100)..page(300),
            page(200)..page(200),
        ];
        let mut addresses: Vec<usize> = (0..400).map(|number| page(number) + 8).collect();
        let ends = blocks.iter().flat_map(|block| [block.start, block.end]);
        addresses.extend(ends.flat_map(|end| [end - 1, end]));
        for block in blocks {
            for &address in &addresses {
                let mut older = Older::default();
                older.note(address, ObjectKind::Mutex, 0);
                older.forget(block.clone());
                let stays = older.addresses().count() == 1;
                assert_eq!(stays, !block.contains(&address), "{address:#x} {block:x?}");
            }
        }
    }

    #[test]
    fn what_would_be_put_back_or_undone_in_a_block_that_is_gone_is_forgotten() {
        for keeps in [true, false] {
            let mut block = Box::new([1_u64, 2]);
            let start: *mut u8 = block.as_mut_ptr().cast();
            let address = start.addr();
            let mut older = Older::default();
            if keeps {
                older.keep(Memory {
                    start,
                    size: 8,
                    drop: None,
                    fresh: true,
                });
            } else {
                assert!(older.undo_at_end(start, |_| unreachable!("it is forgotten")));
            }
            older.forget(address + 8..address + 16);
            assert!(!older.is_empty(), "{keeps}");
            older.forget(address..address + 8);
            assert!(older.is_empty(), "{keeps}");
            // Nothing is left to be done where somebody else may be.
            assert!(!older.put_back_next(), "{keeps}");
        }
    }
}
