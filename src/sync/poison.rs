//! What do locks have in common that remember a panic, and that live in statics?
//!
//! Poisoning is our own, because std asks whether the *OS* thread is panicking, and all modelled
//! threads share one. A lock in a `static` gets its initial data back after every execution.

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

    /// The mark, for who has the lock for himself or only prints it.
    #[inline]
    pub(super) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Prints a lock of this name: what it holds, if the `attempt` to take std's lock succeeds, or
    /// else what stands for that.
    ///
    /// Whoever prints what it holds may make operations of its own. At these nobody else is to go
    /// on, because std's lock is held.
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

    /// The mark, for everybody: a visible operation.
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

    /// `value`, marked as coming from a poisoned lock if this one is. Destructors of an execution
    /// that has ended are spared that: one that panics would end the process before the failure is
    /// told.
    ///
    /// Inlined, as those that call it, so that a guard is made where it is returned.
    #[inline(always)]
    pub(super) fn mark<G>(&self, value: G) -> LockResult<G> {
        if rt::rarely!(self.get()) && !rt::ending() {
            Err(PoisonError::new(value))
        } else {
            Ok(value)
        }
    }

    /// [`mark`](Poison::mark) where others may use the lock at the same time. That is a visible
    /// operation where panics of threads are survived. Elsewhere few are, only those that the test
    /// catches itself, and the order of those that have the lock tells the mark, unless another one
    /// clears it that has not.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check<G>(&self, guard: G) -> LockResult<G> {
        if rt::rarely!(rt::catches_panics()) {
            self.look();
        }
        self.mark(guard)
    }

    /// A lock that can write is given up by a thread that took it like this.
    #[inline]
    pub(super) fn leave(&self, taken: &Taken) {
        if !taken.panicking && rt::rarely!(rt::panicking()) {
            let (order, value) = (Relaxed, 1);
            self.announce(OpKind::Store { order, value }, taken.site);
            self.0.store(true, Relaxed);
        }
    }

    /// Whoever does not hold the lock may see the mark change at any time.
    fn announce(&self, kind: OpKind, site: &'static Location<'static>) {
        let target = Target {
            address: self.0.as_ptr().addr(),
            kind: ObjectKind::Atomic(AtomicType::Poison),
            memory: self.get() as u64,
        };
        rt::perform_at(target, kind, site);
    }
}

/// What a guard remembers of the moment when its lock was taken.
#[derive(Debug)]
pub(super) struct Taken {
    panicking: bool,
    /// The place in the program, which is also shown for the unlock.
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

/// What std's `try_` methods give, without their poisoning.
pub(super) fn free<G>(result: TryLockResult<G>) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// How the data of a lock in a `static` is put back.
#[derive(Debug)]
pub(super) struct Home {
    /// Drops the data of the lock that begins at an address; `None` if there is nothing to drop.
    drop: Option<unsafe fn(*mut u8)>,
    /// Whether it has been locked outside of a model.
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

    /// The lock was taken outside of a model, or exclusively.
    pub(super) fn visit(&self) {
        self.used.store(true, Relaxed);
    }

    /// The lock, known by the address `object`, was taken inside of a model.
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
