//! What is in `std::thread`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "functions" {
            [fn spawn: fn(fn() -> u8) -> JoinHandle<u8>]
            [fn scope: fn(for<'scope> fn(&'scope Scope<'scope, 'static>) -> u8) -> u8]
            [fn current: fn() -> Thread]
            [fn park: fn()]
            [fn park_timeout: fn(Duration)]
            [fn park_timeout_ms: fn(u32)]
            [fn panicking: fn() -> bool]
            [fn yield_now: fn()]
            [fn sleep: fn(Duration)]
            [fn sleep_ms: fn(u32)]
        } "in a model, a sleep is a `yield_now`, and the clock goes forward";
        reexported "functions of the machine" {
            [fn available_parallelism: fn() -> std::io::Result<NonZero<usize>>]
        } "std's own function; it returns the same value in every execution";
        modelled "`JoinHandle<T>`" as JoinHandle<u8> {
            [thread: fn(&This) -> &Thread]
            [join: fn(This) -> Result<u8>]
            [is_finished: fn(&This) -> bool]
            [impl Send] [impl Sync] [impl Debug]
        };
        modelled "`Thread`" as Thread {
            [unpark: fn(&This)]
            [id: fn(&This) -> ThreadId]
            [name: fn(&This) -> Option<&str>]
            [impl Send] [impl Sync] [impl Clone] [impl Debug]
        };
        modelled "`ThreadId`" as ThreadId {
            [impl Send] [impl Sync] [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Hash] [impl Debug]
        };
        modelled "`Builder`" as Builder {
            [new: fn() -> This]
            [name: fn(This, String) -> This]
            [stack_size: fn(This, usize) -> This]
            [spawn: fn(This, fn() -> u8) -> std::io::Result<JoinHandle<u8>>]
            [spawn_unchecked: unsafe fn(This, fn() -> u8) -> std::io::Result<JoinHandle<u8>>]
            [spawn_scoped: fn(This, &'static Scope<'static, 'static>, fn() -> u8) -> std::io::Result<ScopedJoinHandle<'static, u8>>]
            [impl Debug]
        } "in a model, no stack is smaller than `dpor::Builder::stack_size`";
        modelled "`Scope<'scope, 'env>`" as Scope<'static, 'static> {
            [spawn: fn(&'static This, fn() -> u8) -> ScopedJoinHandle<'static, u8>]
            [impl Send] [impl Sync] [impl Debug]
        };
        modelled "`ScopedJoinHandle<'scope, T>`" as ScopedJoinHandle<'static, u8> {
            [thread: fn(&This) -> &Thread]
            [join: fn(This) -> Result<u8>]
            [is_finished: fn(&This) -> bool]
            [impl Send] [impl Sync] [impl Debug]
        };
        modelled "`LocalKey<T>`" as LocalKey<u8> {
            [with: fn(&'static This, fn(&u8) -> u8) -> u8]
            [try_with: fn(&'static This, fn(&u8) -> u8) -> std::result::Result<u8, AccessError>]
            [impl Debug]
        };
        modelled "`LocalKey<Cell<T>>`" as LocalKey<Cell<u8>> {
            [set: fn(&'static This, u8)]
            [get: fn(&'static This) -> u8]
            [take: fn(&'static This) -> u8]
            [replace: fn(&'static This, u8) -> u8]
        } "for std's `Cell` and for `dpor::cell::Cell`";
        modelled "`LocalKey<RefCell<T>>`" as LocalKey<RefCell<u8>> {
            [with_borrow: fn(&'static This, fn(&u8) -> u8) -> u8]
            [with_borrow_mut: fn(&'static This, fn(&mut u8) -> u8) -> u8]
            [set: fn(&'static This, u8)]
            [take: fn(&'static This) -> u8]
            [replace: fn(&'static This, u8) -> u8]
        };
        modelled "`AccessError`" as AccessError {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Debug] [impl Display] [impl Error]
        };
        reexported "`Result<T>`" as Result<u8> { [is_ok: fn(&This) -> bool] };
        modelled "`thread_local!`" { [thread_local = {
            thread_local! {
                /// With an attribute, and public.
                pub static A: Cell<u8> = const { Cell::new(0) };
                static B: RefCell<Vec<u8>> = RefCell::new(vec![1]);
            }
            (A.get(), B.take())
        }] } "values are dropped in std's order";
        refused "`JoinHandleExt` of `std::os`; on Windows `AsHandle`, `AsRawHandle`, `IntoRawHandle` and `From<JoinHandle<T>> for OwnedHandle`" {}
            "a modelled thread has no handle of the operating system";
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::cell::{Cell, RefCell};
            use std::error::Error;
            use std::fmt::{Debug, Display};
            use std::hash::Hash;
            use std::num::NonZero;
            use std::time::Duration;

            use ::$side::thread::*;
            use ::$side::thread_local;

            #[test]
            #[allow(deprecated)]
            fn $test() {
                rows!(check $side;);
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);

/// Whether a type has a trait: its own constant comes before that of a trait, where it has one.
macro_rules! has {
    ($trait:ident, $ty:ty) => {{
        struct Probe<T>(::std::marker::PhantomData<T>);
        #[allow(dead_code)]
        trait Not {
            const HAS: bool = false;
        }
        impl<T> Not for Probe<T> {}
        #[allow(dead_code)]
        impl<T: $trait> Probe<T> {
            const HAS: bool = true;
        }
        <Probe<$ty>>::HAS
    }};
}

#[test]
fn a_scoped_handle_is_sent_and_shared_where_std_s_is() {
    use ::std::cell::Cell;
    use ::std::rc::Rc;
    macro_rules! of {
        ($thread:ident, $($result:ty),*) => {
            [$((
                has!(Send, ::$thread::thread::ScopedJoinHandle<'static, $result>),
                has!(Sync, ::$thread::thread::ScopedJoinHandle<'static, $result>),
            )),*]
        };
    }
    let ours = of!(dpor, u8, Cell<u8>, *const u8, Rc<u8>);
    let std = of!(std, u8, Cell<u8>, *const u8, Rc<u8>);
    assert_eq!(ours, std);
    assert_eq!(
        std,
        [(true, true), (true, true), (false, false), (false, false)]
    );
}
