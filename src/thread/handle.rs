//! What does one thread know of another?

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::needs_drop;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::Result;
use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target, ThreadId as Modelled};

/// Where a thread leaves what its closure returned, or the payload of its panic.
struct Packet<T> {
    /// The thread's until it has `left` something, then the one's who takes it.
    result: UnsafeCell<Option<Result<T>>>,
    left: AtomicBool,
    /// Is told if a panic was left here and nobody has asked for it.
    scope: Option<Arc<super::scoped::Members>>,
    /// How many shares there are. Who gives up the last one drops the result, which the program may
    /// see, so it is a reference count like any other.
    shares: AtomicUsize,
    /// Where the thread was spawned, if it is a modelled one whose result can be seen being dropped.
    counted: Option<&'static Location<'static>>,
}

/// A share of a packet: the thread has one, and its handle.
pub(super) struct Share<T>(Arc<Packet<T>>);

impl<T> Share<T> {
    /// The two shares of a new packet.
    #[track_caller]
    pub(super) fn both(
        scope: Option<Arc<super::scoped::Members>>,
        modelled: bool,
    ) -> (Share<T>, Share<T>) {
        let packet = Arc::new(Packet {
            result: UnsafeCell::default(),
            left: AtomicBool::new(false),
            scope,
            shares: AtomicUsize::new(2),
            counted: (modelled && needs_drop::<T>()).then(Location::caller),
        });
        (Share(packet.clone()), Share(packet))
    }

    /// Leaves the result. Called by the thread, once.
    pub(super) fn put(&self, result: Result<T>) {
        // SAFETY: this is the thread.
        unsafe { self.0.put(result) };
    }

    /// What a thread has left that is at its end.
    fn take(self) -> Option<Result<T>> {
        // Its own share is gone, so this one is the last, and nobody needs to be told.
        self.0.shares.store(0, Relaxed);
        // SAFETY: the other share is the thread's, which takes nothing unless this one has been given up.
        unsafe { self.0.take() }
    }
}

impl<T> Drop for Share<T> {
    fn drop(&mut self) {
        /// Gives the share up even if the announcement does not return.
        struct GiveUp<'a, T>(&'a Packet<T>);
        impl<T> Drop for GiveUp<'_, T> {
            fn drop(&mut self) {
                if self.0.shares.fetch_sub(1, AcqRel) == 1 {
                    // SAFETY: the other one has given its share up, and with it its right to the result.
                    drop(unsafe { self.0.take() });
                }
            }
        }
        let shares = self.0.shares.load(Relaxed);
        if let (Some(site), 1..) = (self.0.counted, shares) {
            let _give_up = GiveUp(&self.0);
            let target = Target {
                address: self.0.shares.as_ptr().addr(),
                kind: ObjectKind::Count { observed: true },
                memory: shares as u64,
            };
            rt::perform_at(target, OpKind::Release { told: false }, site);
        }
    }
}

impl<T> Packet<T> {
    /// # Safety
    ///
    /// Only for the thread, once.
    unsafe fn put(&self, result: Result<T>) {
        // SAFETY: nobody else looks there before the next line.
        unsafe { *self.result.get() = Some(result) };
        self.left.store(true, Release);
    }

    /// What the thread has left, if it has by now.
    ///
    /// # Safety
    ///
    /// Only for one at a time.
    unsafe fn take(&self) -> Option<Result<T>> {
        if !self.left.load(Acquire) {
            return None;
        }
        // SAFETY: the thread does not look there any more, and nobody else does meanwhile.
        unsafe { (*self.result.get()).take() }
    }
}

// SAFETY: the result goes from the thread to the one who takes it, and is used by one of them at a time.
unsafe impl<T: Send> Sync for Packet<T> {}

impl<T> Drop for Packet<T> {
    fn drop(&mut self) {
        if let (Some(Err(_)), Some(scope)) = (self.result.get_mut().take(), &self.scope) {
            scope.note_panic();
        }
    }
}

/// Waits for a thread's end; see [`spawn`](super::spawn()).
pub struct JoinHandle<T> {
    pub(super) thread: Thread,
    pub(super) running: Running,
    pub(super) packet: Share<T>,
}

/// The thread itself.
pub(super) enum Running {
    Modelled(Modelled),
    Real(std::thread::JoinHandle<()>),
    /// It was spawned by code that unwinds from the end of its execution, and will never run.
    Never,
}

impl<T> JoinHandle<T> {
    /// Waits for the thread's end and gives what it returned.
    ///
    /// # Errors
    ///
    /// The payload of the thread's panic. Inside a model this takes `Builder::catch_panics`;
    /// otherwise a panic fails the test at once.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.running {
            Running::Modelled(id) => {
                rt::on_thread(id, OpKind::Join);
            }
            Running::Real(handle) => handle.join()?,
            Running::Never => {}
        }
        self.packet.take().unwrap_or_else(|| {
            let why = "the thread was ended together with its execution";
            Err(Box::new(why))
        })
    }

    /// Whether the thread has finished.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.running {
            Running::Modelled(id) => {
                let answer = rt::on_thread(*id, OpKind::IsFinished);
                matches!(answer, Answer::Done(Outcome::Value(1)))
            }
            Running::Real(handle) => handle.is_finished(),
            Running::Never => false,
        }
    }

    /// The thread that is waited for.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

// SAFETY: a handle gives the thread's result to the one who joins, by value. The thread could only be
// spawned if its result may be sent.
unsafe impl<T> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the result.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// A thread, to be unparked or named.
#[derive(Clone)]
pub struct Thread(pub(super) Which);

#[derive(Clone)]
pub(super) enum Which {
    Modelled {
        thread: Modelled,
        name: Option<Arc<str>>,
    },
    Real(std::thread::Thread),
}

/// What tells threads apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(WhichId);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum WhichId {
    Modelled(Modelled),
    Real(std::thread::ThreadId),
}

impl Thread {
    pub(super) fn current() -> Thread {
        Thread(match rt::current() {
            Some(thread) => Which::Modelled {
                thread,
                name: rt::name_of(thread).map(Arc::from),
            },
            None => Which::Real(std::thread::current()),
        })
    }

    /// Makes the thread's token available: its next `park` returns at once.
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Which::Real(thread) => thread.unpark(),
            Which::Modelled { thread, .. } => {
                rt::on_token(*thread, OpKind::Unpark);
            }
        }
    }

    /// What tells this thread from others.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Real(thread) => WhichId::Real(thread.id()),
            Which::Modelled { thread, .. } => WhichId::Modelled(*thread),
        })
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Real(thread) => thread.name(),
            Which::Modelled { name, .. } => name.as_deref(),
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WhichId::Real(id) => id.fmt(f),
            // Like std's, the first one is 1.
            WhichId::Modelled(id) => f.debug_tuple("ThreadId").field(&(id.index() + 1)).finish(),
        }
    }
}
