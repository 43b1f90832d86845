//! Shows the progress of an exploration.
//!
//! On a terminal the progress is a bar, which is redrawn several times a second; elsewhere it is a
//! line every few seconds. Both are written directly to standard error, past the output that the
//! test harness captures. If the harness captures output, there is no bar and no line unless the
//! user asks for it. There, a single line appears after a minute, because a test without output
//! seems to hang. The exploring thread draws between two executions; no other thread and no
//! execution takes part.

#[cfg(feature = "progress")]
mod bar;
#[cfg(not(feature = "progress"))]
#[path = "progress/bar/off.rs"]
mod bar;

use std::io::Write;
use std::time::{Duration, Instant};

use crate::config::Builder;
use crate::exploration::progress::bar::Bar;
use crate::rt::engine::driver::Driver;
use crate::rt::event::Site;
use crate::rt::object::machine::WaitsAt;
use crate::rt::plural::counted;
use crate::verdict::estimated::{at_least, estimated};

thread_local! {
    /// The result of [`captured`], which takes a while to compute.
    static CAPTURED: bool = captured();
}

/// The most executions between two readings of the clock.
const CHECKED_AFTER: u32 = 1 << 10;

/// The first execution before which the clock is read. Most explorations with fewer executions are
/// over at once, and reading the clock takes as long as some ten events.
const FIRST: u32 = 5;

/// Time after which the test harness says once that a test is still running.
const LONG: Duration = Duration::from_secs(60);

/// Shows the progress of one exploration, if the user wants to see it.
pub(crate) struct Progress {
    awaits: Awaits,
    style: Style,
    start: Instant,
    /// The time of the next output.
    next: Instant,
    /// The time of the last reading of the clock.
    looked: Instant,
    /// Number of executions from one reading of the clock to the next, and how many of them are
    /// left.
    every: u32,
    left: u32,
    shares: Shares,
}

/// Whether loops that wait are explored as one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaits {
    On,
    Off,
    /// They are not, and the setting for it would change nothing, because a bound is set.
    Bounded,
}

/// The shown part of the total number of executions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Share {
    /// The total is not known.
    Unknown,
    /// The total is at least this number.
    Beyond(f64),
    /// The percentage that is done, and the total.
    Done(u64, f64),
}

/// The shown percentages. None is less than an earlier one.
#[derive(Default)]
struct Shares {
    most: u64,
}

impl Shares {
    /// Returns the part to show after `begun` executions. The estimate comes with whether it has
    /// settled, and with the number of executions that there are at least.
    ///
    /// A percentage of an estimate that has not settled would stand still or run backwards, because
    /// the estimate grows with the executions. If an estimate grows by much after it has settled,
    /// the percentage is no longer shown.
    fn of(&mut self, begun: u64, estimate: Option<(f64, bool, f64)>) -> Share {
        let Some((total, settled, least)) = estimate else {
            return Share::Unknown;
        };
        let total = total.max(begun as f64);
        let percent = (100.0 * begun as f64 / total).round() as u64;
        if settled && 5 * percent >= 4 * self.most {
            self.most = self.most.max(percent);
            return Share::Done(self.most, total);
        }
        Share::Beyond(least)
    }
}

enum Style {
    /// The user wants no progress.
    Nothing,
    /// One line that is redrawn; `None` before it is drawn for the first time.
    Bar(Option<Bar>),
    /// A line every few seconds.
    Lines,
    /// One line, if the exploration takes long.
    Once,
}

impl Style {
    fn pause(&self) -> Duration {
        match self {
            Style::Nothing | Style::Bar(_) => Duration::from_millis(200),
            Style::Lines => Duration::from_secs(5),
            Style::Once => LONG,
        }
    }
}

impl Progress {
    /// Creates the progress of an exploration that begins now. Unless the settings say whether to
    /// show the progress, it is shown if the test harness does not capture the output of tests;
    /// otherwise it is one line, unless the exploration ends after a set time.
    pub(crate) fn new(start: Instant, settings: &Builder) -> Progress {
        let (wanted, ends) = (settings.progress, settings.max_duration.is_some());
        let captured = || CAPTURED.try_with(|it| *it).unwrap_or(true);
        let style = match wanted.unwrap_or_else(|| !captured()) {
            false if wanted.is_none() && !ends => Style::Once,
            false => Style::Nothing,
            true if bar::hidden() => Style::Lines,
            true => Style::Bar(None),
        };
        let awaits = match settings.await_loops {
            _ if settings.bound().is_some() => Awaits::Bounded,
            Some(true) => Awaits::On,
            Some(false) | None => Awaits::Off,
        };
        Progress::of(start, style, awaits)
    }

