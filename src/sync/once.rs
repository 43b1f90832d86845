//! Doing something once, as `std::sync::Once`, and what is built on it.
//!
//! [`Stage`] is the part that the model knows: how far the initialisation has come. `Once`,
//! `OnceLock` and `LazyLock` add the data. Outside of a model std's `Once` makes threads wait for
//! each other.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync as std_sync;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target};

/// How far an initialisation has come.
pub(super) struct Stage {
    /// 0 before, 1 while somebody is at it, 2 when it is done, 3 when it is poisoned.
    state: AtomicU8,
    real: std_sync::Once,
    /// Whether it was done outside of a model.
    outside: AtomicBool,
}

const INCOMPLETE: u8 = 0;
const RUNNING: u8 = rt::ONCE_RUNS;
const DONE: u8 = 2;
const POISONED: u8 = 3;

/// Marks the stage as poisoned unless the initialisation comes to its end; with the place of its
/// call.
struct Attempt<'a>(&'a Stage, &'static Location<'static>);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.end(true, self.1);
    }
}

/// Refuses to go on after a panic, in std's words.
#[track_caller]
pub(super) fn poisoned(name: Option<&str>) -> ! {
    // As std's, the payload is a `&'static str`.
    match name {
        Some("LazyLock") => panic!("LazyLock instance has previously been poisoned"),
        _ => panic!("Once instance has previously been poisoned"),
    }
}

/// Refuses to be at an initialisation that another thread is at which does not wait for this one,
/// nor this one for it.
#[track_caller]
fn both() -> ! {
    panic!(
        "a thread of a model and one of no model are at the same initialisation: the other one was spawned by \
         `std::thread`, or is a test that runs beside the model and uses the same static"
    )
}

impl Stage {
    pub(super) const fn new() -> Stage {
        Stage {
            state: AtomicU8::new(INCOMPLETE),
            real: std_sync::Once::new(),
            outside: AtomicBool::new(false),
        }
    }

    /// To be called before the `T` that `owner` holds is used: says where that comes from, if it
    /// may own something.
    pub(super) fn note_origin<T, L>(&self, owner: &L) {
        if needs_drop::<T>() && self.outside.load(Ordering::Relaxed) {
            rt::note_written((owner as *const L).cast(), size_of::<L>());
        }
    }

    fn address(&self) -> usize {
        self.state.as_ptr().addr()
    }

    fn target(&self) -> Target {
        Target {
            address: self.address(),
            kind: ObjectKind::Once,
            memory: self.state.load(Ordering::Acquire) as u64,
        }
    }

