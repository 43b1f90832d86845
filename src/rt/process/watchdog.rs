//! What happens if a step does not return?
//!
//! A step is a visible operation and the code after it, up to the next operation. Code that loops
//! without a shared access, or that blocks on an object that `dpor` does not see (a lock of another
//! crate, a channel of std), never reaches the next operation, and the OS thread that explores
//! hangs with it. The exploration cannot help itself, so a second OS thread looks at a counter of
//! steps from time to time, and reports once which thread hangs, and where it was last seen. A
//! process has one such OS thread, from the first exploration on, because an OS thread for each
//! short exploration would cost more than all its other work.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::rt::event::id::ThreadId;
use crate::rt::event::{Site, foreign};
use crate::rt::rare::rarely;

/// The last step, as the watching OS thread sees it.
#[derive(Default)]
pub(crate) struct Pulse {
    /// The place at which the explored model begins, or null if no model is explored.
    model: AtomicPtr<Location<'static>>,
    explorations: AtomicU64,
    /// The number of executions before this one.
    executions: AtomicU64,
    steps: AtomicU64,
    thread: AtomicU32,
    site: AtomicPtr<Location<'static>>,
    /// The [`Phase`] of the execution.
    phase: AtomicU8,
    /// Whether a failure is known, and which.
    knows: AtomicBool,
    known: Mutex<Option<Box<dyn KnownFailure>>>,
}

/// A failure that is known and not reported yet, so that the watchdog may have to report it.
pub(crate) trait KnownFailure: Send {
    /// Its report.
    fn report(&self) -> String;
}

/// The relation of the running code to its execution.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    /// The code is the execution.
    Runs,
    /// The exploration has ended, and threads continue to their ends.
    RunsOut,
    /// The remaining threads unwind.
    Unwinds,
    /// No thread is left, and statics get back their values.
    PutsBack,
}

impl Pulse {
    /// The exploration of the model at this place begins.
    pub(crate) fn begin(&self, model: Site) {
        self.model.store(ptr::from_ref(model).cast_mut(), Relaxed);
        // As below, only this OS thread writes.
        let before = self.explorations.load(Relaxed);
        self.explorations.store(before + 1, Relaxed);
        // Otherwise the last step of the earlier exploration would be reported.
        self.turn_to(ThreadId::MAIN, None);
    }

    /// The next execution begins, after `begun` others.
    #[inline]
    pub(crate) fn count_executions(&self, begun: u64) {
        self.executions.store(begun, Relaxed);
    }

    /// The execution enters this phase.
    pub(crate) fn go_into(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.count();
    }

    /// Another execution begins, without a known failure.
    #[inline]
    pub(crate) fn go_on(&self) {
        self.phase.store(Phase::Runs as u8, Relaxed);
        self.forget();
    }

    /// Sets a known failure that is not reported yet.
    pub(crate) fn know(&self, known: Box<dyn KnownFailure>) {
        *self.known() = Some(known);
        self.knows.store(true, Relaxed);
    }

    /// Whether a failure is known.
    pub(crate) fn knows(&self) -> bool {
        self.knows.load(Relaxed)
    }