    /// Creates the progress that shows nothing.
    pub(crate) fn hidden(start: Instant) -> Progress {
        Progress::of(start, Style::Nothing, Awaits::Off)
    }

    fn of(start: Instant, style: Style, awaits: Awaits) -> Progress {
        Progress {
            awaits,
            next: start + style.pause(),
            style,
            start,
            looked: start,
            every: 1,
            left: FIRST,
            shares: Shares::default(),
        }
    }

    /// Shows the progress, if it is time to.
    #[inline]
    pub(crate) fn tick(&mut self, driver: &Driver) {
        if !matches!(self.style, Style::Nothing) {
            self.tick_on(driver);
        }
    }

    /// [`Progress::tick`] of an exploration that several workers share.
    pub(crate) fn tick_of(&mut self, begun: u64) {
        let now = Instant::now();
        if !matches!(self.style, Style::Nothing) && self.is_due(now) {
            self.show((begun, 0), Share::Unknown, now, (None, None));
        }
    }

    /// [`Progress::tick`] if the user wants to see the progress.
    fn tick_on(&mut self, driver: &Driver) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        let now = Instant::now();
        if !self.is_due(now) {
            return;
        }
        let (begun, estimate) = (driver.stats.begun(), driver.estimate());
        let given_up = driver.stats.given_up();
        let estimate =
            estimate.map(|total| (total, driver.has_settled(total), driver.at_least(total)));
        let share = self.shares.of(begun, estimate);
        let too_few = driver.machine.rounds_left_out();
        let too_few = too_few.filter(|_| given_up == begun);
        let slow = (first_hint(driver), too_few);
        self.show((begun, given_up), share, now, slow);
    }

    /// Shows this part of the executions. `slow` is a hint at which threads wait, and the bound on
    /// rounds if every execution was given up because of it.
    fn show(
        &mut self,
        executions: (u64, u64),
        share: Share,
        now: Instant,
        slow: (Option<Site>, Option<usize>),
    ) {
        let test = std::thread::current();
        let test = test.name().filter(|test| *test != "main");
        let text = line(executions, share, now - self.start, test);
        match &mut self.style {
            Style::Nothing => {}
            // If standard error is closed, the line is not wanted.
            Style::Lines => drop(std::io::stderr().write_all(format!("dpor: {text}\n").as_bytes())),
            Style::Once => {
                drop(std::io::stderr().write_all(still(&text, slow, self.awaits).as_bytes()));
                self.style = Style::Nothing;
            }
            Style::Bar(bar) => {
                let bar = bar.get_or_insert_with(|| {
                    if one_at_a_time() {
                        eprintln!();
                    }
                    Bar::add()
                });
                let percent = match share {
                    Share::Done(percent, _) => Some(percent),
                    _ => None,
                };
                bar.draw(text, percent);
            }
        }
    }

    /// Whether an output is due, after a reading of the clock.
    fn is_due(&mut self, now: Instant) -> bool {
        // An execution takes microseconds or seconds. The interval adapts, so that reading the
        // clock costs next to nothing.
        self.every = match (now - self.looked).as_millis() {
            0 => (2 * self.every).min(CHECKED_AFTER),
            1..20 => self.every,
            _ => 1,
        };
        (self.looked, self.left) = (now, self.every);
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.style.pause();
        }
        is_due
    }

    /// Removes the bar before other output.
    pub(crate) fn wipe(&mut self) {
        if let Style::Bar(bar) = &mut self.style
            && let Some(bar) = bar.take()
        {
            bar.remove();
        }
    }
}

/// Prints above the bars, if there are any.
pub(crate) fn above(print: impl FnOnce()) {
    bar::above(print);
}

/// Prints this above the bars, past the output that the test harness captures: the harness does not
/// show the captured output of a test that passes.
pub(crate) fn above_captured(text: &str) {
    // A closed standard error is no reason to fail.
    above(|| drop(std::io::stderr().write_all(text.as_bytes())));
}

