//! Does a free come after every use of its block for a reason that no event shows?
//!
//! A counter of owners that is not a shim's orders the free behind them all, and nobody sees it.

use std::backtrace::Backtrace;

use crate::rt::event::Site;
use crate::rt::event::verdict::{Access, Block, DataRace, Effect};
use crate::rt::heap::Watched;

/// A free that comes after every use of its block, for a reason that no event shows. Mostly the last of several owners
/// makes it, who are counted by an `Arc` of std's. Many programs have one whose imports are swapped: a `Waker` cannot
/// do without.
///
/// There is no telling such a free from another one when it happens, so it is told by where it was seen before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SuppressedRaces {
    /// Where the use stands that it comes after.
    used: Site,
    /// The last operation before it of the thread that frees.
    before: Site,
    /// The size of the block in bytes, or 0 if it is a stack.
    size: usize,
}

/// The frees that are no races with what has been done before.
#[derive(Clone, Debug)]
pub(crate) enum InOrder {
    These(Vec<SuppressedRaces>),
    /// All: only what uses memory that is gone is told.
    All,
}

impl InOrder {
    /// Whether the second access is one of these frees, behind the first one.
    pub(crate) fn has(&self, used: Site, second: &Access, block: Option<Block>) -> bool {
        match self {
            InOrder::These(frees) => {
                let free = SuppressedRaces::at(used, second, block);
                free.is_some_and(|free| frees.contains(&free))
            }
            InOrder::All => true,
        }
    }
}

impl SuppressedRaces {
    /// The free that is one of the two accesses, if it is.
    pub(crate) fn of(race: &DataRace) -> Option<SuppressedRaces> {
        SuppressedRaces::at(race.first.site, &race.second, race.block)
    }

    /// The free that the second access is, if it is one, of this block, behind one at the place `used`.
    fn at(used: Site, second: &Access, block: Option<Block>) -> Option<SuppressedRaces> {
        let size = match second.effect {
            Effect::Free => block?.size,
            Effect::End => 0,
            _ => return None,
        };
        Some(SuppressedRaces {
            used,
            before: second.site,
            size,
        })
    }

    /// Whether the block was freed by an `Arc` or an `Rc` of std's that was the last one, directly or with what was in
    /// it. Counts that the model sees, because `counts_are_seen`, are none of std's: an `Arc` of the program's own
    /// begins with the same two, and what they order is known.
    pub(crate) fn is(block: &Watched, counts_are_seen: bool) -> bool {
        let is_counted = block.was_counted_down() && !counts_are_seen;
        is_counted || block.freed.as_ref().is_some_and(within_last_drop)
    }
}

/// Whether this is in the middle of the drop of what the last `Arc` or `Rc` of std's has owned. The block of the `Arc`
/// itself is freed behind that, where optimised code has left the function.
fn within_last_drop(trace: &Backtrace) -> bool {
    let text = trace.to_string();
    // What a job holds is dropped by the thread whose job it is, or by who has joined it.
    let lines = text
        .lines()
        .take_while(|line| !line.contains("dpor::thread::job"));
    let names = lines.map(|line| line.trim_start_matches(|c: char| !c.is_alphabetic()));
    let owners = ["alloc::sync::Arc<", "alloc::rc::Rc<"];
    let mut names = names.filter(|name| owners.iter().any(|owner| name.starts_with(owner)));
    names.any(|name| name.contains("::drop_slow"))
}
