//! What does an exploration report if a user ends it from the terminal?
//!
//! `SIGINT` would end the process at once, and the progress of the exploration would be lost
//! without a word. Here the signal asks each exploration to stop before its next execution, as at a
//! limit: the exploration writes its checkpoint and reports its progress. When all explorations
//! have stopped, the process ends by the same signal, so that a shell or a harness sees the usual
//! exit status. An execution that does not end is reported like one that hangs, and a second signal
//! ends the process at once.
//!
//! A program that handles `SIGINT` itself, or ignores it, is left alone.

#[cfg(unix)]
pub(super) use unix::install;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Whether the user has asked for the end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The number of explorations that have not reported everything.
static EXPLORING: AtomicUsize = AtomicUsize::new(0);

/// Whether explorations are to stop.
#[inline]
pub(crate) fn asked() -> bool {
    ASKED.load(std::sync::atomic::Ordering::Relaxed)
}

/// An exploration. The end of the process waits for it.
pub(crate) struct Exploring(());

impl Exploring {
    /// Begins an exploration. Once the user has asked for the end, no exploration begins.
    pub(crate) fn begin() -> Exploring {
        EXPLORING.fetch_add(1, SeqCst);
        let exploring = Exploring(());
        if asked() {
            exploring.end();
        }
        exploring
    }

    /// Ends an exploration that was asked to stop and has reported everything. This OS thread does
    /// not continue, and the process ends.
    pub(crate) fn end(self) -> ! {
        drop(self);
        loop {
            std::thread::park();
        }
    }
}

impl Drop for Exploring {
    fn drop(&mut self) {
        EXPLORING.fetch_sub(1, SeqCst);
    }
}

/// On other systems the signal is not handled.
#[cfg(not(unix))]
pub(super) fn install() {}

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicI32, Ordering::Relaxed, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use libc::{SIG_DFL, SIGINT, c_int, sigaction};

    use super::{ASKED, EXPLORING};
    use crate::rt::process::watchdog;

    /// How long an execution may take before it is reported as one that does not end.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The pause between two checks whether all explorations have stopped.
    const PAUSE: Duration = Duration::from_millis(5);

    /// The end of the pipe that the handler writes to.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    /// Installs the handler, if the program has none. To be called once.
    pub(crate) fn install() {
        let mut before = MaybeUninit::<sigaction>::zeroed();
        let mut ends = [0; 2];
        // SAFETY: the pointers are to variables of these types, which the calls write; all zeroes
        // are a value of the first type.
        let is_free = unsafe {
            sigaction(SIGINT, ptr::null(), before.as_mut_ptr()) == 0
                && before.assume_init().sa_sigaction == SIG_DFL
                && libc::pipe(ends.as_mut_ptr()) == 0
        };
        if !is_free {
            return;
        }
        for end in ends {
            // SAFETY: the call has no requirements.
            unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        PIPE.store(ends[1], Relaxed);
        let name = "dpor interrupts".to_owned();
        let waits = std::thread::Builder::new().name(name).stack_size(256 << 10);
        // Without a thread that waits for the signal, the default action stays.
        if waits.spawn(move || wait(ends[0])).is_err() {
            return;
        }
        // SAFETY: all zeroes are a value of this type, and the handler has the signature of one
        // without `SA_SIGINFO`.
        unsafe {
            let mut action = MaybeUninit::<sigaction>::zeroed().assume_init();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            sigaction(SIGINT, &raw const action, ptr::null_mut());
        }
    }

    /// Does only what is allowed in the handler of a signal that comes at any moment.
    extern "C" fn handle(_: c_int) {
        if ASKED.swap(true, SeqCst) {
            end();
        }
        // SAFETY: the pointer is to one byte. The result of the write is ignored, because the
        // handler has no other means.
        unsafe { libc::write(PIPE.load(Relaxed), [0u8].as_ptr().cast(), 1) };
    }

    /// The main function of the thread that waits for the signal.
    fn wait(pipe: c_int) {
        let mut byte = [0u8];
        // SAFETY: the pointer is to one byte, which is written.
        while unsafe { libc::read(pipe, byte.as_mut_ptr().cast(), 1) } < 1 {
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return;
            }
        }
        let start = Instant::now();
        while EXPLORING.load(SeqCst) > 0 && start.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        if EXPLORING.load(SeqCst) > 0 {
            for text in watchdog::all_that_run() {
                let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
            }
        }
        end();
    }

    /// Ends the process as the signal would have ended it.
    fn end() {
        // SAFETY: the calls have no requirements, and may be made in the handler of a signal.
        unsafe {
            libc::signal(SIGINT, SIG_DFL);
            libc::kill(libc::getpid(), SIGINT);
        }
    }
}
