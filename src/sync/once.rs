//! One-time initialisation, as `std::sync::Once`, and the types that are built on it.
//!
//! [`Stage`] is the part that the model knows: the progress of the initialisation. `Once`,
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

/// The progress of an initialisation.
pub(super) struct Stage {
    /// 0 before, 1 while a thread runs the initialisation, 2 when it is done, 3 when it is
    /// poisoned.
    state: AtomicU8,
    real: std_sync::Once,
    /// Whether the initialisation was done outside of a model.
    outside: AtomicBool,
}

const INCOMPLETE: u8 = 0;
const RUNNING: u8 = rt::ONCE_RUNS;
const DONE: u8 = 2;
const POISONED: u8 = 3;

/// Marks the stage as poisoned unless the initialisation returns; has the place of the initialising
/// call.
struct Attempt<'a>(&'a Stage, &'static Location<'static>);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.end(true, self.1);
    }
}

/// Panics because an earlier initialisation panicked, in std's words.
#[track_caller]
pub(super) fn poisoned(name: Option<&str>) -> ! {
    // As in std, the payload is a `&'static str`.
    match name {
        Some("LazyLock") => panic!("LazyLock instance has previously been poisoned"),
        _ => panic!("Once instance has previously been poisoned"),
    }
}

/// Panics because a modelled thread and a thread outside the model initialise at the same time;
/// neither of the two can wait for the other.
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

    /// Tells the model where the `T` in `owner` comes from, if `T` has drop glue. Must be called
    /// before that `T` is used.
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

    /// Gives this thread, and no other, the initialisation, if the state still is `found`.
    ///
    /// The model admits its own threads and std's `Once` admits all others; neither of the two
    /// knows of the other's threads.
    fn claim(&self, found: u8) -> bool {
        let claimed =
            self.state
                .compare_exchange(found, RUNNING, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Ends the initialisation that this thread runs.
    fn end(&self, poison: bool, site: &'static Location<'static>) {
        rt::perform_at(self.target(), OpKind::EndOnce { poison }, site);
        let state = if poison { POISONED } else { DONE };
        self.state.store(state, Ordering::Release);
    }

    /// Whether the initialisation is done, as a visible operation.
    #[track_caller]
    pub(super) fn check(&self) -> bool {
        match rt::perform(self.target(), OpKind::CheckOnce) {
            Answer::Done(outcome) => outcome == Outcome::Value(1),
            Answer::Outside | Answer::Inert => self.is_done(),
        }
    }

    /// Whether the initialisation is done, for a caller that has exclusive access.
    pub(super) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Resets the stage, for a caller that has exclusive access. Returns whether the initialisation
    /// was done.
    pub(super) fn take_back(&mut self) -> bool {
        let done = self.is_done();
        *self = Stage::new();
        done
    }

    /// A stage with the initialisation done.
    pub(super) fn done() -> Stage {
        let stage = Stage::new();
        stage.state.store(DONE, Ordering::Relaxed);
        stage.real.call_once(|| ());
        stage
            .outside
            .store(rt::current().is_none(), Ordering::Relaxed);
        stage
    }

    /// Has the model call `undo` with the address of `owner` at the end of the execution, if the
    /// stage is older than the execution.
    #[track_caller]
    pub(super) fn undo_at_end<L>(&self, owner: &L, undo: unsafe fn(*mut u8)) {
        let start = (owner as *const L).cast_mut().cast();
        rt::undo_at_end(self.address(), start, size_of::<L>(), undo);
    }

    /// Runs `body`, unless a thread has run it before; waits while a thread runs it. If a model
    /// grants the initialisation, `begun` is called before `body`. `refuses` is the name of the
    /// type, if the type panics after a panic in an earlier initialisation.
    ///
    /// # Panics
    ///
    /// Panics if the stage is poisoned and `refuses` is set.
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
                // std's `Once` admits one thread at a time. Its own panic after a poisoned
                // initialisation would name a `Once`, so the stage decides here. And the stage may
                // be done by a model, which std's `Once` does not know.
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

    /// Waits until the initialisation is done; unless `force`, also until it is poisoned.
    ///
    /// # Panics
    ///
    /// Panics if the stage is poisoned, unless `force`.
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
/// In a `static`, every execution starts with a `Once` that has not been called.
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

/// The state of a `Once`, for the closure that [`Once::call_once_force`] calls.
pub struct OnceState {
    poisoned: bool,
    /// std's state can be changed by the closure, so it is not `Sync`; neither is this one.
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

/// Resets a `Once`.
///
/// # Safety
///
/// A `Once` is at this address, and no thread uses it during the call.
unsafe fn undo_once(once: *mut u8) {
    // SAFETY: by the caller's promise a `Once` is there, and this reference is exclusive.
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

    /// Calls `f`, unless there was a call before; otherwise waits until the earlier call has
    /// returned.
    ///
    /// # Panics
    ///
    /// Panics if an earlier call has panicked.
    #[track_caller]
    pub fn call_once<F>(&self, f: F)
    where
        F: FnOnce(),
    {
        self.0.call(Some("Once"), || self.begun(), |_| f());
    }

    /// Same as [`Once::call_once`], but calls `f` after a call that has panicked, too.
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

    /// Returns whether a call has returned without a panic.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.0.check()
    }

    /// Waits until a call has returned.
    ///
    /// # Panics
    ///
    /// Panics if a call has panicked.
    #[track_caller]
    pub fn wait(&self) {
        self.0.wait(false);
    }

    /// Waits until a call has returned without a panic, even if earlier calls have panicked.
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
