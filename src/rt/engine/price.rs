//! What does it cost to run a thread now, where executions are bounded?
//!
//! Three ways to count how often the scheduler interferes, each with its bound:
//!
//! * *Preemptions* (Musuvathi and Qadeer, *Iterative Context Bounding*, PLDI 2007): a switch away
//!   from a thread that could go on costs 1, and every other one nothing.
//! * *Switches*: every switch from a thread to another costs 1, also where the thread has ended or
//!   is blocked; but nothing to one that looks again because nobody else can go on. Threads in a
//!   livelock go round a thousand times before they are said to be in one.
//! * *Delays* (Emmi, Qadeer, Rakamarić, *Delay-Bounded Scheduling*, POPL 2011): a scheduler without
//!   a choice goes on with the thread that ran last, or else with the next one that can. To pass
//!   over a thread costs 1, so the k-th thread in this order costs k. Threads take turns in the
//!   order of their births: main, its first child, the children of that one, its second child, and
//!   so on. Who spawned first does not matter, because that is no property of a trace.
//!
//! A thread that has come to a hint (a spin hint, or a yield) gave up its turn itself, whether it
//! waits for a change there or not: to switch away from it is no preemption (as in CHESS and in
//! loom), and it comes last in the order. That ends with its next operation. What it costs is a
//! function of the trace of the prefix and of the thread that ran last, which is what a bounded
//! search remembers: where a thread's hints are hangs on its own events only.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;

use crate::rt::engine::Point;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    Preemptions,
    Switches,
    Delays,
}

impl Price {
    /// Every thread that is `able` to go on, with what it costs to run it where `last` ran last.
    pub(super) fn of_each(
        self,
        at: &Point<'_>,
        able: &[ThreadId],
        last: ThreadId,
        costs: &mut Vec<(ThreadId, u32)>,
    ) {
        costs.clear();
        let each = able.iter().copied();
        match self {
            Price::Preemptions => {
                let goes_on = goes_on(at, able, last);
                costs.extend(each.map(|t| (t, u32::from(goes_on && t != last))));
                // The first of those that cost the same is tried first. A loop with a hint that
                // changes something in each round shows so in one execution that it has no end, and
                // not by being one round longer in each.
                if let Some(at) = costs.iter().position(|&(t, _)| t == last) {
                    costs[..=at].rotate_right(usize::from(!goes_on));
                }
            }
            Price::Switches => costs.extend(each.map(|t| {
                let goes_round = at.machine.was_let_go_at(t).is_some();
                (t, u32::from(t != last && !goes_round))
            })),
            Price::Delays => costs.extend(turns(at, able, last).into_iter().zip(0..)),
        }
    }

    /// A thread such that everything costs here what it would cost if that one had run last; the
    /// same one for as many threads as possible. `None` where nothing costs anything.
    pub(super) fn representative(
        self,
        at: &Point<'_>,
        able: &[ThreadId],
        last: ThreadId,
    ) -> Option<ThreadId> {
        match self {
            Price::Preemptions => goes_on(at, able, last).then_some(last),
            _ if is_over(at, able) => None,
            Price::Switches => Some(last),
            Price::Delays => {
                let first = turns(at, able, last).first().copied();
                let goes_on = |&first: &ThreadId| goes_on(at, able, first);
                first.filter(goes_on).or(Some(last))
            }
        }
    }
}

/// Whether the thread can run, and has not given up its turn.
fn goes_on(at: &Point<'_>, able: &[ThreadId], thread: ThreadId) -> bool {
    able.contains(&thread) && !waits(at, thread) && !at.machine.has_yielded(thread)
}

/// Whether the thread waits for a change.
pub(super) fn waits(at: &Point<'_>, thread: ThreadId) -> bool {
    matches!(pending(at, thread), Some(OpKind::Wait { .. }))
}

/// Whether nothing more can happen. Where some wait for a change they are let go, unless the
/// execution is given up.
pub(super) fn is_over(at: &Point<'_>, able: &[ThreadId]) -> bool {
    let mut live = at.machine.live().iter();
    let given_up = |&thread: &ThreadId| matches!(pending(at, thread), Some(OpKind::GiveUp { .. }));
    able.is_empty() && (live.clone().any(given_up) || !live.any(|&thread| waits(at, thread)))
}

/// Those that are `able` to go on, in the order in which a scheduler without a choice would run
/// them.
fn turns(at: &Point<'_>, able: &[ThreadId], last: ThreadId) -> Vec<ThreadId> {
    let names = &at.machine.names;
    let mut threads = able.to_vec();
    threads.sort_by_cached_key(|&thread| names.births(thread));
    let after = names.births(last);
    let passed = |&thread: &ThreadId| match names.births(thread).cmp(&after) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => !goes_on(at, able, last),
        std::cmp::Ordering::Greater => false,
    };
    let passed = threads.partition_point(passed);
    threads.rotate_left(passed);
    threads
}

/// What the thread is about to do.
pub(crate) fn pending(at: &Point<'_>, thread: ThreadId) -> Option<OpKind> {
    at.machine.pending(thread).map(|p| p.operation.kind)
}
