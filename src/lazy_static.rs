//! Statics with values that are created on first use.
//!
//! [`lazy_static!`](crate::lazy_static!) declares them, with the syntax of the crate `lazy_static`
//! and of loom. The other names in this module are those of `loom::lazy_static`.

use std::fmt;
use std::ops::Deref;

pub use crate::thread::{AccessError, panicking, yield_now};

use crate::config::LOOM;
use crate::rt::{self, Answer, Outcome, ThreadId};
use crate::sync::LazyLock;

/// A value that is created on first use, as `loom::lazy_static::Lazy`.
///
/// It is a [`LazyLock`] with loom's methods. In a `static`, the value is created anew in every
/// execution.
///
/// With loom's signatures, a static may hold a value of any type, even one that is not `Sync`. It
/// can then be used only inside a model; threads other than the first one can use it only before
/// the first one has ended.
pub struct Lazy<T: 'static>(LazyLock<T>);

// SAFETY: `force` does not return the value outside of a model, and all threads of a model run on
// the OS thread that explores the model. A model on another OS thread that uses the same static
// waits for the end of this model's execution, which drops the value. A `&T` is sent to another OS
// thread only if `T` is `Sync`.
#[cfg(any(loom, feature = "loom"))]
unsafe impl<T: 'static> Sync for Lazy<T> {}

impl<T: 'static> Lazy<T> {
    /// Creates a lazy value, which `init` computes on first use.
    ///
    /// Loom has public fields instead of this function.
    pub const fn new(init: fn() -> T) -> Lazy<T> {
        Lazy(LazyLock::new(init))
    }

    /// Returns the value, and creates it first if necessary.
    ///
    /// Waits if another thread is creating it.
    ///
    /// # Panics
    ///
    /// Panics if creating the value has panicked before. With loom's signatures, also panics
    /// outside a model, and in a thread after the first thread has ended.
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
        // Loom drops the values when the first thread ends. The look is an event, so that both
        // orders are explored.
        assert!(
            !LOOM || !first_has_ended(),
            "a static of `lazy_static!` was used after the model's closure has returned: with loom's signatures what is in it \
             is gone by then; join this thread, or use `dpor::sync::LazyLock`"
        );
        LazyLock::force(&self.0)
    }
}

/// Whether the first thread of the model has ended, if another thread asks.
#[track_caller]
fn first_has_ended() -> bool {
    let asks = rt::current().is_some_and(|thread| thread != ThreadId::MAIN);
    asks && matches!(
        rt::is_finished(ThreadId::MAIN),
        Answer::Done(Outcome::Value(1))
    )
}

impl<T: 'static> Deref for Lazy<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        self.force()
    }
}

/// Prints the value if it has been created, without a visible operation. With loom's signatures the
/// value is never printed.
impl<T: fmt::Debug + 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if LOOM {
            // The code that prints may run on another OS thread than the one with the value.
            return f.debug_struct("Lazy").finish_non_exhaustive();
        }
        self.0.fmt(f)
    }
}

/// Declares statics with values that are created on first use, as the crate `lazy_static` and loom
/// do.
///
/// In a model the values are created anew in every execution.
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
