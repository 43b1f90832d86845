//! Reads the environment variables.
//!
//! An empty variable counts as not set. A variable that does not parse is an error that names the
//! variable, its value and the expected form.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use crate::rt::exec::log::Filter;

use crate::config::{Executions, LOOM, Shard};

/// Returns the value of a variable, or an error if the value is not UTF-8.
pub(crate) fn variable(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(text)) => Err(format!(
            "{name}=`{}`: expected text in UTF-8",
            text.to_string_lossy()
        )),
    }
}

/// The variables that loom has, too, under both names.
const OF_LOOM: [(&str, &str); 8] = [
    ("DPOR_MAX_BRANCHES", "LOOM_MAX_BRANCHES"),
    ("DPOR_MAX_PERMUTATIONS", "LOOM_MAX_PERMUTATIONS"),
    ("DPOR_MAX_DURATION", "LOOM_MAX_DURATION"),
    ("DPOR_MAX_PREEMPTIONS", "LOOM_MAX_PREEMPTIONS"),
    ("DPOR_CHECKPOINT_FILE", "LOOM_CHECKPOINT_FILE"),
    ("DPOR_CHECKPOINT_INTERVAL", "LOOM_CHECKPOINT_INTERVAL"),
    ("DPOR_LOG", "LOOM_LOG"),
    ("DPOR_LOCATION", "LOOM_LOCATION"),
];

/// The source of variables: the environment, or a test's replacement for it.
pub(crate) struct Environment<'a> {
    pub(crate) get: &'a dyn Fn(&str) -> Result<Option<String>, String>,
}

impl Environment<'_> {
    /// Returns the value of a variable. An empty value counts as not set, because scripts set a
    /// variable to the empty text to unset it.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, String> {
        let text = (self.get)(name)?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    /// Returns the name of the variable to read: loom's variable if this build has loom's
    /// signatures, loom's variable is set and ours is not; otherwise ours.
    pub(crate) fn either(&self, name: &'static str) -> &'static str {
        let is_set = |name| !matches!(self.text(name), Ok(None));
        let of_loom = OF_LOOM.iter().find(|(ours, _)| LOOM && *ours == name);
        match of_loom {
            Some(&(_, theirs)) if !is_set(name) && is_set(theirs) => theirs,
            _ => name,
        }
    }

    pub(crate) fn parse<T: std::str::FromStr>(
        &self,
        name: &str,
        what: impl Display,
    ) -> Result<Option<T>, String> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => match text.trim().parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => {
                    let more = too_big(&text);
                    Err(format!("{name}=`{text}`: expected {what}{more}"))
                }
            },
        }
    }

    pub(crate) fn number(&self, name: &str, unit: &str) -> Result<Option<u64>, String> {
        self.parse(name, format_args!("a whole number of {unit}"))
    }

    pub(crate) fn size(&self, name: &str, unit: &str) -> Result<Option<usize>, String> {
        self.parse(name, format_args!("a whole number of {unit}"))
    }

    /// Parses a duration, in seconds if the value names no unit.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match duration(text.trim()) {
            Ok(time) => Ok(Some(time)),
            Err(why) => Err(format!(
                "{name}=`{text}`: expected a number of seconds, or one with a unit: 500ms, 1.5, 10s, 2m or 1h{why}"
            )),
        }
    }

    pub(crate) fn switch(&self, name: &str) -> Result<Option<bool>, String> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => match text.trim() {
                "0" => Ok(Some(false)),
                "1" => Ok(Some(true)),
                _ => Err(format!("{name}=`{text}`: expected 0 or 1")),
            },
        }
    }

    /// Returns whether standard error shows schedules (`Ok`), or the filter for the test's own log
    /// (`Err`).
    pub(crate) fn log(&self, name: &str) -> Result<Option<Result<bool, String>>, String> {
        Ok(match self.text(name)? {
            None => None,
            Some(text) => Some(match text.trim() {
                "0" => Ok(false),
                "1" => Ok(true),
                filter => match Filter::parse(filter) {
                    // No crate has one of these names, so `true` or `false` is a mistake and no
                    // filter.
                    Ok(_) if !matches!(filter, "true" | "false") => Err(filter.to_owned()),
                    _ => {
                        return Err(format!(
                            "{name}=`{text}`: expected 0, 1, or what to show of the test's log, such as \
                             `debug` or `my_crate=trace,other=warn`"
                        ));
                    }
                },
            }),
        })
    }

    pub(crate) fn path(&self, name: &str) -> Result<Option<PathBuf>, String> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    /// A number of workers; `auto` is the number of processors that the process may use.
    pub(crate) fn workers(&self, name: &str) -> Result<Option<usize>, String> {
        match self.text(name)? {
            Some(text) if text.trim() == "auto" => Ok(Some(
                std::thread::available_parallelism().map_or(1, usize::from),
            )),
            _ => self.parse(name, "a whole number of workers, or `auto`"),
        }
    }

    pub(crate) fn shard(&self, name: &str) -> Result<Option<Shard>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match Shard::parse(text.trim()) {
            Some(shard) => Ok(Some(shard)),
            None => Err(format!(
                "{name}=`{text}`: expected the number of a part, from 1, and of all parts, such as 3/8"
            )),
        }
    }

    pub(crate) fn executions(&self, name: &str) -> Result<Option<Executions>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match (text.trim(), text.trim().parse()) {
            ("all", _) => Ok(Some(Executions::All)),
            (_, Ok(number)) if number > 0 => Ok(Some(Executions::Only(number))),
            _ => Err(format!(
                "{name}=`{text}`: expected `all`, or the number of an execution, from 1{}",
                too_big(&text)
            )),
        }
    }

    pub(crate) fn one_of<T: Copy + Default>(
        &self,
        name: &str,
        known: &[(&str, T)],
    ) -> Result<T, String> {
        let Some(text) = self.text(name)? else {
            return Ok(T::default());
        };
        let found = known.iter().find(|(known, _)| *known == text.trim());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("{name}=`{text}`: expected one of {}", names.join(", "))
        })
    }
}

