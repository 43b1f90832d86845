//! How does one thread refer to another?

use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::Result;
use super::job::Share;
use crate::config::LOOM;
use crate::rt::{self, Answer, Outcome, ThreadId as Modelled};

/// Handle to a thread, to wait until it has ended; see [`spawn`](super::spawn()).
pub struct JoinHandle<T> {
    pub(super) thread: Thread,
    pub(super) running: Running,
    pub(super) packet: Share<T>,
    /// The result of a thread that was ended together with its execution, if a value can be made
    /// for it.
    pub(super) nothing: fn() -> Option<T>,
}

/// The value, if the type is `()`.
pub(super) fn unit<T: 'static>() -> Option<T> {
    let mut unit = Some(());
    let unit: &mut dyn Any = &mut unit;
    unit.downcast_mut::<Option<T>>().and_then(Option::take)
}

/// The thread behind a handle.
pub(super) enum Running {
    Modelled(Modelled),
    /// In a box: a handle is moved often, and mostly it is the handle of a modelled thread.
    Real(Box<std::thread::JoinHandle<()>>),
    /// The thread was spawned by code that unwinds at the end of its execution, and will never run.
    Never,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and returns the result of its closure.
    ///
    /// # Errors
    ///
    /// Returns the payload of the thread's panic as an error. Inside a model this requires
    /// [`Builder::catch_panics`](crate::Builder::catch_panics); otherwise a panic fails the test at
    /// once.
    #[track_caller]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn join(self) -> Result<T> {
        match self.running {
            Running::Modelled(id) => {
                rt::join(id, Location::caller());
            }
            Running::Real(handle) => {
                rt::cold_path();
                handle.join()?
            }
            Running::Never => rt::cold_path(),
        }
        // A destructor that joins would panic on an error, and end the process.
        self.packet
            .take()
            .or_else(|| (self.nothing)().map(Ok))
            .unwrap_or_else(|| {
                let why = "the thread was ended together with its execution";
                Err(Box::new(why))
            })
    }

    /// Returns whether the thread has finished.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.running {
            Running::Modelled(id) => {
                // Outside of the model there is no execution any more, and every thread ends with
                // its execution.
                matches!(
                    rt::is_finished(*id),
                    Answer::Done(Outcome::Value(1)) | Answer::Outside
                )
            }
            Running::Real(handle) => handle.is_finished(),
            Running::Never => false,
        }
    }

    /// Returns a handle to the thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

// SAFETY: `join` returns the thread's result by value. The thread could be spawned only if its
// result may be sent.
#[cfg(not(any(loom, feature = "loom")))]
unsafe impl<T> Send for JoinHandle<T> {}
// SAFETY: `join` returns the thread's result, or the handle drops it, and the result may be sent.
#[cfg(any(loom, feature = "loom"))]
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the result.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Handle to a thread, to unpark it or ask for its name.
#[derive(Clone)]
pub struct Thread(pub(super) Which);

#[derive(Clone)]
pub(super) enum Which {
    Modelled { thread: Modelled, name: Name },
    Real(std::thread::Thread),
}

/// The name of a modelled thread.
#[derive(Clone)]
pub(super) enum Name {
    None,
    Given(Arc<str>),
    /// The name of the thread that runs the model.
    Like(std::thread::Thread),
}

impl From<Option<Arc<str>>> for Name {
    // Inlined: a called function would write the value in pieces, and a read of the whole value
    // would have to wait for these writes.
    #[inline]
    fn from(given: Option<Arc<str>>) -> Name {
        given.map_or(Name::None, Name::Given)
    }
}

/// Identifier of a thread.
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
                name: match thread {
                    // Loom's first thread has no name.
                    Modelled::MAIN if LOOM => Name::None,
                    Modelled::MAIN => Name::Like(std::thread::current()),
                    _ => rt::name_of(thread).map(Arc::from).into(),
                },
            },
            None => Which::Real(std::thread::current()),
        })
    }

    /// Makes the thread's token available: the thread's next `park` returns at once.
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Which::Real(thread) => thread.unpark(),
            Which::Modelled { thread, .. } => {
                rt::unpark(*thread);
            }
        }
    }

    /// Returns the identifier of the thread.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Real(thread) => WhichId::Real(thread.id()),
            Which::Modelled { thread, .. } => WhichId::Modelled(*thread),
        })
    }

    /// Returns the name that the thread was given.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Real(thread) => thread.name(),
            Which::Modelled { name, .. } => match name {
                Name::None => None,
                Name::Given(name) => Some(name),
                Name::Like(thread) => thread.name(),
            },
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
            // Like std's, the first identifier is 1.
            WhichId::Modelled(id) => f.debug_tuple("ThreadId").field(&(id.index() + 1)).finish(),
        }
    }
}
