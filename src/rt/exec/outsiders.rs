//! Who has used what belongs to a model without being one of its threads?
//!
//! A test that spawns a thread by `std::thread` has one that nobody schedules. Its operations find
//! no runtime on their OS thread, so they are done as std does them, and the model would be called
//! complete without having seen one of them. So they are noted while a model runs anywhere in the
//! process, and an execution that has ended asks for those that were on its own memory.
//!
//! Other tests of the process may use shims on real threads, and rightly. What is theirs is told
//! from the model's memory by a number that counts these uses: a block of the model was got before
//! the use, or it was somebody else's then.

use crate::rt::event::Site;
use crate::rt::event::verdict::{End, Outside, Wrong};

use super::context::{Inner, Runtime};
use crate::rt::process::outside_use::{self, Use, noted};
use crate::rt::statics;

/// A thread that is in no model is about to use what is at this address.
#[cold]
pub(crate) fn note(address: usize, site: Site) {
    statics::wait_outside(address);
    outside_use::note(address, site);
}

impl Runtime {
    /// How an execution ends that would have ended like `end`, if an outsider has used memory of
    /// it. The newest of its stacks was got after so many uses.
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

/// Whether an execution may have come to this end only because of what an outsider has done.
/// Another failure has its own report, and one that is given up is found again elsewhere.
fn means_nothing(end: &End) -> bool {
    match end {
        End::Complete | End::Deadlock(_) | End::Livelock { .. } | End::NotDeterministic(_) => true,
        // The heap does not hear of a block that an outsider frees. The system may hand out its
        // memory as another block that a thread of the model gets from the outsider and frees
        // rightly, which then looks like a wrong free of the block before.
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
