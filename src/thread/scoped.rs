//! How may threads use what lives on another thread's stack?
//!
//! [`scope`] does not end before its threads have. Inside a model that also holds when an execution
//! ends in the middle: while any member still has frames, the scope's own frames stay.

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
    /// How many still have something of the scope.
    alive: AtomicUsize,
    /// Whether one has panicked and nobody has asked for the payload.
    panicked: AtomicBool,
    modelled: Mutex<ToJoin>,
    /// Whom to wake, outside of a model.
    owner: std::thread::Thread,
    /// The thread that opened the scope.
    thread: Thread,
}

/// The members that have not been joined.
#[derive(Default)]
struct ToJoin {
    /// In the reverse order of their births.
    in_order: Vec<Modelled>,
    /// Those that have been spawned since one was joined.
    new: Vec<Modelled>,
}

impl Members {
    /// Those of a scope that the current thread opens.
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

    /// Takes the one that is to be joined next.
    ///
    /// A member may spawn others until it ends, and two may do so in either order. So each is
    /// joined before those that it has spawned, and is followed by them: who comes next is known by
    /// then, and is the same in all executions of a trace.
    fn next(&self) -> Option<Modelled> {
        let mut all = self.modelled.lock().unwrap_or_else(PoisonError::into_inner);
        let ToJoin { in_order, new } = &mut *all;
        // There may be thousands, which are put in order once.
        if !new.is_empty() && !rt::add_by_birth(in_order, new) {
            return None;
        }
        in_order.pop()
    }

    fn all_gone(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }
}

/// One thread's share of its scope; dropped when it has nothing of it any more.
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
    /// Where the scope is: its end has no place of its own, least of all where the closure panics.
    place: &'static Location<'static>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        /// Waits without being a visible operation: for what an execution that has ended has left.
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
            // In an execution that has ended nobody can be waited for like this.
            if !rt::join(thread, self.place) {
                break;
            }
        }
        drop(gone);
    }
}

/// A scope whose threads end before it does; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    members: Arc<Members>,
    /// Invariant in both lifetimes, as in std.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Calls `f` with a scope, waits for all threads that were spawned in it, and returns what `f`
/// returned.
///
/// # Panics
///
/// If a thread of the scope has panicked and was not joined. Inside a model this takes
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
    /// Outside a model, if the operating system fails to create a thread.
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
    /// Covariant, as in std: unlike the scope, the handle spawns nothing.
    scope: PhantomData<&'scope ()>,
    /// Sent and shared only if the result may be sent, as in std.
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

    /// Waits until the thread has ended, and returns what its closure returned.
    ///
    /// # Errors
    ///
    /// The payload of the thread's panic, as for [`JoinHandle::join`].
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
