//! Does everything that data leads to hold the same contents as before?
//!
//! A loop that borrows data mutably may change what is behind its pointers. So the blocks of the
//! heap to which the data leads are compared with it.

use crate::rt::heap::Heap;
use crate::rt::heap::contents::{each_word, mix_in};

/// The most bytes and blocks reachable from data that are read where a loop may wait, which is
/// rare.
const REACH_MAX: usize = 64 * 1024;
const BLOCKS_MAX: usize = 32;

/// Words below this value are numbers: no system has memory at such addresses.
pub(crate) const LOWEST_ADDRESS: usize = 0x1000;

/// A hash of the bytes of this memory and of all blocks of this heap that are reachable from it:
/// one word that differs if some byte differs. `None` if the hash is not known, because a pointer
/// leads to one of these stacks of threads, or because the reachable memory is too large.
///
/// The addresses of blocks do not count: a block that replaces another one with equal contents
/// gives the same hash. A word that points neither into a block nor to a stack is taken for a
/// number, because an address cannot be distinguished from two short numbers in a row.
///
/// # Safety
///
/// The memory can be read.
pub(crate) unsafe fn of_reach(
    heap: &Heap,
    stacks: &[Option<(usize, usize)>],
    memory: (usize, usize),
) -> Option<u64> {
    let recording = heap.record(false);
    // SAFETY: the caller guarantees that the memory can be read.
    let mixed = unsafe { follow(heap, stacks, memory) };
    heap.record(recording);
    mixed
}

/// [`of_reach`], called while recording is off.
///
/// # Safety
///
/// The memory can be read.
unsafe fn follow(
    heap: &Heap,
    stacks: &[Option<(usize, usize)>],
    memory: (usize, usize),
) -> Option<u64> {
    let is_on_a_stack = |address: usize| {
        let mut stacks = stacks.iter().flatten();
        stacks.any(|&(bottom, top)| (bottom..top).contains(&address))
    };
    let mut found = [memory; 1 + BLOCKS_MAX];
    let (mut count, mut at) = (1, 0);
    let (mut mixed, mut bytes) = (0, 0);
    while at < count {
        let (start, size) = found[at];
        at += 1;
        bytes += size;
        if bytes > REACH_MAX {
            return None;
        }
        let mut is_known = true;
        let meet = |word: usize| {
            let block = match word {
                ..LOWEST_ADDRESS => None,
                _ => heap.around(word),
            };
            let Some(block) = block else {
                mixed = mix_in(mixed, word as u64);
                is_known &= word < LOWEST_ADDRESS || !is_on_a_stack(word);
                return;
            };
            let known = found[1..count].iter().position(|it| *it == block);
            let number = known.unwrap_or(count - 1);
            if known.is_none() {
                if count == found.len() {
                    is_known = false;
                    return;
                }
                found[count] = block;
                count += 1;
            }
            mixed = mix_in(mix_in(mixed, number as u64), (word - block.0) as u64);
        };
        // SAFETY: the caller guarantees it for the first memory, and the others are blocks that the
        // allocator has provided and that have not been given back to it.
        unsafe { each_word(start, size, meet) };
        if !is_known {
            return None;
        }
    }
    Some(mixed)
}
