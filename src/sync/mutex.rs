//! Mutual exclusion, as `std::sync::Mutex`.
//!
//! The data sits in a std mutex that is never contended inside a model: it is taken once the model
//! has granted the lock. Poisoning is our own, because std asks whether the *OS* thread is
//! panicking, and all modelled threads share one.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{self as std_sync, LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target};

/// Drop-in replacement for `std::sync::Mutex`.
///
/// In a `static` its data is put back to the initial value after every execution, which needs a
/// type without drop glue.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    held: AtomicBool,
    poisoned: AtomicBool,
    /// Whether the data owns something, so that its bytes cannot simply be put back.
    drops: AtomicBool,
    inner: std_sync::Mutex<T>,
}

/// Holds a [`Mutex`] locked until it is dropped.
#[must_use = "the mutex is unlocked again at once if the guard is not kept"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    inner: Option<std_sync::MutexGuard<'a, T>>,
    was_panicking: bool,
    site: &'static Location<'static>,
}

impl<T> Mutex<T> {
    /// A mutex that is not locked.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            held: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            drops: AtomicBool::new(std::mem::needs_drop::<T>()),
            inner: std_sync::Mutex::new(value),
        }
    }

    /// The data, when nobody shares the mutex any more.
    ///
    /// # Errors
    ///
    /// The data all the same, if the mutex is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.is_poisoned();
        let data = self
            .inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        checked(poisoned, data)
    }
}

fn checked<G>(poisoned: bool, guard: G) -> LockResult<G> {
    if poisoned {
        Err(PoisonError::new(guard))
    } else {
        Ok(guard)
    }
}

impl<T: ?Sized> Mutex<T> {
    fn target(&self) -> Target {
        Target {
            address: (&raw const self.held).addr(),
            kind: ObjectKind::Mutex,
            memory: self.held.load(Relaxed) as u64,
        }
    }

    fn keep_pristine(&self) {
        let start = (self as *const Mutex<T>).cast::<u8>();
        let drops = self.drops.load(Relaxed);
        rt::keep_pristine(
            (&raw const self.held).addr(),
            start,
            size_of_val(self),
            drops,
        );
    }

    #[track_caller]
    fn guard<'a>(&'a self, inner: std_sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.held.store(true, Relaxed);
        MutexGuard {
            mutex: self,
            inner: Some(inner),
            was_panicking: std::thread::panicking(),
            site: Location::caller(),
        }
    }

    /// Waits for the mutex and locks it. A thread that holds it already waits for ever.
    ///
    /// # Errors
    ///
    /// The guard all the same, if a thread panicked while it held the mutex.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let inner = match rt::perform(self.target(), OpKind::Lock) {
            Answer::Outside => self.inner.lock().unwrap_or_else(PoisonError::into_inner),
            Answer::Done(_) => {
                self.keep_pristine();
                match self.try_real() {
                    Some(guard) => guard,
                    None => panic!("dpor bug: a mutex was granted while it is held"),
                }
            }
            Answer::Inert => loop {
                match self.try_real() {
                    Some(guard) => break guard,
                    None => rt::yield_to_teardown(),
                }
            },
        };
        checked(self.is_poisoned(), self.guard(inner))
    }

    /// Locks the mutex if nobody holds it.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if somebody does; the guard all the same in `Poisoned`, if a thread panicked
    /// while it held the mutex.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let answer = rt::perform(self.target(), OpKind::TryLock);
        if let Answer::Done(Outcome::Failure(_)) = answer {
            return Err(TryLockError::WouldBlock);
        }
        if let Answer::Done(_) = answer {
            self.keep_pristine();
        }
        let Some(inner) = self.try_real() else {
            return Err(TryLockError::WouldBlock);
        };
        Ok(checked(self.is_poisoned(), self.guard(inner))?)
    }

    fn try_real(&self) -> Option<std_sync::MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a thread panicked while it held the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Relaxed)
    }

    /// Forgets that a thread panicked while it held the mutex.
    pub fn clear_poison(&self) {
        self.poisoned.store(false, Relaxed);
    }

    /// The data; the reference is exclusive, so nothing is locked.
    ///
    /// # Errors
    ///
    /// The data all the same, if the mutex is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let poisoned = self.is_poisoned();
        let data = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        checked(poisoned, data)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Prints the data if the mutex is free, without being a visible operation.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Mutex");
        match self.try_real() {
            Some(guard) => out.field("data", &&*guard),
            None => out.field("data", &format_args!("<locked>")),
        };
        out.field("poisoned", &self.is_poisoned());
        out.finish_non_exhaustive()
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
            Some(guard) => guard,
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
        if !self.was_panicking && std::thread::panicking() {
            self.mutex.poisoned.store(true, Relaxed);
        }
        // The unlock takes effect when it is this thread's turn; until then the data is locked.
        rt::perform_at(self.mutex.target(), OpKind::Unlock, self.site);
        self.mutex.held.store(false, Relaxed);
        self.inner = None;
    }
}
