//! On which stack does each thread run?

use crate::rt::event::id::{ThreadId, entry};
use crate::rt::pooled::{Empty, Pooled, empty_rows, pooled};
use crate::rt::rare::cold_path;

use super::super::context::Inner;
use crate::rt::coroutine::{Coroutine, Pool};

/// The stacks of one execution.
pub(super) struct Stacks<'a> {
    pub(super) pool: &'a mut Pool,
    coroutines: Pooled<Running>,
    /// Stacks that are not to be used again in this execution.
    resting: Vec<Coroutine>,
    /// How many threads have one.
    pub(super) in_use: usize,
}

/// The stacks that threads run on, by thread.
#[derive(Default)]
struct Running(Vec<Option<Coroutine>>);

pooled!(Running);

impl Empty for Running {
    fn empty(&mut self) {
        empty_rows(&mut self.0);
    }
}

impl<'a> Stacks<'a> {
    /// Those of an exploration that begins.
    pub(super) fn of(pool: &'a mut Pool) -> Stacks<'a> {
        Stacks {
            pool,
            coroutines: Pooled::default(),
            resting: Vec::new(),
            in_use: 0,
        }
    }

    #[inline]
    pub(super) fn get(&mut self, thread: ThreadId) -> Option<&mut Coroutine> {
        self.coroutines.0.get_mut(thread.index())?.as_mut()
    }

    /// How many threads there may be that have one.
    pub(super) fn threads(&self) -> usize {
        self.coroutines.0.len()
    }

    /// A stack for a thread that is about to start. `None` if the system has no memory for one of
    /// so many bytes as the thread [needs](Stacks::bytes_of); then it is left as it is.
    #[inline]
    pub(super) fn start(&mut self, inner: &mut Inner, thread: ThreadId) -> Option<&mut Coroutine> {
        let coroutine = match inner.stack_asked_for(thread) {
            None => self.pool.stack(),
            Some(bytes) => {
                cold_path();
                self.pool.stack_of(bytes)
            }
        }?;
        let Some(body) = inner.take_body(thread) else {
            panic!("dpor bug: {thread:?} has neither a stack nor a body")
        };
        coroutine.put(body);
        *entry(&mut inner.stacks, thread.index()) = Some(coroutine.stack());
        self.in_use += 1;
        Some(entry(&mut self.coroutines.0, thread.index()).insert(coroutine))
    }

    /// How large the stack of a thread is that has none yet.
    #[cold]
    pub(super) fn bytes_of(&self, inner: &Inner, thread: ThreadId) -> usize {
        self.pool
            .bytes_for(inner.stack_asked_for(thread).unwrap_or(0))
    }

    /// Takes back the stack of a thread that has ended, for the next execution.
    #[cold]
    pub(super) fn rest(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.resting.push(coroutine);
        }
    }

    /// Another execution begins.
    #[inline]
    pub(super) fn rested(&mut self) {
        // Mostly none has rested.
        if !self.resting.is_empty() {
            self.recycle_rested();
        }
    }

    #[cold]
    fn recycle_rested(&mut self) {
        for coroutine in self.resting.drain(..) {
            self.pool.recycle(coroutine);
        }
    }

    /// Takes back the stack of a thread whose code has returned.
    #[inline(always)]
    pub(super) fn put_back(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.put_back(coroutine);
        }
    }

    /// Gives the stacks up on which threads still are; what is on them is never dropped.
    pub(super) fn abandon(&mut self) {
        self.in_use = 0;
        for coroutine in self.coroutines.0.drain(..).flatten() {
            coroutine.abandon();
        }
    }

    /// Takes back the stack of a thread that has ended, one way or the other.
    pub(super) fn end(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.recycle(coroutine);
        }
    }
}

impl Drop for Stacks<'_> {
    /// Nothing uses the stacks of an exploration that is over, so none has to rest any longer.
    fn drop(&mut self) {
        self.rested();
    }
}
