//! Drop-in replacements for `std::time`.
//!
//! Inside a model a clock would make executions differ that are equal, and a deadline would pass in
//! some runs only. [`Instant`] takes its time from the model: between two reads any time may have
//! passed, so both sides of each check of a deadline are explored. Outside a model it is std's.
//!
//! | std | here |
//! |---|---|
//! | `Instant` | modelled |
//! | `Duration`, `TryFromFloatSecsError` | std's own |
//! | `SystemTime`, `SystemTimeError`, `UNIX_EPOCH` | std's own, and not modelled |

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::panic::Location;
use std::sync::OnceLock;
use std::time::Instant as Real;
pub use std::time::{Duration, SystemTime, SystemTimeError, TryFromFloatSecsError, UNIX_EPOCH};

use crate::rt;

/// Drop-in replacement for `std::time::Instant`.
///
/// Inside a model, [`Instant::now`] and [`Instant::elapsed`] are choices, and each is explored:
///
/// * no time has passed since the latest read of the clock that happens before this one;
/// * a deadline is over that is the sum of an instant and a duration, for each such deadline that
///   the thread knows of and that is at most a year ahead;
/// * a day more has passed, and all these deadlines are over.
///
/// Time never goes back, and a wait that times out takes its time. Two reads that no event orders
/// may find any times.
///
/// In a loop, time passes at the latest where its thread would wait for a change for ever; see
/// `docs/TIME_AND_PANICS.md`. At one place, at most 20 reads in a row, or
/// [`Builder::timeout_bound`](crate::Builder::timeout_bound) if that is more, find that no time has
/// passed; the report then has the assumption
/// [`ClockStandsStill`](crate::AssumptionKind::ClockStandsStill).
///
/// ```
/// use dpor::time::{Duration, Instant};
///
/// let in_time = dpor::outcomes(|| {
///     let deadline = Instant::now() + Duration::from_millis(10);
///     Instant::now() < deadline
/// });
/// assert_eq!(in_time.len(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Real);

/// The time at which the clock of each execution begins.
static BEGINNING: OnceLock<Real> = OnceLock::new();

/// The instant so many nanoseconds behind the beginning.
fn at(nanoseconds: u64) -> Instant {
    let beginning = *BEGINNING.get_or_init(Real::now);
    let since = Duration::from_nanos(nanoseconds);
    Instant(beginning.checked_add(since).unwrap_or(beginning))
}

impl Instant {
    /// Returns the time.
    #[must_use]
    #[track_caller]
    pub fn now() -> Instant {
        match rt::read_clock(Location::caller()) {
            Some(nanoseconds) => at(nanoseconds),
            None => Instant(Real::now()),
        }
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.0.duration_since(earlier.0)
    }

    /// Returns the time from `earlier` to this instant; `None` if `earlier` is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the time that has passed since this instant.
    #[must_use]
    #[track_caller]
    pub fn elapsed(&self) -> Duration {
        Instant::now() - *self
    }

    /// Returns this instant plus `duration`; `None` if there is no such instant.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        let sum = Instant(self.0.checked_add(duration)?);
        if rt::current().is_some()
            && let Some(beginning) = BEGINNING.get()
            && let Some(since) = sum.0.checked_duration_since(*beginning)
            && let Ok(nanoseconds) = since.as_nanos().try_into()
        {
            rt::note_deadline(nanoseconds);
        }
        Some(sum)
    }

    /// Returns this instant minus `duration`; `None` if there is no such instant.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// # Panics
    ///
    /// Panics if there is no such instant.
    fn add(self, other: Duration) -> Instant {
        self.checked_add(other)
            .expect("overflow when adding duration to instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// # Panics
    ///
    /// Panics if there is no such instant.
    fn sub(self, other: Duration) -> Instant {
        self.checked_sub(other)
            .expect("overflow when subtracting duration from instant")
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    /// Returns zero if `other` is later.
    fn sub(self, other: Instant) -> Duration {
        self.duration_since(other)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
