//! Mutual exclusion, as `std::sync::Mutex`.
//!
//! The data is in a std mutex that is never contended inside a model: the shim takes the std mutex
//! after the model has granted the lock, or where no other thread continues meanwhile.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{self as std_sync, LockResult, PoisonError, TryLockError, TryLockResult};

use super::changes::Changes;
use super::poison::{Home, Poison, Taken, free};
use super::printer::Printer;
use crate::rt::{self, Answer, OpKind, Outcome, Target};

/// Drop-in replacement for `std::sync::Mutex`.
///
/// In a `static`, the data is reset to its initial value after every execution.
pub struct Mutex<T: ?Sized> {
    held: AtomicBool,
    poison: Poison,
    home: Home,
    pub(super) printer: Printer,
    inner: std_sync::Mutex<T>,
}

/// Keeps a [`Mutex`] locked until it is dropped.
#[must_use = "the mutex is unlocked again at once if the guard is not kept"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `None` while the guard's thread waits on a condition variable.
    inner: Option<std_sync::MutexGuard<'a, T>>,
    taken: Taken,
    changes: Changes,
}

// SAFETY: a shared guard lends `&T` and nothing else. Only the owner of the guard announces
// operations through it, and the guard is not `Send`, so the owner is on the thread that took the
// lock.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// Drops the data of the mutex at this address.
///
/// # Safety
///
/// A `Mutex<T>` begins at this address, and its data is not used again.
unsafe fn drop_data<T>(mutex: *mut u8) {
    let mutex = mutex.cast::<Mutex<T>>();
    // SAFETY: by the caller's promise a mutex of this type is at the address.
    unsafe { std::ptr::drop_in_place(&raw mut (*mutex).inner) };
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            held: AtomicBool::new(false),
            poison: Poison::new(),
            home: Home::new::<T>(drop_data::<T>),
            printer: Printer::none(),
            inner: std_sync::Mutex::new(value),
        }
    }

    /// Consumes the mutex and returns the data.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the data.
    pub fn into_inner(self) -> LockResult<T> {
        let data = self.inner.into_inner();
        self.poison
            .mark(data.unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The address by which the model knows the mutex, and whether the mutex's memory says that it
    /// is held.
    fn place(&self) -> (usize, bool) {
        ((&raw const self.held).addr(), self.held.load(Relaxed))
    }

    /// The objects of the model that the mutex is.
    pub(crate) fn targets(&self) -> [Target; 2] {
        let (address, held) = self.place();
        [Target::mutex(address, held), self.poison.target()]
    }

    /// Announces the lock of the mutex.
    #[track_caller]
    fn announce(&self) -> Answer {
        let (address, held) = self.place();
        rt::lock(address, held, || {
            let inner = free(self.inner.try_lock())?;
            self.printer.shown(&*inner)
        })
    }

    /// Takes the std mutex after the announcement of the lock.
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
    /// Returns an error if a thread panicked while it held the mutex. The error contains the guard.
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

    /// Locks the mutex if no thread holds it.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if a thread holds the mutex, or if this one does not know that it was
    /// unlocked ([`Builder::stale_try_lock`](crate::Builder::stale_try_lock)). Returns `Poisoned`,
    /// which contains the guard, if a thread panicked while it held the mutex.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let (address, held) = self.place();
        let answer = rt::perform(Target::mutex(address, held), OpKind::TryLock);
        let inner = match answer {
            Answer::Done(Outcome::Failure(_)) => None,
            Answer::Done(_) => {
                let inner = self.take(answer);
                rt::note_data(self.printer.shown(&*inner));
                Some(inner)
            }
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

    /// Clears the poisoned state of the mutex.
    #[track_caller]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Returns a mutable reference to the data.
    ///
    /// The reference is exclusive, so the mutex is not locked.
    ///
    /// # Errors
    ///
    /// Returns an error if the mutex is poisoned. The error contains the reference.
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

/// Prints the data if the mutex is free. Neither this nor the code that prints the data makes a
/// visible operation.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = || self.inner.try_lock();
        self.poison.print(f, ("Mutex", &"<locked>"), attempt)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Takes the guard of the std mutex out, for a wait outside of a model.
    pub(super) fn give_to_wait(&mut self) -> Option<std_sync::MutexGuard<'a, T>> {
        self.inner.take()
    }

    /// Puts the guard of the std mutex back after a wait outside of a model; other threads may have
    /// used the mutex during the wait.
    pub(super) fn has_waited(&mut self, inner: std_sync::MutexGuard<'a, T>) {
        self.mutex.held.store(true, Relaxed);
        self.inner = Some(inner);
    }

    /// Releases the mutex, for a wait or for good. A thread that unwinds poisons the mutex at the
    /// drop of its guard, and not at a wait.
    pub(super) fn unlock(&mut self) {
        let Some(inner) = &self.inner else {
            rt::cold_path();
            return;
        };
        let changed = self.changes.any(&**inner);
        // The unlock takes effect at this thread's next step; until then the data is locked.
        let is_delayed = rt::unlock(self.mutex.place(), changed, self.taken.site, || {
            self.mutex.printer.shown(&**inner)
        });
        self.mutex.held.store(false, Relaxed);
        self.inner = None;
        if is_delayed {
            rt::resume(self.taken.site);
        }
    }

    /// Locks the mutex again after a wait.
    #[track_caller]
    pub(super) fn relock(&mut self) {
        let answer = self.mutex.announce();
        let inner = self.mutex.take(answer);
        self.changes = Changes::since(answer, &*inner);
        self.inner = Some(inner);
    }

    /// Returns the guard, in an error if the mutex is poisoned.
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