    /// Lets this thread be at it, and no other one, if nobody has changed what was `found`.
    ///
    /// Those of a model are let in by the model and the others by std's `Once`, which know nothing
    /// of each other.
    fn claim(&self, found: u8) -> bool {
        let claimed =
            self.state
                .compare_exchange(found, RUNNING, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Ends the initialisation that this thread is at.
    fn end(&self, poison: bool, site: &'static Location<'static>) {
        rt::perform_at(self.target(), OpKind::EndOnce { poison }, site);
        let state = if poison { POISONED } else { DONE };
        self.state.store(state, Ordering::Release);
    }

    /// Whether it is done, as a visible operation.
    #[track_caller]
    pub(super) fn check(&self) -> bool {
        match rt::perform(self.target(), OpKind::CheckOnce) {
            Answer::Done(outcome) => outcome == Outcome::Value(1),
            Answer::Outside | Answer::Inert => self.is_done(),
        }
    }

    /// Whether it is done, to be asked by who has it for himself.
    pub(super) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Back to the beginning, for who has it for himself. True if it was done.
    pub(super) fn take_back(&mut self) -> bool {
        let done = self.is_done();
        *self = Stage::new();
        done
    }

    /// A stage that is done.
    pub(super) fn done() -> Stage {
        let stage = Stage::new();
        stage.state.store(DONE, Ordering::Relaxed);
        stage.real.call_once(|| ());
        stage
            .outside
            .store(rt::current().is_none(), Ordering::Relaxed);
        stage
    }

    /// Has `undo` called with the address of `owner` at the end of the execution, if the stage is
    /// older than it.
    #[track_caller]
    pub(super) fn undo_at_end<L>(&self, owner: &L, undo: unsafe fn(*mut u8)) {
        let start = (owner as *const L).cast_mut().cast();
        rt::undo_at_end(self.address(), start, size_of::<L>(), undo);
    }

    /// Runs `body` unless somebody has, or waits until that is done. `begun` is called where a
    /// model has granted the initialisation, before `body`. `refuses` is the name of the type if it
    /// does not go on after a panic.
    ///
    /// # Panics
    ///
    /// If it is poisoned and the type refuses that.
    #[track_caller]
    pub(super) fn call(
        &self,
        refuses: Option<&str>,
        begun: impl FnOnce(),
        body: impl FnOnce(bool),
    ) {
        let force = refuses.is_none();
        match rt::perform(self.target(), OpKind::CallOnce { force }) {
            Answer::Done(Outcome::Success(found)) => {
                if !self.claim(found as u8) {
                    both();
                }
                begun();
                self.run(|| body(found == POISONED as u64));
            }
            Answer::Done(outcome) => {
                if outcome == Outcome::Failure(POISONED as u64) {
                    poisoned(refuses);
                }
            }
            Answer::Outside if self.is_done() => {}
            Answer::Outside => {
                // Std's `Once` lets one thread in at a time, and its own word on who may not go on
                // would be in the name of a `Once`. A model may also have come further than it
                // knows.
                self.real.call_once_force(|_| {
                    let found = self.state.load(Ordering::Acquire);
                    if found == DONE {
                        return;
                    }
                    if found == POISONED && !force {
                        poisoned(refuses);
                    }
                    if found == RUNNING || !self.claim(found) {
                        both();
                    }
                    self.run(|| body(found == POISONED));
                    self.outside.store(true, Ordering::Relaxed);
                });
            }
            Answer::Inert => loop {
                match self.state.load(Ordering::Acquire) {
                    DONE => return,
                    RUNNING => rt::yield_to_teardown(),
                    found if self.claim(found) => {
                        begun();
                        return self.run(|| body(found == POISONED));
                    }
                    _ => {}
                }
            },
        }
    }

    #[track_caller]
    fn run(&self, body: impl FnOnce()) {
        let site = Location::caller();
        let attempt = Attempt(self, site);
        body();
        std::mem::forget(attempt);
        self.end(false, site);
    }

    /// Waits until it is done, or poisoned if not `force`.
    ///
    /// # Panics
    ///
    /// If it is poisoned, unless `force`.
    #[track_caller]
    pub(super) fn wait(&self, force: bool) {
        match rt::perform(self.target(), OpKind::WaitOnce { force }) {
            Answer::Done(Outcome::Failure(found)) if found == POISONED as u64 && !force => {
                poisoned(Some("Once"));
            }
            Answer::Done(_) => {}
            Answer::Outside if self.is_done() => {}
            Answer::Outside if force => self.real.wait_force(),
            Answer::Outside => self.real.wait(),
            Answer::Inert => {
                while !self.is_done() {
                    rt::yield_to_teardown();
                }
            }
        }
    }
}

/// Drop-in replacement for `std::sync::Once`.
///
/// In a `static`, every execution starts before the first call.
pub struct Once(Stage);

/// A `Once` that has not been called.
#[deprecated(note = "std has deprecated it; use `Once::new()`")]
#[allow(
    clippy::declare_interior_mutable_const,
    reason = "std's is the same; each use is a new one"
)]
pub const ONCE_INIT: Once = Once::new();

impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

/// What a closure learns that [`Once::call_once_force`] calls.
pub struct OnceState {
    poisoned: bool,
    /// Std's can be written to from inside, so it is not shared.
    alone: PhantomData<Cell<()>>,
}

impl OnceState {
    /// Returns whether an earlier call has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

impl fmt::Debug for OnceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceState")
            .field("poisoned", &self.poisoned)
            .finish()
    }
}

/// Puts a `Once` back to its beginning.
///
/// # Safety
///
/// There is one at this address, and nobody uses it meanwhile.
unsafe fn undo_once(once: *mut u8) {
    // SAFETY: the caller says so.
    let once = unsafe { &mut *once.cast::<Once>() };
    once.0.take_back();
}

impl Once {
    /// Creates a `Once` that has not been called.
    #[allow(clippy::new_without_default, reason = "std's has no default either")]
    #[must_use]
    pub const fn new() -> Once {
        Once(Stage::new())
    }

    #[track_caller]
    fn begun(&self) {
        self.0.undo_at_end(self, undo_once);
    }

    /// Calls `f` unless there was a call before; otherwise waits until that one is done.
    ///
    /// # Panics
    ///
    /// If an earlier call has panicked.
    #[track_caller]
    pub fn call_once<F>(&self, f: F)
    where
        F: FnOnce(),
    {
        self.0.call(Some("Once"), || self.begun(), |_| f());
    }

    /// Same as [`Once::call_once`], but calls `f` also after a call that has panicked.
    #[track_caller]
    pub fn call_once_force<F>(&self, f: F)
    where
        F: FnOnce(&OnceState),
    {
        let call = |poisoned| {
            f(&OnceState {
                poisoned,
                alone: PhantomData,
            })
        };
        self.0.call(None, || self.begun(), call);
    }

    /// Returns whether a call has come to its end.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.0.check()
    }

    /// Waits until a call has come to its end.
    ///
    /// # Panics
    ///
    /// If a call has panicked.
    #[track_caller]
    pub fn wait(&self) {
        self.0.wait(false);
    }

    /// Waits until a call has come to its end, even if earlier ones have panicked.
    #[track_caller]
    pub fn wait_force(&self) {
        self.0.wait(true);
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
