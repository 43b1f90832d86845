//! Mutual exclusion, as `std::sync::Mutex`.
//!
//! The data sits in a std mutex that is never contended inside a model: it is taken once the model
//! has granted the lock, or where nobody else goes on meanwhile.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{self as std_sync, LockResult, PoisonError, TryLockError, TryLockResult};

use super::changes::Changes;
use super::poison::{Home, Poison, Taken, free};
use crate::rt::{self, Answer, OpKind, Outcome, Target};

/// Drop-in replacement for `std::sync::Mutex`.
///
/// In a `static`, its data gets its initial value back after every execution.
pub struct Mutex<T: ?Sized> {
    held: AtomicBool,
    poison: Poison,
    home: Home,
    inner: std_sync::Mutex<T>,
}

/// Keeps a [`Mutex`] locked until it is dropped.
#[must_use = "the mutex is unlocked again at once if the guard is not kept"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `None` while its thread waits on a condition variable.
    inner: Option<std_sync::MutexGuard<'a, T>>,
    taken: Taken,
    changes: Changes,
}

// SAFETY: a shared guard lends `&T` and nothing else; what it says to the model when it is dropped
// is said by its owner, who cannot have come from another thread.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// Drops the data of the mutex at this address.
///
/// # Safety
///
/// A `Mutex<T>` begins there, and nobody uses its data again.
unsafe fn drop_data<T>(mutex: *mut u8) {
    let mutex = mutex.cast::<Mutex<T>>();
    // SAFETY: the caller says that it is a mutex of this type.
    unsafe { std::ptr::drop_in_place(&raw mut (*mutex).inner) };
}

impl<T> Mutex<T> {
    /// Creates a mutex that is not locked.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            held: AtomicBool::new(false),
            poison: Poison::new(),
            home: Home::new::<T>(drop_data::<T>),
            inner: std_sync::Mutex::new(value),
        }
    }

    /// Unwraps the data.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error holds the data.
    pub fn into_inner(self) -> LockResult<T> {
        let data = self.inner.into_inner();
        self.poison
            .mark(data.unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Where it is known to be, and whether its memory says that it is held.
    fn place(&self) -> (usize, bool) {
        ((&raw const self.held).addr(), self.held.load(Relaxed))
    }

    /// Announces that it is locked.
    #[track_caller]
    fn announce(&self) -> Answer {
        let (address, held) = self.place();
        rt::lock(address, held)
    }

    /// Takes the std mutex after the lock was announced.
    #[track_caller]
    fn take(&self, answer: Answer) -> std_sync::MutexGuard<'_, T> {
        let inner = match answer {
            Answer::Outside => {
                rt::cold_path();
                self.home.visit();
                self.inner.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Answer::Done(_) => {
                self.home.keep(self.place().0, self);
                match free(self.inner.try_lock()) {
                    Some(guard) => guard,
                    None => panic!("dpor bug: a mutex was granted while it is held"),
                }
            }
            Answer::Inert => {
                rt::cold_path();
                self.home.keep(self.place().0, self);
                loop {
                    match free(self.inner.try_lock()) {
                        Some(guard) => break guard,
                        None => rt::yield_to_teardown(),
                    }
                }
            }
        };
        self.held.store(true, Relaxed);
        inner
    }

    /// Waits for the mutex and locks it.
    ///
    /// A thread that holds the mutex already waits forever.
    ///
    /// # Errors
    ///
    /// If a thread panicked while it held the mutex. The error holds the guard.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let answer = self.announce();
        let inner = self.take(answer);
        self.poison.check(MutexGuard {
            mutex: self,
            changes: Changes::since(answer, &*inner),
            inner: Some(inner),
            taken: Taken::now(),
        })
    }

    /// Locks the mutex if nobody holds it.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if somebody holds it. `Poisoned`, which holds the guard, if a thread panicked
    /// while it held the mutex.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let (address, held) = self.place();
        let answer = rt::perform(Target::mutex(address, held), OpKind::TryLock);
        let inner = match answer {
            Answer::Done(Outcome::Failure(_)) => None,
            Answer::Done(_) => Some(self.take(answer)),
            Answer::Outside => {
                self.home.visit();
                free(self.inner.try_lock())
            }
            Answer::Inert => {
                self.home.keep(address, self);
                free(self.inner.try_lock())
            }
        };
        let Some(inner) = inner else {
            return Err(TryLockError::WouldBlock);
        };
        self.held.store(true, Relaxed);
        Ok(self.poison.check(MutexGuard {
            mutex: self,
            changes: Changes::since(answer, &*inner),
            inner: Some(inner),
            taken: Taken::now(),
        })?)
    }

    /// Returns whether a thread panicked while it held the mutex.
    #[track_caller]
    pub fn is_poisoned(&self) -> bool {
        self.poison.look()
    }

    /// Forgets that a thread panicked while it held the mutex.
    #[track_caller]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Returns a mutable reference to the data.
    ///
    /// The reference is exclusive, so nothing is locked.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error holds the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.home.visit();
        let data = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.poison.mark(data)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Prints the data if the mutex is free, without a visible operation, also of what prints the data.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = || self.inner.try_lock();
        self.poison.print(f, ("Mutex", &"<locked>"), attempt)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The guard of the std mutex, for a wait outside of a model.
    pub(super) fn give_to_wait(&mut self) -> Option<std_sync::MutexGuard<'a, T>> {
        self.inner.take()
    }

    /// A wait outside of a model is over, in which others may have locked and unlocked it.
    pub(super) fn has_waited(&mut self, inner: std_sync::MutexGuard<'a, T>) {
        self.mutex.held.store(true, Relaxed);
        self.inner = Some(inner);
    }

    /// Gives the mutex up for a wait, or for good. A thread that unwinds poisons it by the end of
    /// its guard, and not by a wait.
    pub(super) fn unlock(&mut self) {
        let Some(inner) = &self.inner else {
            rt::cold_path();
            return;
        };
        let changed = self.changes.any(&**inner);
        // The unlock takes effect when it is this thread's turn; until then the data is locked.
        let (address, held) = self.mutex.place();
        let is_delayed = rt::unlock(address, held, changed, self.taken.site);
        self.mutex.held.store(false, Relaxed);
        self.inner = None;
        if is_delayed {
            rt::resume(self.taken.site);
        }
    }

    /// Takes the mutex again after a wait.
    #[track_caller]
    pub(super) fn relock(&mut self) {
        let answer = self.mutex.announce();
        let inner = self.mutex.take(answer);
        self.changes = Changes::since(answer, &*inner);
        self.inner = Some(inner);
    }

    /// The guard, marked if the mutex is poisoned.
    #[track_caller]
    pub(super) fn checked(self) -> LockResult<MutexGuard<'a, T>> {
        self.mutex.poison.check(self)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.inner {
            Some(guard) => guard,
            None => unreachable!("dpor bug: a guard without its lock"),
        }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.inner {
            Some(guard) => {
                self.changes.lend(&**guard);
                guard
            }
            None => unreachable!("dpor bug: a guard without its lock"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.mutex.poison.leave(&self.taken);
        }
        self.unlock();
    }
}
