//! What does a thread do?

use std::ptr::NonNull;
use std::rc::Rc;

/// The closure of a model, which each execution's main thread runs.
pub(crate) trait Work: Send + Sync {
    /// A thread that runs it.
    fn body(self: Rc<Self>) -> Body;
}

impl<F: Fn() + Send + Sync> Work for F {
    fn body(self: Rc<Self>) -> Body {
        /// # Safety
        ///
        /// The pointer is of `Rc::<F>::into_raw` on this OS thread, and is not used again.
        unsafe fn end<F: Fn()>(work: NonNull<()>, fate: Fate) {
            // SAFETY: the caller says so.
            let work = unsafe { Rc::<F>::from_raw(work.as_ptr().cast()) };
            if let Fate::Run = fate {
                work();
            }
        }
        let work = Rc::into_raw(self).cast_mut();
        // SAFETY: an `Rc` is not null. The body stays on this OS thread, as the coroutine that runs it, or drops it, does.
        unsafe { Body::new(NonNull::new_unchecked(work.cast()), end::<F>) }
    }
}

/// What a thread is to do, in a block that others may have a share of: it is done once, or abandoned when this is dropped.
///
/// It is a pointer and a function and no trait object, so that whoever does it may also end the block.
pub(crate) struct Body(Option<(NonNull<()>, End)>);

type End = unsafe fn(NonNull<()>, Fate);

/// What becomes of a [`Body`].
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    Run,
    Abandon,
}

impl Body {
    /// # Safety
    ///
    /// `end` may be called with `work`, once, on each OS thread that the body goes to.
    #[inline(always)]
    pub(crate) unsafe fn new(work: NonNull<()>, end: End) -> Body {
        Body(Some((work, end)))
    }

    pub(crate) fn run(mut self) {
        self.end(Fate::Run);
    }

    #[inline(always)]
    fn end(&mut self, fate: Fate) {
        if let Some((work, end)) = self.0.take() {
            // SAFETY: `new` says so, and it is taken once.
            unsafe { end(work, fate) };
        }
    }
}

// SAFETY: what is done with it may be done wherever it goes, `new` says.
unsafe impl Send for Body {}

impl Drop for Body {
    #[inline]
    fn drop(&mut self) {
        self.end(Fate::Abandon);
    }
}

#[cfg(test)]
impl Body {
    /// A body that calls `f`, on this OS thread.
    pub(crate) fn of<F: FnOnce() + 'static>(f: F) -> Body {
        unsafe fn end<F: FnOnce()>(work: NonNull<()>, fate: Fate) {
            // SAFETY: it is the box from below, and this is called once.
            let f = unsafe { Box::<F>::from_raw(work.as_ptr().cast()) };
            if let Fate::Run = fate {
                f();
            }
        }
        let f = NonNull::from(Box::leak(Box::new(f)));
        // SAFETY: a coroutine stays on the OS thread that made it, and its body with it.
        unsafe { Body::new(f.cast(), end::<F>) }
    }
}
