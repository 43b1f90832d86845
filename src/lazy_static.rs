//! How are statics declared whose values are made when they are first used?
//!
//! By [`lazy_static!`](crate::lazy_static!), which takes what the crate `lazy_static` and loom take. The
//! other names here are those of `loom::lazy_static`.

use std::fmt;
use std::ops::Deref;

pub use crate::thread::{AccessError, panicking, yield_now};

use crate::sync::LazyLock;

/// A value that is made when it is first asked for, as `loom::lazy_static::Lazy`. It is what
/// [`LazyLock`] is, with loom's way to get at it. In a `static` the value is made anew in every
/// execution.
pub struct Lazy<T: 'static>(LazyLock<T>);

impl<T: 'static> Lazy<T> {
    /// A value that `init` makes. Loom has public fields instead.
    pub const fn new(init: fn() -> T) -> Lazy<T> {
        Lazy(LazyLock::new(init))
    }

    /// The value, which is made if it is not there. Waits for a thread that is at it.
    ///
    /// # Panics
    ///
    /// If making the value has panicked before.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        LazyLock::force(&self.0)
    }
}

impl<T: 'static> Deref for Lazy<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(&self.0)
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Declares statics whose values are made when they are first used, as the crate `lazy_static` and
/// loom do; in a model they are made anew in every execution.
///
/// ```
/// use dpor::sync::Mutex;
///
/// dpor::lazy_static! {
///     /// What was seen.
///     static ref SEEN: Mutex<Vec<u32>> = Mutex::new(vec![1]);
/// }
///
/// dpor::model(|| {
///     SEEN.lock().unwrap().push(2);
///     assert_eq!(*SEEN.lock().unwrap(), [1, 2]);
/// });
/// ```
#[macro_export]
macro_rules! lazy_static {
    () => {};
    ($(#[$attr:meta])* $vis:vis static ref $name:ident : $t:ty = $value:expr; $($rest:tt)*) => {
        $(#[$attr])*
        $vis static $name: $crate::sync::LazyLock<$t> = $crate::sync::LazyLock::new(|| $value);
        $crate::lazy_static! { $($rest)* }
    };
}
