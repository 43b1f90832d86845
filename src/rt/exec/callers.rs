//! Who calls an operation that stands nowhere in the program?
//!
//! An operation stands where its shim is called. A shim that std calls for the program (a `Waker`
//! has a table of functions), that a destructor calls, or that is called through a pointer has no
//! caller that says where it is. An execution that is run to be shown looks at the stack there.
//!
//! A loop without a hint is known by the read that it comes back to, and the function that reads is
//! often not the one that goes round. So the stack is looked at where such a loop is taken to wait
//! for the first time.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::rc::Rc;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::{Site, foreign};

/// The most stacks that are looked at in an execution. A look takes longer than all else that is
/// done for an operation.
const STACKS_MAX: usize = 100;

/// An operation that stands nowhere in the program.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) thread: ThreadId,
    /// Which event of its thread this is, counted from 0, if it happens.
    pub(crate) index: u32,
    pub(crate) stack: Backtrace,
}

/// A read that a loop without a hint comes back to.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) read: Site,
    pub(crate) stack: Rc<Backtrace>,
}

/// Whether the place of this operation is none of the program's, although it has one there.
pub(crate) fn stands_nowhere(operation: &Operation, site: Site) -> bool {
    // Nobody calls the end of a thread.
    operation.kind != OpKind::Exit && foreign(site.file()).is_some()
}

/// The operations of an execution that stand nowhere in the program.
#[derive(Default, Debug)]
pub(crate) struct Callers {
    asked: Cell<bool>,
    calls: RefCell<Vec<Call>>,
    /// The rounds of an exploration, one for each read.
    rounds: RefCell<Vec<Round>>,
}

impl Callers {
    /// Says whether somebody wants to know.
    pub(super) fn ask(&self, wanted: bool) {
        self.asked.set(wanted);
    }

    #[inline(always)]
    pub(super) fn are_asked_for(&self) -> bool {
        self.asked.get()
    }

    /// Notes who has called this operation, which is to be the thread's event with this index, if
    /// its place does not tell.
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

    /// Notes who has called a read that a loop without a hint comes back to, if that is not noted
    /// yet.
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

    /// Forgets what was noted.
    pub(super) fn forget(&self) {
        self.calls.borrow_mut().clear();
        self.rounds.borrow_mut().clear();
    }

    /// What was noted since it was taken last.
    pub(crate) fn take(&self) -> Vec<Call> {
        mem::take(&mut self.calls.borrow_mut())
    }
}
