//! How is an execution written down, and read back?
//!
//! `v2 main*4 main.1 main.2:1` says: four steps of the main thread, one of its first child, then one
//! of its second child with outcome 1, where that step has several. Names and counts survive small
//! edits of the program better than positions would.
//!
//! The code of a thread begins with its first step. Where it has begun before, up to that step, there is `main.1*0`. After
//! `v2 ends` the end of a thread is a step, too.

use std::fmt;

use super::Trace;
use super::id::{Names, ThreadId};
use super::operation::OpKind;

/// What says that ends of threads are among the steps.
const ENDS: &str = "ends";

/// The choices that fix an execution: for each step the thread's path of births and its outcome.
///
/// Equal steps in a row are one run, in memory as in the text: a text of a few bytes may ask for billions of
/// steps, and whether the program has as many is known only when it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Schedule {
    runs: Vec<Run>,
    /// Whether ends of threads are among the steps.
    has_ends: bool,
}

/// Equal steps in a row; none where a thread only begins.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    path: String,
    alternative: u32,
    times: u64,
}

/// How far a schedule has been followed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cursor {
    run: usize,
    /// Steps of that run that have been made.
    made: u64,
    /// Steps of the whole schedule that have been made.
    pub(crate) position: u64,
}

impl Schedule {
    /// The schedule of the first so many events of an execution.
    pub(crate) fn of(trace: &Trace, length: usize, names: &Names) -> Schedule {
        let mut schedule = Schedule::default();
        let mut early = trace.begun_early().peekable();
        for (position, event) in trace.events()[..length].iter().enumerate() {
            while let Some((_, thread)) = early.next_if(|&(at, _)| at == position) {
                schedule.begin(names.path(thread));
            }
            schedule.step_of(names.path(event.thread), event.alternative);
            schedule.has_ends |= matches!(event.operation.kind, OpKind::Exit);
        }
        schedule
    }

    /// [`Schedule::of`] what leads to something that `thread` did behind these events, maybe before its first step.
    pub(crate) fn leading_to(
        thread: Option<ThreadId>,
        trace: &Trace,
        length: usize,
        names: &Names,
    ) -> Schedule {
        let mut schedule = Schedule::of(trace, length, names);
        let begun: Vec<ThreadId> = trace.begun_behind(length).collect();
        let last = begun.iter().position(|&it| thread == Some(it));
        for &thread in &begun[..last.map_or(0, |at| at + 1)] {
            if thread != ThreadId::MAIN {
                schedule.begin(names.path(thread));
            }
        }
        schedule
    }

    /// Whether ends of threads are among the steps.
    pub(crate) fn has_ends(&self) -> bool {
        self.has_ends
    }

    /// Adds that the code of a thread begins.
    pub(crate) fn begin(&mut self, path: String) {
        self.push(path, 0, 0);
    }

    /// Adds a step.
    pub(crate) fn step_of(&mut self, path: String, alternative: u32) {
        self.push(path, alternative, 1);
    }

    /// The thread that begins at the cursor, if one does.
    pub(crate) fn beginning(&self, at: Cursor) -> Option<&str> {
        let run = self.runs.get(at.run)?;
        (run.times == 0).then_some(&run.path)
    }

    /// The step at the cursor, where no thread begins; `None` at the end.
    pub(crate) fn step(&self, at: Cursor) -> Option<(&str, u32)> {
        let run = self.runs.get(at.run)?;
        Some((&run.path, run.alternative))
    }

    /// The cursor behind what is at this one, which there must be.
    pub(crate) fn behind(&self, at: Cursor) -> Cursor {
        let times = self.runs[at.run].times;
        let (made, position) = (at.made + 1, at.position + times.min(1));
        if made < times {
            return Cursor {
                made,
                position,
                ..at
            };
        }
        Cursor {
            run: at.run + 1,
            made: 0,
            position,
        }
    }

    /// How many steps there are.
    pub(crate) fn length(&self) -> u64 {
        let times = self.runs.iter().map(|run| run.times);
        times.fold(0, u64::saturating_add)
    }

    /// Adds a step `times` times, or that the thread begins.
    fn push(&mut self, path: String, alternative: u32, times: u64) {
        match self.runs.last_mut() {
            Some(last)
                if (&last.path, last.alternative) == (&path, alternative)
                    && times.min(last.times) > 0 =>
            {
                last.times = last.times.saturating_add(times);
            }
            _ => self.runs.push(Run {
                path,
                alternative,
                times,
            }),
        }
    }

