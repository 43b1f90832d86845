//! What is in `std::cell`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`UnsafeCell<T: ?Sized>`" as UnsafeCell<u8> {
            [const new(value: u8) -> This]
            [const into_inner(this: This) -> u8]
            [const from_mut(value: &mut u8) -> &mut This]
            [of_std const get(this: &This) -> *mut u8]
            [of_std const get_mut(this: &mut This) -> &mut u8]
            [const raw_get(this: *const This) -> *mut u8]
            [impl Send] [impl Default] [impl From<u8>] [impl Debug]
        } "accesses through the pointer from `get` are not watched; those by `with`, `with_mut`, `read` and `write` are";
        modelled "`Cell<T: ?Sized>`" as Cell<u8> {
            [const new(value: u8) -> This]
            [set: fn(&This, u8)]
            [swap: fn(&This, &This)]
            [replace: fn(&This, u8) -> u8]
            [const into_inner(this: This) -> u8]
            [get: fn(&This) -> u8]
            [update = |cell: &This| cell.update(|value| value)]
            [const as_ptr(this: &This) -> *mut u8]
            [const get_mut(this: &mut This) -> &mut u8]
            [const from_mut(value: &mut u8) -> &This]
            [take: fn(&This) -> u8]
            [impl Send] [impl Clone] [impl Default] [impl From<u8>] [impl Debug]
            [impl PartialEq] [impl Eq] [impl PartialOrd] [impl Ord]
        };
        modelled "`Cell<[T]>`" as Cell<[u8]> {
            [const as_slice_of_cells(this: &This) -> &[Cell<u8>]]
            [since "1.95" impl AsRef<[Cell<u8>]>]
        };
        modelled "`Cell<[T; N]>`" as Cell<[u8; 2]> {
            [const as_array_of_cells(this: &This) -> &[Cell<u8>; 2]]
            [since "1.95" impl AsRef<[Cell<u8>]>]
            [since "1.95" impl AsRef<[Cell<u8>; 2]>]
        };
        reexported "`RefCell<T>`" as RefCell<u8> {
            [const new(value: u8) -> This]
            [borrow: fn(&This) -> Ref<'_, u8>]
            [try_borrow: fn(&This) -> Result<Ref<'_, u8>, BorrowError>]
            [borrow_mut: fn(&This) -> RefMut<'_, u8>]
            [try_borrow_mut: fn(&This) -> Result<RefMut<'_, u8>, BorrowMutError>]
        } "and all other methods: this type and those below are std's own, because threads do not share a `RefCell`";
        reexported "`Ref<'_, T>`" as Ref<'static, u8> { [impl Display] };
        reexported "`RefMut<'_, T>`" as RefMut<'static, u8> { [impl Display] };
        reexported "`BorrowError`" as BorrowError { [impl Error] };
        reexported "`BorrowMutError`" as BorrowMutError { [impl Error] };
        reexported "`OnceCell<T>`" as OnceCell<u8> { [const new() -> This] };
        reexported "`LazyCell<T, F>`" as LazyCell<u8> { [const new(make: fn() -> u8) -> This] };
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::error::Error;
            use std::fmt::{Debug, Display};

            use ::$side::cell::*;

            #[test]
            fn $test() {
                rows!(check $side;);
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);
