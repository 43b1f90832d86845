//! Does memory hold the same contents as before?
//!
//! A loop that takes a lock, finds nothing, and releases the lock only looks, even if it has
//! requested `&mut` in between: `queue.lock().unwrap().pop_front()` does. A loop that changes a
//! `Cell` behind a lock makes progress, and has never requested `&mut`. So the contents behind a
//! lock are compared with the earlier contents.

use std::hint::black_box;
use std::ptr;

use crate::rt::event::mix::{STEP, mix};

/// The largest data in bytes that is read when its lock is taken, which happens often.
const BYTES_MAX: usize = 4 * 1024;

const WORD: usize = size_of::<usize>();

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

pub(super) fn mix_in(mixed: u64, word: u64) -> u64 {
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
