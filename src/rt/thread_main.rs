//! Which code does a thread run?

use std::ptr::NonNull;

use crate::rt::rare::{mostly, rarely};

/// The closure of a model, which each execution's main thread runs.
pub(crate) trait Work: Send + Sync {
    /// The code of a thread that runs the closure in place.
    ///
    /// # Safety
    ///
    /// The closure must exist, and must not move, until the thread has ended or will never run
    /// again.
    unsafe fn body(&self) -> ThreadMain;
}

impl<F: Fn() + Send + Sync> Work for F {
    unsafe fn body(&self) -> ThreadMain {
        /// # Safety
        ///
        /// There is an `F` at the pointer while this runs.
        unsafe fn end<F: Fn()>(work: NonNull<()>, fate: Fate) {
            if mostly!(!matches!(fate, Fate::Abandon)) {
                // SAFETY: the caller guarantees it.
                unsafe { work.cast::<F>().as_ref()() };
            }
        }
        // SAFETY: `end` uses only a shared reference, which may be used on any OS thread and any
        // number of times. The caller guarantees how long.
        unsafe { ThreadMain::new(NonNull::from(self).cast(), end::<F>) }
    }
}

/// The code of a thread, in a block that may have other owners: it is run once, or abandoned when
/// this value is dropped.
///
/// It consists of a pointer and a function and is no trait object, so that the code that runs it
/// may also free the block.
pub(crate) struct ThreadMain(Option<(NonNull<()>, End)>);

type End = unsafe fn(NonNull<()>, Fate);

/// How a [`ThreadMain`] ends.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    Run,
    /// It runs as before, and catches its panic itself.
    Caught,
    Abandon,
}

impl ThreadMain {
    /// # Safety
    ///
    /// `end` may be called with `work`, once, on each OS thread that the body goes to.
    #[inline(always)]
    pub(crate) unsafe fn new(work: NonNull<()>, end: End) -> ThreadMain {
        ThreadMain(Some((work, end)))
    }

    pub(crate) fn run(mut self) {
        self.end(Fate::Run);
    }

    #[inline(always)]
    fn end(&mut self, fate: Fate) {
        if let Some((work, end)) = self.0.take() {
            // SAFETY: the caller of `new` guarantees it, and the value is taken once.
            unsafe { end(work, fate) };
        }
    }
}

// SAFETY: the caller of `new` guarantees that `end` may be called on each OS thread that the value
// moves to.
unsafe impl Send for ThreadMain {}

impl Drop for ThreadMain {
    #[inline]
    fn drop(&mut self) {
        // Usually the code was run.
        if rarely!(self.0.is_some()) {
            self.end(Fate::Abandon);
        }
    }
}

#[cfg(test)]
impl ThreadMain {
    /// A body that calls `f`, on this OS thread.
    pub(crate) fn of<F: FnOnce() + 'static>(f: F) -> ThreadMain {
        unsafe fn end<F: FnOnce()>(work: NonNull<()>, fate: Fate) {
            // SAFETY: `work` is the box from below, and this is called once.
            let f = unsafe { Box::<F>::from_raw(work.as_ptr().cast()) };
            if let Fate::Run = fate {
                f();
            }
        }
        let f = NonNull::from(Box::leak(Box::new(f)));
        // SAFETY: a coroutine stays on the OS thread that made it, and its body with it.
        unsafe { ThreadMain::new(f.cast(), end::<F>) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_closure_of_a_model_runs_where_it_is_as_often_as_there_are_executions_and_is_not_dropped()
    {
        let (at, seen) = (AtomicUsize::new(0), Arc::new(Mutex::new(Vec::new())));
        let noted = seen.clone();
        let closure = move || {
            at.fetch_add(1, Relaxed);
            noted.lock().unwrap().push((&raw const at).addr());
        };
        // SAFETY: the closure outlives its bodies.
        let bodies = [(); 3].map(|()| unsafe { Work::body(&closure) });
        let [first, second, abandoned] = bodies;
        first.run();
        drop(abandoned);
        second.run();
        let seen_by = seen.lock().unwrap().clone();
        let within =
            (&raw const closure).addr()..(&raw const closure).addr() + size_of_val(&closure);
        assert_eq!(seen_by.len(), 2);
        assert!(seen_by.iter().all(|at| within.contains(at)));
        assert_eq!(Arc::strong_count(&seen), 2);
        drop(closure);
        assert_eq!(Arc::strong_count(&seen), 1);
    }
}
