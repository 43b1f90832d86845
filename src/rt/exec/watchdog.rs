//! What if a step does not come back?
//!
//! A step is a visible operation and the code after it, up to the next one. Code that loops without
//! a shared access, or that blocks on something `dpor` does not see (a lock of another crate, a
//! channel of std), never gets there, and the OS thread that explores hangs with it. Nothing can be
//! done about it from inside, so a second OS thread looks at a counter of steps from time to time,
//! and says once who hangs, and where it was last seen.

use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::rt::trace::Site;
use crate::rt::trace::id::ThreadId;

/// The last step, as the watching thread sees it.
#[derive(Default)]
pub(crate) struct Pulse {
    steps: AtomicU64,
    thread: AtomicU32,
    site: AtomicPtr<Location<'static>>,
}

impl Pulse {
    /// Notes that `thread` goes on after an operation at `site`.
    #[inline]
    pub(crate) fn beat(&self, thread: ThreadId, site: Site) {
        self.thread.store(thread.0, Relaxed);
        self.site.store(ptr::from_ref(site).cast_mut(), Relaxed);
        // Only this thread writes, so this needs no read-modify-write.
        self.steps.store(self.steps.load(Relaxed) + 1, Relaxed);
    }

    fn describe(&self, patience: Duration) -> String {
        let site = self.site.load(Relaxed);
        // SAFETY: a pointer that is not null was made from a `&'static Location`.
        let place = match unsafe { site.as_ref() } {
            Some(site) => format!("after {}:{}", site.file(), site.line()),
            None => "before its first step".to_owned(),
        };
        let thread = self.thread.load(Relaxed);
        let which = match thread {
            0 => "the main thread of the model".to_owned(),
            n => format!("spawned thread {n}"),
        };
        format!(
            "dpor: a step has not come back for {:.0} s: {which}, {place}, loops without a shared \
             access, or blocks on something the model does not see (a primitive of std or of \
             another crate); swap its import, or raise `Builder::patience` (DPOR_PATIENCE, in \
             seconds; 0 for ever)",
            patience.as_secs_f64()
        )
    }
}

/// Watches a pulse until it is dropped.
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    watching: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Calls `say` once, from another OS thread, if `pulse` does not beat for `patience`.
    pub(crate) fn watch(
        pulse: Arc<Pulse>,
        patience: Duration,
        say: impl FnOnce(String) + Send + 'static,
    ) -> Watchdog {
        let (stop, stopped) = channel::<()>();
        let watch = move || {
            let mut before = None;
            loop {
                match stopped.recv_timeout(patience) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
                let steps = pulse.steps.load(Relaxed);
                if before.replace(steps) == Some(steps) {
                    return say(pulse.describe(patience));
                }
            }
        };
        // Without a thread for it nobody watches, which is no reason to fail a test.
        let watching = thread::Builder::new()
            .name("dpor watchdog".to_owned())
            .spawn(watch);
        Watchdog {
            stop: Some(stop),
            watching: watching.ok(),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(watching) = self.watching.take() {
            let _ = watching.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_come_back_is_named_with_its_thread_and_place() {
        let pulse = Arc::new(Pulse::default());
        pulse.beat(ThreadId(2), Location::caller());
        let (said, heard) = channel();
        let dog = Watchdog::watch(pulse, Duration::ZERO, move |text| {
            said.send(text).expect("the test listens");
        });
        let text = heard.recv().expect("it speaks up");
        assert!(
            text.contains("spawned thread 2, after src/rt/exec/watchdog.rs:"),
            "{text}"
        );
        assert!(
            text.contains("`Builder::patience` (DPOR_PATIENCE, in seconds"),
            "{text}"
        );
        drop(dog);
    }
}
