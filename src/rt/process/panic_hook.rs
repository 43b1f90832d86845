//! Is the panic hook of the process the one that tells reports of panics?
//!
//! It is set by the first model of the process and never taken out again, so models in parallel
//! tests do not get into each other's way. But a test may set one of its own, to keep what it
//! expects off standard error, and std asks only the last one. A hook that another one replaces is
//! dropped, which is noticed, so the next model sets its own anew, above the other. If it was only
//! put aside (`take_hook`), nobody notices before a panic says nothing; then [`set_above`] has a
//! look.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, Once, PoisonError};

/// Whether the hook has been set and not been dropped since.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// The address of the hook that was set last, by which it is told from others.
static OURS: AtomicUsize = AtomicUsize::new(0);

/// What the hook owns, which is dropped with it.
struct Set;

impl Drop for Set {
    fn drop(&mut self) {
        IS_SET.store(false, Release);
    }
}

/// What the hook has from above it.
#[derive(Clone, Copy)]
pub(crate) struct Listener {
    /// Prepares the process. Called once, before the hook is set for the first time.
    pub(crate) prepare: fn(),
    /// Tells a model of a panic. False if no model is to be told, so that the hook before is asked.
    pub(crate) begun: fn(&PanicHookInfo<'_>) -> bool,
}

/// Sets the hook, if it is not known to be there.
pub(crate) fn install(listener: Listener) {
    if !IS_SET.load(Acquire) {
        set_above(listener);
    }
}

/// Sets the hook, if another one is asked first.
#[cold]
pub(crate) fn set_above(listener: Listener) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static PREPARED: Once = Once::new();
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    PREPARED.call_once(listener.prepare);
    // On a thread of its own, because the panic hook cannot be changed by a thread that is
    // panicking, and a model may be run by a destructor.
    std::thread::spawn(move || {
        let before = take_hook();
        let is_ours = (&raw const *before).cast::<()>().addr() == OURS.load(Acquire);
        set_hook(match is_ours && IS_SET.load(Acquire) {
            true => before,
            false => above(before, listener),
        });
    })
    .join()
    .expect("dpor bug: the panic hook cannot be set");
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// The hook, which asks this other one about panics that no model is to be told of.
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
