//! What does a condition variable do with an operation?
//!
//! The state holds the waiting threads, and the threads that have been notified and have not woken
//! up yet. The waiter that `notify_one` wakes is an alternative of the notification. The timeout of
//! a timed wait is no alternative: the wait times out if its wake-up runs before the notification.
//! So both outcomes are explored as two orders of the two events.

use crate::rt::event::id::ThreadId;
use crate::rt::event::notification::SEVERAL;
use crate::rt::event::operation::{OpKind, Outcome};

/// The state of a condition variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Condvar {
    /// The waiting threads, sorted by a number that is the same for a thread in every process.
    pub(crate) waiting: Vec<(u64, ThreadId)>,
    /// The threads that have been notified and have not woken up yet, sorted, each with the
    /// notification that woke it.
    pub(crate) notified: Vec<(ThreadId, u16)>,
    /// The number of notifications that have woken a thread. The number wraps around; two
    /// notifications with the same number count as one.
    pub(crate) notifications: u16,
}

/// The number of bits for one notified thread: its number, and the number of notifications since
/// the one that woke it.
const ENTRY_BITS: u32 = 16;

/// The number of these bits that hold the number of notifications since then.
const AGO_BITS: u32 = 4;

/// The number of notified threads that fit into a word beside the number of notifications.
const FIT: usize = 3;

impl Condvar {
    /// The state in one word, if no thread waits and few threads have been notified. This is the
    /// usual case. A waiter does not fit, because its number is too large.
    pub(crate) fn pack(&self) -> Option<u64> {
        let ago = |by: u16| u64::from(self.notifications.wrapping_sub(by));
        let fits = |&(thread, by): &(ThreadId, u16)| {
            number(thread) < 1 << (ENTRY_BITS - AGO_BITS) && ago(by) < 1 << AGO_BITS
        };
        let few = self.notified.len() <= FIT;
        let fit = self.waiting.is_empty() && few && self.notified.iter().all(fits);
        let entry = |&(thread, by): &(ThreadId, u16)| number(thread) << AGO_BITS | ago(by);
        let all = self.notified.iter().rev();
        let threads = all.fold(0, |word, it| word << ENTRY_BITS | entry(it));
        fit.then_some(threads << u16::BITS | u64::from(self.notifications))
    }

    /// The state, unpacked from `word`.
    pub(crate) fn unpack(word: u64) -> Condvar {
        let mut condvar = Condvar {
            notifications: word as u16,
            ..Condvar::default()
        };
        let mut threads = word >> u16::BITS;
        while threads != 0 {
            let entry = threads & ((1 << ENTRY_BITS) - 1);
            let ago = entry & ((1 << AGO_BITS) - 1);
            let thread = ThreadId((entry >> AGO_BITS) as u32 - 1);
            let by = condvar.notifications.wrapping_sub(ago as u16);
            condvar.notified.push((thread, by));
            threads >>= ENTRY_BITS;
        }
        condvar
    }

    /// Whether `thread` has been notified and has not woken up yet.
    pub(crate) fn has_notified(&self, thread: ThreadId) -> bool {
        self.notified.iter().any(|&(t, _)| t == thread)
    }

    fn wake(&mut self, at: usize) -> ThreadId {
        let (_, thread) = self.waiting.remove(at);
        let place = self.notified.partition_point(|&(t, _)| t < thread);
        self.notified.insert(place, (thread, self.notifications));
        thread
    }
}

/// The value of the outcome of a notification or of a wake-up: the thread, and the notification.
fn told(by: u16, thread: u64) -> u64 {
    u64::from(by) << 32 | thread
}

/// A thread as the value of an outcome; 0 stands for no thread.
fn number(thread: ThreadId) -> u64 {
    thread.0 as u64 + 1
}

/// Whether `kind` is enabled in this state.
pub(crate) fn enabled(condvar: &Condvar, thread: ThreadId, kind: &OpKind) -> bool {
    match kind {
        OpKind::Awake { timed: false } => condvar.has_notified(thread),
        _ => true,
    }
}

/// The number of outcomes of the enabled operation `kind`.
pub(crate) fn alternatives(condvar: &Condvar, kind: &OpKind) -> u32 {
    match kind {
        OpKind::NotifyOne => condvar.waiting.len().max(1) as u32,
        _ => 1,
    }
}

/// Applies an enabled operation of `thread`. The value of a notification is 0 if no thread was
/// waiting. Otherwise the value contains the number of the notification
/// ([`notification`](crate::rt::event::notification::notification)) and the woken thread, or a mark
/// for several woken threads ([`woken`](crate::rt::event::notification::woken)). The value of a
/// wake-up contains the number of the notification that caused it.
pub(crate) fn apply(
    condvar: &mut Condvar,
    thread: ThreadId,
    kind: &OpKind,
    alternative: u32,
) -> Outcome {
    match kind {
        OpKind::Enqueue { order } => {
            let entry = (*order, thread);
            let place = condvar.waiting.partition_point(|&other| other < entry);
            condvar.waiting.insert(place, entry);
            Outcome::Done
        }
        OpKind::NotifyOne if condvar.waiting.is_empty() => Outcome::Value(0),
        OpKind::NotifyAll if condvar.waiting.is_empty() => Outcome::Value(0),
        OpKind::NotifyOne => {
            condvar.notifications = condvar.notifications.wrapping_add(1);
            let woken = condvar.wake(alternative as usize);
            Outcome::Value(told(condvar.notifications, number(woken)))
        }
        OpKind::NotifyAll => {
            condvar.notifications = condvar.notifications.wrapping_add(1);
            let several = condvar.waiting.len() > 1;
            let mut woken = 0;
            while !condvar.waiting.is_empty() {
                woken = number(condvar.wake(0));
            }
            let woken = if several { u64::from(SEVERAL) } else { woken };
            Outcome::Value(told(condvar.notifications, woken))
        }
        OpKind::Awake { .. } => match condvar.notified.iter().position(|&(t, _)| t == thread) {
            Some(at) => {
                let (_, by) = condvar.notified.remove(at);
                Outcome::Success(told(by, number(thread)))
            }
            None => {
                condvar.waiting.retain(|&(_, t)| t != thread);
                Outcome::Failure(number(thread))
            }
        },
        OpKind::EndForNoReason => Outcome::Failure(0),
        other => super::misplaced(other),
    }
}
