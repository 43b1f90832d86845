//! Which code do the locks share for poisoning, and for living in a static?
//!
//! The shims have their own poisoning, because std asks whether the *OS* thread is panicking, and
//! all modelled threads share one OS thread. A lock in a `static` gets its initial data back after
//! every execution.

use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt::{self, AtomicType, Memory, ObjectKind, OpKind, Target};

/// Whether a thread panicked while it held a lock.
#[derive(Debug, Default)]
pub(super) struct Poison(AtomicBool);

impl Poison {
    pub(super) const fn new() -> Poison {
        Poison(AtomicBool::new(false))
    }

    /// The mark, for a caller that has exclusive access to the lock or only prints it.
    #[inline]
    pub(super) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Prints a lock of this name: its data, if the `attempt` to take std's lock succeeds,
    /// otherwise `locked`.
    ///
    /// The code that prints the data may announce operations of its own. No other thread may
    /// continue at these, because std's lock is held.
    pub(super) fn print<T: fmt::Debug + ?Sized, G: Deref<Target = T>>(
        &self,
        f: &mut fmt::Formatter<'_>,
        (name, locked): (&str, &dyn fmt::Debug),
        attempt: impl FnOnce() -> TryLockResult<G>,
    ) -> fmt::Result {
        rt::aside(|| {
            let mut out = f.debug_struct(name);
            match free(attempt()) {
                Some(guard) => out.field("data", &&*guard),
                None => out.field("data", locked),
            };
            out.field("poisoned", &self.get());
            out.finish_non_exhaustive()
        })
        .unwrap_or_else(|| f.write_str("<locked>"))
    }

    /// The mark, for any caller: a visible operation.
    #[track_caller]
    pub(super) fn look(&self) -> bool {
        self.announce(OpKind::Load { order: Relaxed }, Location::caller());
        self.get()
    }

    #[track_caller]
    pub(super) fn clear(&self) {
        let (order, value) = (Relaxed, 0);
        self.announce(OpKind::Store { order, value }, Location::caller());
        self.0.store(false, Relaxed);
    }

    /// Wraps `value` in an error if this lock is poisoned. For destructors of an execution that has
    /// ended the result is never an error: a destructor that panics would end the process before
    /// the failure is reported.
    ///
    /// Inlined, as are its callers, so that a guard is constructed in its final place.
    #[inline(always)]
    pub(super) fn mark<G>(&self, value: G) -> LockResult<G> {
        if rt::rarely!(self.get()) && !rt::ending() {
            Err(PoisonError::new(value))
        } else {
            Ok(value)
        }
    }

    /// [`mark`](Poison::mark) for a lock that other threads may use at the same time. The look at
    /// the mark is a visible operation in a model that survives panics of threads. In other models
    /// the only such panics are those that the test catches itself. There the order of the lock's
    /// holders determines the mark, unless a thread without the lock clears it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check<G>(&self, guard: G) -> LockResult<G> {
        if rt::rarely!(rt::catches_panics()) {
            self.look();
        }
        self.mark(guard)
    }

    /// Poisons the lock if its holder, which can write, has begun to panic since it took the lock.
    #[inline]
    pub(super) fn leave(&self, taken: &Taken) {
        if !taken.panicking && rt::rarely!(rt::panicking()) {
            let (order, value) = (Relaxed, 1);
            self.announce(OpKind::Store { order, value }, taken.site);
            self.0.store(true, Relaxed);
        }
    }

    /// Announces an operation on the mark. A thread that does not hold the lock may see the mark
    /// change at any time.
    fn announce(&self, kind: OpKind, site: &'static Location<'static>) {
        rt::perform_at(self.target(), kind, site);
    }

    /// The model's description of the mark.
    pub(super) fn target(&self) -> Target {
        Target {
            address: self.0.as_ptr().addr(),
            kind: ObjectKind::Atomic(AtomicType::Poison),
            memory: self.get() as u64,
        }
    }
}

/// The facts that a guard remembers of the moment when its lock was taken.
#[derive(Debug)]
pub(super) struct Taken {
    panicking: bool,
    /// The place in the program; reports show it for the unlock as well.
    pub(super) site: &'static Location<'static>,
}

impl Taken {
    #[inline]
    #[track_caller]
    pub(super) fn now() -> Taken {
        Taken {
            panicking: rt::panicking(),
            site: Location::caller(),
        }
    }
}

/// The guard in the result of std's `try_` methods, without std's poisoning.
pub(super) fn free<G>(result: TryLockResult<G>) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The facts that the model needs to reset the data of a lock in a `static`.
#[derive(Debug)]
pub(super) struct Home {
    /// Drops the data of the lock at an address; `None` if the data has no drop glue.
    drop: Option<unsafe fn(*mut u8)>,
    /// Whether the lock has been taken outside of a model.
    used: AtomicBool,
}

impl Home {
    /// The home of a lock over `T`; `drop` drops the data of the lock at an address.
    pub(super) const fn new<T>(drop: unsafe fn(*mut u8)) -> Home {
        Home {
            drop: if std::mem::needs_drop::<T>() {
                Some(drop)
            } else {
                None
            },
            used: AtomicBool::new(false),
        }
    }

    /// Records that the lock was taken outside of a model, or borrowed exclusively.
    pub(super) fn visit(&self) {
        self.used.store(true, Relaxed);
    }

    /// Tells the model that the lock, known by the address `object`, was taken inside of the model.
    #[track_caller]
    pub(super) fn keep<L: ?Sized>(&self, object: usize, lock: &L) {
        rt::keep_pristine(
            object,
            Memory {
                start: (lock as *const L).cast_mut().cast(),
                size: size_of_val(lock),
                drop: self.drop,
                fresh: !self.used.load(Relaxed),
            },
        );
    }
}
