//! Which memory does an execution have to restore?
//!
//! Memory that is older than the execution gets back its contents from before: each execution
//! begins like the first one. The runtime notes the contents when the execution first meets the
//! memory.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use crate::rt::event::operation::ObjectKind;
use crate::rt::shim::Memory;

use crate::rt::statics;

/// The number of words that are read at most in the memory of one shim.
const WORDS_MAX: usize = 512;

/// Undoes the changes of the execution to a shim, given the shim's own address.
pub(crate) type Undo = unsafe fn(*mut u8);

/// The memory that is older than the execution and that the execution has met.
#[derive(Default)]
pub(crate) struct Older {
    /// The addresses of values, with their contents at the first meeting.
    values: Vec<(usize, ObjectKind, u64)>,
    /// Copies of shims that are more than a value, by their addresses.
    pristine: Vec<(Memory, Vec<MaybeUninit<u8>>)>,
    undo: Vec<(*mut u8, Undo)>,
    /// The pages that contain all of that.
    pages: Pages,
}

/// A set of pages of memory, by their numbers modulo 64. Most freed blocks are on other pages.
#[derive(Clone, Copy, Default)]
struct Pages(u64);

impl Pages {
    /// The page of an address.
    fn of(address: usize) -> Pages {
        Pages::of_block(&(address..address + 1))
    }

    /// The pages of a block that is not empty.
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

    /// Whether the two sets have no page in common.
    fn are_apart(self, others: Pages) -> bool {
        self.0 & others.0 == 0
    }
}

impl Older {
    pub(crate) fn is_empty(&self) -> bool {
        self.pristine.is_empty() && self.undo.is_empty() && self.values.is_empty()
    }

    /// Notes an object with this value.
    pub(crate) fn note(&mut self, address: usize, kind: ObjectKind, value: u64) {
        self.values.push((address, kind, value));
        self.pages.add(Pages::of(address));
    }

    /// The addresses of the noted objects.
    pub(crate) fn addresses(&self) -> impl ExactSizeIterator<Item = usize> {
        self.values.iter().map(|&(address, ..)| address)
    }

    /// Forgets the entries in a block that is `gone`: other code has this memory now.
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

    /// Keeps the bytes of a shim, which are not [kept](Older::keeps) yet.
    pub(crate) fn keep(&mut self, memory: Memory) {
        let Memory { start, size, .. } = memory;
        debug_assert!(!self.keeps(start));
        let mut bytes = vec![MaybeUninit::uninit(); size];
        // SAFETY: the caller is a shim that passes its own address and size; the destination has
        // that size. Bytes that are not initialised stay so.
        unsafe { ptr::copy_nonoverlapping(start.cast(), bytes.as_mut_ptr(), size) };
        self.pristine.push((memory, bytes));
        self.pages.add(Pages::of(start.addr()));
    }

    /// The current words of the memory for which bytes are kept, up to the limit.
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
                // SAFETY: the word is in the memory of a shim that is still there, and aligned. The
                // contents are the program's, so they are read as a debugger would, and taken for
                // no more than a number that may mean anything.
                unsafe { word.read_volatile() }
            })
        })
    }

    /// Notes the `undo` for `start`; returns false if it has been noted before.
    pub(crate) fn undo_at_end(&mut self, start: *mut u8, undo: Undo) -> bool {
        let new = self.undo.iter().all(|&(known, _)| known != start);
        if new {
            self.undo.push((start, undo));
            self.pages.add(Pages::of(start.addr()));
        }
        new
    }

    /// Forgets the entries that `other` has from an earlier time: their memory is still to be
    /// restored to its contents then, or is being restored.
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

    /// The address of the shim that is restored next, if its contents are dropped then.
    pub(crate) fn next_dropped(&self) -> Option<*const u8> {
        let (memory, _) = self.pristine.last()?;
        Some(memory.start.cast_const())
    }

    /// Restores one entry, if there is one left. The contents of its memory are dropped, which may
    /// free the memory of other entries: these have to be [forgotten](Older::forget) before the
    /// next call. An entry is skipped if its memory is no longer mapped.
    pub(crate) fn put_back_next(&mut self) -> bool {
        if let Some((memory, bytes)) = self.pristine.pop() {
            if !statics::is_still_there(memory.start) {
                return true;
            }
            /// Writes the bytes in the end, also if the drop of the old contents panics.
            struct PutBack(*mut u8, Vec<MaybeUninit<u8>>);
            impl Drop for PutBack {
                fn drop(&mut self) {
                    let PutBack(start, ref bytes) = *self;
                    // SAFETY: the shim is older than the execution and was not freed by it, and no
                    // guard of it exists any more: every stack is unwound. Its contents from the
                    // execution were dropped. Its contents from before have nothing to drop: their
                    // type has no drop glue, or the shim is in a static, was not written there
                    // while the program ran as far as dpor has noted, and has no pointer to other
                    // memory (`statics::are_constant`). So the bytes are as good as when they were
                    // copied. This trusts the program in three things: that it has not put other
                    // data in the place of the shim; that it does not use the shim outside of the
                    // model in the meantime; and that a value without a destructor may be there
                    // twice, if it was moved out. The guide states the last one for an exclusive
                    // reference.
                    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
                }
            }
            let put_back = PutBack(memory.start, bytes);
            if let Some(drop) = memory.drop {
                // SAFETY: as above; no code uses the dropped contents again.
                unsafe { drop(put_back.0) };
            }
        } else if let Some((start, undo)) = self.undo.pop() {
            if !statics::is_still_there(start) {
                return true;
            }
            // SAFETY: the shim that requested this is older than the execution and was not freed by
            // it, and every stack that could use the shim is unwound. The program is trusted as
            // above.
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
            // No entry is left in memory that other code may have.
            assert!(!older.put_back_next(), "{keeps}");
        }
    }
}
