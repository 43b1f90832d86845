//! Is the panic hook of the process the one that reports panics to models?
//!
//! The first model of the process sets the hook, and no model takes it out again, so models in
//! parallel tests do not disturb each other. But a test may set a hook of its own, to keep expected
//! messages off standard error, and std calls only the last hook. If another hook replaces ours,
//! ours is dropped and notes that, so the next model sets its own anew, above the other. If ours
//! was only put aside (`take_hook`), that shows only when a panic is not reported; then
//! [`set_above`] checks.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, Once, PoisonError};

/// Whether the hook has been set and not been dropped since.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// The address of the hook that was set last, which distinguishes it from others.
static OURS: AtomicUsize = AtomicUsize::new(0);

/// The value that the hook owns, which is dropped with it.
struct Set;

impl Drop for Set {
    fn drop(&mut self) {
        IS_SET.store(false, Release);
    }
}

/// The functions that the hook calls in the modules above.
#[derive(Clone, Copy)]
pub(crate) struct Listener {
    /// Prepares the process. Called once, before the hook is set for the first time.
    pub(crate) prepare: fn(),
    /// Reports a panic to a model. Returns false if the panic concerns no model, so that the
    /// earlier hook is called.
    pub(crate) begun: fn(&PanicHookInfo<'_>) -> bool,
}

/// Sets the hook, if it is not known to be there.
pub(crate) fn install(listener: Listener) {
    if !IS_SET.load(Acquire) {
        set_above(listener);
    }
}

/// Sets the hook, if another hook is called first.
#[cold]
pub(crate) fn set_above(listener: Listener) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static PREPARED: Once = Once::new();
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    PREPARED.call_once(listener.prepare);
    // The hook is set on a thread of its own, because a thread that is panicking cannot change the
    // panic hook, and a destructor may run a model.
    std::thread::spawn(move || {
        let before = take_hook();
        let is_ours = (&raw const *before).cast::<()>().addr() == OURS.load(Acquire);
        set_hook(if is_ours && IS_SET.load(Acquire) {
            before
        } else {
            above(before, listener)
        });
    })
    .join()
    .expect("dpor bug: the panic hook cannot be set");
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// The hook, which calls `before` for panics that concern no model.
fn above(before: Hook, listener: Listener) -> Hook {
    let set = Set;
    let hook: Hook = Box::new(move |info| {
        let _owned = &set;
        if !(listener.begun)(info) {
            before(info);
        }
    });
    OURS.store((&raw const *hook).cast::<()>().addr(), Release);
    IS_SET.store(true, Release);
    hook
}
