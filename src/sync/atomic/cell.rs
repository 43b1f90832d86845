//! Which code do all atomics share?
//!
//! A shim announces its operation and then performs the operation on its own memory. No other
//! thread runs between the model's answer and this thread's next announcement, so the result is the
//! one that the model computed. Under C11 the memory holds, for that moment, the value that the
//! operation reads. The same code serves outside of a model and while an execution is
//! torn down.

use std::sync::atomic::Ordering;

use crate::rt::{self, Answer, Applied, AtomicType, OpKind, Outcome, Rmw, Target};

/// The model's description of an atomic that holds `memory`, for an announcement.
#[cfg_attr(not(debug_assertions), inline)]
pub(super) fn target(address: *const (), ty: AtomicType, memory: u64) -> Target {
    Target::atomic(address.addr(), ty, ty.truncate(memory))
}

/// The target without the value of its memory, which need not be kept any longer.
#[cfg_attr(not(debug_assertions), inline(always))]
fn without_value(target: Target) -> Target {
    Target {
        memory: 0,
        ..target
    }
}

#[track_caller]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn load<R>(
    target: Target,
    ty: AtomicType,
    order: Ordering,
    make: impl FnOnce() -> R,
) -> R {
    match order {
        Ordering::Release => panic!("there is no such thing as a release load"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release load"),
        _ => {}
    }
    match rt::load(target.address, ty, target.memory, order) {
        Applied::Plainly => make(),
        Applied::WithCare => rt::apply_with_care(without_value(target), make),
    }
}

/// Announces a store, and performs it with the ordering that is needed. Inside a model, all code
/// that may read the atomic is on this OS thread, so the processor need not wait for its earlier
/// stores; the announcement has made many.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn store(
    target: Target,
    ty: AtomicType,
    value: u64,
    order: Ordering,
    make: impl FnOnce(Ordering),
) {
    match order {
        Ordering::Acquire => panic!("there is no such thing as an acquire store"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release store"),
        _ => {}
    }
    let value = ty.truncate(value);
    match rt::store(target.address, ty, target.memory, order, value) {
        (Answer::Outside, _) => make(order),
        (Answer::Done(_) | Answer::Inert, Applied::Plainly) => make(Ordering::Relaxed),
        (Answer::Done(_) | Answer::Inert, Applied::WithCare) => {
            rt::apply_with_care(target, || make(Ordering::Relaxed));
        }
    }
}

#[track_caller]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn modify<R>(
    target: Target,
    ty: AtomicType,
    rmw: Rmw,
    operand: u64,
    order: Ordering,
    make: impl FnOnce() -> R,
) -> R {
    let operand = ty.truncate(operand);
    let rmw = rmw.on(ty);
    match rt::modify(target.address, ty, target.memory, order, (rmw, operand)) {
        Applied::Plainly => make(),
        Applied::WithCare => rt::apply_with_care(without_value(target), make),
    }
}

