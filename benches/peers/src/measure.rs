//! How is one program measured on one checker?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static STEPS: AtomicU64 = AtomicU64::new(0);
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static KNOWN: Mutex<Option<Instant>> = Mutex::new(None);

/// The program has made `n` steps. Every checker here runs one execution at a time, so this needs
/// no read-modify-write, and costs next to nothing.
#[inline]
pub(crate) fn step(n: usize) {
    STEPS.store(STEPS.load(Relaxed) + n as u64, Relaxed);
}

/// An execution has begun.
pub(crate) fn execution() {
    EXECUTIONS.store(EXECUTIONS.load(Relaxed) + 1, Relaxed);
}

/// When the program failed first in this exploration.
fn known() -> MutexGuard<'static, Option<Instant>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fails if this is false, which is noted: from here on a checker knows that the program has a bug,
/// and the rest of its time it looks for a good way to tell.
pub(crate) fn check(holds: bool) {
    if !holds {
        known().get_or_insert_with(Instant::now);
        panic!("the program has failed");
    }
}

/// What one exploration of a program came to, the fastest of several.
pub(crate) struct Measured {
    pub(crate) executions: u64,
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
    /// The seconds until a bug was known; all of them if it is not one of the program's own.
    pub(crate) known: f64,
    pub(crate) end: End,
}

impl Measured {
    /// Whether this one was faster. Of what comes to a limit, the rate counts; of the rest, the
    /// time.
    pub(crate) fn beats(&self, other: &Measured) -> bool {
        let time = |m: &Measured| m.seconds / m.executions.max(1) as f64;
        match self.end {
            End::Limit => time(self) < time(other),
            _ => self.seconds < other.seconds,
        }
    }
}

/// How an exploration ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything is explored.
    Verdict,
    /// The program's bug was found.
    Bug,
    /// It came to its limit of time, or of executions where the checker has no other end.
    Limit,
}

/// For how long short explorations are repeated.
const REPEAT: Duration = Duration::from_millis(300);

/// Runs `explore`, which says whether it has explored everything, again and again for a while.
pub(crate) fn measure(mut explore: impl FnMut() -> bool) -> Measured {
    // What is found is to be counted and not to be told.
    std::panic::set_hook(Box::new(|_| {}));
    let begin = Instant::now();
    let mut best: Option<Measured> = None;
    loop {
        STEPS.store(0, Relaxed);
        EXECUTIONS.store(0, Relaxed);
        *known() = None;
        let start = Instant::now();
        let all = catch_unwind(AssertUnwindSafe(&mut explore));
        let seconds = start.elapsed().as_secs_f64();
        let measured = Measured {
            seconds,
            known: known().map_or(seconds, |at| (at - start).as_secs_f64()),
            executions: EXECUTIONS.load(Relaxed),
            steps: STEPS.load(Relaxed),
            end: match all {
                Ok(true) => End::Verdict,
                Ok(false) => End::Limit,
                Err(_) => End::Bug,
            },
        };
        if best.as_ref().is_none_or(|best| measured.beats(best)) {
            best = Some(measured);
        }
        if begin.elapsed() > REPEAT
            && let Some(best) = best
        {
            return best;
        }
    }
}
