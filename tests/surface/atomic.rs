//! What is in `std::sync::atomic`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`AtomicBool`" as AtomicBool {
            [const new(value: bool) -> This]
            [const unsafe from_ptr(value: *mut bool) -> &'static This]
            [const into_inner(this: This) -> bool]
            [const as_ptr(this: &This) -> *mut bool]
            [get_mut: fn(&mut This) -> &mut bool]
            [load: fn(&This, Ordering) -> bool]
            [store: fn(&This, bool, Ordering)]
            [swap: fn(&This, bool, Ordering) -> bool]
            [compare_and_swap: fn(&This, bool, bool, Ordering) -> bool]
            [compare_exchange: fn(&This, bool, bool, Ordering, Ordering) -> Result<bool, bool>]
            [compare_exchange_weak: fn(&This, bool, bool, Ordering, Ordering) -> Result<bool, bool>]
            [fetch_and: fn(&This, bool, Ordering) -> bool]
            [fetch_nand: fn(&This, bool, Ordering) -> bool]
            [fetch_or: fn(&This, bool, Ordering) -> bool]
            [fetch_xor: fn(&This, bool, Ordering) -> bool]
            [fetch_not: fn(&This, Ordering) -> bool]
            [fetch_update: fn(&This, Ordering, Ordering, fn(bool) -> Option<bool>) -> Result<bool, bool>]
            [since "1.95" try_update = |x: &This| x.try_update(SeqCst, SeqCst, Some)]
            [since "1.95" update = |x: &This| x.update(SeqCst, SeqCst, |v| v)]
            [impl Send] [impl Sync] [impl Unpin] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Default] [impl From<bool>] [impl Debug]
        };
        modelled "`AtomicPtr<T>`" as AtomicPtr<u8> {
            [const new(value: *mut u8) -> This]
            [const unsafe from_ptr(value: *mut *mut u8) -> &'static This]
            [const into_inner(this: This) -> *mut u8]
            [const as_ptr(this: &This) -> *mut *mut u8]
            [get_mut: fn(&mut This) -> &mut *mut u8]
            [load: fn(&This, Ordering) -> *mut u8]
            [store: fn(&This, *mut u8, Ordering)]
            [swap: fn(&This, *mut u8, Ordering) -> *mut u8]
            [compare_and_swap: fn(&This, *mut u8, *mut u8, Ordering) -> *mut u8]
            [compare_exchange: fn(&This, *mut u8, *mut u8, Ordering, Ordering) -> Result<*mut u8, *mut u8>]
            [compare_exchange_weak: fn(&This, *mut u8, *mut u8, Ordering, Ordering) -> Result<*mut u8, *mut u8>]
            [fetch_update: fn(&This, Ordering, Ordering, fn(*mut u8) -> Option<*mut u8>) -> Result<*mut u8, *mut u8>]
            [fetch_ptr_add: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_ptr_sub: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_byte_add: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_byte_sub: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_or: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_and: fn(&This, usize, Ordering) -> *mut u8]
            [fetch_xor: fn(&This, usize, Ordering) -> *mut u8]
            [since "1.95" try_update = |x: &This| x.try_update(SeqCst, SeqCst, Some)]
            [since "1.95" update = |x: &This| x.update(SeqCst, SeqCst, |v| v)]
            [impl Send] [impl Sync] [impl Unpin] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Default] [impl From<*mut u8>] [impl Debug] [impl Pointer]
        };
        modelled "functions" {
            [fn fence: fn(Ordering)]
            [fn spin_loop_hint: fn()]
        } "`spin_loop_hint` is deprecated";
        reexported "functions of the compiler" { [fn compiler_fence: fn(Ordering)] }
            "a compiler fence orders nothing between threads";
        reexported "`Ordering`" as Ordering {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Hash] [impl Debug]
        };
        modelled "constants" {
            [ATOMIC_BOOL_INIT = ATOMIC_BOOL_INIT]
            [ATOMIC_ISIZE_INIT = ATOMIC_ISIZE_INIT]
            [ATOMIC_USIZE_INIT = ATOMIC_USIZE_INIT]
        } "deprecated";
    }};
}

/// The rows of an integer.
macro_rules! integer {
    ($name:literal $atomic:ident $value:ident; $to:ident $($side:tt)*) => { $to! { $($side)*
        modelled $name as $atomic {
            [const new(value: $value) -> This]
            [const unsafe from_ptr(value: *mut $value) -> &'static This]
            [const into_inner(this: This) -> $value]
            [const as_ptr(this: &This) -> *mut $value]
            [get_mut: fn(&mut This) -> &mut $value]
            [load: fn(&This, Ordering) -> $value]
            [store: fn(&This, $value, Ordering)]
            [swap: fn(&This, $value, Ordering) -> $value]
            [compare_and_swap: fn(&This, $value, $value, Ordering) -> $value]
            [compare_exchange: fn(&This, $value, $value, Ordering, Ordering) -> Result<$value, $value>]
            [compare_exchange_weak: fn(&This, $value, $value, Ordering, Ordering) -> Result<$value, $value>]
            [fetch_add: fn(&This, $value, Ordering) -> $value]
            [fetch_sub: fn(&This, $value, Ordering) -> $value]
            [fetch_and: fn(&This, $value, Ordering) -> $value]
            [fetch_nand: fn(&This, $value, Ordering) -> $value]
            [fetch_or: fn(&This, $value, Ordering) -> $value]
            [fetch_xor: fn(&This, $value, Ordering) -> $value]
            [fetch_max: fn(&This, $value, Ordering) -> $value]
            [fetch_min: fn(&This, $value, Ordering) -> $value]
            [fetch_update: fn(&This, Ordering, Ordering, fn($value) -> Option<$value>) -> Result<$value, $value>]
            [since "1.95" try_update = |x: &This| x.try_update(SeqCst, SeqCst, Some)]
            [since "1.95" update = |x: &This| x.update(SeqCst, SeqCst, |v| v)]
            [impl Send] [impl Sync] [impl Unpin] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Default] [impl From<$value>] [impl Debug]
        };
    }};
}

pub fn items() -> Vec<Item> {
    let mut items: Vec<Item> = integer! {
        "`AtomicI8`, `AtomicI16`, `AtomicI32`, `AtomicI64`, `AtomicIsize`, `AtomicU8`, `AtomicU16`, `AtomicU32`, `AtomicU64`, `AtomicUsize`"
        AtomicUsize usize; list
    };
    items.extend(rows!(list));
    items
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::fmt::{Debug, Pointer};
            use std::hash::Hash;
            use std::panic::{RefUnwindSafe, UnwindSafe};

            #[allow(unused_imports, reason = "the orderings are for what is newer than our compiler")]
            use ::$side::sync::atomic::{*, Ordering::SeqCst};

            #[test]
            #[allow(deprecated)]
            fn $test() {
                rows!(check $side;);
                integer!("i8" AtomicI8 i8; check $side;);
                integer!("i16" AtomicI16 i16; check $side;);
                integer!("i32" AtomicI32 i32; check $side;);
                integer!("i64" AtomicI64 i64; check $side;);
                integer!("isize" AtomicIsize isize; check $side;);
                integer!("u8" AtomicU8 u8; check $side;);
                integer!("u16" AtomicU16 u16; check $side;);
                integer!("u32" AtomicU32 u32; check $side;);
                integer!("u64" AtomicU64 u64; check $side;);
                integer!("usize" AtomicUsize usize; check $side;);
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);
