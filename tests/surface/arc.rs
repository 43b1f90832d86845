//! What do `std::sync::Arc` and `Weak` offer?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`Arc<T>`" as Arc<u8> {
            [new: fn(u8) -> This]
            [new_cyclic: fn(fn(&Weak<u8>) -> u8) -> This]
            [new_uninit: fn() -> Arc<MaybeUninit<u8>>]
            [new_zeroed: fn() -> Arc<MaybeUninit<u8>>]
            [pin: fn(u8) -> Pin<This>]
            [try_unwrap: fn(This) -> Result<u8, This>]
            [into_inner: fn(This) -> Option<u8>]
            [unwrap_or_clone: fn(This) -> u8]
            [impl From<u8>] [impl Default]
        };
        modelled "`Arc<MaybeUninit<T>>`" as Arc<MaybeUninit<u8>> {
            [assume_init: unsafe fn(This) -> Arc<u8>]
        };
        modelled "`Arc<T: ?Sized>`" as Arc<str> {
            [from_raw: unsafe fn(*const str) -> This]
            [into_raw: fn(This) -> *const str]
            [as_ptr: fn(&This) -> *const str]
            [increment_strong_count: unsafe fn(*const str)]
            [decrement_strong_count: unsafe fn(*const str)]
            [downgrade: fn(&This) -> Weak<str>]
            [weak_count: fn(&This) -> usize]
            [strong_count: fn(&This) -> usize]
            [ptr_eq: fn(&This, &This) -> bool]
            [make_mut: fn(&mut This) -> &mut str]
            [get_mut: fn(&mut This) -> Option<&mut str>]
            [impl Send] [impl Sync] [impl Unpin] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Clone] [impl Deref<Target = str>] [impl AsRef<str>] [impl Borrow<str>]
            [impl PartialEq] [impl Eq] [impl PartialOrd] [impl Ord] [impl Hash]
            [impl Debug] [impl Display] [impl Pointer]
        };
        modelled "`Arc<[T]>`" as Arc<[u8]> {
            [new_uninit_slice: fn(usize) -> Arc<[MaybeUninit<u8>]>]
            [new_zeroed_slice: fn(usize) -> Arc<[MaybeUninit<u8>]>]
            [make_mut: fn(&mut This) -> &mut [u8]]
            [impl From<&'static [u8]>] [impl From<&'static mut [u8]>] [impl From<[u8; 2]>]
            [impl From<Vec<u8>>] [impl From<Box<[u8]>>] [impl From<Cow<'static, [u8]>>]
            [impl From<Arc<str>>] [impl FromIterator<u8>] [impl Default]
        };
        modelled "`Arc<[MaybeUninit<T>]>`" as Arc<[MaybeUninit<u8>]> {
            [assume_init: unsafe fn(This) -> Arc<[u8]>]
        };
        modelled "`Arc<[T; N]>`" as Arc<[u8; 2]> { [impl TryFrom<Arc<[u8]>, Error = Arc<[u8]>>] };
        modelled "`Arc<str>`" as Arc<str> {
            [impl From<&'static str>] [impl From<&'static mut str>] [impl From<String>]
            [impl From<Box<str>>] [impl From<Cow<'static, str>>] [impl Default]
        };
        modelled "`Arc<CStr>`" as Arc<CStr> {
            [impl From<&'static CStr>] [impl From<&'static mut CStr>] [impl From<CString>] [impl Default]
        };
        modelled "`Arc<OsStr>`" as Arc<OsStr> {
            [impl From<&'static OsStr>] [impl From<&'static mut OsStr>] [impl From<OsString>]
        };
        modelled "`Arc<Path>`" as Arc<Path> {
            [impl From<&'static Path>] [impl From<&'static mut Path>] [impl From<PathBuf>]
        };
        modelled "`Arc<dyn Trait>`" as Arc<dyn Send> { [impl From<Box<dyn Send>>] }
            "there is no coercion from `Arc<T>`; see the last table";
        modelled "`Arc<dyn Any + Send + Sync>`" as Arc<dyn Any + Send + Sync> {
            [downcast: fn(This) -> Result<Arc<u8>, This>]
        };
        modelled "`Pin<Arc<T>>`" as Pin<Arc<u8>> { [impl Default] };
        modelled "`Arc<T: Error>`" as Arc<std::fmt::Error> { [impl Error] };
        modelled "`Arc<File>`" as Arc<File> { [impl Read] [impl Write] [impl Seek] [on "linux" impl AsFd] [on "linux" impl AsRawFd] };
        refused "`AsHandle` and `AsSocket` of `Arc<T>` on Windows" {}
            "`arc.as_handle()` is that of the `T`; where a bound asks for the trait, pass `&*arc`";
        modelled "`Weak<T>`" as Weak<u8> { [const new() -> This] [impl Default] };
        modelled "`Weak<T: ?Sized>`" as Weak<str> {
            [upgrade: fn(&This) -> Option<Arc<str>>]
            [strong_count: fn(&This) -> usize]
            [weak_count: fn(&This) -> usize]
            [ptr_eq: fn(&This, &This) -> bool]
            [impl Send] [impl Sync] [impl Unpin] [impl UnwindSafe] [impl Clone] [impl Debug]
        };
        modelled "`Weak<T>`, sized" as Weak<u8> {
            [from_raw: unsafe fn(*const u8) -> This]
            [into_raw: fn(This) -> *const u8]
            [as_ptr: fn(&This) -> *const u8]
        };
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::any::Any;
            use std::borrow::{Borrow, Cow};
            use std::error::Error;
            use std::ffi::{CStr, CString, OsStr, OsString};
            use std::fmt::{Debug, Display, Pointer};
            use std::fs::File;
            use std::hash::Hash;
            use std::io::{Read, Seek, Write};
            use std::mem::MaybeUninit;
            use std::ops::Deref;
            #[cfg(target_os = "linux")]
            use std::os::fd::{AsFd, AsRawFd};
            use std::panic::{RefUnwindSafe, UnwindSafe};
            use std::path::{Path, PathBuf};
            use std::pin::Pin;

            use ::$side::sync::{Arc, Weak};

            #[test]
            fn $test() {
                rows!(check $side;);
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);
