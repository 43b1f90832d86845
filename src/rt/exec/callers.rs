//! Which code calls an operation with a site outside of the program's source?
//!
//! The site of an operation is the call of its shim. If std calls a shim for the program (a `Waker`
//! has a table of functions), if a destructor calls it, or if it is called through a pointer, that
//! call has no place in the program's source. An execution that is run to be reported captures the
//! stack at such an operation.
//!
//! A loop without a hint is known by the read that each of its rounds repeats, and often the
//! function that reads is not the function that loops. So the stack is captured where such a loop
//! is taken to wait for the first time.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::rc::Rc;

use crate::rt::event::held::{Datum, Held, Touched, When};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::{Site, foreign};

/// The most stacks that are captured in an execution. A capture takes longer than everything else
/// that is done for an operation.
const STACKS_MAX: usize = 100;

/// The most critical sections' begins and ends of an execution with data that is kept.
const HELD_MAX: usize = 10_000;

/// The most accesses to plain memory of an execution that are kept.
const TOUCHED_MAX: usize = 10_000;

/// An operation with a site outside of the program's source.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) thread: ThreadId,
    /// The index of this event in its thread, counted from 0, if the operation happens.
    pub(crate) index: u32,
    pub(crate) stack: Backtrace,
}

/// A waker that a thread has cloned for the task that it polls.
#[derive(Debug)]
struct ClonedWaker {
    thread: ThreadId,
    /// The number of events of the thread before.
    events: u32,
    stack: Backtrace,
}

/// A waker that a task polled at this place has put where no event shows it, with the stack of the
/// clone.
#[derive(Debug)]
pub(crate) struct UnseenWaker {
    pub(crate) polled: Site,
    pub(crate) stack: Backtrace,
}

/// A read that each round of a loop without a hint repeats.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) read: Site,
    pub(crate) stack: Rc<Backtrace>,
}

/// Whether the site of this operation lies outside of the program's source, although the program's
/// source has a call that leads to it.
pub(crate) fn stands_nowhere(operation: &Operation, site: Site) -> bool {
    // The end of a thread has no caller.
    operation.kind != OpKind::Exit && foreign(site.file()).is_some()
}

/// The operations of an execution with sites outside of the program's source.
#[derive(Default, Debug)]
pub(crate) struct Callers {
    asked: Cell<bool>,
    calls: RefCell<Vec<Call>>,
    /// The data behind the locks that the execution took and released.
    held: RefCell<Vec<Held>>,
    /// The accesses to plain memory.
    touched: RefCell<Vec<Touched>>,
    /// The wakers that were cloned last, at most one for each thread.
    cloned: RefCell<Vec<ClonedWaker>>,
    unseen: RefCell<Vec<UnseenWaker>>,
    /// The rounds of loops in an exploration, one for each read.
    rounds: RefCell<Vec<Round>>,
}

impl Callers {
    /// Sets whether callers are to be noted.
    pub(super) fn ask(&self, wanted: bool) {
        self.asked.set(wanted);
    }

    #[inline(always)]
    pub(super) fn are_asked_for(&self) -> bool {
        self.asked.get()
    }

    /// Notes the caller of this operation, which is to be the thread's event with this index, if
    /// the site lies outside of the program's source.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&self, (thread, index): (ThreadId, u32), operation: &Operation, site: Site) {
        let mut calls = self.calls.borrow_mut();
        if stands_nowhere(operation, site) && calls.len() < STACKS_MAX {
            calls.push(Call {
                thread,
                index,
                stack: Backtrace::force_capture(),
            });
        }
    }

    /// Notes the data behind a lock.
    #[cold]
    pub(super) fn note_held(&self, held: Held) {
        let mut all = self.held.borrow_mut();
        if all.len() < HELD_MAX {
            all.push(held);
        }
    }

    /// The data that was noted since the last call of this function.
    pub(crate) fn take_held(&self) -> Vec<Held> {
        mem::take(&mut self.held.borrow_mut())
    }

    /// Notes an access to plain memory.
    #[cold]
    pub(super) fn note_touched(&self, touched: Touched) {
        let mut all = self.touched.borrow_mut();
        if all.len() < TOUCHED_MAX {
            all.push(touched);
        }
    }

    /// Notes what the last access of a thread to the memory at this address has found or left.
    #[cold]
    pub(super) fn note_touched_data(
        &self,
        (thread, start): (ThreadId, usize),
        when: When,
        datum: Datum,
    ) {
        let mut all = self.touched.borrow_mut();
        let is_it = |it: &&mut Touched| (it.access.thread, it.start) == (thread, start);
        if let Some(touched) = all.iter_mut().rev().find(is_it) {
            match when {
                When::Found => touched.found = Some(datum),
                When::Left => touched.left = Some(datum),
            }
        }
    }

    /// The accesses that were noted since the last call of this function.
    pub(crate) fn take_touched(&self) -> Vec<Touched> {
        mem::take(&mut self.touched.borrow_mut())
    }

    /// Notes that a thread with this number of events has cloned the waker of its task.
    #[cold]
    pub(super) fn note_clone(&self, thread: ThreadId, events: u32) {
        let mut cloned = self.cloned.borrow_mut();
        cloned.retain(|known| known.thread != thread);
        cloned.push(ClonedWaker {
            thread,
            events,
            stack: Backtrace::force_capture(),
        });
    }

    /// Notes that no event shows where the task polled at this place has put the waker that the
    /// thread with this number of events has cloned last.
    #[cold]
    pub(super) fn note_unseen(&self, thread: ThreadId, events: u32, polled: Site) {
        let mut cloned = self.cloned.borrow_mut();
        let is = |known: &ClonedWaker| (known.thread, known.events) == (thread, events);
        let mut unseen = self.unseen.borrow_mut();
        if let Some(at) = cloned.iter().position(is)
            && unseen.len() < STACKS_MAX
        {
            let ClonedWaker { stack, .. } = cloned.swap_remove(at);
            unseen.push(UnseenWaker { polled, stack });
        }
    }

    /// The wakers of that kind that were noted since the last call of this function.
    pub(super) fn take_unseen(&self) -> Vec<UnseenWaker> {
        self.cloned.borrow_mut().clear();
        mem::take(&mut self.unseen.borrow_mut())
    }

    /// Notes the caller of a read that each round of a loop without a hint repeats, if it is not
    /// noted yet.
    #[cold]
    #[inline(never)]
    pub(super) fn note_round(&self, read: Site) {
        let mut rounds = self.rounds.borrow_mut();
        if !rounds.iter().any(|known| ptr::eq(known.read, read)) {
            let stack = Rc::new(Backtrace::force_capture());
            rounds.push(Round { read, stack });
        }
    }

    /// The rounds that were noted in this exploration.
    pub(super) fn rounds(&self) -> impl Deref<Target = Vec<Round>> {
        self.rounds.borrow()
    }

    /// Forgets the noted calls and rounds.
    pub(super) fn forget(&self) {
        self.calls.borrow_mut().clear();
        self.held.borrow_mut().clear();
        self.touched.borrow_mut().clear();
        self.cloned.borrow_mut().clear();
        self.unseen.borrow_mut().clear();
        self.rounds.borrow_mut().clear();
    }

    /// The calls that were noted since the last call of this function.
    pub(crate) fn take(&self) -> Vec<Call> {
        mem::take(&mut self.calls.borrow_mut())
    }
}
