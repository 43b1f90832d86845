//! What happens if code that still runs after the end of its execution does not terminate, or
//! aborts?
//!
//! The runtime unwinds a thread where it is stuck, and then destructors run in states that no
//! execution of the program reaches. A destructor that drains a queue may find it full for ever,
//! because its operations are no events any more. A destructor that panics is a panic within an
//! unwinding, for which std ends the process. In both cases the stack is abandoned where it is: no
//! value on it is dropped any more, but the failure is reported in full, and other executions
//! continue.
//!
//! The stack cannot be left from a panic hook, because std holds a lock around the hook. So std
//! continues to `abort`, which raises a signal on the same stack, and a stack can be left for good
//! from the handler of that signal (POSIX says so of `abort`). A line that std has printed then
//! says `aborting`, although the process does not abort.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::context::{Inner, Runtime, Stop, with_any};
use super::panics::Fatal;
use crate::rt::coroutine::suspend;
use crate::rt::event::verdict::End;
use crate::rt::exec::process_exit;

/// The divisor of an execution's limit of events that gives the most operations of a destructor
/// after the end of the execution. Each execution that is tried in order to report a failure
/// unwinds like the one that failed, and there are some hundreds of these.
const SHARE: usize = 10;

/// The least number of operations that a destructor may make. An execution that is tried for the
/// report of a short failure has a limit of some hundred events, of which a tenth is less than a
/// destructor with an end may make.
const LEAST: usize = 1000;

/// The number of operations that destructors may ask for.
fn most_of(inner: &Inner) -> usize {
    (inner.driver.events_limit() / SHARE).max(LEAST)
}

thread_local! {
    /// Whether the executions on this OS thread are tried for a report only.
    static IS_TRIAL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `explore`. Its executions are tried for a report only: where one of them would end the
/// process by a panic within an unwinding, its stack is abandoned, and the execution fails. `None`
/// without a run if this process cannot abandon a stack there.
pub(crate) fn try_out<R>(explore: impl FnOnce() -> R) -> Option<R> {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            IS_TRIAL.set(false);
        }
    }
    if !process_exit::sees_aborts() {
        return None;
    }
    let _ends = Ends;
    IS_TRIAL.set(true);
    Some(explore())
}

impl Runtime {
    /// Counts an operation that was asked for in an execution that is torn down. The operations of
    /// one thread, or of the values that are dropped behind all threads, are at most a share of the
    /// events that an execution may have. A thread that asks for more never returns from here.
    ///
    /// # Panics
    ///
    /// If there are more operations and no thread of the model runs, but a destructor of memory
    /// that is put back behind the execution.
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
            // The operation has no value to return.
            self.in_vain.set(0);
            std::panic::resume_unwind(Box::new(Stop));
        }
        let limit = format!(
            "more than {most} operations (max_branches / {SHARE}, at least {LEAST}: DPOR_MAX_BRANCHES) after the end of its execution"
        );
        if !self.running.get() {
            // A panic within an unwinding of this OS thread would end the process. The watchdog
            // reports this destructor instead.
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
            // The coroutine is never resumed.
            self.left.set(true);
            suspend();
        }
    }

    /// Counts an action behind the panic that fails the test. The thread that unwinds from that
    /// panic is bounded not only in its events, but also in actions that are no events, such as
    /// accesses to plain memory. False if there were too many; then the execution has ended.
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

    /// Whether the stack that runs may be abandoned instead of ending the process: its execution is
    /// over, or continues only to its end, or is tried for a report only.
    fn may_be_left(&self) -> bool {
        let is_over = self.stopping.get() || self.unexplored.get() || IS_TRIAL.get();
        is_over && self.running.get() && !self.aside.get() && self.inner.try_borrow_mut().is_ok()
    }

    /// Decides what follows a panic that has begun and would end the process. True if its stack is
    /// abandoned instead, which is reported once.
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

    /// Reports once why a stack is abandoned.
    fn tell_of_left(&self, does: &str) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if TOLD.swap(true, Relaxed) {
            return;
        }
        let which = if IS_TRIAL.get() {
            "that is tried for the report of a failure"
        } else if self.stopping.get() {
            "that is over, where it is unwound"
        } else {
            "that is over, where it goes on to its end"
        };
        self.say_of_this_thread(&format!(
            "{does}, in an execution {which}. Its stack is given up, what is on it is not dropped, and the \
             process does not abort, whatever std says of that. What a destructor checks, it checks unless \
             `thread::panicking()`"
        ));
    }

    /// Reports a fact about the thread that runs, past the output capture of a test harness.
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

/// The program aborts for the reason `fatal`. Abandons the stack of the caller, if its execution is
/// over; returns otherwise.
///
/// # Safety
///
/// Only the handler of a signal that `abort` has raised on this OS thread may call this function,
/// on the stack that called `abort`.
#[cfg(unix)]
pub(super) unsafe fn leave(signal: libc::c_int, fatal: Fatal) {
    let leaves = with_any(|runtime| {
        if !runtime.may_be_left() {
            return false;
        }
        // Allocations from now on are not the program's.
        runtime.heap.record(false);
        if fatal == Fatal::Abort {
            runtime.tell_of_left("aborts");
        }
        true
    });
    if leaves == Some(true) {
        // SAFETY: the code of the program has called `abort` on this stack, which holds no lock
        // meanwhile; the runtime is not borrowed.
        unsafe { crate::rt::coroutine::leave(signal, None) };
    }
}