    /// Reads a schedule; the error says at which byte of the text what was expected.
    pub(crate) fn parse(text: &str) -> Result<Schedule, String> {
        let mut schedule = Schedule::default();
        let start = text.len() - text.trim_start().len();
        let versioned = text.trim_start().strip_prefix("v2");
        let whole = |rest: &&str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        let Some(rest) = versioned.filter(whole) else {
            return Err(format!(
                "a schedule begins with its version, `v2`; at byte {start} there is `{}`",
                text.trim_start().chars().take(10).collect::<String>()
            ));
        };
        let marked = rest.trim_start().strip_prefix(ENDS).filter(whole);
        schedule.has_ends = marked.is_some();
        let rest = marked.unwrap_or(rest);
        let mut at = text.len() - rest.len();
        for word in rest.split_inclusive(char::is_whitespace) {
            let here = at;
            at += word.len();
            let word = word.trim();
            if word.is_empty() {
                continue;
            }
            let number = |text: &str, what: &str| {
                digits(text).ok_or_else(|| {
                    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                    let most = match is_number {
                        true => format!(", which is at most {}", u32::MAX),
                        false => String::new(),
                    };
                    format!("at byte {here}, in `{word}`: expected {what}{most}, found `{text}`")
                })
            };
            let (word_left, count) = match word.split_once('*') {
                Some((left, steps)) => (left, number(steps, "a number of steps after `*`")?),
                None => (word, 1),
            };
            let (path, alternative) = match word_left.split_once(':') {
                Some((path, outcome)) => {
                    (path, number(outcome, "the number of an outcome after `:`")?)
                }
                None => (word_left, 0),
            };
            let mut parts = path.split('.');
            // Children are counted from 1.
            let named = parts.next() == Some("main") && parts.all(|p| digits(p) > Some(0));
            if !named {
                return Err(format!(
                    "at byte {here}: expected a thread such as `main` or `main.1.2`, found `{path}`"
                ));
            }
            schedule.push(path.to_owned(), alternative, count.into());
        }
        Ok(schedule)
    }
}

/// A number in digits, and nothing else.
fn digits(text: &str) -> Option<u32> {
    let digits = (text.bytes().all(|b| b.is_ascii_digit())).then_some(text)?;
    digits.parse().ok()
}

/// From its steps.
impl FromIterator<(String, u32)> for Schedule {
    fn from_iter<I: IntoIterator<Item = (String, u32)>>(steps: I) -> Schedule {
        let mut schedule = Schedule::default();
        for (path, alternative) in steps {
            schedule.step_of(path, alternative);
        }
        schedule
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("v2")?;
        if self.has_ends {
            write!(f, " {ENDS}")?;
        }
        for Run {
            path,
            alternative,
            times,
        } in &self.runs
        {
            write!(f, " {path}")?;
            if *alternative != 0 {
                write!(f, ":{alternative}")?;
            }
            if *times != 1 {
                write!(f, "*{times}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_reads_back_as_it_was_written() {
        let text = "v2 main*4 main.1*0 main.1 main.2:1 main.2 main main.3*0 main.3*0";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.length(), 8);
        assert!(!schedule.has_ends());
        assert_eq!(schedule.to_string(), text);
        let text = "v2 ends main*4 main.1";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.length(), 5);
        assert!(schedule.has_ends());
        assert_eq!(schedule.to_string(), text);
    }

    #[test]
    fn a_schedule_is_followed_step_by_step() {
        let schedule = Schedule::parse("v2 main*2 main.1:1 main.1:1").expect("well formed");
        let mut at = Cursor::default();
        let mut steps = Vec::new();
        while let Some((path, alternative)) = schedule.step(at) {
            steps.push((path.to_owned(), alternative));
            at = schedule.behind(at);
            assert_eq!(at.position, steps.len() as u64);
        }
        let expected = [("main", 0), ("main", 0), ("main.1", 1), ("main.1", 1)];
        assert_eq!(steps, expected.map(|(path, it)| (path.to_owned(), it)));
        assert_eq!(schedule.length(), 4);
        assert_eq!(steps.into_iter().collect::<Schedule>(), schedule);
    }

    #[test]
    fn a_schedule_of_billions_of_steps_takes_no_more_memory_than_its_text() {
        let text = "v2 main*4294967295 main.1 main*4294967295";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.runs.len(), 3);
        assert_eq!(schedule.length(), 2 * u64::from(u32::MAX) + 1);
        assert_eq!(schedule.to_string(), text);
    }

    #[test]
    fn a_malformed_schedule_is_refused_with_the_position_and_what_was_expected() {
        for (text, expected) in [
            (
                "main*4",
                "a schedule begins with its version, `v2`; at byte 0",
            ),
            (
                "v2 main*x",
                "at byte 3, in `main*x`: expected a number of steps after `*`, found `x`",
            ),
            ("v2 main*+4", "expected a number of steps after `*`"),
            (
                "v2 main*18446744073709551615",
                "expected a number of steps after `*`, which is at most 4294967295, found",
            ),
            (
                "v2main*4",
                "a schedule begins with its version, `v2`; at byte 0 there is `v2main*4`",
            ),
            (
                "v2 main.0",
                "at byte 3: expected a thread such as `main` or `main.1.2`, found `main.0`",
            ),
            (
                "v2 main rain",
                "at byte 8: expected a thread such as `main` or `main.1.2`, found `rain`",
            ),
            (
                "v2 main:",
                "at byte 3, in `main:`: expected the number of an outcome",
            ),
        ] {
            let error = Schedule::parse(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
