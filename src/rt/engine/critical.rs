//! Which other orders of one pair of operations should be tried on an execution that failed?
//!
//! If one of the orders passes, the failure depends on its pair. These are the pairs that
//! exploration reverses ([`reversal`](crate::rt::engine::reversal)). An execution that fails in the
//! middle also stops enabled threads, so every pending operation forms a pair with each event on
//! its object.

use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::notification::woken;
use crate::rt::event::operation::{OpKind, Operation, Step};
use crate::rt::event::verdict::{Blocked, End, Lost, Pair};
use crate::rt::relation::independence::Class;

use crate::rt::engine::Execution;
use crate::rt::engine::cover::touched;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::reversal::{Reversal, pairs};
use crate::rt::engine::sequence::ReversedEvent;

/// The pairs of an execution with their first event among the first `length`, at most `most` of
/// them, those with the latest first event first. A choice is no pair: with another outcome the
/// test is another one.
pub(crate) fn candidates(execution: &Execution<'_>, length: usize, most: usize) -> Vec<Pair> {
    let mut found: Vec<(u32, ReversedEvent)> = Vec::new();
    pairs(execution, |first, second| {
        if (first as usize) < length
            && second.position(execution) != Some(first)
            && second.step.alternative == 0
        {
            found.push((first, *second));
        }
        true
    });
    for pending in execution.blocked {
        let second = ReversedEvent {
            step: Step::of(pending.thread),
            operation: pending.operation,
            predecessor: execution.trace.predecessor_of_next(pending.thread),
            race: None,
        };
        // A pending operation may be the first by which a second thread uses its object, and the
        // clocks have no data on such an object.
        let on_object = |event: &Event| {
            let (label, own) = (event.label, [event.label.object()]);
            let is_access =
                label.touches_one() || matches!(label.class(), Class::Wait | Class::Block);
            is_access && touched(execution, label, &own).contains(&second.operation.object)
        };
        let events = execution.trace.events().iter().take(length).zip(0..);
        let events = events.filter(|(event, _)| on_object(event));
        found.extend(events.map(|(_, first)| (first, second)));
    }
    // A pending operation comes after every event.
    let at = |second: &ReversedEvent| second.position(execution).unwrap_or(u32::MAX);
    found.sort_by_key(|(first, second)| std::cmp::Reverse((*first, at(second))));
    let mut reversal = Reversal::default();
    let mut pairs = Vec::new();
    for (first, second) in found {
        if pairs.len() < most && reversal.build_notdep(execution, first, &second, None) {
            pairs.push(pair(execution, first, &second, &reversal));
        }
    }
    pairs
}

fn pair(
    execution: &Execution<'_>,
    first: u32,
    second: &ReversedEvent,
    reversal: &Reversal,
) -> Pair {
    let before = execution.trace.events()[..first as usize].iter();
    let steps = before.map(|event| event.step());
    let steps = steps.chain(reversal.items.iter().map(|item| item.step));
    let names = &execution.machine.names;
    let pending = execution
        .blocked
        .iter()
        .find(|it| it.thread == second.step.thread);
    Pair {
        first,
        second: match (second.position(execution), pending) {
            (Some(position), _) => Ok(position),
            (None, Some(pending)) => Err(*pending),
            (None, None) => unreachable!("dpor bug: a pair's second operation is not there"),
        },
        reversed: steps
            .map(|step| (names.path(step.thread), step.alternative))
            .collect(),
        lost: None,
        is_old: false,
    }
}

/// The notification that woke no thread in the execution that `failed`, and wakes, in the one that
/// `passed`, a thread that waits for ever in the failed one. The order of the notification before
/// the wait is not enough: most such notifications play no part in the failure.
pub(crate) fn lost(end: &End, failed: &Driver, passed: &Driver) -> Option<Lost> {
    let End::Deadlock(stuck) = end else {
        return None;
    };
    stuck.iter().find_map(|it| lost_by(it, failed, passed))
}

