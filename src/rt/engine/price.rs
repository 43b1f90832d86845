//! What does it cost to run a thread now, where executions are bounded?
//!
//! Three ways to count how often the scheduler interferes, each with its bound:
//!
//! * *Preemptions* (Musuvathi and Qadeer, *Iterative Context Bounding*, PLDI 2007): a switch away
//!   from a thread that could continue costs 1, and every other switch costs nothing.
//! * *Switches*: every switch from a thread to another costs 1, also where the thread has ended or
//!   is blocked. But a switch to a thread that looks again because no other thread is enabled costs
//!   nothing: threads in a livelock make a thousand rounds before the report of the livelock.
//! * *Delays* (Emmi, Qadeer, Rakamarić, *Delay-Bounded Scheduling*, POPL 2011): a scheduler
//!   without a choice continues with the thread that made the last step, or else with the next
//!   enabled one. To pass over a thread costs 1, so the k-th thread in this order costs k. Threads
//!   take turns in the order of their births: main, its first child, the children of that one, its
//!   second child, and so on. The order in which different threads spawned their children does not
//!   matter, because it is no property of a trace.
//!
//! A thread that has reached a hint (a spin hint, or a yield) gave up its turn itself, whether it
//! waits for a change there or not: a switch away from it is no preemption (as in CHESS and in
//! loom), and it comes last in the order. Its next operation ends this state. The price of a thread
//! is a function of the trace of the prefix and of the thread that made the last step, which are
//! the facts that a bounded search remembers: the positions of a thread's hints depend on its own
//! events only.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;

use crate::rt::engine::point::Point;

/// The interferences that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    Preemptions,
    Switches,
    Delays,
    /// Under C11 the steps that read an old value, and the stores that go behind newer ones. The
    /// thread does not matter.
    OldValues,
}

impl Price {
    /// Every thread in `able`, with the price of its next step where `last` made the last step.
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
                // Of several threads with the same price the search tries the first one first. So a
                // loop with a hint that changes a value in each round shows in one execution that
                // it has no end, instead of being one round longer in each execution.
                if let Some(at) = costs.iter().position(|&(t, _)| t == last) {
                    costs[..=at].rotate_right(usize::from(!goes_on));
                }
            }
            Price::Switches => costs.extend(each.map(|t| {
                let goes_round = at.machine.was_let_go_at(t).is_some();
                (t, u32::from(t != last && !goes_round))
            })),
            Price::Delays => costs.extend(turns(at, able, last).into_iter().zip(0..)),
            Price::OldValues => costs.extend(each.map(|thread| (thread, 0))),
        }
    }

    /// A thread such that all prices here are those behind a step of that thread; the same one for
    /// as many threads as possible. `None` where all steps are free.
    pub(super) fn representative(
        self,
        at: &Point<'_>,
        able: &[ThreadId],
        last: ThreadId,
    ) -> Option<ThreadId> {
        match self {
            Price::Preemptions => goes_on(at, able, last).then_some(last),
            Price::OldValues => None,
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

/// Whether the thread is enabled, and has not given up its turn.
fn goes_on(at: &Point<'_>, able: &[ThreadId], thread: ThreadId) -> bool {
    able.contains(&thread) && !waits(at, thread) && !at.machine.has_yielded(thread)
}

/// Whether the thread waits for a change.
pub(super) fn waits(at: &Point<'_>, thread: ThreadId) -> bool {
    matches!(pending(at, thread), Some(OpKind::Wait { .. }))
}

/// Whether no step is left. Where some threads wait for a change they are released, unless the
/// execution is pruned.
pub(super) fn is_over(at: &Point<'_>, able: &[ThreadId]) -> bool {
    let mut live = at.machine.live().iter();
    let given_up = |&thread: &ThreadId| matches!(pending(at, thread), Some(OpKind::GiveUp { .. }));
    able.is_empty() && (live.clone().any(given_up) || !live.any(|&thread| waits(at, thread)))
}

/// The threads in `able`, in the order in which a scheduler without a choice would run them.
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

/// The pending operation of the thread.
pub(crate) fn pending(at: &Point<'_>, thread: ThreadId) -> Option<OpKind> {
    at.machine.pending(thread).map(|p| p.operation.kind)
}
