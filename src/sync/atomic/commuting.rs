//! A number with updates that commute, because they return nothing.

use std::fmt;
use std::sync::atomic::Ordering;

use crate::rt::{self, Applied, AtomicType, Rmw, Target};

/// A number that threads update without a look at it: a counter, a set of flags, a maximum.
///
/// An operation that returns nothing cannot tell which of several came first. So the updates of one
/// group commute, and n threads that add to a number have one execution and not n!:
///
/// | group | |
/// |---|---|
/// | [`add`](Commuting::add), [`sub`](Commuting::sub) | wrapping around |
/// | [`or`](Commuting::or) | |
/// | [`and`](Commuting::and) | |
/// | [`xor`](Commuting::xor) | |
/// | [`max`](Commuting::max) | |
/// | [`min`](Commuting::min) | |
///
/// Updates of two groups are explored in both orders, and so are an update and a
/// [`load`](Commuting::load), [`store`](Commuting::store) or [`swap`](Commuting::swap).
///
/// An update is a read-modify-write with the ordering `Release`: what its thread did before is
/// known to a thread that finds it by an `Acquire` load. It never acquires, not even by a fence
/// behind it. A thread that needs the value, as one that drops the last reference does, needs
/// another type.
/// Under C11 ([`Memory`](crate::Memory)) an update is explored like any other read-modify-write: in
/// every order.
///
/// Outside of a model this is std's atomic.
///
/// ```
/// use dpor::sync::atomic::{Commuting, Ordering::SeqCst};
///
/// let report = dpor::Builder::new().check(|| {
///     let hits = Commuting::new(0_u32);
///     dpor::thread::scope(|s| {
///         for _ in 0..4 {
///             s.spawn(|| hits.add(1));
///         }
///     });
///     assert_eq!(hits.load(SeqCst), 4);
/// });
/// assert_eq!(report.executions, 1);
/// ```
#[repr(transparent)]
#[derive(Default)]
pub struct Commuting<T: Number>(T::Atomic);

/// A type of numbers that a [`Commuting`] may hold: the integers that have an atomic.
pub trait Number: sealed::Sealed {}

mod sealed {
    use super::{AtomicType, Ordering, Rmw};

    #[allow(private_interfaces, reason = "no other crate can name the trait")]
    pub trait Sealed: Copy {
        /// The drop-in replacement of std's atomic, which has the same memory as a `Commuting`.
        type Atomic: Default;
        const KIND: AtomicType;
        fn atomic(value: Self) -> Self::Atomic;
        fn bits(self) -> u64;
        fn peek(atomic: &Self::Atomic) -> u64;
        #[track_caller]
        fn load(atomic: &Self::Atomic, order: Ordering) -> Self;
        #[track_caller]
        fn store(atomic: &Self::Atomic, value: Self, order: Ordering);
        #[track_caller]
        fn swap(atomic: &Self::Atomic, value: Self, order: Ordering) -> Self;
        fn apply(atomic: &Self::Atomic, rmw: Rmw, value: Self);
        fn into_inner(atomic: Self::Atomic) -> Self;
    }
}

