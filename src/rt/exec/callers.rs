//! Who calls an operation that stands nowhere in the program?
//!
//! An operation stands where its shim is called. A shim that std calls for the program (a `Waker` has a table of
//! functions), that a destructor calls, or that is called through a pointer has no caller that says where it is. An execution
//! that is run to be shown looks at the stack there.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::mem;

use crate::rt::trace::id::ThreadId;
use crate::rt::trace::operation::{OpKind, Operation};
use crate::rt::trace::{Site, foreign};

/// The most stacks that are looked at in an execution. A look takes longer than all else that is done for an operation.
const STACKS_MAX: usize = 100;

/// An operation that stands nowhere in the program.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) thread: ThreadId,
    /// Which event of its thread this is, counted from 0, if it happens.
    pub(crate) index: u32,
    pub(crate) stack: Backtrace,
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

    /// Notes who has called this operation, which is to be the thread's event with this index, if its place does not tell.
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

    /// Forgets what was noted.
    pub(super) fn forget(&self) {
        self.calls.borrow_mut().clear();
    }

    /// What was noted since it was taken last.
    pub(crate) fn take(&self) -> Vec<Call> {
        mem::take(&mut self.calls.borrow_mut())
    }
}
