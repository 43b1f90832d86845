//! Which settings and limits exist, where do they come from, and in which unit?
//!
//! Every setting is a field of [`Builder`]; the environment sets its first value. A variable that
//! does not parse is an error that names it, its value and what was expected.

use std::time::Duration;

/// The algorithm that decides which executions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Every trace exactly once, and nothing else (Optimal-DPOR).
    #[default]
    Optimal,
    /// Every trace, with some executions begun in vain (Source-DPOR).
    Source,
    /// Flanagan and Godefroid's DPOR with sleep sets; begins more executions in vain than `Source`.
    Classic,
    /// Every trace, with many executions begun in vain.
    SleepSets,
    /// Every interleaving.
    Naive,
}

/// How a test is explored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Builder {
    /// The algorithm (`DPOR_ALGORITHM`: `optimal`, `source`, `classic`, `sleep_sets`, `naive`).
    pub algorithm: Algorithm,
    /// The most threads that may be alive at once (`DPOR_MAX_THREADS`); `None` for any number.
    pub max_threads: Option<usize>,
    /// The most events in one execution (`DPOR_MAX_BRANCHES`).
    pub max_branches: usize,
    /// Stop after this many executions (`DPOR_MAX_PERMUTATIONS`).
    pub max_permutations: Option<u64>,
    /// Stop after this time, in seconds (`DPOR_MAX_DURATION`).
    pub max_duration: Option<Duration>,
    /// How many idle iterations of a spin loop are free before its hint waits for a change.
    pub spin_bound: u32,
    /// Whether a weak compare-exchange may fail for no reason.
    pub spurious_failures: bool,
    /// How often in each execution a thread may wake up from a condition variable without having
    /// been notified.
    pub spurious_wakeups: u32,
    /// How often in a row a wait at one place in the program may time out (`wait_timeout`,
    /// `park_timeout`, `recv_timeout`). After that it waits for a change, or until nothing else can
    /// run, so that a loop around it comes to an end.
    pub timeout_bound: u32,
    /// Whether the panic of a spawned thread is only its own end, as in std: `join` returns it, and
    /// locks are poisoned. Otherwise it fails the test at once. A panic of the closure itself always
    /// does.
    pub catch_panics: bool,
    /// The size of each thread's stack in bytes (`DPOR_STACK_SIZE`).
    pub stack_size: usize,
    /// After how long a step that does not come back is told on standard error
    /// (`DPOR_PATIENCE`, in seconds; 0 for never).
    pub patience: Option<Duration>,
    /// The schedule of one execution to run instead of exploring (`DPOR_REPLAY`).
    pub replay: Option<String>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// The defaults, changed by the environment.
    ///
    /// # Panics
    ///
    /// If a variable of the environment does not parse.
    #[track_caller]
    pub fn new() -> Builder {
        match Builder::from(&|name| std::env::var(name).ok()) {
            Ok(builder) => builder,
            Err(error) => panic!("{error}"),
        }
    }

    fn from(get: &dyn Fn(&str) -> Option<String>) -> Result<Builder, String> {
        let number = |name: &str, unit: &str| match get(name) {
            None => Ok(None),
            Some(text) => match text.trim().parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("{name}=`{text}`: expected a number of {unit}")),
            },
        };
        let algorithm = match get("DPOR_ALGORITHM").as_deref() {
            None | Some("optimal") => Algorithm::Optimal,
            Some("source") => Algorithm::Source,
            Some("classic") => Algorithm::Classic,
            Some("sleep_sets") => Algorithm::SleepSets,
            Some("naive") => Algorithm::Naive,
            Some(other) => {
                return Err(format!(
                    "DPOR_ALGORITHM=`{other}`: expected optimal, source, classic, sleep_sets or \
                     naive"
                ));
            }
        };
        let events = number("DPOR_MAX_BRANCHES", "events")?;
        let stack = number("DPOR_STACK_SIZE", "bytes")?;
        let patience = number("DPOR_PATIENCE", "seconds")?;
        Ok(Builder {
            algorithm,
            max_threads: number("DPOR_MAX_THREADS", "threads")?.map(|n| n as usize),
            max_branches: events.map_or(100_000, |n| n as usize),
            max_permutations: number("DPOR_MAX_PERMUTATIONS", "executions")?,
            max_duration: number("DPOR_MAX_DURATION", "seconds")?.map(Duration::from_secs),
            spin_bound: 1,
            spurious_failures: false,
            spurious_wakeups: 0,
            timeout_bound: 2,
            catch_panics: false,
            stack_size: stack.map_or(256 * 1024, |n| n as usize),
            patience: Some(patience.unwrap_or(10))
                .filter(|&seconds| seconds > 0)
                .map(Duration::from_secs),
            replay: get("DPOR_REPLAY"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_does_not_parse_is_named_with_its_value_and_what_was_expected() {
        for (name, value, expected) in [
            (
                "DPOR_MAX_BRANCHES",
                "many",
                "DPOR_MAX_BRANCHES=`many`: expected a number of events",
            ),
            (
                "DPOR_ALGORITHM",
                "best",
                "DPOR_ALGORITHM=`best`: expected optimal, source, classic, sleep_sets or naive",
            ),
        ] {
            let result = Builder::from(&|asked| (asked == name).then(|| value.to_owned()));
            assert_eq!(result.err().as_deref(), Some(expected));
        }
    }
}
