//! Does memory hold the same contents as before?
//!
//! A loop that takes a lock, finds nothing, and releases the lock only looks, even if it has
//! requested `&mut` in between: `queue.lock().unwrap().pop_front()` does. A loop that changes a
//! `Cell` behind a lock makes progress, and has never requested `&mut`. So the contents behind a
//! lock are compared with the earlier contents.

use std::hint::black_box;
use std::ptr;

use crate::rt::event::mix::{STEP, mix};
use crate::rt::heap::Heap;

/// The largest data in bytes that is read when its lock is taken, which happens often.
const BYTES_MAX: usize = 4 * 1024;

const WORD: usize = size_of::<usize>();

/// The most bytes and blocks reachable from data that are read where a loop may wait, which is
/// rare.
const REACH_MAX: usize = 64 * 1024;
const BLOCKS_MAX: usize = 32;

/// Words below this value are numbers: no system has memory at such addresses.
pub(crate) const LOWEST_ADDRESS: usize = 0x1000;

/// A hash of the bytes of this memory: one word that differs if the bytes differ; 0 if there are
/// too many bytes.
///
/// # Safety
///
/// The memory can be read.
#[inline]
pub(crate) unsafe fn of_bytes(start: usize, size: usize) -> u64 {
    // Most data is a number or a flag.
    let at = black_box(start);
    // SAFETY: the caller guarantees that the memory can be read, and the match checks the alignment
    // where a type needs one.
    unsafe {
        match size {
            0 => 0,
            1 => read::<u8>(at).into(),
            4 if at.is_multiple_of(4) => read::<u32>(at).into(),
            8 if at.is_multiple_of(8) => read::<u64>(at),
            _ => of_many_bytes(start, size),
        }
    }
}

/// The bytes of this memory.
///
/// # Safety
///
/// The memory can be read.
pub(crate) unsafe fn bytes<const N: usize>(start: usize) -> [u8; N] {
    let start = black_box(start);
    // SAFETY: the caller guarantees that the memory can be read.
    std::array::from_fn(|at| unsafe { read::<u8>(start + at) })
}

/// [`of_bytes`] for data that is not one number.
///
/// # Safety
///
/// The memory can be read.
#[inline(never)]
unsafe fn of_many_bytes(start: usize, size: usize) -> u64 {
    if size > BYTES_MAX {
        return 0;
    }
    let mut mixed = 0;
    // SAFETY: the caller guarantees that the memory can be read.
    unsafe { each_word(start, size, |word| mixed = mix_in(mixed, word as u64)) };
    mixed
}

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

fn mix_in(mixed: u64, word: u64) -> u64 {
    mix(mixed.wrapping_add(STEP) ^ word)
}

/// Calls `meet` with each word of this memory, and with each byte before the first and behind the
/// last whole one.
///
/// # Safety
///
/// The memory can be read.
pub(crate) unsafe fn each_word(start: usize, size: usize, mut meet: impl FnMut(usize)) {
    let end = start + size;
    let mut at = black_box(start);
    while at < end {
        let whole = at.is_multiple_of(WORD) && end - at >= WORD;
        // SAFETY: the address is in the memory for which the caller guarantees that it can be read,
        // and it is aligned where a whole word is read.
        meet(unsafe {
            if whole {
                read::<usize>(at)
            } else {
                read::<u8>(at).into()
            }
        });
        at += if whole { WORD } else { 1 };
    }
}

/// Reads the number at this address, as a debugger would: the contents are the program's, and some
/// of them may never have been written.
///
/// # Safety
///
/// The memory can be read, the address is aligned, and the compiler does not know the origin of the
/// address.
#[inline]
unsafe fn read<N>(at: usize) -> N {
    // SAFETY: the caller guarantees that the memory can be read. The memory is read once, as it is,
    // and the number is only compared.
    unsafe { ptr::with_exposed_provenance::<N>(at).read_volatile() }
}
