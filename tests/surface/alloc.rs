//! What is in `std::hint` and `std::alloc`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`hint`" { [fn spin_loop: fn()] };
        reexported "`hint`, the rest" {
            [fn black_box: fn(u8) -> u8]
            [fn assert_unchecked: unsafe fn(bool)]
            [fn unreachable_unchecked: unsafe fn() -> !]
            [fn select_unpredictable: fn(bool, u8, u8) -> u8]
            [since "1.95" fn cold_path: fn()]
        };
        reexported "`alloc`" {
            [fn alloc: unsafe fn(Layout) -> *mut u8]
            [fn alloc_zeroed: unsafe fn(Layout) -> *mut u8]
            [fn dealloc: unsafe fn(*mut u8, Layout)]
            [fn realloc: unsafe fn(*mut u8, Layout, usize) -> *mut u8]
            [fn handle_alloc_error: fn(Layout) -> !]
        } "blocks get their stable names from the global allocator; see `dpor::alloc`";
        reexported "`alloc::Layout`" as Layout { [impl Copy] };
        reexported "`alloc::LayoutError`" as LayoutError { [impl Error] };
        reexported "`alloc::LayoutErr`" as LayoutErr { [impl Error] } "deprecated";
        reexported "`alloc::System`" as System { [impl GlobalAlloc] };
        reexported "`alloc::GlobalAlloc`" as dyn GlobalAlloc { [impl GlobalAlloc] };
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::error::Error;

            use ::$side::alloc::*;
            use ::$side::hint::*;

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
