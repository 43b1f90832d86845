//! What does a condition variable do with an operation?
//!
//! It knows who waits and who has been notified and not gone on yet. Which waiter `notify_one` wakes
//! is an alternative of the notification. Whether a timed wait times out is not: it does if it goes
//! on before it is notified, so both outcomes are explored as two orders.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Outcome};

/// A condition variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Condvar {
    /// Who waits, by a number that a thread has in every process.
    pub(crate) waiting: Vec<(u64, ThreadId)>,
    /// Who has been notified and not gone on yet, sorted.
    pub(crate) notified: Vec<ThreadId>,
}

/// So many bits hold the number of a thread.
const NUMBER_BITS: u32 = 20;

impl Condvar {
    /// The state in one word, if nobody waits and a few have been notified, as it mostly is. A waiter does not fit, because of
    /// its number.
    pub(crate) fn pack(&self) -> Option<u64> {
        let fits = |&thread: &ThreadId| number(thread) < 1 << NUMBER_BITS;
        let few = self.notified.len() <= (u64::BITS / NUMBER_BITS) as usize;
        let fit = self.waiting.is_empty() && few && self.notified.iter().all(fits);
        let all = self.notified.iter().rev();
        fit.then(|| all.fold(0, |word, &thread| word << NUMBER_BITS | number(thread)))
    }

    /// The state that was packed as `word`.
    pub(crate) fn unpack(mut word: u64) -> Condvar {
        let mut condvar = Condvar::default();
        while word != 0 {
            let number = word & ((1 << NUMBER_BITS) - 1);
            condvar.notified.push(ThreadId(number as u32 - 1));
            word >>= NUMBER_BITS;
        }
        condvar
    }

    fn wake(&mut self, at: usize) -> ThreadId {
        let (_, thread) = self.waiting.remove(at);
        let place = self.notified.partition_point(|&t| t < thread);
        self.notified.insert(place, thread);
        thread
    }
}

/// A thread as the value of an outcome; 0 is nobody.
fn number(thread: ThreadId) -> u64 {
    thread.0 as u64 + 1
}

/// Whether `kind` can happen now.
pub(crate) fn enabled(condvar: &Condvar, thread: ThreadId, kind: &OpKind) -> bool {
    match kind {
        OpKind::Awake { timed: false } => condvar.notified.contains(&thread),
        _ => true,
    }
}

/// How many outcomes the enabled `kind` has.
pub(crate) fn alternatives(condvar: &Condvar, kind: &OpKind) -> u32 {
    match kind {
        OpKind::NotifyOne => condvar.waiting.len().max(1) as u32,
        _ => 1,
    }
}

/// Applies an enabled operation of `thread`. The value of a notification says who was woken: 0 for
/// nobody, a thread, or `u64::MAX` for several.
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
        OpKind::NotifyOne => Outcome::Value(number(condvar.wake(alternative as usize))),
        OpKind::NotifyAll => {
            let many = condvar.waiting.len() > 1;
            let mut woken = 0;
            while !condvar.waiting.is_empty() {
                woken = number(condvar.wake(0));
            }
            Outcome::Value(if many { u64::MAX } else { woken })
        }
        OpKind::Awake { .. } => match condvar.notified.iter().position(|&t| t == thread) {
            Some(at) => {
                condvar.notified.remove(at);
                Outcome::Success(number(thread))
            }
            None => {
                condvar.waiting.retain(|&(_, t)| t != thread);
                Outcome::Failure(number(thread))
            }
        },
        other => super::misplaced(other),
    }
}