/// The units of a duration, with the seconds that each has. `ms` stands before `s`, because a value
/// in milliseconds also ends with `s`.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Parses a duration. An error is the text to append to the message about the expected form.
fn duration(text: &str) -> Result<Duration, &'static str> {
    // Whole seconds are parsed without a float, so large numbers are exact.
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let with_unit = UNITS.iter().find_map(|&(name, seconds)| {
        let number = text.strip_suffix(name)?;
        Some((number.trim_end(), seconds))
    });
    let (number, seconds) = with_unit.unwrap_or((text, 1.0));
    // The other forms of a float are more likely a mistake: `inf`, `1e3`, `-1`.
    let is_number = number.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let number = number.parse().ok().filter(|_: &f64| is_number).ok_or("")?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "; this one is too big")
}

/// Returns the text to append to an error if the value did not parse because it is too large. The
/// numbers that are read have no sign, so a value that consists of digits alone and does not parse
/// is too large.
fn too_big(text: &str) -> &'static str {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    // Zero fails to parse where numbers count from 1, and is not too large.
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    if is_number && !is_zero {
        "; this one is too big"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_too_big_is_told_to_be() {
        for value in ["99999999999999999999", " +99999999999999999999 "] {
            let env = Environment {
                get: &|_| Ok(Some(value.to_owned())),
            };
            let execution = "`all`, or the number of an execution, from 1";
            for (error, expected) in [
                (env.size("X", "events").err(), "a whole number of events"),
                (
                    env.number("X", "seconds").err(),
                    "a whole number of seconds",
                ),
                (
                    env.parse::<u32>("X", "a number below 2^32").err(),
                    "a number below 2^32",
                ),
                (env.executions("X").map(drop).err(), execution),
            ] {
                let told = format!("X=`{value}`: expected {expected}; this one is too big");
                assert_eq!(error, Some(told));
            }
        }
    }

    #[test]
    fn a_time_is_in_seconds_or_has_a_unit() {
        let milliseconds = Duration::from_millis;
        for (text, time) in [
            ("10", milliseconds(10_000)),
            ("0", milliseconds(0)),
            ("10s", milliseconds(10_000)),
            ("1.5", milliseconds(1500)),
            ("1.5 s", milliseconds(1500)),
            (".5", milliseconds(500)),
            ("500ms", milliseconds(500)),
            ("2m", milliseconds(120_000)),
            ("1.5m", milliseconds(90_000)),
            ("1h", milliseconds(3_600_000)),
            ("18446744073709551615", Duration::from_secs(u64::MAX)),
        ] {
            assert_eq!(duration(text), Ok(time), "{text}");
        }
        for text in [
            "", "s", "soon", "-1", "1e3", "inf", "nan", "1d", "1.2.3", "10 s s",
        ] {
            assert_eq!(duration(text), Err(""), "{text}");
        }
        let too_big = Err("; this one is too big");
        assert_eq!(duration("18446744073709551616"), too_big);
        assert_eq!(duration("99999999999999999999h"), too_big);
    }

    #[test]
    fn what_is_no_number_at_all_is_not_too_big() {
        for value in ["many", "-1", "1e6", "+", "00"] {
            assert_eq!(too_big(value), "", "{value}");
        }
    }
}
