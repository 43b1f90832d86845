//! How far is the exploration?
//!
//! A line on standard error every few seconds, or a bar that is drawn anew several times a second
//! where standard error is a terminal. It goes through the same printing as a test's own output, so
//! the test harness captures it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::rt::explore::driver::Driver;

/// Tells how far an exploration is, if anybody wants to know.
pub(crate) struct Progress {
    style: Option<Style>,
    start: Instant,
    next: Instant,
    drawn: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// One line that is drawn over and over.
    Bar,
    /// A line every few seconds.
    Lines,
}

impl Style {
    fn every(self) -> Duration {
        match self {
            Style::Bar => Duration::from_millis(200),
            Style::Lines => Duration::from_secs(5),
        }
    }
}

impl Progress {
    /// `wanted` is what the user has asked for; without a wish there is a bar on a terminal, unless
    /// the test harness captures what tests print.
    pub(crate) fn new(wanted: Option<bool>) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let style = match (wanted, terminal) {
            (Some(true), true) => Some(Style::Bar),
            (Some(true), false) => Some(Style::Lines),
            (None, true) if !captured() => Some(Style::Bar),
            (None | Some(false), _) => None,
        };
        let start = Instant::now();
        Progress {
            style,
            start,
            next: start + style.map_or(Duration::ZERO, Style::every),
            drawn: false,
        }
    }

    /// Tells how far the exploration is, if it is time to.
    pub(crate) fn tick(&mut self, driver: &Driver) {
        let Some(style) = self.style else { return };
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + style.every();
        let text = line(
            driver.stats.begun(),
            driver.estimate(),
            now - self.start,
            style == Style::Bar,
        );
        match style {
            // Without wrapping, a narrow terminal cuts the line instead of scrolling.
            Style::Bar => eprint!("\r\x1b[2K\x1b[?7l{text}\x1b[?7h"),
            Style::Lines => eprintln!("{text}"),
        }
        self.drawn = true;
    }

    /// Wipes the bar away, before something else is printed.
    pub(crate) fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) && self.style == Some(Style::Bar) {
            eprint!("\r\x1b[2K");
        }
    }
}

/// Whether the test harness keeps what this thread prints to itself. It runs each test in a thread
/// of its own, and shows what they print only if told to.
fn captured() -> bool {
    let shown =
        |arg: String| arg == "--nocapture" || arg == "--no-capture" || arg == "--show-output";
    std::thread::current().name() != Some("main")
        && std::env::var_os("RUST_TEST_NOCAPTURE").is_none()
        && !std::env::args().any(shown)
}

/// The text, at most 79 characters for any numbers below a billion.
fn line(begun: u64, estimate: Option<f64>, elapsed: Duration, bar: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    let mut text = "dpor: ".to_owned();
    let known = estimate.map(|total| (total, begun as f64 / total.max(begun as f64)));
    if let (Some((_, share)), true) = (known, bar) {
        let full = (share * 20.0) as usize;
        text.push_str(&format!("[{}{}] ", "#".repeat(full), "-".repeat(20 - full)));
    }
    text.push_str(&format!("{begun} executions"));
    if let Some((total, share)) = known {
        text.push_str(&format!(
            " of about {} ({:.0} %)",
            round(total),
            100.0 * share
        ));
    }
    text.push_str(&format!(", {seconds:.0} s"));
    text
}

/// Two significant digits: an estimate has no more.
fn round(number: f64) -> String {
    if number >= 1e9 {
        return format!("{number:.0e}");
    }
    let digits = number.max(1.0).log10().floor() as i32;
    let unit = 10f64.powi((digits - 1).max(0));
    format!("{:.0}", (number / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_executions_estimate_and_time_and_fits_a_terminal() {
        let seconds = Duration::from_secs;
        assert_eq!(line(7, None, seconds(5), true), "dpor: 7 executions, 5 s");
        assert_eq!(
            line(12_345, Some(41_530.0), seconds(10), false),
            "dpor: 12345 executions of about 42000 (30 %), 10 s"
        );
        assert_eq!(
            line(250, Some(1000.0), seconds(1), true),
            "dpor: [#####---------------] 250 executions of about 1000 (25 %), 1 s"
        );
        let longest = line(999_999_999, Some(1e30), seconds(99_999), true);
        assert!(longest.len() < 80, "{longest}");
        // More executions than estimated is no more than all of them.
        assert!(line(20, Some(10.0), seconds(1), true).contains("(100 %)"));
    }
}
