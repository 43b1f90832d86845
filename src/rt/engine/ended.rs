//! What does an explorer learn from an execution that has ended?

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::Blocked;
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::snapshots::Snapshots;

/// An execution that has ended.
pub(crate) struct Execution<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) clocks: &'a HappensBefore,
    pub(crate) machine: &'a Machine,
    /// The operations that threads have announced and not performed. Without them there would be no
    /// reversal of a lock that was never granted, and deadlocks would stay hidden.
    pub(crate) blocked: &'a [Blocked],
    /// The position of the first event that the execution before did not have.
    pub(crate) first_new: usize,
    /// For each event up to the last one behind a frozen point whether the point before it is
    /// frozen.
    pub(crate) fixed: &'a [bool],
    /// The number of new events that the plan asked for.
    pub(crate) planned: usize,
    /// The states of objects on the way, as far as reversals have asked for them.
    pub(crate) snapshots: Snapshots,
}

/// The number of events of an object that a search passes before it checks whether the other events
/// matter. Test programs have few events.
const FOLLOWS: u32 = if cfg!(test) { 2 } else { 16 };

impl Execution<'_> {
    /// Whether the point before the event at `position` is frozen, so that no execution may branch
    /// off there.
    pub(crate) fn is_frozen(&self, position: usize) -> bool {
        self.fixed.get(position).is_some_and(|&fixed| fixed)
    }

    /// Whether everything behind `position` happens after the event at `first`. The event at
    /// `position` is the one with this `number` behind `first` on an object. On some objects no
    /// event is total, and such an object may have a long history. Where threads follow each other
    /// closely, all their events happen after `first` from an early position on. The check runs
    /// only for some of the numbers.
    #[inline]
    pub(crate) fn nothing_is_left(&self, first: u32, position: u32, number: u32) -> bool {
        number >= FOLLOWS && number.is_power_of_two() && self.all_follow(first, position)
    }

    /// Whether everything behind `position` happens after the event at `first`.
    #[inline(never)]
    pub(crate) fn all_follow(&self, first: u32, position: u32) -> bool {
        (0..self.trace.threads() as u32)
            .map(ThreadId)
            .all(|thread| {
                let positions = self.trace.positions_of(thread);
                let next = positions.partition_point(|&p| p <= position);
                // The later events of a thread happen after that event, too.
                (positions.get(next)).is_none_or(|&next| self.clocks.before(first, next))
            })
    }
}
