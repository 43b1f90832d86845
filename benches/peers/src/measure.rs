//! Measures one program on one checker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static STEPS: AtomicU64 = AtomicU64::new(0);
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static KNOWN: Mutex<Option<Instant>> = Mutex::new(None);

/// Counts `n` steps of the program. Every checker here runs one execution at a time, so this needs
/// no read-modify-write, and costs next to nothing.
#[inline]
pub(crate) fn step(n: usize) {
    STEPS.store(STEPS.load(Relaxed) + n as u64, Relaxed);
}

/// Counts an execution.
pub(crate) fn execution() {
    EXECUTIONS.store(EXECUTIONS.load(Relaxed) + 1, Relaxed);
}

/// The time of the program's first failure in this exploration.
fn known() -> MutexGuard<'static, Option<Instant>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fails if `holds` is false, and notes the time: from then on the checker knows the bug, and
/// spends the rest of its time on the report.
pub(crate) fn check(holds: bool) {
    if !holds {
        known().get_or_insert_with(Instant::now);
        panic!("the program has failed");
    }
}

/// The measurement of one exploration of a program, the fastest of several.
pub(crate) struct Measured {
    pub(crate) executions: u64,
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
    /// The seconds until the bug was known; the time to the verdict if no assertion of the program
    /// failed.
    pub(crate) known: f64,
    pub(crate) end: End,
}

impl Measured {
    /// Whether this measurement is faster. At a limit the rate of executions decides, otherwise the
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
    /// The exploration reached its time limit, or the number of executions for checkers that have
    /// no other end.
    Limit,
}

/// Time for which short explorations are repeated.
const REPEAT: Duration = Duration::from_millis(300);

/// Runs `explore`, which returns whether it has explored everything, repeatedly for a while.
pub(crate) fn measure(mut explore: impl FnMut() -> bool) -> Measured {
    // Panics are counted here and not printed.
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
