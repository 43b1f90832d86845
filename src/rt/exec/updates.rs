//! How does a value that only the program knows take part in a comparison of states?
//!
//! A shim announces the closure that it is about to apply to the value, and reports what the
//! closure has done. An explorer may also try the closure on other contents that there have been
//! ([`contents`](crate::rt::object::contents)), while its thread is suspended, or in a later
//! execution. So a closure may be tried that owns nothing.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::rt::event::Site;
use crate::rt::event::operation::OpKind;
use crate::rt::object::contents::{Digest, Effect, Unfit, Update, Values};
use crate::rt::shim::{Answer, Target};

use super::announce;
use super::context::{with, with_any};

thread_local! {
    static IS_TRYING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the explorer tries a closure of the program on this OS thread. A panic is then no
/// failure.
pub(super) fn is_trying() -> bool {
    IS_TRYING.get()
}

/// Whether an execution runs on this OS thread.
pub(crate) fn is_in_a_model() -> bool {
    with(|_| ()).is_ok()
}

/// Whether an execution runs on this OS thread that is compared with others by its states.
pub(crate) fn are_asked_for() -> bool {
    let asked = with(|runtime| {
        let inner = runtime.inner.borrow();
        inner.driver.machine.limits.compares_states
    });
    asked.unwrap_or(false)
}

/// Announces a closure that is about to be applied to the object behind a shim, with these contents
/// now; returns when it has to be applied.
pub(crate) fn announce(
    target: &Target,
    kind: OpKind,
    now: Digest,
    update: Option<Update>,
    site: Site,
) -> Answer {
    let _ = with(|runtime| {
        let mut inner = runtime.inner.borrow_mut();
        let Ok(object) = runtime.resolve(&mut inner, target) else {
            return;
        };
        let machine = &mut inner.driver.machine;
        let me = runtime.current.get();
        let number = (me, machine.events_of(me));
        machine.updates.met.entry(object).or_insert(now);
        if *machine.updates.latest.entry(object).or_insert(now) != now {
            let what = "it has met a `Shared` in the place of another one, on a stack: put it into an `Arc`, or make it in \
                        another place"
                .to_owned();
            machine.unfit = Some(Unfit { what, site });
        }
        if let Some(update) = update {
            machine.updates.announced.insert(number, update);
        }
    });
    announce::perform(target, &kind, site)
}

/// Reports what the last operation of the current thread has done to its object.
pub(crate) fn note(target: &Target, effect: Effect) {
    let _ = with(|runtime| {
        let mut inner = runtime.inner.borrow_mut();
        let Ok(object) = runtime.resolve(&mut inner, target) else {
            return;
        };
        let machine = &mut inner.driver.machine;
        let me = runtime.current.get();
        let Some(index) = machine.events_of(me).checked_sub(1) else {
            return;
        };
        machine.updates.made.insert((me, index), effect);
        machine.updates.latest.insert(object, effect.contents);
    });
}

/// The values of the program that there have been.
pub(crate) fn values() -> Option<Arc<Values>> {
    with(|runtime| Arc::clone(&runtime.inner.borrow().driver.machine.updates.values)).ok()
}

/// Keeps a value with this digest.
pub(crate) fn keep<T: Send + 'static>(values: &Values, digest: Digest, value: T) {
    let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
    let value = || Arc::new(Mutex::new(value)) as Arc<dyn Any + Send + Sync>;
    let key = (TypeId::of::<T>(), digest);
    values.entry(key).or_insert_with(value);
}

/// A copy of the value with this digest, if there has been one.
pub(crate) fn kept<T: Send + 'static>(
    values: &Values,
    digest: Digest,
    copy: fn(&T) -> T,
) -> Option<T> {
    let key = (TypeId::of::<T>(), digest);
    let value = {
        let values = values.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(values.get(&key)?)
    };
    let value = value.downcast_ref::<Mutex<T>>()?;
    Some(copy(&value.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Runs code of the program that is no part of the execution, also within the runtime. `None` if it
/// panics.
pub(crate) fn tried<R>(f: impl FnOnce() -> R) -> Option<R> {
    /// Returns to the execution.
    struct Back<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Back<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let run = || {
        let before = IS_TRYING.replace(true);
        let result = catch_unwind(AssertUnwindSafe(f));
        IS_TRYING.set(before);
        result.ok()
    };
    let mut run = Some(run);
    let within = with_any(|runtime| {
        let recorded = runtime.heap.record(false);
        let stopping = runtime.stopping.replace(true);
        let aside = runtime.aside.replace(true);
        let roomy = runtime.roomy.take();
        let _back = Back(|| {
            runtime.aside.set(aside);
            runtime.stopping.set(stopping);
            runtime.roomy.set(roomy);
            runtime.heap.record(recorded);
        });
        run.take().and_then(|run| run())
    });
    match within {
        Some(result) => result,
        None => run.take().and_then(|run| run()),
    }
}