    /// The known failure has been reported, or was none.
    #[inline]
    pub(crate) fn forget(&self) {
        if rarely!(self.knows()) {
            self.knows.store(false, Relaxed);
            *self.known() = None;
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Box<dyn KnownFailure>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The report of the known failure, if there is one.
    pub(crate) fn report(&self) -> Option<String> {
        let known = self.known();
        Some(known.as_ref()?.report())
    }

    /// The exploration ends.
    pub(crate) fn end(&self) {
        self.go_on();
        self.model.store(ptr::null_mut(), Relaxed);
    }

    /// Notes that another thread continues, after an operation at `site` if this is not its first
    /// step.
    #[inline]
    pub(crate) fn turn_to(&self, thread: ThreadId, site: Option<Site>) {
        self.thread.store(thread.0, Relaxed);
        let site = site.map_or(ptr::null(), ptr::from_ref);
        self.site.store(site.cast_mut(), Relaxed);
        self.count();
    }

    /// Notes that the same thread continues, after an operation at `site`.
    #[inline]
    pub(crate) fn beat(&self, site: Site) {
        self.site.store(ptr::from_ref(site).cast_mut(), Relaxed);
        self.count();
    }

    #[inline]
    fn count(&self) {
        // Only this OS thread writes, so this needs no read-modify-write.
        self.steps.store(self.steps.load(Relaxed) + 1, Relaxed);
    }

    /// The message if the pulse has not changed for this long; `None` if no model is explored.
    pub(crate) fn describe(&self, patience: Duration) -> Option<String> {
        // SAFETY: a pointer that is not null was made from a `&'static Location`.
        let model = unsafe { self.model.load(Relaxed).as_ref() }?;
        let doing = self.doing();
        let mut text = format!(
            "dpor: a step of the model at {model} has not come back for {:.0} s: {doing}. Since then it has \
             come to no operation that dpor schedules: it computes, loops without one, or blocks on something that dpor does \
             not see (a primitive of std or of another crate). Swap the import of that, or raise `Builder::patience` \
             (DPOR_PATIENCE, in seconds; 0 for ever)",
            patience.as_secs_f64()
        );
        self.add_known(&mut text);
        Some(text)
    }

    /// Adds the known failure, if there is one.
    fn add_known(&self, text: &mut String) {
        if let Some(report) = self.report() {
            text.push_str("\nWhat has failed before is not lost:\n\n");
            text.push_str(&report);
            text.push('\n');
        }
    }

    /// The message if the user ends the process in the middle of an execution; `None` if no model
    /// is explored.
    #[cfg(unix)]
    fn interrupted(&self) -> Option<String> {
        // SAFETY: as in `describe`.
        let model = unsafe { self.model.load(Relaxed).as_ref() }?;
        let (begun, doing) = (self.executions.load(Relaxed), self.doing());
        let mut text = format!(
            "dpor: interrupted in execution {} of the model at {model}, which does not come to its end: {doing}",
            begun + 1
        );
        self.add_known(&mut text);
        Some(text)
    }

    /// The running thread, and the place where it was last seen.
    fn doing(&self) -> String {
        let site = self.site.load(Relaxed);
        // SAFETY: a pointer that is not null was made from a `&'static Location`.
        let place = match unsafe { site.as_ref() } {
            Some(site) => match foreign(site.file()) {
                Some(somewhere) => format!("after an operation {somewhere}"),
                None => format!("after {}:{}", site.file(), site.line()),
            },
            None => "before its first step".to_owned(),
        };
        let which = match self.thread.load(Relaxed) {
            0 => "the main thread of the model".to_owned(),
            n => format!("spawned thread {n}"),
        };
        const RUNS_OUT: u8 = Phase::RunsOut as u8;
        const UNWINDS: u8 = Phase::Unwinds as u8;
        const PUTS_BACK: u8 = Phase::PutsBack as u8;
        match self.phase.load(Relaxed) {
            RUNS_OUT => {
                format!("{which}, {place}, which goes on to its end, because the execution is over")
            }
            UNWINDS => {
                format!("{which}, in a destructor that runs because the execution is over")
            }
            PUTS_BACK => "a destructor of what outlives the threads of the model".to_owned(),
            _ if self.knows() => format!(
                "{which}, {place} (a thread has panicked: its destructors run, unless the test catches that)"
            ),
            _ => format!("{which}, {place}"),
        }
    }
}

/// The clock cannot represent moments that are much later; no process lives that long.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Watches a pulse until it is dropped, over all explorations that use the pulse one after the
/// other. Most of them are too short to be checked even once, and a new watch for each of them
/// takes locks.
pub(crate) struct Watchdog {
    number: u64,
    patience: Duration,
}

impl Watchdog {
    /// Calls `say`, from another OS thread, if the `pulse` does not change for `patience`; once for
    /// each exploration.
    pub(crate) fn watch(
        pulse: Arc<Pulse>,
        patience: Duration,
        say: impl Fn(String) + Send + Sync + 'static,
    ) -> Watchdog {
        let patience = patience.min(LONGEST);
        let mut watch = watch();
        watch.number += 1;
        let number = watch.number;
        let due = Instant::now() + patience;
        if watch.next.is_none_or(|next| due < next) {
            watch.next = Some(due);
            WAKE.notify_one();
        }
        watch.watched.push(Watched {
            number,
            pulse,
            patience,
            steps: None,
            told: 0,
            due,
            say: Arc::new(say),
        });
        if !watch.is_kept {
            // If the system provides no OS thread, no pulse is watched. That is no reason to fail a
            // test.
            let name = "dpor watchdog".to_owned();
            let thread = thread::Builder::new().name(name).spawn(keep_watch);
            watch.is_kept = thread.is_ok();
        }
        Watchdog { number, patience }
    }

    /// Whether it waits for this long.
    pub(crate) fn waits_for(&self, patience: Duration) -> bool {
        self.patience == patience.min(LONGEST)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        watch()
            .watched
            .retain(|watched| watched.number != self.number);
    }
}

/// The watched pulses of this process.
struct Watch {
    watched: Vec<Watched>,
    /// The time at which the watching OS thread wakes up; `None` if it waits for a pulse to watch.
    next: Option<Instant>,
    /// Whether the watching OS thread exists.
    is_kept: bool,
    /// The number of the latest watched pulse.
    number: u64,
}

struct Watched {
    number: u64,
    pulse: Arc<Pulse>,
    patience: Duration,
    /// The number of steps at the last check.
    steps: Option<u64>,
    /// The last reported exploration, by its number from 1.
    told: u64,
    /// The time of the next check.
    due: Instant,
    say: Say,
}

type Say = Arc<dyn Fn(String) + Send + Sync>;

impl Watched {
    /// Checks the pulse. If it hangs and this was not reported yet, returns the message and the
    /// function to report it.
    fn look(&mut self, now: Instant) -> Option<(String, Say)> {
        if self.due > now {
            return None;
        }
        self.due = now + self.patience;
        let steps = self.pulse.steps.load(Relaxed);
        let hangs = self.steps.replace(steps) == Some(steps);
        let exploration = self.pulse.explorations.load(Relaxed);
        if !hangs || self.told == exploration {
            return None;
        }
        let text = self.pulse.describe(self.patience)?;
        self.told = exploration;
        Some((text, self.say.clone()))
    }
}

static WATCH: Mutex<Watch> = Mutex::new(Watch {
    watched: Vec::new(),
    next: None,
    is_kept: false,
    number: 0,
});

/// Signals that a pulse must be checked before the time that the watching OS thread has chosen.
static WAKE: Condvar = Condvar::new();

fn watch() -> MutexGuard<'static, Watch> {
    // A panic leaves no inconsistent state here.
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The messages for all running executions, if the user ends the process.
#[cfg(unix)]
pub(crate) fn all_that_run() -> Vec<String> {
    let pulses: Vec<_> = (watch().watched.iter())
        .map(|watched| watched.pulse.clone())
        .collect();
    pulses
        .iter()
        .filter_map(|pulse| pulse.interrupted())
        .collect()
}

/// The loop of the watching OS thread.
fn keep_watch() {
    let mut watch = watch();
    loop {
        let now = Instant::now();
        let watched = watch.watched.iter_mut();
        let hangs: Vec<_> = watched.filter_map(|it| it.look(now)).collect();
        if !hangs.is_empty() {
            drop(watch);
            for (text, say) in hangs {
                // The write to stderr may fail; the other pulses are watched in any case.
                let _ = catch_unwind(AssertUnwindSafe(|| say(text)));
            }
            watch = self::watch();
            continue;
        }
        watch.next = watch.watched.iter().map(|watched| watched.due).min();
        watch = match watch.next {
            None => WAKE.wait(watch).unwrap_or_else(PoisonError::into_inner),
            Some(next) => {
                let left = next.saturating_duration_since(now);
                let woken = WAKE.wait_timeout(watch, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// The pulse of a model that is explored and has not made a step.
    fn begun() -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::default());
        pulse.begin(Location::caller());
        pulse
    }

    #[test]
    fn a_step_that_does_not_come_back_is_named_with_its_thread_and_place() {
        let pulse = Arc::new(Pulse::default());
        let model = Location::caller();
        pulse.begin(model);
        pulse.turn_to(ThreadId(2), Some(Location::caller()));
        let (said, heard) = channel();
        let dog = Watchdog::watch(pulse, Duration::ZERO, move |text| {
            said.send(text).expect("the test listens");
        });
        let text = heard.recv().expect("it speaks up");
        // With several tests at once, the message has to tell which one hangs.
        let begins = format!("dpor: a step of the model at {model} has not come back for 0 s: ");
        assert!(text.starts_with(&begins), "{text}");
        // Functions of this crate without a caller outside of it are reported like this.
        let place = ": spawned thread 2, after an operation in a drop. Since";
        assert!(text.contains(place), "{text}");
        assert!(
            text.contains("`Builder::patience` (DPOR_PATIENCE, in seconds"),
            "{text}"
        );
        drop(dog);
    }

    #[test]
    fn a_thread_that_hangs_before_its_first_step_is_not_told_to_hang_behind_that_of_another() {
        let pulse = begun();
        pulse.turn_to(ThreadId(1), Some(Location::caller()));
        pulse.beat(Location::caller());
        pulse.turn_to(ThreadId(2), None);
        let text = pulse.describe(Duration::from_secs(10)).expect("it hangs");
        assert!(
            text.contains(": spawned thread 2, before its first step. Since"),
            "{text}"
        );
    }

    #[test]
    fn each_exploration_that_hangs_is_told_of_once_and_none_where_nothing_is_explored() {
        let pulse = begun();
        let now = Instant::now();
        let mut watched = Watched {
            number: 0,
            pulse: pulse.clone(),
            patience: Duration::from_secs(1),
            steps: None,
            told: 0,
            due: now,
            say: Arc::new(|_| {}),
        };
        let mut hangs = |second| watched.look(now + Duration::from_secs(second)).is_some();
        assert!(!hangs(0), "it has just begun");
        assert!(hangs(1));
        assert!(!hangs(2), "it was told");
        // The next exploration has the same number of steps when it is checked.
        pulse.end();
        pulse.begin(Location::caller());
        assert!(!hangs(3), "another one has begun meanwhile");
        pulse.end();
        assert!(!hangs(4) && !hangs(5), "nothing is explored");
        pulse.begin(Location::caller());
        assert!(!hangs(6));
        assert!(hangs(7));
    }

    #[test]
    fn who_is_impatient_is_not_kept_waiting_by_who_is_patient_or_by_who_cannot_speak() {
        let hour = Duration::from_secs(3600);
        let patient = Watchdog::watch(begun(), hour, |_| unreachable!("not within a test"));
        for _ in 0..3 {
            let (said, heard) = channel();
            let mute = Watchdog::watch(begun(), Duration::ZERO, |_| {
                panic!("a test that nothing can be said")
            });
            let dog = Watchdog::watch(begun(), Duration::ZERO, move |text| {
                said.send(text).expect("the test listens");
            });
            let text = heard.recv().expect("it speaks up");
            assert!(text.contains("before its first step"), "{text}");
            drop((mute, dog));
        }
        let is_watched = |number| watch().watched.iter().any(|it| it.number == number);
        let number = patient.number;
        assert!(is_watched(number));
        drop(patient);
        assert!(!is_watched(number));
    }
}
