//! Locks with many readers or one writer, as `std::sync::RwLock`.
//!
//! As with the mutex, the data is in std's lock, which is never contended inside a model.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{self as std_sync, LockResult, PoisonError, TryLockError, TryLockResult};

use super::changes::Changes;
use super::poison::{Home, Poison, Taken, free};
use super::printer::Printer;
use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target};

/// Drop-in replacement for `std::sync::RwLock`.
///
/// Inside a model neither readers nor writers are preferred: a reader may take the lock while a
/// writer waits. A further pass ([`Builder::thorough`](crate::Builder::thorough)) prefers writers:
/// there a `read` waits behind each `write` that waits, and `try_read` does not.
///
/// In a `static`, the data is reset to its initial value after every execution.
pub struct RwLock<T: ?Sized> {
    /// The number of readers, or [`WRITTEN`].
    state: AtomicU64,
    /// Whether a thread is at the gate, if the exploration has one.
    gate: AtomicBool,
    poison: Poison,
    home: Home,
    pub(super) printer: Printer,
    inner: std_sync::RwLock<T>,
}

const WRITTEN: u64 = u64::MAX;

/// Keeps an [`RwLock`] locked for reading until it is dropped.
#[must_use = "the lock is released again at once if the guard is not kept"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    /// The state of the lock. A reference to the lock itself would make the guard invariant in `T`,
    /// which std's guard is not.
    state: &'a AtomicU64,
    /// Initialised, except in `drop`.
    inner: ManuallyDrop<std_sync::RwLockReadGuard<'a, T>>,
    taken: Taken,
}

/// Keeps an [`RwLock`] locked for writing until it is dropped.
#[must_use = "the lock is released again at once if the guard is not kept"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Initialised, except in `drop` and `downgrade`.
    inner: ManuallyDrop<std_sync::RwLockWriteGuard<'a, T>>,
    taken: Taken,
    changes: Changes,
}

/// The gate of a lock that prefers writers. Each thread that takes the lock passes it, one at a
/// time, and a writer stays in it as long as others hold the lock. So a reader that comes later
/// waits behind the writer.
struct Gate<'a>(&'a AtomicBool, &'static Location<'static>);

impl Gate<'_> {
    #[track_caller]
    fn enter(gate: &AtomicBool) -> Gate<'_> {
        let site = Location::caller();
        // The report would give it the name of the lock.
        rt::name_object(gate.as_ptr().addr(), size_of_val(gate), "gate");
        rt::perform_at(gate_target(gate), OpKind::Lock, site);
        gate.store(true, Relaxed);
        Gate(gate, site)
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        let changed = false;
        rt::perform_at(gate_target(self.0), OpKind::Unlock { changed }, self.1);
        self.0.store(false, Relaxed);
    }
}

fn gate_target(gate: &AtomicBool) -> Target {
    Target::mutex(gate.as_ptr().addr(), gate.load(Relaxed))
}

// SAFETY: a shared guard lends `&T` and nothing else. Only the owner of the guard announces
// operations through it, and the guard is not `Send`, so the owner is on the thread that took the
// lock.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

/// The model's description of the lock with this state.
fn target(state: &AtomicU64) -> Target {
    Target {
        address: state.as_ptr().addr(),
        kind: ObjectKind::RwLock,
        memory: state.load(Relaxed),
    }
}

impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// Drops the data of the lock at this address.
///
/// # Safety
///
/// A `RwLock<T>` begins at this address, and its data is not used again.
unsafe fn drop_data<T>(lock: *mut u8) {
    let lock = lock.cast::<RwLock<T>>();
    // SAFETY: by the caller's promise a lock of this type is at the address.
    unsafe { std::ptr::drop_in_place(&raw mut (*lock).inner) };
}

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock {
            state: AtomicU64::new(0),
            gate: AtomicBool::new(false),
            poison: Poison::new(),
            home: Home::new::<T>(drop_data::<T>),
            printer: Printer::none(),
            inner: std_sync::RwLock::new(value),
        }
    }

    /// Consumes the lock and returns the data.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock is poisoned. The error contains the data.
    pub fn into_inner(self) -> LockResult<T> {
        let data = self.inner.into_inner();
        self.poison
            .mark(data.unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: ?Sized> RwLock<T> {
    fn target(&self) -> Target {
        target(&self.state)
    }

    /// The objects of the model that the lock is.
    pub(crate) fn targets(&self) -> [Target; 3] {
        [self.target(), gate_target(&self.gate), self.poison.target()]
    }

    /// Takes std's lock after the announcement: `wait` outside of a model, where the call may
    /// block, and `attempt` inside.
    #[track_caller]
    fn take<G>(
        &self,
        answer: Answer,
        wait: impl FnOnce() -> LockResult<G>,
        attempt: impl Fn() -> TryLockResult<G>,
    ) -> G {
        match answer {
            Answer::Outside => {
                self.home.visit();
                wait().unwrap_or_else(PoisonError::into_inner)
            }
            Answer::Done(_) => self.granted(attempt),
            Answer::Inert => {
                self.keep();
                loop {
                    match free(attempt()) {
                        Some(guard) => break guard,
                        None => rt::yield_to_teardown(),
                    }
                }
            }
        }
    }

    /// Takes std's lock by an `attempt`, if the lock was free when the operation was announced.
    #[track_caller]
    fn take_if_free<G>(&self, answer: Answer, attempt: impl Fn() -> TryLockResult<G>) -> Option<G> {
        match answer {
            Answer::Done(Outcome::Failure(_)) => return None,
            Answer::Done(_) => return Some(self.granted(attempt)),
            Answer::Outside => self.home.visit(),
            Answer::Inert => self.keep(),
        }
        free(attempt())
    }

    /// Takes std's lock after the model has granted the lock.
    #[track_caller]
    fn granted<G>(&self, attempt: impl Fn() -> TryLockResult<G>) -> G {
        self.keep();
        match free(attempt()) {
            Some(guard) => guard,
            None => panic!("dpor bug: a lock was granted that cannot be had"),
        }
    }

    /// Keeps the initial data, so that it can be restored after the execution.
    #[track_caller]
    fn keep(&self) {
        self.home.keep((&raw const self.state).addr(), self);
    }

    #[track_caller]
    fn reader<'a>(&'a self, inner: std_sync::RwLockReadGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        self.state.fetch_add(1, Relaxed);
        RwLockReadGuard {
            state: &self.state,
            inner: ManuallyDrop::new(inner),
            taken: Taken::now(),
        }
    }

    #[track_caller]
    fn writer<'a>(
        &'a self,
        answer: Answer,
        inner: std_sync::RwLockWriteGuard<'a, T>,
    ) -> RwLockWriteGuard<'a, T> {
        self.state.store(WRITTEN, Relaxed);
        RwLockWriteGuard {
            lock: self,
            changes: Changes::since(answer, &*inner),
            inner: ManuallyDrop::new(inner),
            taken: Taken::now(),
        }
    }

    /// Waits until no thread holds the lock for writing, and locks it for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread panicked while it held the lock for writing. The error contains
    /// the guard.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let others_read = !matches!(self.state.load(Relaxed), 0 | WRITTEN);
        let gate = if rt::rarely!(rt::prefers_writers(others_read)) {
            Some(Gate::enter(&self.gate))
        } else {
            None
        };
        let answer = rt::perform(self.target(), OpKind::ReadLock);
        let inner = self.take(answer, || self.inner.read(), || self.inner.try_read());
        drop(gate);
        rt::note_data(self.printer.shown(&*inner));
        self.poison.check(self.reader(inner))
    }

    /// Locks for reading if no thread holds the lock for writing.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if a thread holds the lock for writing. Returns `Poisoned`, which
    /// contains the guard, if a thread panicked while it held the lock for writing.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let answer = rt::perform(self.target(), OpKind::TryRead);
        let inner = self.take_if_free(answer, || self.inner.try_read());
        match inner {
            Some(inner) => {
                rt::note_data(self.printer.shown(&*inner));
                Ok(self.poison.check(self.reader(inner))?)
            }
            None => Err(TryLockError::WouldBlock),
        }
    }

    /// Waits until no other thread holds the lock, and locks it for writing.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread panicked while it held the lock for writing. The error contains
    /// the guard.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let gate = if rt::rarely!(rt::prefers_writers_to_write()) {
            Some(Gate::enter(&self.gate))
        } else {
            None
        };
        let answer = rt::perform(self.target(), OpKind::WriteLock);
        let inner = self.take(answer, || self.inner.write(), || self.inner.try_write());
        drop(gate);
        rt::note_data(self.printer.shown(&*inner));
        self.poison.check(self.writer(answer, inner))
    }

    /// Locks for writing if no thread holds the lock.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if a thread holds the lock. Returns `Poisoned`, which contains the
    /// guard, if a thread panicked while it held the lock for writing.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let answer = rt::perform(self.target(), OpKind::TryWrite);
        let inner = self.take_if_free(answer, || self.inner.try_write());
        match inner {
            Some(inner) => {
                rt::note_data(self.printer.shown(&*inner));
                Ok(self.poison.check(self.writer(answer, inner))?)
            }
            None => Err(TryLockError::WouldBlock),
        }
    }

    /// Returns whether a thread panicked while it held the lock for writing.
    #[track_caller]
    pub fn is_poisoned(&self) -> bool {
        self.poison.look()
    }

    /// Clears the poisoned state of the lock.
    #[track_caller]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Returns a mutable reference to the data.
    ///
    /// The reference is exclusive, so the lock is not taken.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock is poisoned. The error contains the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.home.visit();
        let data = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.poison.mark(data)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// Prints the data unless the lock is held for writing. Neither this nor the code that prints the
/// data makes a visible operation.
impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = || self.inner.try_read();
        self.poison
            .print(f, ("RwLock", &format_args!("<locked>")), attempt)
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Turns a write lock into a read lock; no other writer can take the lock in between.
    #[track_caller]
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let mut guard = ManuallyDrop::new(guard);
        let lock = guard.lock;
        let data = lock.printer.shown(&**guard);
        rt::perform(lock.target(), OpKind::Downgrade);
        rt::note_data(data);
        // SAFETY: the guard is not used again and never dropped, so std's guard is taken once.
        let inner = unsafe { ManuallyDrop::take(&mut guard.inner) };
        lock.state.store(0, Relaxed);
        lock.reader(std_sync::RwLockWriteGuard::downgrade(inner))
    }
}

macro_rules! guard {
    ($guard:ident) => {
        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}

guard!(RwLockReadGuard);
guard!(RwLockWriteGuard);

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.changes.lend(&**self.inner);
        &mut self.inner
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        rt::perform_at(target(self.state), OpKind::UnlockRead, self.taken.site);
        self.state.fetch_sub(1, Relaxed);
        // SAFETY: the guard is being dropped, and its std guard is dropped nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
        rt::is_done(self.taken.site);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.poison.leave(&self.taken);
        let changed = self.changes.any(&**self.inner);
        let kind = OpKind::UnlockWrite { changed };
        let data = self.lock.printer.shown(&**self.inner);
        rt::perform_at(self.lock.target(), kind, self.taken.site);
        rt::note_data(data);
        self.lock.state.store(0, Relaxed);
        // SAFETY: the guard is being dropped, and its std guard is dropped nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
        rt::is_done(self.taken.site);
    }
}
