//! What if a step does not come back?
//!
//! A step is a visible operation and the code after it, up to the next one. Code that loops without
//! a shared access, or that blocks on something `dpor` does not see (a lock of another crate, a
//! channel of std), never gets there, and the OS thread that explores hangs with it. Nothing can be
//! done about it from inside, so a second OS thread looks at a counter of steps from time to time,
//! and says once who hangs, and where it was last seen. There is one such thread in a process, from
//! the first exploration on, because a thread of its own would cost a short exploration more than
//! all else.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::rt::event::id::ThreadId;
use crate::rt::event::{Site, foreign};
use crate::rt::rare::rarely;

/// The last step, as the watching thread sees it.
#[derive(Default)]
pub(crate) struct Pulse {
    /// Where the model begins that is explored, or null if none is.
    model: AtomicPtr<Location<'static>>,
    explorations: AtomicU64,
    /// How many executions have begun before this one.
    executions: AtomicU64,
    steps: AtomicU64,
    thread: AtomicU32,
    site: AtomicPtr<Location<'static>>,
    /// Which [`Phase`] the execution is in.
    phase: AtomicU8,
    /// Whether a failure is known, and which.
    knows: AtomicBool,
    known: Mutex<Option<Box<dyn KnownFailure>>>,
}

/// A failure that is known and not shown yet, which the watchdog may have to tell.
pub(crate) trait KnownFailure: Send {
    /// Its report.
    fn report(&self) -> String;
}

/// What the code that runs has to do with its execution.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    /// It is the execution.
    Runs,
    /// Nothing is explored any more, and threads go on to their ends.
    RunsOut,
    /// What is left of the threads unwinds.
    Unwinds,
    /// No thread is left, and statics get back what they held.
    PutsBack,
}

impl Pulse {
    /// The exploration of the model that stands here begins.
    pub(crate) fn begin(&self, model: Site) {
        self.model.store(ptr::from_ref(model).cast_mut(), Relaxed);
        // As below, only this thread writes.
        let before = self.explorations.load(Relaxed);
        self.explorations.store(before + 1, Relaxed);
        // So that it is not taken for the last step of the exploration before.
        self.turn_to(ThreadId::MAIN, None);
    }

    /// The next execution begins, behind so many.
    #[inline]
    pub(crate) fn count_executions(&self, begun: u64) {
        self.executions.store(begun, Relaxed);
    }

    /// The execution is in this phase from here on.
    pub(crate) fn go_into(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.count();
    }

    /// Another execution begins, of which nothing is known.
    #[inline]
    pub(crate) fn go_on(&self) {
        self.phase.store(Phase::Runs as u8, Relaxed);
        self.forget();
    }

    /// A failure is known which is not shown yet.
    pub(crate) fn know(&self, known: Box<dyn KnownFailure>) {
        *self.known() = Some(known);
        self.knows.store(true, Relaxed);
    }

    /// Whether one is.
    pub(crate) fn knows(&self) -> bool {
        self.knows.load(Relaxed)
    }

    /// What was known has been shown, or was none.
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

    /// The report of the failure that is known, if one is.
    pub(crate) fn report(&self) -> Option<String> {
        let known = self.known();
        Some(known.as_ref()?.report())
    }

    /// Nothing is explored any more.
    pub(crate) fn end(&self) {
        self.go_on();
        self.model.store(ptr::null_mut(), Relaxed);
    }

    /// Notes that another thread goes on, after an operation at `site` if it is not its first step.
    #[inline]
    pub(crate) fn turn_to(&self, thread: ThreadId, site: Option<Site>) {
        self.thread.store(thread.0, Relaxed);
        let site = site.map_or(ptr::null(), ptr::from_ref);
        self.site.store(site.cast_mut(), Relaxed);
        self.count();
    }

    /// Notes that the same thread goes on, after an operation at `site`.
    #[inline]
    pub(crate) fn beat(&self, site: Site) {
        self.site.store(ptr::from_ref(site).cast_mut(), Relaxed);
        self.count();
    }

    #[inline]
    fn count(&self) {
        // Only this thread writes, so this needs no read-modify-write.
        self.steps.store(self.steps.load(Relaxed) + 1, Relaxed);
    }

    /// What there is to say if it does not beat for so long; `None` if nothing is explored.
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

    /// Adds the failure that is known, if one is.
    fn add_known(&self, text: &mut String) {
        if let Some(report) = self.report() {
            text.push_str("\nWhat has failed before is not lost:\n\n");
            text.push_str(&report);
            text.push('\n');
        }
    }

    /// What there is to say where the user ends the process in the middle of an execution; `None`
    /// if nothing is explored.
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

    /// What runs, and where it was last seen.
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

/// The clock has no moment that is much longer away; no process lives that long.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Watches a pulse until it is dropped, over all explorations that have it one after the other:
/// most are too short to be looked at even once, and to begin anew for each takes locks.
pub(crate) struct Watchdog {
    number: u64,
    patience: Duration,
}

impl Watchdog {
    /// Calls `say`, from another OS thread, if the `pulse` does not beat for `patience`; once for
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
            // Without a thread for it nobody watches, which is no reason to fail a test.
            let name = "dpor watchdog".to_owned();
            let thread = thread::Builder::new().name(name).spawn(keep_watch);
            watch.is_kept = thread.is_ok();
        }
        Watchdog { number, patience }
    }

    /// Whether it waits for so long.
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

/// What is watched in this process.
struct Watch {
    watched: Vec<Watched>,
    /// When the thread that watches wakes up; `None` if it waits for something to watch.
    next: Option<Instant>,
    /// Whether there is such a thread.
    is_kept: bool,
    /// The number of the latest of all that was watched.
    number: u64,
}

struct Watched {
    number: u64,
    pulse: Arc<Pulse>,
    patience: Duration,
    /// How many steps there were when it was looked at last.
    steps: Option<u64>,
    /// The last exploration that was told of, by its number from 1.
    told: u64,
    /// When it is to be looked at.
    due: Instant,
    say: Say,
}

type Say = Arc<dyn Fn(String) + Send + Sync>;

impl Watched {
    /// Looks at it; if it hangs, and nobody was told, gives what there is to say, and how.
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

/// Somebody must be looked at before the moment the thread has chosen.
static WAKE: Condvar = Condvar::new();

fn watch() -> MutexGuard<'static, Watch> {
    // Nothing in here is left half done.
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is to say of the executions that run, where the user ends the process.
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

/// What the thread that watches does.
fn keep_watch() {
    let mut watch = watch();
    loop {
        let now = Instant::now();
        let watched = watch.watched.iter_mut();
        let hangs: Vec<_> = watched.filter_map(|it| it.look(now)).collect();
        if !hangs.is_empty() {
            drop(watch);
            for (text, say) in hangs {
                // It may find no stderr to write to; the others are watched all the same.
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
        // Of several tests at once it is not clear which one hangs.
        let begins = format!("dpor: a step of the model at {model} has not come back for 0 s: ");
        assert!(text.starts_with(&begins), "{text}");
        // As all that is called in this crate without a caller outside of it.
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
        // The exploration after it is as far as it was when that is looked at.
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
