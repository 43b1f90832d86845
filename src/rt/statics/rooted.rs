//! Which blocks hang from the statics of the program?
//!
//! What a shim in a static leads to is known. Of other memory there nobody hears, such as a cell
//! that is written through the pointer of `get`, which is how crates write their own lazy cells, or
//! one of std's. So statics are looked at as a whole, but only where a block would count as leaked,
//! which is seldom.
//!
//! What looks like the address of a block need not be one. An earlier execution may have left it,
//! and so may std, which keeps what it knows of the program's functions in a static that has holes.
//! So whoever doubts it looks whether a static leads there again where the execution is made once
//! more: then the allocator gives out other addresses, because what was lost is not freed.

use std::collections::HashSet;

use crate::rt::heap::contents;
use crate::rt::heap::contents::LOWEST_ADDRESS;
use crate::rt::heap::{Block, Heap};
use crate::rt::statics::segments;

/// What is made of a block that hangs from a static.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rooted {
    Stays,
    /// It is told as a leak that may be none
    /// ([`Leaked::doubted`](crate::rt::event::verdict::Leaked::doubted)).
    Doubted,
}

/// So many bytes of statics at most are looked at.
const BYTES_MAX: usize = 16 << 20;

/// Takes out of `left` the blocks that a static of the program leads to, by way of other blocks or
/// not, and gives these.
pub(crate) fn take_out(left: &mut Vec<Block>, heap: &Heap) -> Vec<Block> {
    if left.is_empty() {
        return Vec::new();
    }
    let recording = heap.record(false);
    let mut reached = HashSet::new();
    let mut to_read: Vec<(usize, usize)> = Vec::new();
    let mut bytes = 0;
    for (start, size) in segments::statics() {
        let size = size.min(BYTES_MAX - bytes);
        bytes += size;
        to_read.push((start, size));
    }
    while let Some((start, size)) = to_read.pop() {
        let meet = |word: usize| {
            if word >= LOWEST_ADDRESS
                && let Some(block) = heap.around(word)
                && reached.insert(block)
            {
                to_read.push(block);
            }
        };
        // SAFETY: it is in a segment of the program, or a block that the allocator has handed out
        // and has not got back.
        unsafe { contents::each_word(start, size, meet) };
    }
    let is_reached = |block: &Block| reached.contains(&(block.start, block.size));
    let (rooted, others) = std::mem::take(left).into_iter().partition(is_reached);
    *left = others;
    heap.record(recording);
    rooted
}
