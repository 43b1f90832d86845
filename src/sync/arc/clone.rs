//! Which values can `Arc::make_mut` clone? Those that std's can: values that are `Clone`, and
//! unsized values with contents that are.

use std::ffi::{CStr, OsStr};
use std::path::Path;

use super::Arc;

/// A value that can be cloned into a block of its own.
pub(super) trait CloneToArc {
    #[track_caller]
    fn clone_to_arc(&self) -> Arc<Self>;
}

impl<T: Clone> CloneToArc for T {
    #[track_caller]
    fn clone_to_arc(&self) -> Arc<T> {
        Arc::new(self.clone())
    }
}

impl<T: Clone> CloneToArc for [T] {
    #[track_caller]
    fn clone_to_arc(&self) -> Arc<[T]> {
        Arc::from(self)
    }
}

macro_rules! like_strings {
    ($($ty:ty)*) => {$(
        impl CloneToArc for $ty {
            #[track_caller]
            fn clone_to_arc(&self) -> Arc<$ty> {
                Arc::from(self)
            }
        }
    )*};
}
like_strings!(str CStr OsStr Path);
