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
    /// Stacks that are not reused in this execution.
    resting: Vec<Coroutine>,
    /// The number of threads that have a stack.
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
    /// The stacks of an exploration that begins.
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

    /// An upper bound of the number of threads that have had a stack.
    pub(super) fn threads(&self) -> usize {
        self.coroutines.0.len()
    }

    /// Takes a stack for a thread that is about to start. `None` if the system has no memory for a
    /// stack of the size that the thread [needs](Stacks::bytes_of); then `self` is unchanged.
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

    /// The size of the stack that a thread without one needs.
    #[cold]
    pub(super) fn bytes_of(&self, inner: &Inner, thread: ThreadId) -> usize {
        self.pool
            .bytes_for(inner.stack_asked_for(thread).unwrap_or(0))
    }

    /// Keeps the stack of a thread that has ended until the next execution.
    #[cold]
    pub(super) fn rest(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.resting.push(coroutine);
        }
    }

    /// Returns the resting stacks to the pool, because another execution begins.
    #[inline]
    pub(super) fn rested(&mut self) {
        // Mostly there are none.
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

    /// Puts the stack of a thread back into the pool, after the thread has returned from its code.
    #[inline(always)]
    pub(super) fn put_back(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.put_back(coroutine);
        }
    }

    /// Abandons the stacks on which threads still are; the values on these stacks are never
    /// dropped.
    pub(super) fn abandon(&mut self) {
        self.in_use = 0;
        for coroutine in self.coroutines.0.drain(..).flatten() {
            coroutine.abandon();
        }
    }

    /// Gives the stack of a thread back to the pool, after the thread has ended in any way.
    pub(super) fn end(&mut self, thread: ThreadId) {
        if let Some(coroutine) = self.coroutines.0[thread.index()].take() {
            self.in_use -= 1;
            self.pool.recycle(coroutine);
        }
    }
}

impl Drop for Stacks<'_> {
    /// No thread uses the stacks of an exploration that is over, so no stack has to rest any
    /// longer.
    fn drop(&mut self) {
        self.rested();
    }
}
