//! Which threads outside of a model have used memory of the model?
//!
//! A test that spawns a thread by `std::thread` has a thread that the model does not schedule. The
//! operations of that thread find no runtime on their OS thread, so they are done as in std, and
//! the exploration would be called complete without having seen them. So these uses are noted while
//! a model runs anywhere in the process, and an execution that has ended checks for uses of its own
//! memory.
//!
//! Other tests of the process may use shims on real threads, and rightly. A number that counts
//! these uses separates their memory from the model's: a block was the model's at the time of the
//! use only if the model had got the block before.

use crate::rt::event::Site;
use crate::rt::event::verdict::{End, Outside, Wrong};

use super::context::{Inner, Runtime};
use crate::rt::process::outside_use::{self, Use, noted};
use crate::rt::statics;

/// Notes that a thread outside of all models is about to use the object at this address.
#[cold]
pub(crate) fn note(address: usize, site: Site) {
    statics::wait_outside(address);
    outside_use::note(address, site);
}

impl Runtime {
    /// The end of an execution that would have ended like `end`, if a thread outside of the model
    /// has used memory of the execution. `stacks_since` is the number of such uses before the
    /// newest of its stacks was allocated.
    #[inline]
    pub(super) fn used_from_outside(&self, end: &End, stacks_since: u64) -> Option<End> {
        let since = self.heap.outsiders_at_start();
        if since == noted() || !means_nothing(end) {
            return None;
        }
        self.find_outsider(since, stacks_since)
    }

    #[cold]
    fn find_outsider(&self, since: u64, stacks_since: u64) -> Option<End> {
        let inner = self.inner.borrow();
        let is_ours = |it: &Use| {
            let on_stack = it.number >= stacks_since && inner.is_on_a_stack(it.address);
            it.number >= since && (on_stack || self.heap.had(it.address, it.number))
        };
        let ours = outside_use::latest().filter(is_ours);
        let first = ours.min_by_key(|it| it.number)?;
        Some(End::Outside(Outside {
            object: inner.table.last_at(first.address),
            site: first.site,
        }))
    }
}

/// Whether a use by a thread outside of the model may be the only reason for this end of an
/// execution. Another failure has its own report, and an abandoned execution is found again
/// elsewhere.
fn means_nothing(end: &End) -> bool {
    match end {
        End::Complete | End::Deadlock(_) | End::Livelock { .. } | End::NotDeterministic(_) => true,
        // The heap does not see a free by a thread outside of the model. The system may hand out
        // the memory of that block again, as a block that a thread of the model gets from the
        // outside thread and frees rightly. That free then looks like a wrong free of the earlier
        // block.
        End::BadMemory(bad) => matches!(
            bad.wrong,
            Wrong::FreedTwice | Wrong::Layout { .. } | Wrong::Inside { .. }
        ),
        _ => false,
    }
}

impl Inner {
    /// Whether the address is on the stack of a thread of this execution, which may have ended.
    fn is_on_a_stack(&self, address: usize) -> bool {
        let alive = self.stacks.iter().flatten();
        let ended = self.ended.iter().map(|(_, stack)| stack);
        let mut stacks = alive.chain(ended);
        stacks.any(|&(bottom, top)| (bottom..top).contains(&address))
    }
}
