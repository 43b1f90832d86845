//! Can a block be freed before it is used, although those who own it are counted?
//!
//! Whoever has a reference, and gives it up after a use, keeps the block until then. But a pointer that is read from
//! somewhere is no reference: what its thread does with the block may come after the last release, and since releases
//! commute with it, no execution shows that they do.
//!
//! It is told by counting. Everything that does not happen after a use can come before it. If nothing is left of the
//! references after all of that, the use can come after the free.

use crate::rt::object::count;
use crate::rt::trace::happens_before::HappensBefore;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::{Event, Trace};

/// What an event does to the references that there are.
struct Change {
    position: u32,
    strong: i64,
    weak: i64,
}

impl Change {
    /// That of this event if it is one on the count, and the count before it is known.
    fn of(position: u32, event: &Event, count: ObjectId) -> Option<Change> {
        let before = event.before.filter(|_| event.operation.object == count)?;
        let (after, _) = count::apply(before, &event.operation.kind);
        let strong = |counts: u64| (counts % count::WEAK) as i64;
        let weak = |counts: u64| (counts / count::WEAK) as i64;
        Some(Change {
            position,
            strong: strong(after) - strong(before),
            weak: weak(after) - weak(before),
        })
    }
}

/// A use of a block that can come after its free: the position of one of these events, which are all those on what is in
/// the block, in order. The `count` is that of its references, of which none is left.
pub(crate) fn late_use(
    (trace, clocks): (&Trace, &HappensBefore),
    count: ObjectId,
    uses: &[u32],
) -> Option<u32> {
    let mut changes: Vec<Vec<Change>> = Vec::new();
    changes.resize_with(trace.threads(), Vec::new);
    for &position in uses {
        let event = trace.at(position);
        let change = Change::of(position, event, count);
        changes[event.thread.index()].extend(change);
    }
    let threads = (0..trace.threads() as u32).map(ThreadId);
    threads
        .filter_map(|thread| late_use_by(thread, (trace, clocks), &changes, uses))
        .min()
}

/// [`late_use`] by this thread.
fn late_use_by(
    thread: ThreadId,
    (trace, clocks): (&Trace, &HappensBefore),
    changes: &[Vec<Change>],
    uses: &[u32],
) -> Option<u32> {
    let (mut strong, mut weak) = (0, 0);
    // How many of each thread's changes do not happen after the use, and how many of all of them give references up.
    let mut left: Vec<usize> = changes.iter().map(Vec::len).collect();
    let gives_up = |change: &&Change| change.strong < 0 || change.weak < 0;
    let mut given_up = changes.iter().flatten().filter(gives_up).count();
    let own = uses.iter().rev().copied();
    // What happens after a use happens after those before it, too.
    own.filter(|&at| trace.at(at).thread == thread).find(|&at| {
        for (left, changes) in left.iter_mut().zip(changes) {
            while let Some(change) = changes[..*left].last()
                && clocks.before(at, change.position)
            {
                strong -= change.strong;
                weak -= change.weak;
                given_up -= usize::from(gives_up(&change));
                *left -= 1;
            }
        }
        strong <= 0 && weak <= 0 && given_up > 0
    })
}
