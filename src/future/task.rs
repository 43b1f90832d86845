//! How does a future run concurrently with others?
//!
//! Each task is a modelled thread of its own. An executor would only choose the ready task that
//! continues, and the exploration makes that choice anyway. A thread that waits for a task reads
//! only whether the task is done, so no more executions are explored than for a join of a thread.

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::block_on_at;
use crate::rt::{self, Answer, AtomicType, OpKind, Rmw, TASK_AWAITED, TASK_DONE, Target, ThreadId};
use crate::sync::Arc;
use crate::thread;

/// [`TASK_DONE`].
const DONE: usize = TASK_DONE as usize;
/// [`TASK_AWAITED`].
const AWAITED: usize = TASK_AWAITED as usize;

/// The state that a task shares with the thread that awaits it.
struct Shared {
    /// [`DONE`] and [`AWAITED`]: a modelled atomic.
    state: AtomicUsize,
    /// The waker of the thread that awaits the task. The waker is always taken before the drop of
    /// `Shared`, so that it makes no difference which thread drops `Shared` last.
    waker: Mutex<ManuallyDrop<Option<Waker>>>,
}

impl Shared {
    fn waker(&self) -> MutexGuard<'_, ManuallyDrop<Option<Waker>>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the state, as an operation at `site`, and returns the previous state. `None` if no
    /// model runs.
    fn add(&self, what: usize, site: &'static Location<'static>) -> Option<usize> {
        let target = Target::atomic(
            self.state.as_ptr().addr(),
            AtomicType::Task,
            self.state.load(SeqCst) as u64,
        );
        let kind = OpKind::Rmw {
            order: SeqCst,
            rmw: Rmw::Or,
            operand: what as u64,
            blind: false,
        };
        match rt::perform_at(target, kind, site) {
            Answer::Outside => None,
            Answer::Inert | Answer::Done(_) => Some(self.state.fetch_or(what, SeqCst)),
        }
    }

    /// Whether the task is done. If it is not, this waker is woken when the task is done.
    fn is_done_or_wakes(&self, waker: Waker, site: &'static Location<'static>) -> bool {
        let mut replaced = Some(waker);
        let is_done = match self.add(AWAITED, site) {
            Some(before) if before & DONE != 0 => true,
            Some(_) => {
                std::mem::swap(&mut **self.waker(), &mut replaced);
                false
            }
            None => {
                let mut waker = self.waker();
                if self.state.load(SeqCst) & DONE != 0 {
                    true
                } else {
                    std::mem::swap(&mut **waker, &mut replaced);
                    false
                }
            }
        };
        // The drop of a waker may be an operation, so no lock is held here.
        drop(replaced);
        is_done
    }

    /// Marks the task as done, and wakes its waker.
    fn finish(&self, site: &'static Location<'static>) {
        let waker = match self.add(DONE, site) {
            Some(_) => self.waker().take(),
            None => {
                let mut waker = self.waker();
                self.state.store(DONE, SeqCst);
                waker.take()
            }
        };
        if let Some(waker) = waker {
            /// Clears the record, even if the thread unwinds.
            struct Forget;
            impl Drop for Forget {
                fn drop(&mut self) {
                    FINISHES.set(None);
                }
            }
            FINISHES.set(Some((rt::current(), site)));
            let _forget = Forget;
            waker.wake();
        }
    }
}

thread_local! {
    /// The modelled thread that is waking the waker of its finished task, and the place where the
    /// task was spawned. The wake-up has no caller in the program.
    static FINISHES: Cell<Option<(Option<ThreadId>, &'static Location<'static>)>> = const { Cell::new(None) };
}

/// The place where the current thread's task was spawned, if the thread is waking the task's waker
/// because the task is done. A waker of the program may do other work first and let other threads
/// continue, so the record may be lost.
pub(super) fn finishes_at() -> Option<&'static Location<'static>> {
    let (thread, site) = FINISHES.get()?;
    (thread == rt::current()).then_some(site)
}

/// Finishes a task when it is dropped, even by a panic.
struct Finishes(Arc<Shared>, &'static Location<'static>);

impl Drop for Finishes {
    fn drop(&mut self) {
        self.0.finish(self.1);
    }
}

/// Handle to a task; `.await` and [`JoinHandle::join`] return the task's output.
///
/// Awaiting a task that has panicked panics with the same payload. This requires
/// [`Builder::catch_panics`](crate::Builder::catch_panics); without it the panic of the task is the
/// failure.
pub struct JoinHandle<T> {
    shared: Arc<Shared>,
    /// `None` after the task has been awaited.
    thread: Option<thread::JoinHandle<T>>,
}

/// Runs `future` as a task.
///
/// # Panics
///
/// Panics outside a model if the operating system fails to create a thread.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let site = Location::caller();
    let shared = Arc::new(Shared {
        state: AtomicUsize::new(0),
        waker: Mutex::default(),
    });
    rt::std_counts(Arc::as_ptr(&shared).addr());
    rt::name_object(
        shared.state.as_ptr().addr(),
        size_of::<AtomicUsize>(),
        "task",
    );
    let finishes = Finishes(shared.clone(), site);
    let body = move || {
        let _finishes = finishes;
        block_on_at(future, site)
    };
    // Unlike `thread::spawn` with loom's signatures, this function also works outside of a model.
    let thread = thread::Builder::new().spawn(body);
    let thread = Some(thread.expect("failed to spawn thread"));
    JoinHandle { shared, thread }
}

impl<T> JoinHandle<T> {
    /// Blocks this thread until the task has ended, and returns its output.
    ///
    /// # Errors
    ///
    /// Returns the payload of the task's panic, as [`thread::JoinHandle::join`] does, or a text if
    /// the output was awaited before.
    #[track_caller]
    pub fn join(self) -> thread::Result<T> {
        match self.thread {
            Some(thread) => thread.join(),
            None => Err(Box::new("the output was awaited before")),
        }
    }

    /// Returns whether the task has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.thread
            .as_ref()
            .is_none_or(thread::JoinHandle::is_finished)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    /// Returns the task's output if it has ended; otherwise registers the waker.
    ///
    /// # Panics
    ///
    /// Panics with the task's payload if the task has panicked. Panics if the output was returned
    /// before.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        assert!(
            self.thread.is_some(),
            "a task's handle was polled after its output"
        );
        let waker = context.waker().clone();
        if !self.shared.is_done_or_wakes(waker, Location::caller()) {
            return Poll::Pending;
        }
        match self.thread.take().map(thread::JoinHandle::join) {
            Some(Ok(output)) => Poll::Ready(output),
            Some(Err(payload)) => resume_unwind(payload),
            None => unreachable!("dpor bug: a handle without its thread"),
        }
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}
