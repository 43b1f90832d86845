//! How is an execution written down, and read back?
//!
//! `v1 main*4 main.1 main.2:1` says: four steps of the main thread, one of its first child, then one
//! of its second child with outcome 1, where that step has several. Names and counts survive small
//! edits of the program better than positions would.

use std::fmt;

use super::Event;
use super::id::Names;

/// The choices that fix an execution: for each step the thread's path of births and its outcome.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) steps: Vec<(String, u32)>,
}

impl Schedule {
    /// The schedule of an execution.
    pub(crate) fn of(events: &[Event], names: &Names) -> Schedule {
        let step = |event: &Event| (names.path(event.thread), event.alternative);
        Schedule {
            steps: events.iter().map(step).collect(),
        }
    }

    /// Reads a schedule; the error says at which byte of the text what was expected.
    pub(crate) fn parse(text: &str) -> Result<Schedule, String> {
        let mut steps = Vec::new();
        let start = text.len() - text.trim_start().len();
        let Some(rest) = text.trim_start().strip_prefix("v1") else {
            return Err(format!(
                "a schedule begins with its version, `v1`; at byte {start} there is `{}`",
                text.trim_start().chars().take(10).collect::<String>()
            ));
        };
        let mut at = text.len() - rest.len();
        for word in rest.split_inclusive(char::is_whitespace) {
            let here = at;
            at += word.len();
            let word = word.trim();
            if word.is_empty() {
                continue;
            }
            let number = |digits: &str, what: &str| {
                digits.parse::<u32>().map_err(|_| {
                    format!("at byte {here}, in `{word}`: expected {what}, found `{digits}`")
                })
            };
            let (word_left, count) = match word.split_once('*') {
                Some((left, digits)) => (left, number(digits, "a number of steps after `*`")?),
                None => (word, 1),
            };
            let (path, alternative) = match word_left.split_once(':') {
                Some((path, digits)) => {
                    (path, number(digits, "the number of an outcome after `:`")?)
                }
                None => (word_left, 0),
            };
            let mut parts = path.split('.');
            let named = parts.next() == Some("main") && parts.all(|p| p.parse::<u32>().is_ok());
            if !named {
                return Err(format!(
                    "at byte {here}: expected a thread such as `main` or `main.1.2`, found `{path}`"
                ));
            }
            for _ in 0..count {
                steps.push((path.to_owned(), alternative));
            }
        }
        Ok(Schedule { steps })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("v1")?;
        for run in self.steps.chunk_by(|a, b| a == b) {
            let (path, alternative) = &run[0];
            write!(f, " {path}")?;
            if *alternative != 0 {
                write!(f, ":{alternative}")?;
            }
            if run.len() > 1 {
                write!(f, "*{}", run.len())?;
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
        let text = "v1 main*4 main.1 main.2:1 main.2 main";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.steps.len(), 8);
        assert_eq!(schedule.to_string(), text);
    }

    #[test]
    fn a_malformed_schedule_is_refused_with_the_position_and_what_was_expected() {
        for (text, expected) in [
            (
                "main*4",
                "a schedule begins with its version, `v1`; at byte 0",
            ),
            (
                "v1 main*x",
                "at byte 3, in `main*x`: expected a number of steps after `*`, found `x`",
            ),
            (
                "v1 main rain",
                "at byte 8: expected a thread such as `main` or `main.1.2`, found `rain`",
            ),
            (
                "v1 main:",
                "at byte 3, in `main:`: expected the number of an outcome",
            ),
        ] {
            let error = Schedule::parse(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
