//! The integer atomics: one macro for all widths.

use std::fmt;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::cell::{common, fetch};
use crate::rt::AtomicType;

macro_rules! integer {
    ($($name:ident $value:ident $kind:ident;)*) => {$(
        #[doc = concat!("Drop-in replacement for `std::sync::atomic::", stringify!($name), "`.")]
        #[repr(transparent)]
        #[derive(Default)]
        pub struct $name(std_atomic::$name);

        impl $name {
            /// Creates an atomic that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(std_atomic::$name::new(value))
            }

            /// Std's atomic, for an operation that was announced already.
            pub(super) fn plain(&self) -> &std_atomic::$name {
                &self.0
            }

            common!($value, std_atomic::$name, AtomicType::$kind, (|value: $value| value as u64));
            fetch! {
                fetch_add Add "Adds, wrapping around";
                fetch_sub Sub "Subtracts, wrapping around";
                fetch_and And "Bitwise and";
                fetch_nand Nand "Bitwise nand";
                fetch_or Or "Bitwise or";
                fetch_xor Xor "Bitwise exclusive or";
                fetch_max Max "Maximum";
                fetch_min Min "Minimum";
                => $value, AtomicType::$kind, (|value: $value| value as u64)
            }
        }

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        /// Prints the value without a visible operation, so that printing does not change the
        /// exploration.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

integer! {
    AtomicI8 i8 I8;
    AtomicI16 i16 I16;
    AtomicI32 i32 I32;
    AtomicI64 i64 I64;
    AtomicIsize isize Isize;
    AtomicU8 u8 U8;
    AtomicU16 u16 U16;
    AtomicU32 u32 U32;
    AtomicU64 u64 U64;
    AtomicUsize usize Usize;
}
