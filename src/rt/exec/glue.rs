//! Does the drop glue of a value behind an `Arc` do more than free memory?
//!
//! The thread that drops the last reference runs the glue. If the glue only frees memory, no thread
//! can see which one that was, so the drops of the references commute, and the glue is *quiet*. So
//! all glue is taken for quiet until one does more: an operation, a look at its thread or at the
//! clock, an access to a cell, an allocation (the names of later blocks depend on it), or a panic.
//! Then the glue is *loud*, and the exploration restarts with each thread that may drop such a
//! value last. Values are told apart by the place at which they were put into their `Arc`.
//!
//! The glue reads nothing else that depends on its thread. What the value owns was last changed
//! before all drops, and whatever else the glue reads without an operation was written before them,
//! too, or the read is a data race.
//!
//! If the other threads were joined, the thread comes last in each order, and its glue may do
//! anything.
//!
//! A thread that drops a reference learns nothing, because it may be any of the threads. But what
//! the glue frees is freed behind all drops.

use crate::rt::event::Site;
use crate::rt::rare::rarely;

use super::context::{Inner, Runtime, with_any};
use super::quiet_glue::Glue;

/// Ends the glue that was begun, if one was.
pub(crate) struct Running {
    _private: (),
}

impl Drop for Running {
    fn drop(&mut self) {
        with_any(Runtime::end_glue);
    }
}

/// Whether the drop glue of values that are put into an `Arc` at this place counts as loud.
#[inline]
pub(crate) fn is_loud(site: Site) -> bool {
    let is_loud = |runtime: &Runtime| {
        // Code of the program that runs within the runtime makes no value of the model.
        let inner = runtime.inner.try_borrow();
        inner.map_or(true, |inner| inner.counts_as_loud(site))
    };
    with_any(is_loud).unwrap_or(true)
}

/// Begins the quiet glue of a value from this place. The counts of the references are at this
/// address.
pub(crate) fn begin(counts: usize, site: Site) -> Running {
    with_any(|runtime| runtime.begin_glue(counts, site));
    Running { _private: () }
}

/// Notes that the program sees which thread gives up a value from this place.
#[cold]
pub(crate) fn note_seen(site: Site) {
    with_any(|runtime| {
        if runtime.watches_glue(site) {
            runtime.is_loud(site);
        }
    });
}

impl Inner {
    fn counts_as_loud(&self, site: Site) -> bool {
        let limits = &self.driver.machine.limits;
        // Where a thread gets the memory again that it has freed, it sees what it has freed.
        limits.blocks_again || limits.learnt.loud.has(site)
    }
}

impl Runtime {
    /// Whether it matters what the glue of a value from this place does: the execution is explored,
    /// and another thread might give up the value instead. A value that an earlier exploration has
    /// left behind may still count as quiet.
    fn watches_glue(&self, site: Site) -> bool {
        let is_explored = !self.stopping.get()
            && !self.unexplored.get()
            && !self.aside.get()
            && !self.tries.get()
            && self.failing.get().is_none()
            && self.loud.get().is_none();
        let matters = |inner: &Inner| {
            !inner.driver.machine.is_alone(self.current.get()) && !inner.counts_as_loud(site)
        };
        is_explored && self.inner.try_borrow().is_ok_and(|inner| matters(&inner))
    }

    fn begin_glue(&self, counts: usize, site: Site) {
        if !self.watches_glue(site) {
            return;
        }
        if std::thread::panicking() {
            return self.is_loud(site);
        }
        self.glue.set(Some(Glue {
            counts,
            site,
            listed: self.heap.last_listed(),
            roomy: self.roomy.take(),
        }));
    }

    fn end_glue(&self) {
        let Some(glue) = self.glue.take() else {
            return;
        };
        if std::thread::panicking() || self.heap.last_listed() != glue.listed {
            return self.is_loud(glue.site);
        }
        if self.heap.has_news() {
            self.heap.record(false);
            let count = self.inner.borrow().table.known(glue.counts);
            self.inner.borrow_mut().glue_of = count;
            // If the execution ends with one of the frees, the thread may go on in it.
            let _ = self.hear_of_frees();
            self.heap.record(true);
        }
        self.roomy.set(glue.roomy);
    }

    /// Something happens that depends on the thread, perhaps in glue.
    #[inline]
    pub(super) fn note_in_glue(&self) {
        if let Some(glue) = rarely_some(self.glue.get()) {
            self.glue.set(None);
            self.is_loud(glue.site);
        }
    }

    /// The glue of values from this place is loud. The exploration is void from here on, and ends
    /// with the next step of this thread.
    #[cold]
    fn is_loud(&self, site: Site) {
        self.roomy.take();
        self.loud.set(Some(site));
    }

    /// Whether the exploration is void because of loud glue. The driver then knows.
    #[inline]
    pub(super) fn is_void(&self, inner: &mut Inner) -> bool {
        let loud = self.loud.get();
        if rarely!(loud.is_some())
            && let Some(site) = self.loud.take()
        {
            inner.driver.note_loud_glue(site);
        }
        loud.is_some()
    }
}

/// The value, which mostly there is none of.
#[inline]
fn rarely_some<T>(value: Option<T>) -> Option<T> {
    if rarely!(value.is_some()) {
        value
    } else {
        None
    }
}