/// Returns the single line for an exploration that takes long.
fn still(text: &str, (hint, too_few): (Option<Site>, Option<usize>), awaits: Awaits) -> String {
    let advice = match awaits {
        Awaits::On => None,
        Awaits::Off => Some(""),
        Awaits::Bounded => Some(", if no bound is set"),
    };
    let waits = hint.zip(advice).map_or(String::new(), |(hint, on_what)| {
        format!(
            "; threads wait at {hint}, and DPOR_AWAIT_LOOPS=1 takes each wait for one step{on_what}"
        )
    });
    let too_few = too_few.map_or(String::new(), |most| {
        format!(
            "; every execution was given up by max_rounds = {most} (DPOR_MAX_ROUNDS): a loop makes more rounds with a change than \
             that before it ends"
        )
    });
    format!(
        "dpor: still exploring: {text}; DPOR_PROGRESS=1 shows more of this, and DPOR_MAX_DURATION=60 stops after so many seconds \
         and says what most executions are due to{waits}{too_few}\n"
    )
}

/// The first hint at which a thread has waited, if no loop is taken for one step.
fn first_hint(driver: &Driver) -> Option<Site> {
    let machine = &driver.machine;
    let mut waited = machine.waited().iter();
    let at_hint = waited.find(|waited| waited.at == WaitsAt::Hint);
    at_hint
        .filter(|_| machine.limits.learnt.awaits.is_empty() && !driver.is_weak())
        .map(|waited| waited.site)
}

/// Whether the test harness captures the output of this thread. The harness runs each test in a
/// thread of its own, and shows the output of passing tests only if an argument or a variable says
/// so.
fn captured() -> bool {
    let shown =
        |arg: String| arg == "--nocapture" || arg == "--no-capture" || arg == "--show-output";
    std::thread::current().name() != Some("main")
        && std::env::var_os("RUST_TEST_NOCAPTURE").is_none()
        && !std::env::args().any(shown)
}

/// Whether the test harness runs one test after the other. In that case it has begun a line with
/// the name of the test.
fn one_at_a_time() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    std::env::var("RUST_TEST_THREADS").is_ok_and(|threads| threads == "1")
        || arguments.iter().any(|arg| arg == "--test-threads=1")
        || (arguments.windows(2)).any(|pair| pair == ["--test-threads", "1"])
}

/// Returns the text, at most 65 characters for any numbers below a billion, and the name of the
/// test, since other tests may run at the same time.
///
/// If the total is not known, the text has the percentage of the pruned executions, if there are
/// any: a bounded search that mostly prunes may take longer than an exploration without a bound.
fn line(
    (begun, given_up): (u64, u64),
    share: Share,
    elapsed: Duration,
    test: Option<&str>,
) -> String {
    let mut text = counted(begun, "execution");
    match share {
        Share::Done(percent, total) => {
            text.push_str(&format!(" ({percent} % of {})", estimated(round(total))));
        }
        Share::Beyond(total) => {
            if let Some(least) = at_least(total, begun) {
                text.push_str(&format!(" (of {least} or more)"));
            }
        }
        // Rounded down, because 100 % would mean that every execution was pruned.
        Share::Unknown if given_up > 0 => {
            text.push_str(&format!(" ({} % given up)", 100 * given_up / begun));
        }
        Share::Unknown => {}
    }
    text.push_str(&format!(", {:.0} s", elapsed.as_secs_f64()));
    if let Some(test) = test {
        text.push_str(", ");
        text.push_str(test);
    }
    text
}

