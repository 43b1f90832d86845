//! Which blocks are reachable from the statics of the program?
//!
//! The blocks reachable from a shim in a static are known. Other memory of statics is not reported
//! to dpor, for example a cell that is written through the pointer of `get`, as many crates do in
//! their own lazy cells, or a cell of std's. So all statics are searched, but only if a block would
//! count as leaked, which is rare.
//!
//! A word that looks like the address of a block need not be one. An earlier execution may have
//! left it, and so may std, which keeps data about the program's functions in a static that has
//! padding. To settle the doubt, the exploration repeats the execution and checks whether a static
//! leads to the block again: then the allocator returns other addresses, because the lost block was
//! not freed.

use std::collections::HashSet;

use crate::rt::heap::contents;
use crate::rt::heap::reach::LOWEST_ADDRESS;
use crate::rt::heap::{Block, Heap};
use crate::rt::statics::segments;

/// The treatment of a block that is reachable from a static.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rooted {
    Stays,
    /// It is reported as a leak that may be none
    /// ([`Leaked::doubted`](crate::rt::event::verdict::Leaked::doubted)).
    Doubted,
}

/// The number of bytes of statics that are searched at most.
const BYTES_MAX: usize = 16 << 20;

/// Takes out of `left` the blocks that are reachable from a static of the program, directly or
/// through other blocks, and returns them.
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
        // SAFETY: the memory is in a segment of the program, or a block that the allocator has
        // provided and has not got back.
        unsafe { contents::each_word(start, size, meet) };
    }
    let is_reached = |block: &Block| reached.contains(&(block.start, block.size));
    let (rooted, others) = std::mem::take(left).into_iter().partition(is_reached);
    *left = others;
    heap.record(recording);
    rooted
}
