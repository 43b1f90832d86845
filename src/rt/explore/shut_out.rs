//! Which acquisitions may have shut an operation out?
//!
//! Two acquisitions that exclude each other need not be a race: between them is the release that lets the second one
//! in (\[SS\] 8.1). So whoever reverses pairs asks for them besides the races.

use crate::rt::rare::mostly;
use crate::rt::trace::dependency::{Class, Nature, TOTAL_SLOT, changes_value, classify};
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::{OpKind, Operation, Outcome};

use super::Finished;

/// The events that may shut an operation out, where there are many events between them and it: a lock that is only read, or
/// an initialisation that is over, is asked for thousands of times in a long execution, and a loop may wait as often. Nobody is to
/// go through all of them each time.
#[derive(Default)]
pub(super) struct Far(Vec<(ObjectId, Which, Vec<u32>)>);

/// Which events on an object.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    /// The acquisitions that may shut out what wants it like this.
    Excluding(Class),
    /// Those in this slot, of which a wait for a change asks.
    Slot(usize),
}

/// So many events are gone through. Tests have short executions.
const NEAR: usize = if cfg!(test) { 1 } else { 32 };

/// So many events behind the operation are passed over.
const BEHIND: usize = if cfg!(test) { 1 } else { 200 };

impl Far {
    /// Whether there are any.
    pub(super) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Those of these events on the object that are before `end`, in order.
    #[inline(never)]
    fn before(
        &mut self,
        run: &Finished<'_>,
        (object, which): (ObjectId, Which),
        end: u32,
    ) -> &[u32] {
        let mut known = self.0.iter();
        let at = known.position(|&(on, by, _)| (on, by) == (object, which));
        let at = at.unwrap_or_else(|| {
            self.0.push((object, which, which.list(run, object)));
            self.0.len() - 1
        });
        let (_, _, list) = &self.0[at];
        &list[..list.partition_point(|&first| first < end)]
    }
}

impl Which {
    /// All of them, in order.
    fn list(self, run: &Finished<'_>, object: ObjectId) -> Vec<u32> {
        match self {
            Which::Excluding(wanted) => {
                let all = run.clocks.events_on(object).iter().copied();
                all.filter(|&first| excludes(run.trace.at(first).label.class(), wanted))
                    .collect()
            }
            Which::Slot(slot) => {
                let mut list = Vec::new();
                run.clocks.any_access(object, 1 << slot, 0, |first, _| {
                    list.push(first);
                    false
                });
                list.reverse();
                list
            }
        }
    }
}

/// Whether an acquisition of this class may shut out what wants the object like this.
fn excludes(class: Class, wanted: Class) -> bool {
    class.acquires() && class.conflicts().contains(wanted)
}

/// The acquisitions before `position` that may have shut the operation of the thread out: the latest conflicting
/// ones. For a wait, the writes to its locations. `found` says whether one happens before the event directly before
/// the operation: that cannot have shut it out.
pub(super) fn shut_out(
    run: &Finished<'_>,
    (thread, operation): (ThreadId, Operation),
    position: u32,
    far: &mut Far,
    mut found: impl FnMut(u32) -> bool,
) {
    match operation.kind {
        OpKind::Wait { set, .. } => {
            for &object in run.machine.sets.get(set) {
                writes(run, (thread, object), position, far, &mut found);
            }
        }
        kind if kind.may_have_waited() => {
            let wanted = match kind {
                // It may have come while the initialisation was poisoned.
                OpKind::WaitOnce { .. } => Class::OnceFailed,
                _ => classify(&kind, Outcome::Success(0), Nature::Plain),
            };
            let object = operation.object;
            let mut is_last = |&first: &u32| {
                let event = run.trace.at(first);
                let class = event.label.class();
                if !excludes(class, wanted) {
                    return false;
                }
                if event.thread != thread && event.label.shuts_out(wanted) {
                    found(first);
                }
                // Those that exclude each other are ordered, so the earlier ones come before it. Nor does one of
                // them shut anything out if this one, of the same class on the same object, does not.
                class.conflicts().contains(class)
            };
            let (earlier, _) = run.clocks.split_on(object, position);
            let (behind, near) = earlier.split_at(earlier.len().saturating_sub(NEAR));
            if !near.iter().rev().any(&mut is_last) && !behind.is_empty() {
                let end = behind.last().map_or(0, |last| last + 1);
                let mut behind = far
                    .before(run, (object, Which::Excluding(wanted)), end)
                    .iter()
                    .rev();
                behind.any(is_last);
            }
        }
        _ => {}
    }
}

/// The writes to the object before `position` that may have shut out a wait of the thread for a change of it.
///
/// In a long execution there may be thousands of writes. What comes before a total one happens before it. So those before one
/// that the thread knows of, or has made, cannot have shut it out, either.
#[inline]
fn writes(
    run: &Finished<'_>,
    (thread, object): (ThreadId, ObjectId),
    position: u32,
    far: &mut Far,
    found: &mut impl FnMut(u32) -> bool,
) {
    let slots = run.clocks.changing_slots(object);
    let mut known = 0;
    for slots in [slots & 1 << TOTAL_SLOT, slots & !(1 << TOTAL_SLOT)] {
        let from = known;
        let mut cuts = |first: u32| {
            let event = run.trace.at(first);
            if first >= position || !changes_value(event.label.class()) {
                return false;
            }
            let is_known = event.thread == thread || found(first);
            let cuts = is_known && event.label.is_total_on(object);
            if cuts {
                known = first;
            }
            cuts
        };
        if mostly!(run.trace.len() - position as usize <= BEHIND) {
            (run.clocks).any_access(object, slots, from, |first, _| cuts(first));
            continue;
        }
        let mut slots = (0..u32::BITS as usize).filter(|slot| slots & 1 << slot != 0);
        slots.any(|slot| {
            let all = far.before(run, (object, Which::Slot(slot)), position);
            let all = all.iter().rev().copied();
            all.take_while(|&first| first >= from).any(&mut cuts)
        });
    }
}
