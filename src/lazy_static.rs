//! How are statics declared whose values are made when they are first used?
//!
//! By [`lazy_static!`](crate::lazy_static!), which takes what the crate `lazy_static` and loom take. The
//! other names here are those of `loom::lazy_static`.

use std::fmt;
use std::ops::Deref;

pub use crate::thread::{AccessError, panicking, yield_now};

use crate::config::LOOM;
use crate::rt;
use crate::sync::LazyLock;

/// A value that is made when it is first asked for, as `loom::lazy_static::Lazy`. It is what
/// [`LazyLock`] is, with loom's way to get at it. In a `static` the value is made anew in every
/// execution.
///
/// With loom's signatures any value may be in a static, also one that is not `Sync`, and it is only there
/// inside of a model.
pub struct Lazy<T: 'static>(LazyLock<T>);

// SAFETY: `force` gives the value to nobody outside of a model, and all threads of a model run on the OS thread that
// explores it. A model on another OS thread that uses the same static waits for the end of this one's execution, which
// takes the value away. A `&T` goes to another OS thread only if `T` is `Sync`.
#[cfg(any(loom, feature = "loom"))]
unsafe impl<T: 'static> Sync for Lazy<T> {}

impl<T: 'static> Lazy<T> {
    /// A value that `init` makes. Loom has public fields instead.
    pub const fn new(init: fn() -> T) -> Lazy<T> {
        Lazy(LazyLock::new(init))
    }

    /// The value, which is made if it is not there. Waits for a thread that is at it.
    ///
    /// # Panics
    ///
    /// If making the value has panicked before; with loom's signatures, outside of a model.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        self.force()
    }

    #[track_caller]
    fn force(&self) -> &T {
        assert!(
            !LOOM || rt::current().is_some(),
            "a static of `lazy_static!` was used outside of a model: with loom's signatures what is in it need not be \
             `Sync`; use `dpor::sync::LazyLock`"
        );
        LazyLock::force(&self.0)
    }
}

impl<T: 'static> Deref for Lazy<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        self.force()
    }
}

/// Prints the value if it has been made, without being a visible operation; with loom's signatures not even then.
impl<T: fmt::Debug + 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if LOOM {
            // Whoever prints it may be on another OS thread than the value.
            return f.debug_struct("Lazy").finish_non_exhaustive();
        }
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
        $vis static $name: $crate::lazy_static::Lazy<$t> = $crate::lazy_static::Lazy::new(|| $value);
        $crate::lazy_static! { $($rest)* }
    };
}
