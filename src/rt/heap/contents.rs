//! Does memory hold what it has held before?
//!
//! A loop that takes a lock, finds nothing, and gives it back only looks, also if it has asked for
//! `&mut` on the way: `queue.lock().unwrap().pop_front()` does. One that changes a `Cell` behind a
//! lock gets on, and has never asked. So what a lock protects is compared with what it was.

use std::hint::black_box;
use std::ptr;

use crate::rt::event::mix::{STEP, mix};
use crate::rt::heap::Heap;

/// Data of more bytes is not looked at when its lock is taken, which is often.
const BYTES_MAX: usize = 4 * 1024;

const WORD: usize = size_of::<usize>();

/// The most bytes and blocks that something may lead to where a loop may wait, which is seldom.
const REACH_MAX: usize = 64 * 1024;
const BLOCKS_MAX: usize = 32;

/// Words below are numbers: no system has memory there.
pub(crate) const LOWEST_ADDRESS: usize = 0x1000;

/// The bytes of this memory, as one word that is another one if they are; 0 if they are too many.
///
/// # Safety
///
/// The memory can be read.
#[inline]
pub(crate) unsafe fn of_bytes(start: usize, size: usize) -> u64 {
    // Most data is a number or a flag.
    let at = black_box(start);
    // SAFETY: the caller says that it can be read, and what has to be aligned is.
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

/// [`of_bytes`] for what is not one number.
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
    // SAFETY: the caller says so.
    unsafe { each_word(start, size, |word| mixed = mix_in(mixed, word as u64)) };
    mixed
}

/// The bytes of this memory and of all blocks of this heap that it leads to, as one word that is
/// another one if something is different. `None` if that is not known, because it leads to one of
/// these stacks of threads, or because it is much.
///
/// Which addresses blocks have says nothing: what was put in the place of something that is just
/// like it is the same. What is neither in a block nor on a stack is taken for a number: an address
/// cannot be told from two short numbers in a row.
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
    // SAFETY: the caller says so.
    let mixed = unsafe { follow(heap, stacks, memory) };
    heap.record(recording);
    mixed
}

/// [`of_reach`] while nothing is recorded.
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
        // SAFETY: the caller says it of the first, and the others are blocks that the allocator has
        // handed out and has not got back.
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
        // SAFETY: it is in the memory of which the caller says that it can be read, and aligned
        // where it is a whole word.
        meet(unsafe {
            match whole {
                true => read::<usize>(at),
                false => read::<u8>(at).into(),
            }
        });
        at += if whole { WORD } else { 1 };
    }
}

/// The number there, as a debugger would read it: what is in it is the program's, and some of it
/// may never have been written.
///
/// # Safety
///
/// It can be read, it is aligned, and the compiler does not know how its address was come by.
#[inline]
unsafe fn read<N>(at: usize) -> N {
    // SAFETY: the caller says that it can be read. It is read once, as it is, and only to be
    // compared.
    unsafe { ptr::with_exposed_provenance::<N>(at).read_volatile() }
}