macro_rules! numbers {
    ($($value:ident $atomic:ident $kind:ident;)*) => {$(
        impl Number for $value {}

        #[allow(private_interfaces, reason = "no other crate can name the trait")]
        impl sealed::Sealed for $value {
            type Atomic = super::$atomic;
            const KIND: AtomicType = AtomicType::$kind;

            fn atomic(value: $value) -> super::$atomic {
                super::$atomic::new(value)
            }

            fn bits(self) -> u64 {
                self as u64
            }

            fn peek(atomic: &super::$atomic) -> u64 {
                atomic.plain().load(Ordering::Relaxed) as u64
            }

            #[track_caller]
            fn load(atomic: &super::$atomic, order: Ordering) -> $value {
                atomic.load(order)
            }

            #[track_caller]
            fn store(atomic: &super::$atomic, value: $value, order: Ordering) {
                atomic.store(value, order);
            }

            #[track_caller]
            fn swap(atomic: &super::$atomic, value: $value, order: Ordering) -> $value {
                atomic.swap(value, order)
            }

            fn apply(atomic: &super::$atomic, rmw: Rmw, value: $value) {
                let (atomic, order) = (atomic.plain(), Ordering::Release);
                match rmw {
                    Rmw::Add => atomic.fetch_add(value, order),
                    Rmw::Sub => atomic.fetch_sub(value, order),
                    Rmw::And => atomic.fetch_and(value, order),
                    Rmw::Or => atomic.fetch_or(value, order),
                    Rmw::Xor => atomic.fetch_xor(value, order),
                    Rmw::Max | Rmw::MaxSigned => atomic.fetch_max(value, order),
                    Rmw::Min | Rmw::MinSigned => atomic.fetch_min(value, order),
                    Rmw::Swap | Rmw::Nand | Rmw::NandBool => {
                        unreachable!("dpor bug: {rmw:?} does not commute")
                    }
                };
            }

            fn into_inner(atomic: super::$atomic) -> $value {
                atomic.into_inner()
            }
        }
    )*};
}

numbers! {
    i8 AtomicI8 I8;
    i16 AtomicI16 I16;
    i32 AtomicI32 I32;
    i64 AtomicI64 I64;
    isize AtomicIsize Isize;
    u8 AtomicU8 U8;
    u16 AtomicU16 U16;
    u32 AtomicU32 U32;
    u64 AtomicU64 U64;
    usize AtomicUsize Usize;
}

macro_rules! updates {
    ($($name:ident $rmw:ident $what:literal;)*) => {$(
        #[doc = concat!($what, ".")]
        #[track_caller]
        pub fn $name(&self, value: T) {
            self.update(Rmw::$rmw, value);
        }
    )*};
}

impl<T: Number> Commuting<T> {
    /// Creates a number.
    pub fn new(value: T) -> Commuting<T> {
        Commuting(T::atomic(value))
    }

    updates! {
        add Add "Adds, wrapping around";
        sub Sub "Subtracts, wrapping around";
        or Or "Bitwise or";
        and And "Bitwise and";
        xor Xor "Bitwise exclusive or";
        max Max "Keeps the larger of the value and this one";
        min Min "Keeps the smaller of the value and this one";
    }

    /// Returns the value.
    ///
    /// # Panics
    ///
    /// Panics if `order` is `Release` or `AcqRel`.
    #[track_caller]
    pub fn load(&self, order: Ordering) -> T {
        T::load(&self.0, order)
    }

    /// Writes the value.
    ///
    /// # Panics
    ///
    /// Panics if `order` is `Acquire` or `AcqRel`.
    #[track_caller]
    pub fn store(&self, value: T, order: Ordering) {
        T::store(&self.0, value, order);
    }

    /// Writes the value; returns the one before.
    #[track_caller]
    pub fn swap(&self, value: T, order: Ordering) -> T {
        T::swap(&self.0, value, order)
    }

    /// Consumes the number and returns the value.
    pub fn into_inner(self) -> T {
        T::into_inner(self.0)
    }

    pub(crate) fn target(&self) -> Target {
        let memory = T::KIND.truncate(T::peek(&self.0));
        Target::atomic((&raw const self.0).addr(), T::KIND, memory)
    }

    #[track_caller]
    fn update(&self, rmw: Rmw, value: T) {
        let (ty, target) = (T::KIND, self.target());
        let make = || T::apply(&self.0, rmw, value);
        match rt::update(target, (rmw.on(ty), ty.truncate(value.bits()))) {
            Applied::Plainly => make(),
            Applied::WithCare => rt::apply_with_care(target, make),
        }
    }
}

/// Prints the value without a visible operation.
impl<T: Number> fmt::Debug for Commuting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = T::KIND.widen(T::KIND.truncate(T::peek(&self.0)));
        f.debug_tuple("Commuting").field(&bits).finish()
    }
}
