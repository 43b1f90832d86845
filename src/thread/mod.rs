//! Drop-in replacements for `std::thread`.
//!
//! Inside a model a thread is a coroutine on the OS thread that explores. Outside, these functions
//! are std's.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::rt::{self, Answer, OpKind, Outcome, ThreadId as Modelled};

pub use std::thread::Result;

/// Spawns a thread.
///
/// # Panics
///
/// Outside a model, if the operating system has no thread to give.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match start(None, None, f) {
        Ok(handle) => handle,
        Err(error) => panic!("a thread could not be spawned: {error}"),
    }
}

/// Gives a thread properties before it is spawned.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// A builder with nothing set.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Names the thread; reports show the name.
    pub fn name(mut self, name: String) -> Builder {
        self.name = Some(name);
        self
    }

    /// The size of the stack in bytes. Inside a model all stacks have the size that
    /// `dpor::Builder::stack_size` says.
    pub fn stack_size(mut self, size: usize) -> Builder {
        self.stack_size = Some(size);
        self
    }

    /// Spawns the thread.
    ///
    /// # Errors
    ///
    /// Outside a model, if the operating system has no thread to give.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        start(self.name, self.stack_size, f)
    }
}

type Slot<T> = Arc<Mutex<Option<T>>>;

#[track_caller]
fn start<F, T>(name: Option<String>, stack: Option<usize>, f: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let slot: Slot<T> = Slot::default();
    let mine = slot.clone();
    // Outside a model the closure goes on to an OS thread, so it comes back out of the box.
    let f = Rc::new(RefCell::new(Some(f)));
    let inner = f.clone();
    let body = Box::new(move || {
        let f = inner.borrow_mut().take();
        if let Some(f) = f {
            let value = f();
            *mine.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    });
    match rt::spawn(name.clone(), body) {
        Ok(thread) => Ok(JoinHandle(Handle::Modelled {
            thread: Thread(Which::Modelled { thread, name }),
            id: thread,
            slot,
        })),
        Err((Answer::Inert, _)) => {
            // Unwinding code spawns: the thread will never run, and nobody waits for it.
            std::panic::resume_unwind(Box::new("a thread was spawned while its execution ended"))
        }
        Err((_, body)) => {
            drop(body);
            let mut builder = std::thread::Builder::new();
            if let Some(name) = name {
                builder = builder.name(name);
            }
            if let Some(size) = stack {
                builder = builder.stack_size(size);
            }
            let f = f.borrow_mut().take();
            let Some(f) = f else {
                unreachable!("dpor bug: a body ran outside of a model")
            };
            let handle = builder.spawn(f)?;
            Ok(JoinHandle(Handle::Real {
                thread: Thread(Which::Real(handle.thread().clone())),
                handle,
            }))
        }
    }
}

/// Waits for a thread's end; see [`spawn`].
pub struct JoinHandle<T>(Handle<T>);

enum Handle<T> {
    Modelled {
        thread: Thread,
        id: Modelled,
        slot: Slot<T>,
    },
    Real {
        thread: Thread,
        handle: std::thread::JoinHandle<T>,
    },
}

impl<T> JoinHandle<T> {
    /// Waits for the thread's end and gives what it returned.
    ///
    /// # Errors
    ///
    /// Outside a model the payload of the thread's panic. Inside, a panic fails the test at once.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Real { handle, .. } => handle.join(),
            Handle::Modelled { id, slot, .. } => {
                rt::on_thread(id, OpKind::Join);
                let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                value.ok_or_else(|| {
                    Box::new("the thread was ended with its execution")
                        as Box<dyn std::any::Any + Send>
                })
            }
        }
    }

    /// Whether the thread has finished.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Real { handle, .. } => handle.is_finished(),
            Handle::Modelled { id, .. } => {
                let answer = rt::on_thread(*id, OpKind::IsFinished);
                matches!(answer, Answer::Done(Outcome::Value(1)))
            }
        }
    }

    /// The thread that is waited for.
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Handle::Modelled { thread, .. } | Handle::Real { thread, .. } => thread,
        }
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// A thread, to be unparked or named.
#[derive(Clone, Debug)]
pub struct Thread(Which);

#[derive(Clone, Debug)]
enum Which {
    Modelled {
        thread: Modelled,
        name: Option<String>,
    },
    Real(std::thread::Thread),
}

/// What tells threads apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(WhichId);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WhichId {
    Modelled(Modelled),
    Real(std::thread::ThreadId),
}

impl Thread {
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
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Real(thread) => WhichId::Real(thread.id()),
            Which::Modelled { thread, .. } => WhichId::Modelled(*thread),
        })
    }

    /// The name it was given.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Real(thread) => thread.name(),
            Which::Modelled { name, .. } => name.as_deref(),
        }
    }
}

/// The thread that calls this.
pub fn current() -> Thread {
    Thread(match rt::current() {
        Some(thread) => Which::Modelled {
            thread,
            name: rt::name_of(thread),
        },
        None => Which::Real(std::thread::current()),
    })
}

/// Waits until the thread's token is available, and takes it.
#[track_caller]
pub fn park() {
    match rt::current() {
        Some(me) => {
            rt::on_token(me, OpKind::Park);
        }
        None => std::thread::park(),
    }
}

/// Takes the thread's token if it is available. Inside a model time does not pass: whether the
/// token comes first is explored both ways.
#[track_caller]
pub fn park_timeout(duration: Duration) {
    match rt::current() {
        Some(me) => {
            rt::on_token(me, OpKind::ParkTimeout);
        }
        None => std::thread::park_timeout(duration),
    }
}

/// Lets others run. Inside a model this is a spin hint, see [`crate::hint::spin_loop`].
#[track_caller]
pub fn yield_now() {
    if let Answer::Outside = rt::hint() {
        std::thread::yield_now();
    }
}

/// Inside a model time does not pass, and this is [`yield_now`].
#[track_caller]
pub fn sleep(duration: Duration) {
    if let Answer::Outside = rt::hint() {
        std::thread::sleep(duration);
    }
}

/// Whether this thread is unwinding.
pub fn panicking() -> bool {
    std::thread::panicking()
}
