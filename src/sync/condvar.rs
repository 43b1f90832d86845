//! Waiting for a notification, as `std::sync::Condvar`.
//!
//! Inside a model a wait has four steps: the thread enters the set of waiters, unlocks the mutex,
//! wakes up, and locks the mutex again. `notify_one` may wake any waiter, and a timed wait may time
//! out: all of these outcomes are explored.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{self as std_sync, LockResult, PoisonError};
use std::time::Duration;

use super::mutex::MutexGuard;
use crate::rt::{self, Answer, ObjectKind, OpKind, Target};

/// Drop-in replacement for `std::sync::Condvar`.
///
/// Spurious wake-ups are explored if
/// [`Builder::spurious_wakeups`](crate::Builder::spurious_wakeups) sets how many a thread may have.
/// A timed wait may then also end before its time is over.
#[derive(Default)]
pub struct Condvar {
    /// Its address is the identity of the condition variable.
    address: AtomicU8,
    real: std_sync::Condvar,
}

impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}

/// The result of a timed wait: whether the wait timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns whether the wait timed out before a notification came.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable without waiters.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar {
            address: AtomicU8::new(0),
            real: std_sync::Condvar::new(),
        }
    }

    fn target(&self) -> Target {
        Target {
            address: self.address.as_ptr().addr(),
            kind: ObjectKind::Condvar,
            memory: self.address.load(Relaxed) as u64,
        }
    }

    /// Waits. Returns false if the wait ended without a notification; for a timed wait, false means
    /// that it timed out. `real` waits on std's condition variable.
    #[track_caller]
    fn wait_with<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timed: bool,
        real: impl FnOnce(std_sync::MutexGuard<'a, T>) -> (std_sync::MutexGuard<'a, T>, bool),
    ) -> (MutexGuard<'a, T>, bool) {
        if !timed && rt::wakes_up(Location::caller()) {
            // This wait ends spuriously. A notification would be a reason for its end, so the
            // thread does not enter the set of waiters.
            guard.unlock();
            rt::perform(self.target(), OpKind::EndForNoReason);
            guard.relock();
            return (guard, false);
        }
        let order = rt::order();
        let notified = match rt::perform(self.target(), OpKind::Enqueue { order }) {
            Answer::Outside => {
                let Some(inner) = guard.give_to_wait() else {
                    unreachable!("dpor bug: a guard without its lock")
                };
                let (inner, notified) = real(inner);
                guard.has_waited(inner);
                notified
            }
            // The execution is over, and no thread notifies. The wait ends like a spurious wake-up,
            // after which other threads may have changed the condition.
            Answer::Inert => {
                guard.unlock();
                rt::yield_to_teardown();
                guard.relock();
                false
            }
            Answer::Done(_) => {
                guard.unlock();
                let answer = rt::perform(self.target(), OpKind::Awake { timed });
                let notified = matches!(answer, Answer::Done(outcome) if outcome.succeeded());
                // A timed wait may also wake up spuriously: without a notification, and before its
                // time is over.
                let goes_on = timed && !notified && rt::has_woken_up(Location::caller());
                guard.relock();
                notified || goes_on
            }
        };
        (guard, notified)
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the guard.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (guard, _) = self.wait_with(guard, false, |inner| {
            let inner = self.real.wait(inner);
            (inner.unwrap_or_else(PoisonError::into_inner), true)
        });
        guard.checked()
    }

    /// Waits as long as `condition` holds.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the guard.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a notification, for at most `duration`.
    ///
    /// Inside a model a timeout and a notification in time are both explored.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the guard.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (guard, notified) = self.wait_with(guard, true, |inner| {
            let waited = self.real.wait_timeout(inner, duration);
            let (inner, result) = waited.unwrap_or_else(PoisonError::into_inner);
            (inner, !result.timed_out())
        });
        if !notified {
            rt::let_time_pass(duration);
        }
        let result = WaitTimeoutResult(!notified);
        match guard.checked() {
            Ok(guard) => Ok((guard, result)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), result))),
        }
    }

    /// Same as [`Condvar::wait_timeout`], in milliseconds; returns whether a notification came.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the guard.
    #[track_caller]
    #[deprecated(note = "std has deprecated it; use `wait_timeout`")]
    pub fn wait_timeout_ms<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        ms: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        match self.wait_timeout(guard, Duration::from_millis(ms.into())) {
            Ok((guard, result)) => Ok((guard, !result.timed_out())),
            Err(poisoned) => {
                let (guard, result) = poisoned.into_inner();
                Err(PoisonError::new((guard, !result.timed_out())))
            }
        }
    }

    /// Waits as long as `condition` holds, for at most `duration` in all.
    ///
    /// Inside a model each wait may time out.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the guard.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = std::time::Instant::now();
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let left = match rt::current() {
                Some(_) => duration,
                None => match duration.checked_sub(start.elapsed()) {
                    Some(left) => left,
                    None => return Ok((guard, WaitTimeoutResult(true))),
                },
            };
            let result;
            (guard, result) = self.wait_timeout(guard, left)?;
            if result.timed_out() && rt::current().is_some() {
                let timed_out = condition(&mut *guard);
                return Ok((guard, WaitTimeoutResult(timed_out)));
            }
        }
    }

    /// Wakes one waiting thread; each choice of the thread is explored.
    #[track_caller]
    pub fn notify_one(&self) {
        match rt::perform(self.target(), OpKind::NotifyOne) {
            Answer::Outside => self.real.notify_one(),
            Answer::Done(_) | Answer::Inert => rt::is_done(Location::caller()),
        }
    }

    /// Wakes every waiting thread.
    #[track_caller]
    pub fn notify_all(&self) {
        match rt::perform(self.target(), OpKind::NotifyAll) {
            Answer::Outside => self.real.notify_all(),
            Answer::Done(_) | Answer::Inert => rt::is_done(Location::caller()),
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
