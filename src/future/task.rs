//! How does a future run beside others?
//!
//! Each task is a modelled thread of its own. An executor would only decide which ready task goes on,
//! and that is what the exploration decides anyway.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use super::{AtomicWaker, block_on};
use crate::sync::{Arc, Mutex};
use crate::thread;

/// What a task leaves for who waits for it.
struct Done<T> {
    output: Mutex<Option<T>>,
    waiter: AtomicWaker,
}

/// Waits for a task's output, by `.await` or [`JoinHandle::join`].
pub struct JoinHandle<T> {
    done: Arc<Done<T>>,
    thread: thread::JoinHandle<()>,
}

/// Runs `future` as a task.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let done = Arc::new(Done {
        output: Mutex::new(None),
        waiter: AtomicWaker::new(),
    });
    let theirs = done.clone();
    let body = move || {
        let output = block_on(future);
        *theirs.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        theirs.waiter.wake();
    };
    // Unlike `thread::spawn` with loom's signatures, this also works outside of a model.
    let thread = thread::Builder::new().spawn(body);
    let thread = thread.expect("failed to spawn thread");
    JoinHandle { done, thread }
}

impl<T> JoinHandle<T> {
    /// Waits for the task's end, blocking this thread.
    ///
    /// # Errors
    ///
    /// The payload of the task's panic, as [`thread::JoinHandle::join`].
    #[track_caller]
    pub fn join(self) -> thread::Result<T> {
        self.thread.join()?;
        let mut output = self
            .done
            .output
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        output.take().ok_or_else(|| {
            let why: Box<dyn std::any::Any + Send> = Box::new("the output was awaited before");
            why
        })
    }

    /// Whether the task has come to its end.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // First the waker, then the look: a task that ends in between wakes this one.
        self.done.waiter.register_by_ref(context.waker());
        let mut output = self
            .done
            .output
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match output.take() {
            Some(output) => Poll::Ready(output),
            None => Poll::Pending,
        }
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}
