//! Which types can an `Arc` be made from?

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use super::{Arc, block};

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Arc<T> {
        Arc::new(value)
    }
}

impl<T: ?Sized> From<Box<T>> for Arc<T> {
    /// Moves the value out of its box. An `Arc<dyn Trait>` is made in this way.
    #[track_caller]
    fn from(boxed: Box<T>) -> Arc<T> {
        let from = Box::into_raw(boxed);
        // SAFETY: the value is moved, and the box is freed as a box of a `ManuallyDrop`, which has
        // the same layout and drops nothing.
        unsafe {
            let value = block::adopt(from);
            drop(Box::from_raw(from as *mut ManuallyDrop<T>));
            Arc::own(value)
        }
    }
}

/// Conversions from types that convert to a box.
macro_rules! through_a_box {
    ($([$($generic:tt)*] $from:ty => $to:ty;)*) => {$(
        impl<$($generic)*> From<$from> for Arc<$to> {
            #[track_caller]
            fn from(value: $from) -> Arc<$to> {
                Arc::from(Box::<$to>::from(value))
            }
        }
    )*};
}
through_a_box! {
    [T: Clone] &[T] => [T];
    [T] Vec<T> => [T];
    [T, const N: usize] [T; N] => [T];
    [] &str => str;
    [] String => str;
    [] &CStr => CStr;
    [] CString => CStr;
    [] &OsStr => OsStr;
    [] OsString => OsStr;
    [] &Path => Path;
    [] PathBuf => Path;
}

/// Conversions from a mutable reference, through a shared one.
macro_rules! through_a_shared_reference {
    ($([$($generic:tt)*] $ty:ty;)*) => {$(
        impl<$($generic)*> From<&mut $ty> for Arc<$ty> {
            #[track_caller]
            fn from(value: &mut $ty) -> Arc<$ty> {
                Arc::from(&*value)
            }
        }
    )*};
}
through_a_shared_reference! {
    [T: Clone] [T];
    [] str;
    [] CStr;
    [] OsStr;
    [] Path;
}

impl<'a, B> From<Cow<'a, B>> for Arc<B>
where
    B: ?Sized + ToOwned,
    Arc<B>: From<&'a B> + From<B::Owned>,
{
    #[track_caller]
    fn from(value: Cow<'a, B>) -> Arc<B> {
        match value {
            Cow::Borrowed(value) => Arc::from(value),
            Cow::Owned(value) => Arc::from(value),
        }
    }
}

impl From<Arc<str>> for Arc<[u8]> {
    /// Converts to a reference to the bytes of the string.
    fn from(text: Arc<str>) -> Arc<[u8]> {
        let bytes = Arc::into_raw(text) as *const [u8];
        // SAFETY: a string has the layout of its bytes, and the reference goes over to the result.
        unsafe { Arc::from_raw(bytes) }
    }
}

impl<T, const N: usize> TryFrom<Arc<[T]>> for Arc<[T; N]> {
    type Error = Arc<[T]>;

    /// Converts to a reference to an array, if the slice has the array's length.
    fn try_from(slice: Arc<[T]>) -> Result<Arc<[T; N]>, Arc<[T]>> {
        if slice.len() == N {
            // SAFETY: `N` elements in a row have the layout of an array, and the reference goes
            // over to the result.
            Ok(unsafe { Arc::from_raw(Arc::into_raw(slice).cast()) })
        } else {
            Err(slice)
        }
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Arc<[T]> {
        Arc::from(Vec::from_iter(elements))
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Arc<T> {
        Arc::new(T::default())
    }
}

impl<T> Default for Arc<[T]> {
    /// Creates an empty slice.
    #[track_caller]
    fn default() -> Arc<[T]> {
        Arc::from([])
    }
}

impl Default for Arc<str> {
    /// Creates an empty string.
    #[track_caller]
    fn default() -> Arc<str> {
        Arc::from("")
    }
}

impl Default for Arc<CStr> {
    /// Creates an empty string.
    #[track_caller]
    fn default() -> Arc<CStr> {
        Arc::from(c"")
    }
}

impl<T: ?Sized> Default for Pin<Arc<T>>
where
    Arc<T>: Default,
{
    #[track_caller]
    fn default() -> Pin<Arc<T>> {
        // SAFETY: the value is in a block of its own from which it is never moved.
        unsafe { Pin::new_unchecked(Arc::default()) }
    }
}
