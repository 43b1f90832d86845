//! How may threads use data on another thread's stack?
//!
//! [`scope`] does not end before its threads have ended. Inside a model this also holds if an
//! execution ends before its threads do: while any member still has frames, the frames of the scope
//! stay.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Result;
use super::handle::{JoinHandle, Thread};
use super::spawn::{Builder, expect};
use crate::rt::{self, ThreadId as Modelled};

/// The threads of a scope.
pub(super) struct Members {
    /// The number of members that still have data of the scope.
    alive: AtomicUsize,
    /// Whether a member has panicked and no join has taken the payload.
    panicked: AtomicBool,
    modelled: Mutex<ToJoin>,
    /// The thread to wake, outside of a model.
    owner: std::thread::Thread,
    /// The thread that opened the scope.
    thread: Thread,
}

/// The members that have not been joined.
#[derive(Default)]
struct ToJoin {
    /// In the reverse order of their births.
    in_order: Vec<Modelled>,
    /// The members that have been spawned since the last join.
    new: Vec<Modelled>,
}

impl Members {
    /// The members of a scope that the current thread opens.
    fn none() -> Arc<Members> {
        Arc::new(Members {
            alive: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            modelled: Mutex::default(),
            owner: std::thread::current(),
            thread: Thread::current(),
        })
    }

    pub(super) fn note_panic(&self) {
        self.panicked.store(true, Ordering::Relaxed);
    }

    pub(super) fn add(&self, thread: Modelled) {
        let mut all = self.modelled.lock().unwrap_or_else(PoisonError::into_inner);
        all.new.push(thread);
    }

    /// Takes the member that is joined next.
    ///
    /// A member may spawn others until it ends, and two members may do so in either order. So each
    /// member is joined before the members that it has spawned, and these follow directly. After
    /// the join of a member all members that it has spawned are known, so the next member is the
    /// same in all executions of a trace.
    fn next(&self) -> Option<Modelled> {
        let mut all = self.modelled.lock().unwrap_or_else(PoisonError::into_inner);
        let ToJoin { in_order, new } = &mut *all;
        // There may be thousands of new members; they are sorted once.
        if !new.is_empty() && !rt::add_by_birth(in_order, new) {
            return None;
        }
        in_order.pop()
    }

    fn all_gone(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }
}

/// One thread's share of its scope; dropped when the thread has no data of the scope any more.
pub(super) struct Member(Arc<Members>);

impl Member {
    pub(super) fn new(members: &Arc<Members>) -> Member {
        members.alive.fetch_add(1, Ordering::Relaxed);
        Member(members.clone())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::Release) == 1 {
            self.0.owner.unpark();
        }
    }
}

/// Waits at the end of the scope, however it ends.
struct Wait<'a> {
    members: &'a Members,
    /// The place of the scope: its end has no place of its own, least of all if the closure panics.
    place: &'static Location<'static>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        /// Waits without a visible operation, for members that are left when an execution has
        /// ended.
        struct Gone<'a>(&'a Members);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                while !self.0.all_gone() {
                    match rt::current() {
                        Some(_) => rt::yield_to_teardown(),
                        None => std::thread::park(),
                    }
                }
            }
        }
        let gone = Gone(self.members);
        while let Some(thread) = self.members.next() {
            // In an execution that has ended no thread can be joined in this way.
            if !rt::join(thread, self.place) {
                break;
            }
        }
        drop(gone);
    }
}

/// A scope with threads that end before the scope does; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    members: Arc<Members>,
    /// Invariant in both lifetimes, as in std.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Calls `f` with a scope, waits for all threads that were spawned in the scope, and returns the
/// result of `f`.
///
/// # Panics
///
/// Panics if a thread of the scope has panicked and was not joined. Inside a model this requires
/// [`Builder::catch_panics`](crate::Builder::catch_panics).
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        members: Members::none(),
        scope: PhantomData,
        env: PhantomData,
    };
    let wait = Wait {
        members: &scope.members,
        place: Location::caller(),
    };
    let result = f(&scope);
    drop(wait);
    assert!(
        !scope.members.panicked.load(Ordering::Relaxed),
        "a scoped thread panicked"
    );
    result
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(super) fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Spawns a thread that ends before the scope does.
    ///
    /// # Panics
    ///
    /// Panics outside a model if the operating system fails to create a thread.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        expect(Builder::new().spawn_scoped(self, f))
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = &*self.members;
        f.debug_struct("Scope")
            .field(
                "num_running_threads",
                &members.alive.load(Ordering::Relaxed),
            )
            .field(
                "a_thread_panicked",
                &members.panicked.load(Ordering::Relaxed),
            )
            .field("main_thread", &members.thread)
            .finish_non_exhaustive()
    }
}

/// Handle to a thread in a [`Scope`], to wait until it has ended.
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<T>,
    /// Covariant, as in std: unlike the scope, the handle spawns no threads.
    scope: PhantomData<&'scope ()>,
    /// `Send` and `Sync` only if the result is `Send`, as in std.
    result: PhantomData<Arc<Mutex<T>>>,
}

impl<'scope, T> ScopedJoinHandle<'scope, T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Self {
        ScopedJoinHandle {
            handle,
            scope: PhantomData,
            result: PhantomData,
        }
    }

    /// Returns a handle to the thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Waits until the thread has ended, and returns the result of its closure.
    ///
    /// # Errors
    ///
    /// Returns the payload of the thread's panic as an error, as [`JoinHandle::join`] does.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        self.handle.join()
    }

    /// Returns whether the thread has finished.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_members_are_put_in_order_once_and_not_for_each_that_is_joined() {
        crate::model(|| {
            scope(|scope| {
                for _ in 0..1000 {
                    scope.spawn(|| ()).join().expect("it does nothing");
                }
            });
            let compared = rt::compared();
            assert!(compared <= 2 * 1000, "{compared}");
        });
    }
}