/// Announces a compare-exchange, and performs it. `make` gets whether the operation has to fail
/// although the atomic holds the expected value.
#[track_caller]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn compare<R>(
    target: Target,
    ty: AtomicType,
    (expected, new): (u64, u64),
    (success, failure): (Ordering, Ordering),
    weak: bool,
    make: impl FnOnce(bool) -> R,
) -> R {
    match failure {
        Ordering::Release => panic!("there is no such thing as a release failure ordering"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release failure ordering"),
        _ => {}
    }
    let expected = ty.truncate(expected);
    let kind = OpKind::CompareExchange {
        success,
        failure,
        expected,
        new: ty.truncate(new),
        spurious: weak && rt::may_fail_for_no_reason(target.address),
    };
    let (answer, applied) = rt::compare(target.address, ty, target.memory, kind);
    let fails = matches!(answer, Answer::Done(Outcome::Failure(found)) if found == expected);
    match applied {
        Applied::Plainly => make(fails),
        Applied::WithCare => rt::apply_with_care(without_value(target), || make(fails)),
    }
}

/// The methods of every atomic. `$to` converts a value to bits.
macro_rules! common {
    ($value:ty, $std:ty, $kind:expr, $to:expr) => {
        #[cfg_attr(not(debug_assertions), inline)]
        pub(crate) fn target(&self) -> crate::rt::Target {
            let bits = $to(self.0.load(Ordering::Relaxed));
            super::cell::target((&raw const self.0).cast(), $kind, bits)
        }

        /// Creates a reference to an atomic from a pointer.
        ///
        /// # Safety
        ///
        /// The same as for std's type of this name: the pointer is aligned and valid for reads and
        /// writes for `'a`, and every access that may race with an access through the result is
        /// atomic.
        pub const unsafe fn from_ptr<'a>(ptr: *mut $value) -> &'a Self {
            // SAFETY: `Self` is a transparent wrapper of std's atomic, which by the caller's
            // promise has the same size and alignment as the pointer's target.
            unsafe { &*ptr.cast() }
        }

        /// Returns a mutable reference to the value.
        ///
        /// The reference is exclusive, so this is not a visible operation. The model checks the
        /// exclusive access as an access to plain memory.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn get_mut(&mut self) -> &mut $value {
            drop(self.access(true));
            self.0.get_mut()
        }

        #[track_caller]
        fn access(&self, write: bool) -> Option<crate::rt::Accessing> {
            crate::rt::access_shim(self.target(), size_of::<Self>(), write)
        }

        /// Consumes the atomic and returns the value.
        #[cfg_attr(not(debug_assertions), inline)]
        pub const fn into_inner(self) -> $value {
            self.0.into_inner()
        }

        /// Returns a pointer to the value.
        ///
        /// Accesses through the pointer are plain memory accesses, which a model does not see.
        #[cfg_attr(not(debug_assertions), inline)]
        pub const fn as_ptr(&self) -> *mut $value {
            self.0.as_ptr()
        }

        /// Reads the value without a visible operation, as in loom.
        ///
        /// A write that is not ordered with this read is a data race.
        ///
        /// # Safety
        ///
        /// No other thread may write the value during the read.
        #[track_caller]
        pub unsafe fn unsync_load(&self) -> $value {
            let _access = self.access(false);
            self.0.load(Ordering::Relaxed)
        }

        /// Calls `f` with a mutable reference to the value, as in loom.
        ///
        /// Any access that is not ordered with this one is a data race.
        #[track_caller]
        pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
            let _access = self.access(true);
            f(self.0.get_mut())
        }

        /// Reads the value.
        ///
        /// # Panics
        ///
        /// Panics if `order` is `Release` or `AcqRel`.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn load(&self, order: Ordering) -> $value {
            super::cell::load(self.target(), $kind, order, || self.0.load(order))
        }

        /// Writes the value.
        ///
        /// # Panics
        ///
        /// Panics if `order` is `Acquire` or `AcqRel`.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn store(&self, value: $value, order: Ordering) {
            let make = |order| self.0.store(value, order);
            super::cell::store(self.target(), $kind, $to(value), order, make);
        }

        /// Writes the value and returns the previous one.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            super::cell::modify(
                self.target(),
                $kind,
                crate::rt::Rmw::Swap,
                $to(value),
                order,
                || self.0.swap(value, order),
            )
        }

        /// Writes `new` if the value is `current`; returns the previous value in either case.
        ///
        /// # Errors
        ///
        /// Returns an error if the value is not `current`. The error is the value that was found.
        ///
        /// # Panics
        ///
        /// Panics if `failure` is `Release` or `AcqRel`.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            let values = ($to(current), $to(new));
            let make = |_| self.0.compare_exchange(current, new, success, failure);
            super::cell::compare(
                self.target(),
                $kind,
                values,
                (success, failure),
                false,
                make,
            )
        }

        /// Same as [`compare_exchange`](Self::compare_exchange), but may fail spuriously.
        ///
        /// A model explores spurious failures if
        /// [`Builder::spurious_failures`](crate::Builder::spurious_failures) asks for them.
        ///
        /// # Errors
        ///
        /// Returns an error if the value is not `current`, or spuriously. The error is the value
        /// that was found.
        ///
        /// # Panics
        ///
        /// Panics if `failure` is `Release` or `AcqRel`.
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            let values = ($to(current), $to(new));
            let make = |fails| match fails {
                false => self.0.compare_exchange(current, new, success, failure),
                true => Err(current),
            };
            super::cell::compare(self.target(), $kind, values, (success, failure), true, make)
        }

        /// Writes `new` if the value is `current`; returns the previous value in either case.
        // Loom's method is not deprecated, and loom's users deny warnings.
        #[cfg_attr(
            not(any(loom, feature = "loom")),
            deprecated(note = "use `compare_exchange` or `compare_exchange_weak` instead")
        )]
        #[track_caller]
        pub fn compare_and_swap(&self, current: $value, new: $value, order: Ordering) -> $value {
            let failure = match order {
                Ordering::Release => Ordering::Relaxed,
                Ordering::AcqRel => Ordering::Acquire,
                order => order,
            };
            match self.compare_exchange(current, new, order, failure) {
                Ok(before) | Err(before) => before,
            }
        }

        /// Replaces the value with the result of `f`.
        ///
        /// Repeats the attempt until no other write comes in between; stops when `f` returns
        /// `None`. Each attempt is a visible load or compare-exchange.
        ///
        /// # Errors
        ///
        /// Returns an error if `f` returns `None`. The error is the value that `f` was called with.
        ///
        /// # Panics
        ///
        /// Panics if `fetch_order` is `Release` or `AcqRel`.
        #[track_caller]
        pub fn fetch_update<F>(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            mut f: F,
        ) -> Result<$value, $value>
        where
            F: FnMut($value) -> Option<$value>,
        {
            let mut before = self.load(fetch_order);
            while let Some(new) = f(before) {
                match self.compare_exchange_weak(before, new, set_order, fetch_order) {
                    Ok(found) => return Ok(found),
                    Err(found) => before = found,
                }
            }
            Err(before)
        }

        /// Same as [`fetch_update`](Self::fetch_update), under its newer name.
        ///
        /// # Errors
        ///
        /// Returns an error if `f` returns `None`. The error is the value that `f` was called with.
        #[track_caller]
        pub fn try_update(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            f: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            self.fetch_update(set_order, fetch_order, f)
        }

        /// Same as [`try_update`](Self::try_update), with an `f` that always returns a value.
        #[track_caller]
        pub fn update(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            mut f: impl FnMut($value) -> $value,
        ) -> $value {
            let mut before = self.load(fetch_order);
            loop {
                let new = f(before);
                match self.compare_exchange_weak(before, new, set_order, fetch_order) {
                    Ok(found) => return found,
                    Err(found) => before = found,
                }
            }
        }
    };
}
pub(super) use common;

/// A `fetch_` method that is one read-modify-write.
macro_rules! fetch {
    ($($name:ident $rmw:ident $what:literal;)* => $value:ty, $kind:expr, $to:expr) => {$(
        #[doc = concat!($what, "; returns the value before.")]
        #[cfg_attr(not(debug_assertions), inline)]
        #[track_caller]
        pub fn $name(&self, value: $value, order: Ordering) -> $value {
            let make = || self.0.$name(value, order);
            super::cell::modify(self.target(), $kind, crate::rt::Rmw::$rmw, $to(value), order, make)
        }
    )*};
}
pub(super) use fetch;
