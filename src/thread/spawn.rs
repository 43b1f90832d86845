//! How is a thread created?

use std::ffi::CString;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::handle::{JoinHandle, Running, Thread, Which, unit};
use super::job::job;
use super::scoped::{Members, Scope, ScopedJoinHandle};
use crate::rt::{self, ThreadMain};

/// Spawns a thread.
///
/// # Panics
///
/// Panics outside a model if the operating system fails to create a thread.
#[cfg(not(any(loom, feature = "loom")))]
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    expect(Builder::new().spawn(f))
}

/// Spawns a thread of a model.
///
/// As in loom, neither the closure nor its result needs to be `Send`: all threads of a model run on
/// one OS thread.
///
/// # Panics
///
/// Panics outside a model, where the thread would be an OS thread. [`Builder::spawn`] and
/// [`scope`](super::scope()), which require `Send`, spawn an OS thread there.
#[cfg(any(loom, feature = "loom"))]
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    assert!(
        rt::current().is_some(),
        "`thread::spawn` was called outside of a model: with loom's signatures what a thread is given need not \
         be `Send`, so that there is no real thread for it; use `thread::Builder` or `thread::scope`"
    );
    // SAFETY: the closure and its result are `'static`. This is a model, so `start` spawns no OS
    // thread. The coroutines of a model are made, run and ended by the OS thread that explores the
    // model, which is this one. The handle is sent elsewhere only if the result is `Send`.
    expect(unsafe { Builder::new().start(f, None, unit::<T>) })
}

/// Returns the handle, or panics with the reason why there is none.
#[track_caller]
pub(super) fn expect<H>(handle: io::Result<H>) -> H {
    match handle {
        Ok(handle) => handle,
        Err(error) => panic!("failed to spawn thread: {error:?}"),
    }
}

/// The number of bytes in the unit of a modelled thread's stack size. Loom passes the size on to
/// `generator`, which counts words.
const UNIT: usize = if cfg!(any(loom, feature = "loom")) {
    size_of::<usize>()
} else {
    1
};

/// Configures a thread before it is spawned.
#[must_use = "must eventually spawn the thread"]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// Creates a builder without settings.
    #[expect(clippy::new_without_default, reason = "std's has no default either")]
    pub fn new() -> Builder {
        Builder {
            name: None,
            stack_size: None,
        }
    }

    /// Names the thread; reports show the name.
    pub fn name(mut self, name: String) -> Builder {
        self.name = Some(name);
        self
    }

    /// Sets the size of the stack, in bytes.
    ///
    /// Inside a model a stack has at least the size of
    /// [`dpor::Builder::stack_size`](crate::Builder#structfield.stack_size), and at most 1 GiB.
    /// With [loom's signatures](crate#looms-signatures) the size is in words there, as in loom.
    pub fn stack_size(mut self, size: usize) -> Builder {
        self.stack_size = Some(size);
        self
    }

    /// A std builder with the same settings.
    fn real(&self) -> std::thread::Builder {
        let mut real = std::thread::Builder::new();
        if let Some(name) = &self.name {
            real = real.name(name.clone());
        }
        if let Some(size) = self.stack_size {
            real = real.stack_size(size);
        }
        real
    }

    /// Spawns the thread.
    ///
    /// # Errors
    ///
    /// Returns an error outside a model if the operating system fails to create a thread.
    ///
    /// # Panics
    ///
    /// Panics if the name contains a null byte, as std's method does.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: the closure and its result are `'static` and `Send`.
        unsafe { self.start(f, None, unit::<T>) }
    }

    /// Spawns a thread with a closure and a result that need not be `'static`.
    ///
    /// # Errors
    ///
    /// Returns an error outside a model if the operating system fails to create a thread.
    ///
    /// # Panics
    ///
    /// Panics if the name contains a null byte, as std's method does.
    ///
    /// # Safety
    ///
    /// The thread must be joined before the end of all data that its closure or its result uses; to
    /// leave the function that owns the data does not join it. Inside a model an execution may end
    /// at any step, and the stack is then unwound, so only [`scope`](super::scope()) is safe.
    #[track_caller]
    pub unsafe fn spawn_unchecked<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the caller's contract is this function's, and the closure and its result are
        // `Send`.
        unsafe { self.start(f, None, || None) }
    }

    /// Spawns a thread in a scope.
    ///
    /// # Errors
    ///
    /// Returns an error outside a model if the operating system fails to create a thread.
    ///
    /// # Panics
    ///
    /// Panics if the name contains a null byte, as std's method does.
    #[track_caller]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        // SAFETY: the scope does not end, neither by return nor by unwinding, before each member
        // has dropped its closure and its share of the packet. The closure and its result are
        // `Send`.
        let handle = unsafe { self.start(f, Some(scope.members()), || None) }?;
        if let Running::Modelled(id) = handle.running {
            scope.members().add(id);
        }
        Ok(ScopedJoinHandle::new(handle))
    }

    /// Spawns an OS thread for this body. The types in the body are unknown here, so this function
    /// is compiled once.
    #[cold]
    fn spawn_real(&self, body: ThreadMain) -> io::Result<(Thread, Running)> {
        let handle = self.real().spawn(move || body.run())?;
        let thread = Thread(Which::Real(handle.thread().clone()));
        Ok((thread, Running::Real(Box::new(handle))))
    }

    /// Spawns the thread. If the thread is ended together with its execution, its result is that of
    /// `nothing`.
    ///
    /// # Safety
    ///
    /// The same as for [`Builder::spawn_unchecked`], where the end of a member of `scope` counts as
    /// a join. The closure and its result are `Send`, or this is a model and the handle stays on
    /// this OS thread.
    #[track_caller]
    unsafe fn start<F, T>(
        self,
        f: F,
        scope: Option<&Arc<Members>>,
        nothing: fn() -> Option<T>,
    ) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T,
    {
        let modelled = rt::current().is_some();
        // SAFETY: the caller's contract. The runtime drops a body that never ran before the runtime
        // ends the execution. In a model the body stays on this OS thread.
        let (body, packet) = unsafe { job(f, scope, modelled) };
        if rt::rarely!(!modelled) {
            let (thread, running) = self.spawn_real(body)?;
            return Ok(JoinHandle {
                thread,
                running,
                packet,
                nothing,
            });
        }
        let stack_bytes = self.stack_size.map(|size| size.saturating_mul(UNIT));
        let name = self.name.map(without_nul);
        let Some(thread) = rt::spawn(name.as_deref(), body, stack_bytes) else {
            rt::cold_path();
            return Ok(JoinHandle {
                thread: Thread::current(),
                running: Running::Never,
                packet,
                nothing,
            });
        };
        Ok(JoinHandle {
            thread: Thread(Which::Modelled {
                thread,
                name: name.into(),
            }),
            running: Running::Modelled(thread),
            packet,
            nothing,
        })
    }
}

/// The name, unless std would refuse it for a thread.
#[track_caller]
fn without_nul(name: String) -> Arc<str> {
    if name.contains('\0') {
        CString::new(name.clone()).expect("thread name may not contain interior null bytes");
    }
    Arc::from(name)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.real().fmt(f)
    }
}