/// Two significant digits: an estimate has no more.
fn round(number: f64) -> f64 {
    let digits = number.max(1.0).log10().floor() as i32;
    let unit = 10f64.powi((digits - 1).max(0));
    (number / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::engine::estimate::MOST;

    #[test]
    fn the_line_tells_executions_estimate_time_and_test_and_fits_a_terminal() {
        let seconds = Duration::from_secs;
        let unknown = |executions| line((executions, 0), Share::Unknown, seconds(5), None);
        assert_eq!(unknown(1), "1 execution, 5 s");
        assert_eq!(unknown(7), "7 executions, 5 s");
        assert_eq!(
            line(
                (12_345, 0),
                Share::Done(30, 41_530.0),
                seconds(10),
                Some("queue_is_fifo")
            ),
            "12345 executions (30 % of about 42000), 10 s, queue_is_fifo"
        );
        let beyond = line((138_000, 0), Share::Beyond(638_000.0), seconds(5), None);
        assert_eq!(beyond, "138000 executions (of 600000 or more), 5 s");
        let longest = line(
            (999_999_999, 0),
            Share::Done(0, 1e30),
            seconds(99_999),
            None,
        );
        assert!(longest.len() <= 65, "{longest}");
        let endless = line((20, 0), Share::Done(0, MOST), seconds(1), None);
        assert_eq!(endless, "20 executions (0 % of more than 1e200), 1 s");
        let of_a_bound = line(
            (34_674, 34_669),
            Share::Unknown,
            seconds(5),
            Some("many_threads"),
        );
        let told = "34674 executions (99 % given up), 5 s, many_threads";
        assert_eq!(of_a_bound, told);
    }

    #[test]
    fn no_percentage_is_told_of_an_estimate_that_grows_with_the_executions() {
        let mut shares = Shares::default();
        for begun in [138_000, 700_000, 1_560_000] {
            let least = 0.625 * begun as f64;
            let told = shares.of(begun, Some((5.0 * begun as f64, false, least)));
            assert_eq!(told, Share::Beyond(least));
        }
        assert_eq!(shares.of(9, None), Share::Unknown);
    }

    #[test]
    fn a_percentage_never_falls() {
        let mut shares = Shares::default();
        let mut told = |begun, total| shares.of(begun, Some((total, true, total)));
        assert_eq!(told(100, 1000.0), Share::Done(10, 1000.0));
        assert_eq!(told(200, 1000.0), Share::Done(20, 1000.0));
        // An estimate that wavers leaves the percentage where it is. An estimate that has grown by
        // half removes the percentage until it is reached again.
        assert_eq!(told(210, 1200.0), Share::Done(20, 1200.0));
        assert_eq!(told(220, 1500.0), Share::Beyond(1500.0));
        assert_eq!(told(400, 1500.0), Share::Done(27, 1500.0));
        // More executions than estimated are shown as 100 %.
        assert_eq!(told(1600, 1500.0), Share::Done(100, 1600.0));
        assert_eq!(told(1601, 9000.0), Share::Beyond(9000.0));
    }

    #[test]
    fn what_nobody_has_asked_for_is_told_after_a_minute() {
        let start = Instant::now();
        let seconds = |seconds| start + Duration::from_secs(seconds);
        let mut progress = Progress::of(start, Style::Once, Awaits::Off);
        assert!(!progress.is_due(seconds(59)));
        assert!(progress.is_due(seconds(60)));
        let mut lines = Progress::of(start, Style::Lines, Awaits::Off);
        assert!([5, 9, 11].map(|it| lines.is_due(seconds(it))) == [true, false, true]);
        let text = still(
            &line((9, 0), Share::Unknown, LONG, Some("queue_is_fifo")),
            (None, None),
            Awaits::Off,
        );
        let told =
            "dpor: still exploring: 9 executions, 60 s, queue_is_fifo; DPOR_PROGRESS=1 shows ";
        assert!(text.starts_with(told), "{text}");
    }

    #[test]
    fn a_setting_is_named_only_where_it_helps() {
        let hint: Site = std::panic::Location::caller();
        let text = |awaits| still("9 executions", (Some(hint), None), awaits);
        let off = text(Awaits::Off);
        assert!(
            off.contains("DPOR_AWAIT_LOOPS=1 takes each wait for one step\n"),
            "{off}"
        );
        let bounded = text(Awaits::Bounded);
        assert!(
            bounded.contains("one step, if no bound is set\n"),
            "{bounded}"
        );
        let on = text(Awaits::On);
        assert!(!on.contains("DPOR_AWAIT_LOOPS"), "{on}");
        let too_few = still(
            "9 executions (100 % given up)",
            (None, Some(2)),
            Awaits::Off,
        );
        assert!(
            too_few.contains("given up by max_rounds = 2 (DPOR_MAX_ROUNDS)"),
            "{too_few}"
        );
    }
}
