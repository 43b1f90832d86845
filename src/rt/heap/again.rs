//! Which memory does an execution use again?
//!
//! An allocator may hand out a block that was freed a moment ago, and most do: a thread gets the
//! block that it has freed last. A program that compares pointers, by a compare-exchange for
//! instance, then takes the new block for the old one. Mostly freed memory stays where it is until
//! the execution ends, so that late uses are found, and no execution shows that. In the further
//! pass for it, a thread gets the memory of the blocks back that it has freed.
//!
//! * A thread gets its own blocks only, as from the cache that most allocators have for each
//!   thread. So which memory a block gets depends on the history of its thread alone, and equal
//!   traces have equal pointers. Were a block of another thread handed out, allocations and frees
//!   would be operations that race.
//! * Only blocks come again to which an atomic has held a pointer. No other pointer is compared
//!   where the model sees it.
//! * The free may not have been examined yet when its memory is in use again. The freed block is
//!   kept for that ([`Again::find_gone`]).

use std::alloc::Layout;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::rt::heap::block::Block;

/// A thread, and the size and alignment of a block in bytes. A thread gets the memory of a block
/// of its own with the same layout.
type Key = (u32, (usize, usize));

/// A freed block. Its thread may get the memory again.
#[derive(Clone, Copy, Debug)]
struct Freed {
    start: usize,
    /// The number of the last listing at that time.
    serial: u64,
}

/// The freed blocks of one execution that may come again.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// The freed blocks of each key, in the order of their frees. Each publication of a pointer
    /// asks for the oldest one, so a list of all freed blocks would take a time that is quadratic
    /// in the number of frees.
    freed: FxHashMap<Key, VecDeque<Freed>>,
    /// The threads that have freed these blocks, by the start of the block.
    by: FxHashMap<usize, u32>,
    /// Blocks with memory that is in use again, and with frees that are still to be examined.
    replaced: Vec<Block>,
}

/// Size and alignment of a layout.
fn parts(layout: Layout) -> (usize, usize) {
    (layout.size(), layout.align())
}

impl Again {
    /// Another execution begins.
    pub(super) fn clear(&mut self) {
        self.freed.clear();
        self.by.clear();
        self.replaced.clear();
    }

    /// Notes that this thread has freed a published block.
    #[cold]
    pub(super) fn note(&mut self, by: u32, start: usize, layout: Layout, serial: u64) {
        let freed = self.freed.entry((by, parts(layout))).or_default();
        freed.push_back(Freed { start, serial });
        self.by.insert(start, by);
    }

    /// Whether no block may come again.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// Takes the block of this layout that this thread has freed last.
    pub(super) fn take(&mut self, by: u32, layout: Layout) -> Option<usize> {
        let freed = self.freed.get_mut(&(by, parts(layout)))?;
        let start = freed.pop_back()?.start;
        self.by.remove(&start);
        Some(start)
    }

    /// The freed block that begins at `start` and has this layout is given back to the allocator.
    pub(super) fn forget(&mut self, start: usize, layout: Layout) {
        let Some(by) = self.by.remove(&start) else {
            return;
        };
        if let Some(freed) = self.freed.get_mut(&(by, parts(layout))) {
            // The oldest blocks are given back first.
            let at = freed.iter().position(|it| it.start == start);
            at.and_then(|at| freed.remove(at));
        }
    }

    /// Whether the thread that has made this block had freed a block before that could have come
    /// again.
    pub(super) fn could_be(&self, block: &Block, serial: u64) -> bool {
        let freed = self.freed.get(&(block.thread, (block.size, block.align)));
        let oldest = freed.and_then(VecDeque::front);
        oldest.is_some_and(|oldest| oldest.serial < serial)
    }

    /// Keeps a freed block until its free has been examined.
    pub(super) fn replace(&mut self, block: Block) {
        self.replaced.push(block);
    }

    /// The freed block at this address that is still to be examined, if its memory is in use again.
    pub(super) fn find_gone(&self, address: usize) -> Option<Block> {
        let is_it = |block: &&Block| block.contains(address);
        self.replaced.iter().find(is_it).copied()
    }

    /// All frees have been examined.
    pub(super) fn are_examined(&mut self) {
        self.replaced.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A freed block: its thread, its size, its start, and the number of the last listing.
    type Entry = (u32, usize, usize, u64);

    /// Random frees and allocations of a few threads, compared with a list of all freed blocks.
    #[test]
    fn the_index_knows_what_a_list_of_all_freed_blocks_knows() {
        let (mut again, mut all) = (Again::default(), Vec::<Entry>::new());
        let mut random = 1_u64;
        let mut draw = |most: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            (random >> 33) % most
        };
        let (mut taken, mut could) = (0, 0);
        for serial in 0..20_000 {
            let (by, size) = (draw(3) as u32, 8 << draw(2));
            let layout = Layout::from_size_align(size, 8).expect("a layout");
            match draw(4) {
                0 | 1 => {
                    let start = 64 * (serial as usize + 1);
                    again.note(by, start, layout, serial);
                    all.push((by, size, start, serial));
                }
                2 => {
                    let at = all.iter().rposition(|it| (it.0, it.1) == (by, size));
                    let last = at.map(|at| all.remove(at).2);
                    taken += usize::from(last.is_some());
                    assert_eq!(again.take(by, layout), last);
                }
                _ if all.is_empty() => {}
                _ => {
                    let (_, size, start, _) = all.remove(draw(all.len() as u64) as usize);
                    let layout = Layout::from_size_align(size, 8).expect("a layout");
                    again.forget(start, layout);
                }
            }
            let before = draw(serial + 2);
            let block = Block::new(1 << 30, layout, by, 0, 0);
            let is_older = |it: &Entry| (it.0, it.1) == (by, size) && it.3 < before;
            could += usize::from(all.iter().any(is_older));
            assert_eq!(again.could_be(&block, before), all.iter().any(is_older));
            assert_eq!(again.is_empty(), all.is_empty());
        }
        assert!(taken > 1_000 && could > 1_000, "{taken}, {could}");
    }
}