fn lost_by(stuck: &Blocked, failed: &Driver, passed: &Driver) -> Option<Lost> {
    if !matches!(stuck.operation.kind, OpKind::Awake { .. }) {
        return None;
    }
    let (events, others) = (failed.trace.events(), passed.trace.events());
    let (names, theirs) = (&failed.machine.names, &passed.machine.names);
    // The same wait, in the other execution.
    let waited = waits(events, stuck.thread).last()?;
    let nth = waits(events, stuck.thread).count() - 1;
    let thread = theirs.find(&names.path(stuck.thread))?;
    let began = waits(others, thread).nth(nth)?;
    let object = others[began].operation.object;
    if others[began].site != events[waited].site {
        return None;
    }
    // The event that wakes the thread there.
    let notified = (began..others.len()).find(|&at| {
        let event = &others[at];
        event.operation.object == object
            && match event.operation.kind {
                OpKind::NotifyOne => event.outcome.value().and_then(woken) == Some(thread),
                OpKind::NotifyAll => true,
                // The wait times out.
                OpKind::Awake { .. } => event.thread == thread,
                _ => false,
            }
    })?;
    let notifier = others[notified].thread;
    // The same notification, in this execution.
    let nth = notifications(others, notifier, object).position(|at| at == notified)?;
    let notifier = names.find(&theirs.path(notifier))?;
    let notified = notifications(events, notifier, stuck.operation.object).nth(nth)?;
    let woke_nobody = events[notified].outcome.value() == Some(0);
    let is_early = notified < waited && !has_looked(events, notified, waited);
    (woke_nobody && is_early).then_some(Lost {
        notified: notified as u32,
        waited: waited as u32,
    })
}

/// Whether the thread that `waited` may have read its condition since the event `notified`: then it
/// waits because of the values that it read, and no notification was lost. A lock counts as a read
/// only if the data behind it were changed before.
fn has_looked(events: &[Event], notified: usize, waited: usize) -> bool {
    let waiter = events[waited].thread;
    (notified + 1..waited).any(|at| {
        let Event {
            thread,
            operation,
            outcome,
            ..
        } = events[at];
        let was_changed = || {
            events[..at].iter().any(|event| {
                let Operation { object, kind } = event.operation;
                let changes = matches!(
                    kind,
                    OpKind::Unlock { changed: true } | OpKind::UnlockWrite { changed: true }
                );
                object == operation.object && changes
            })
        };
        thread == waiter
            && match operation.kind {
                OpKind::Lock | OpKind::ReadLock | OpKind::WriteLock => was_changed(),
                OpKind::TryLock | OpKind::TryRead | OpKind::TryWrite => {
                    !outcome.succeeded() || was_changed()
                }
                OpKind::Load { .. }
                | OpKind::Rmw { .. }
                | OpKind::CompareExchange { .. }
                | OpKind::ReadCount { .. }
                | OpKind::TakeUnique
                | OpKind::Upgrade
                | OpKind::IsFinished
                | OpKind::ParkTimeout
                | OpKind::Arrive
                | OpKind::CheckOnce
                | OpKind::TrySend
                | OpKind::Recv { .. }
                | OpKind::TryRecv
                | OpKind::Touch(_)
                | OpKind::Choose { .. } => true,
                _ => false,
            }
    })
}

/// Where the thread begins to wait on a condition variable.
fn waits(events: &[Event], thread: ThreadId) -> impl Iterator<Item = usize> + '_ {
    (0..events.len()).filter(move |&at| {
        events[at].thread == thread && matches!(events[at].operation.kind, OpKind::Enqueue { .. })
    })
}

/// Where the thread notifies a condition variable.
fn notifications(
    events: &[Event],
    thread: ThreadId,
    object: ObjectId,
) -> impl Iterator<Item = usize> + '_ {
    (0..events.len()).filter(move |&at| {
        let Operation { object: on, kind } = events[at].operation;
        (events[at].thread, on) == (thread, object)
            && matches!(kind, OpKind::NotifyOne | OpKind::NotifyAll)
    })
}
