//! What is told where the program ends the process in the middle of an execution?
//!
//! By `exit`, or by `abort` as where a count of references overflows. No report comes any more, and
//! under a test harness not even the name of the test. So the schedule is told at once, as where a
//! panic ends the process ([`panics`](crate::rt::exec::panics)). An illegal instruction is how the
//! compiler aborts.
//!
//! The allocator aborts, too, or comes to a fault, where it is handed a pointer that it has never
//! handed out, or finds its lists overwritten.
//!
//! Nothing is prevented: the process ends as it would have, with what else the program has asked
//! for at its end.

#[cfg(unix)]
pub(crate) use unix::{install, sees_aborts, tell_of_allocator};

/// Nothing tells of the end of a process there.
#[cfg(not(unix))]
pub(crate) fn install() {}

#[cfg(not(unix))]
pub(super) fn sees_aborts() -> bool {
    false
}

#[cfg(unix)]
mod unix {
    use std::mem::MaybeUninit;
    use std::panic::catch_unwind;
    use std::ptr;
    use std::sync::OnceLock;

    use libc::{SIGABRT, SIGILL, SS_ONSTACK, c_int, sigaction, stack_t};

    use crate::rt::exec::context::with_any;
    use crate::rt::exec::over;
    use crate::rt::exec::panics::Fatal;
    use crate::rt::heap;
    use crate::rt::heap::Asked;

    const SIGNALS: [(c_int, Fatal); 2] = [(SIGABRT, Fatal::Abort), (SIGILL, Fatal::Instruction)];

    /// What was done at each of the [`SIGNALS`] before.
    static BEFORE: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    /// To be called once.
    pub(crate) fn install() {
        // SAFETY: the function may be called at the end of the process, whatever thread ends it.
        unsafe { libc::atexit(exits) };
        for ((signal, _), before) in SIGNALS.into_iter().zip(&BEFORE) {
            // SAFETY: all zeroes are a value of this type, and the handler has the signature of one
            // without `SA_SIGINFO`.
            unsafe {
                let mut found = MaybeUninit::<sigaction>::zeroed();
                let mut action = MaybeUninit::<sigaction>::zeroed().assume_init();
                action.sa_sigaction = handle as *const () as usize;
                if sigaction(signal, &raw const action, found.as_mut_ptr()) == 0 {
                    let _ = before.set(found.assume_init());
                }
            }
        }
    }

    /// Whether an abort comes to the handler here, and the rest of the process is such that it can
    /// be left: elsewhere the system holds back other signals meanwhile.
    pub(crate) fn sees_aborts() -> bool {
        let mut found = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: a pointer to a variable of this type, which is written; all zeroes are a value of
        // it.
        let found = unsafe {
            sigaction(SIGABRT, ptr::null(), found.as_mut_ptr());
            found.assume_init()
        };
        cfg!(target_os = "linux") && found.sa_sigaction == handle as *const () as usize
    }

    extern "C" fn exits() {
        tell(Fatal::Exit);
    }

    extern "C" fn handle(signal: c_int) {
        let known = SIGNALS.iter().position(|&(known, _)| known == signal);
        // The stack for signals, where an overflow is told, is too small for this.
        if let Some(known) = known
            && !is_on_small_stack()
        {
            match heap::asked() {
                None => {
                    if signal == SIGABRT {
                        // SAFETY: this is the handler, and not on the stack for signals.
                        unsafe { over::leave(signal, SIGNALS[known].1) };
                    }
                    tell(SIGNALS[known].1);
                }
                Some(asked) => tell_of_allocator(asked),
            }
        }
        let before = known.and_then(|known| BEFORE[known].get());
        // SAFETY: it is done what was done before: the signal is held back until this handler
        // returns, and comes again then.
        unsafe {
            match before {
                Some(before) => sigaction(signal, before, ptr::null_mut()),
                None => libc::signal(signal, libc::SIG_DFL) as c_int,
            };
            libc::raise(signal);
        }
    }

    /// Tells of the execution in which this OS thread is, if the code of one of its threads runs
    /// and has asked the allocator behind the tracking one for what has made it fail.
    pub(crate) fn tell_of_allocator(asked: Asked) {
        // Elsewhere it may be in order: a program may see to faults itself, and go on.
        let runs = with_any(|runtime| runtime.running.get()) == Some(true);
        if runs && heap::fail() {
            tell(Fatal::Allocator(asked));
        }
    }

    /// Whether this handler runs on the stack that a thread has for signals, because another
    /// handler there has aborted.
    fn is_on_small_stack() -> bool {
        let mut stack = MaybeUninit::<stack_t>::zeroed();
        // SAFETY: it only writes down what there is; all zeroes are a value of this type.
        let stack = unsafe {
            libc::sigaltstack(ptr::null(), stack.as_mut_ptr());
            stack.assume_init()
        };
        stack.ss_flags & SS_ONSTACK != 0
    }

    /// Tells of the execution in which this OS thread is, if the code of one of its threads runs.
    fn tell(fatal: Fatal) {
        // Nothing is to be raised into a function of the system's.
        let _ = catch_unwind(|| {
            with_any(|runtime| {
                if runtime.running.get() {
                    // What is allocated from now on is not the program's.
                    runtime.heap.record(false);
                    runtime.last_words(fatal);
                }
            })
        });
    }
}
