//! Which acquisitions may have shut an operation out?
//!
//! Two acquisitions that exclude each other need not be a race: the release that enables the second
//! one lies between them (\[SS\] 8.1). So the search for reversals looks at these pairs besides the
//! races.

use rustc_hash::FxHashMap;

use crate::rt::event::NOWHERE;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::rare::mostly;
use crate::rt::relation::happens_before::Next;
use crate::rt::relation::independence::{Class, Nature, changes_value, classify};

use crate::rt::engine::Execution;

/// The events that may shut an operation out, where many events lie between them and the operation.
/// In a long execution a lock may be read, a finished initialisation queried, and a loop wait,
/// thousands of times. This table spares each of these operations a search through all earlier
/// events.
#[derive(Default)]
pub(super) struct BlockingPairs(FxHashMap<(ObjectId, EventsOn), Vec<u32>>);

/// A selection of the events on an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum EventsOn {
    /// The acquisitions that may shut out an acquisition of this class.
    Excluding(Class),
    /// The events in this slot, which a wait for a change needs.
    Slot(usize),
}

/// The number of events that a search passes without the table. Tests have short executions.
const NEAR: usize = if cfg!(test) { 1 } else { 32 };

/// The number of events behind the operation that a search passes without the table.
const BEHIND: usize = if cfg!(test) { 1 } else { 200 };

impl BlockingPairs {
    /// Whether the table has entries.
    pub(super) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The selected events on the object that are before `end`, in order.
    #[inline(never)]
    fn before(
        &mut self,
        execution: &Execution<'_>,
        (object, which): (ObjectId, EventsOn),
        end: u32,
    ) -> &[u32] {
        let list = self.0.entry((object, which));
        let list = list.or_insert_with(|| which.list(execution, object));
        &list[..list.partition_point(|&first| first < end)]
    }
}

impl EventsOn {
    /// The selected events, in order.
    fn list(self, execution: &Execution<'_>, object: ObjectId) -> Vec<u32> {
        match self {
            EventsOn::Excluding(wanted) => {
                let all = execution.clocks.events_on(object).iter().copied();
                all.filter(|&first| excludes(execution.trace.at(first).label.class(), wanted))
                    .collect()
            }
            EventsOn::Slot(slot) => {
                let mut list = Vec::new();
                let latest = execution.clocks.latest_in(object, slot);
                execution.clocks.go_back(latest, 0, |first| {
                    list.push(first);
                    Next::Previous
                });
                list.reverse();
                list
            }
        }
    }
}

/// Whether an acquisition of this class may shut out an acquisition of the class `wanted`.
fn excludes(class: Class, wanted: Class) -> bool {
    class.acquires() && class.conflicts().contains(wanted)
}

/// The acquisitions before `position` that may have shut the operation of the thread out: the
/// latest conflicting ones. For a wait, the writes to its locations. `found` returns whether an
/// acquisition happens before the predecessor of the operation: such an acquisition cannot have
/// shut it out.
pub(super) fn blocking_pairs(
    execution: &Execution<'_>,
    (thread, operation): (ThreadId, Operation),
    position: u32,
    far: &mut BlockingPairs,
    mut found: impl FnMut(u32) -> bool,
) {
    match operation.kind {
        OpKind::Wait { set, .. } => {
            for &object in execution.machine.sets.get(set) {
                writes(execution, (thread, object), position, far, &mut found);
            }
        }
        kind if kind.may_have_waited() => {
            let wanted = match kind {
                // The operation may have waited while the initialisation was poisoned.
                OpKind::WaitOnce { .. } => Class::OnceFailed,
                _ => classify(&kind, Outcome::Success(0), Nature::Plain),
            };
            let object = operation.object;
            // Whether this event is the last one to look at, and whether the operation happens
            // after it.
            let mut look = |first: u32| {
                let event = execution.trace.at(first);
                let class = event.label.class();
                if !excludes(class, wanted) {
                    return (false, false);
                }
                let is_known =
                    event.thread == thread || event.label.shuts_out(wanted) && found(first);
                // Acquisitions that exclude each other are ordered, so the earlier ones happen
                // before this one. If this one does not shut the operation out, an earlier one of
                // the same class on the same object does not, either.
                (class.conflicts().contains(class), is_known)
            };
            let (earlier, _) = execution.clocks.split_on(object, position);
            let (behind, near) = earlier.split_at(earlier.len().saturating_sub(NEAR));
            if !near.iter().rev().any(|&first| look(first).0) && !behind.is_empty() {
                let end = behind.last().map_or(0, |last| last + 1);
                let mut behind = far.before(execution, (object, EventsOn::Excluding(wanted)), end);
                while let [earlier @ .., first] = behind {
                    let (is_last, is_known) = look(*first);
                    if is_last {
                        return;
                    }
                    if !is_known {
                        behind = earlier;
                        continue;
                    }
                    // The operation also happens after all events that happen before that one:
                    // readers, and the writers between them.
                    let apart = execution.clocks.apart(*first);
                    let left = match apart {
                        NOWHERE => 0,
                        _ => earlier.partition_point(|&it| it <= apart),
                    };
                    let (rest, _passed) = earlier.split_at(left);
                    #[cfg(test)]
                    assert!((_passed.iter()).all(|&it| execution.clocks.before(it, *first)));
                    behind = rest;
                }
            }
        }
        _ => {}
    }
}

/// The writes to the object before `position` that may have shut out a wait of the thread for a
/// change of it.
///
/// In a long execution there may be thousands of writes. A write that happens before one that the
/// thread knows of, or has made, cannot have shut the wait out, either. So the search passes over
/// those: all writes before a total one, and in each slot the writes up to the next one that may be
/// concurrent.
#[inline]
fn writes(
    execution: &Execution<'_>,
    (thread, object): (ThreadId, ObjectId),
    position: u32,
    far: &mut BlockingPairs,
    found: &mut impl FnMut(u32) -> bool,
) {
    let is_near = mostly!(execution.trace.len() - position as usize <= BEHIND);
    let mut known = 0;
    let mut slots = execution.clocks.changing_slots(object);
    // The slot of the total writes is the first.
    while slots != 0 {
        let slot = slots.trailing_zeros() as usize;
        slots &= slots - 1;
        let latest = if is_near {
            execution.clocks.latest_in(object, slot)
        } else {
            let all = far.before(execution, (object, EventsOn::Slot(slot)), position);
            all.last().copied().unwrap_or(NOWHERE)
        };
        let from = known;
        execution.clocks.go_back(latest, from, |first| {
            let event = execution.trace.at(first);
            let may_count = first < position && changes_value(event.label.class());
            if !may_count || event.thread != thread && !found(first) {
                return Next::Previous;
            }
            if event.label.is_total_on(object) {
                known = first;
            }
            Next::Apart
        });
    }
}
