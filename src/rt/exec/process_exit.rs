//! What is reported if the program ends the process in the middle of an execution?
//!
//! The program may end the process by `exit`, or by `abort`, for example where a reference count
//! overflows. Then no report follows, and under a test harness not even the name of the test. So
//! the schedule is printed at once, as where a panic ends the process
//! ([`panics`](crate::rt::exec::panics)). The compiler aborts by an illegal instruction.
//!
//! The allocator aborts, too, or faults, if it is handed a pointer that it has never handed out, or
//! finds its lists overwritten.
//!
//! The runtime prevents no such end: the process ends as it would have, with the other actions that
//! the program has registered for its end.

#[cfg(unix)]
pub(crate) use unix::{install, sees_aborts, tell_of_allocator};

/// On other systems the end of a process is not reported.
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

    /// The actions for each of the [`SIGNALS`] before ours were installed.
    static BEFORE: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    /// Installs the handlers. To be called once.
    pub(crate) fn install() {
        // SAFETY: the function may be called at the end of the process on any thread that ends it.
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

    /// Whether the handler receives an abort here, and may leave the stack: on systems other than
    /// Linux the system blocks other signals meanwhile.
    pub(crate) fn sees_aborts() -> bool {
        let mut found = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: the pointer is to a variable of this type, which the call writes; all zeroes are
        // a value of the type.
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
        // The alternative signal stack, on which an overflow is reported, is too small for a
        // report.
        if let Some(known) = known
            && !is_on_small_stack()
        {
            match heap::asked() {
                None => {
                    if signal == SIGABRT {
                        // SAFETY: this is the handler, and it does not run on the alternative
                        // signal stack.
                        unsafe { over::leave(signal, SIGNALS[known].1) };
                    }
                    tell(SIGNALS[known].1);
                }
                Some(asked) => tell_of_allocator(asked),
            }
        }
        let before = known.and_then(|known| BEFORE[known].get());
        // SAFETY: the calls restore the earlier action. The signal is blocked until this handler
        // returns, and is delivered again then.
        unsafe {
            match before {
                Some(before) => sigaction(signal, before, ptr::null_mut()),
                None => libc::signal(signal, libc::SIG_DFL) as c_int,
            };
            libc::raise(signal);
        }
    }

    /// Reports the execution on this OS thread, if the code of one of its threads runs and has made
    /// the request on which the allocator behind the tracking one has failed.
    pub(crate) fn tell_of_allocator(asked: Asked) {
        // Outside of a model the fault may be intended: a program may handle faults itself, and
        // continue.
        let runs = with_any(|runtime| runtime.running.get()) == Some(true);
        if runs && heap::fail() {
            tell(Fatal::Allocator(asked));
        }
    }

    /// Whether this handler runs on the alternative signal stack of the thread, because another
    /// handler there has aborted.
    fn is_on_small_stack() -> bool {
        let mut stack = MaybeUninit::<stack_t>::zeroed();
        // SAFETY: the call only writes the present setting; all zeroes are a value of this type.
        let stack = unsafe {
            libc::sigaltstack(ptr::null(), stack.as_mut_ptr());
            stack.assume_init()
        };
        stack.ss_flags & SS_ONSTACK != 0
    }

    /// Reports the execution on this OS thread, if the code of one of its threads runs.
    fn tell(fatal: Fatal) {
        // No panic may unwind into a function of the system.
        let _ = catch_unwind(|| {
            with_any(|runtime| {
                if runtime.running.get() {
                    // Allocations from now on are not the program's.
                    runtime.heap.record(false);
                    runtime.last_words(fatal);
                }
            })
        });
    }
}
