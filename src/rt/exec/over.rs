//! What if code comes to no end, or to an abort, that runs although its execution is over?
//!
//! Destructors run there that no execution of the program leads to: the tool unwinds a thread where
//! it is stuck. One that drains a queue may find it full for ever, because what it does is no event
//! any more. One that panics is a panic within an unwinding, for which std ends the process. In
//! both cases the stack is given up where it is: nothing on it is dropped any more, but what was
//! found is told in full, and other executions go on.
//!
//! A panic hook cannot be left, because std holds a lock around it. So std is let go on to `abort`,
//! which raises a signal on the same stack, and from the handler of that a stack can be left for
//! good (POSIX says so of `abort`). A line that std has printed then says `aborting`, which does
//! not come to pass.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::context::{Inner, Runtime, Stop, with_any};
use super::panics::Fatal;
use crate::rt::coroutine::suspend;
use crate::rt::event::verdict::End;
use crate::rt::exec::process_exit;

/// Which part of the events that an execution may have a destructor may ask for that is no part of
/// one. Each execution that is tried to show a failure unwinds like the one that failed, and these
/// are some hundreds.
const SHARE: usize = 10;

/// How many operations destructors may ask for.
fn most_of(inner: &Inner) -> usize {
    inner.driver.events_limit() / SHARE
}

impl Runtime {
    /// Another operation was asked for in an execution that is torn down. Those of one thread, or
    /// of what is dropped behind all threads, are at most a share of the events that an execution
    /// may have; a thread that asks for more never comes back from here.
    ///
    /// # Panics
    ///
    /// If there are more and no thread of the model runs, but what is put back behind it.
    #[cold]
    pub(super) fn count_in_vain(&self) {
        let count = self.in_vain.get() + 1;
        self.in_vain.set(count);
        let Ok(most) = self.inner.try_borrow().map(|inner| most_of(&inner)) else {
            return;
        };
        if count <= most {
            return;
        }
        if self.aside.get() {
            // There is no value to be had.
            self.in_vain.set(0);
            std::panic::resume_unwind(Box::new(Stop));
        }
        let limit = format!(
            "more than {most} operations (max_branches / {SHARE}: DPOR_MAX_BRANCHES) after the end of its execution"
        );
        if !self.running.get() {
            // Within an unwinding of this OS thread that would end the process, and then the
            // watchdog tells.
            if !std::thread::panicking() {
                self.in_vain.set(0);
                panic!(
                    "a destructor of what outlives the threads of a model makes {limit}: has it an end?"
                );
            }
            return;
        }
        static TOLD: AtomicBool = AtomicBool::new(false);
        if !TOLD.swap(true, Relaxed) {
            self.say_of_this_thread(&format!(
                "makes {limit}, in a destructor: has that an end? Its stack is given up, and what is on it is not dropped"
            ));
        }
        loop {
            // It is never resumed.
            self.left.set(true);
            suspend();
        }
    }

    /// Something is about to be done behind the panic that fails the test. Of the thread that
    /// unwinds from it not only the events are bounded, but also what is none, such as accesses to
    /// plain memory. False if there were too many; then the execution has ended.
    #[cold]
    pub(super) fn bear_with_failing(&self) -> bool {
        let me = self.current.get();
        let unwinds = self.failing.get().is_some_and(|(thread, _)| thread == me);
        if !unwinds || !self.unwinding.is(me) {
            return true;
        }
        let count = self.in_vain.get() + 1;
        self.in_vain.set(count);
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return true;
        };
        if count <= most_of(&inner) {
            return true;
        }
        inner.end = Some(End::panicked(me));
        drop(inner);
        suspend();
        false
    }

    /// Whether the stack that runs may be given up instead of an end of the process: its execution
    /// is over, or goes on only to be over.
    fn may_be_left(&self) -> bool {
        let is_over = self.stopping.get() || self.unexplored.get();
        is_over && self.running.get() && !self.aside.get() && self.inner.try_borrow_mut().is_ok()
    }

    /// A panic has begun that will end the process. True if its stack will be given up instead,
    /// which is told once.
    pub(super) fn will_be_left(&self) -> bool {
        if !self.may_be_left() || !process_exit::sees_aborts() {
            return false;
        }
        let panics = self.panics.borrow();
        let me = self.current.get();
        let what = panics.iter().rev().find(|panic| panic.thread == me);
        let what = what.map_or_else(String::new, |panic| {
            let place = panic.location.as_ref();
            let place =
                place.map_or_else(String::new, |(file, line, _)| format!(" at {file}:{line}"));
            format!(" ({}{place})", panic.text)
        });
        drop(panics);
        self.tell_of_left(&format!("panics{what} while it unwinds"));
        true
    }

    /// Says once why a stack is given up.
    fn tell_of_left(&self, does: &str) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if TOLD.swap(true, Relaxed) {
            return;
        }
        let why = match self.stopping.get() {
            true => "is unwound",
            false => "goes on to its end",
        };
        self.say_of_this_thread(&format!(
            "{does}, in an execution that is over, where it {why}. Its stack is given up, what is on it is not dropped, and the \
             process does not abort, whatever std says of that. What a destructor checks, it checks unless \
             `thread::panicking()`"
        ));
    }

    /// Says something of the thread that runs, past what a test harness keeps to itself.
    fn say_of_this_thread(&self, what: &str) {
        let recorded = self.heap.record(false);
        let name = match self.inner.try_borrow() {
            Ok(inner) => inner.called(self.current.get()),
            Err(_) => "a thread".to_owned(),
        };
        let _ = std::io::stderr().write_all(format!("dpor: {name} {what}\n").as_bytes());
        self.heap.record(recorded);
    }
}

/// The program aborts, for this reason. Gives the stack up that this is called on, if its execution
/// is over; returns otherwise.
///
/// # Safety
///
/// Only in the handler of a signal that `abort` has raised on this OS thread, on the stack that
/// called it.
#[cfg(unix)]
pub(super) unsafe fn leave(signal: libc::c_int, fatal: Fatal) {
    let leaves = with_any(|runtime| {
        if !runtime.may_be_left() {
            return false;
        }
        // What is allocated from now on is not the program's.
        runtime.heap.record(false);
        if fatal == Fatal::Abort {
            runtime.tell_of_left("aborts");
        }
        true
    });
    if leaves == Some(true) {
        // SAFETY: the code of the program has called `abort` here, which holds no lock meanwhile;
        // the runtime is not borrowed.
        unsafe { crate::rt::coroutine::leave(signal, None) };
    }
}
