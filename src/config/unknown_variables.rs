//! Warns about environment variables that seem to be meant for this crate and have no effect.
//!
//! A misspelt `DPOR_MAX_BRANCH=3` would change nothing, and the test would pass or fail as if the
//! setting were in force; so would `DPOR_SEED=3` with an algorithm that does not sample. The
//! warning is printed once in a process, directly to standard error, because the harness shows the
//! captured output of a test only if the test fails.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Once;

/// The common prefix of all variables of this crate.
const PREFIX: &str = "DPOR_";

/// Variables that only the tests of this crate read, or the command `dpor-fleet`. A test passes
/// variables with the prefix `DPOR_TEST_` to a process of its own.
const OF_OTHERS: [&str; 12] = [
    "DPOR_BLESS",
    "DPOR_FLEET_",
    "DPOR_FUZZ",
    "DPOR_FUZZ_ALGORITHM",
    "DPOR_FUZZ_SEED",
    "DPOR_REPEAT",
    "DPOR_LIVE",
    "DPOR_LIVE_FROM",
    "DPOR_RACES",
    "DPOR_RACES_FROM",
    "DPOR_SCALING",
    "DPOR_TEST_",
];

/// The most letters that may be wrong, missing or extra in a misspelt name.
const TYPOS_MAX: usize = 2;

/// Prints a warning for each variable that is not one of the `settings`.
pub(crate) fn tell(settings: impl FnOnce() -> BTreeSet<String>) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = names.filter(|name| name.starts_with(PREFIX));
    let lines = warnings(ours.collect(), settings);
    // A closed standard error is no reason to fail.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// The variables that only sampling algorithms use.
const OF_SAMPLERS: [&str; 3] = ["DPOR_ITERATIONS", "DPOR_PCT_DEPTH", "DPOR_SEED"];

/// Prints, at its first call in a process, which of the sampling variables are set although this
/// algorithm does not sample.
pub(crate) fn tell_of_samplers(algorithm: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let is_set = |name: &&str| std::env::var(name).is_ok_and(|it| !it.trim().is_empty());
        let line = |name| {
            format!(
                "dpor: the variable `{name}` does nothing here: the algorithm `{algorithm}` draws nothing by chance, as \
                 `random`, `pct` and `pos` do (DPOR_ALGORITHM)\n"
            )
        };
        let lines: String = OF_SAMPLERS.into_iter().filter(is_set).map(line).collect();
        let _ = std::io::stderr().write_all(lines.as_bytes());
    });
}

/// Names that are formed like a field of [`Builder`](crate::Builder) and are not the field's
/// variable, each with that variable.
const LIKE_FIELDS: [(&str, &str); 3] = [
    ("DPOR_PREEMPTION_BOUND", "DPOR_MAX_PREEMPTIONS"),
    ("DPOR_SWITCH_BOUND", "DPOR_MAX_SWITCHES"),
    ("DPOR_DELAY_BOUND", "DPOR_MAX_DELAYS"),
];

/// Returns one line for each of these names that is not one of the `settings`.
fn warnings(names: Vec<String>, settings: impl FnOnce() -> BTreeSet<String>) -> String {
    if names.is_empty() {
        return String::new();
    }
    let settings = settings();
    let mut lines = String::new();
    for name in names {
        let is = |ours: &str| name == ours || ours.ends_with('_') && name.starts_with(ours);
        if settings.contains(&name) || OF_OTHERS.into_iter().any(is) {
            continue;
        }
        let typos = |known: &&String| typos(&name.to_ascii_uppercase(), known);
        let near = settings.iter().min_by_key(typos);
        // With two typos allowed, any name of three letters would be like any other of three
        // letters.
        let most = TYPOS_MAX.min(name.len().saturating_sub(PREFIX.len()) / 2);
        let near = near.filter(|near| typos(near) <= most);
        let field = LIKE_FIELDS.into_iter().find(|(field, _)| *field == name);
        let meant = match field.map(|(_, ours)| ours).or(near.map(String::as_str)) {
            Some(ours) => format!("; is `{ours}` meant?"),
            None => String::new(),
        };
        lines.push_str(&format!(
            "dpor: the variable `{name}` of the environment is unknown, and does nothing{meant}\n"
        ));
    }
    lines
}

/// Returns the number of bytes to insert, remove or replace to turn one name into the other
/// (Levenshtein distance).
fn typos(one: &str, other: &str) -> usize {
    // The distances from the part of `one` so far to every prefix of `other`.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> String {
        let settings = ["DPOR_LOG", "DPOR_MAX_BRANCHES", "DPOR_MAX_THREADS"];
        let settings = || settings.map(str::to_owned).into_iter().collect();
        warnings(vec![name.to_owned()], settings)
    }

    #[test]
    fn an_unknown_variable_is_told_with_the_one_that_may_be_meant() {
        assert_eq!(
            told("DPOR_MAX_BRANCH"),
            "dpor: the variable `DPOR_MAX_BRANCH` of the environment is unknown, and does nothing; is \
             `DPOR_MAX_BRANCHES` meant?\n"
        );
        let spelt = told("DPOR_max_branches");
        assert!(
            spelt.ends_with("; is `DPOR_MAX_BRANCHES` meant?\n"),
            "{spelt}"
        );
        for far in ["DPOR_FOO", "DPOR_"] {
            assert!(told(far).ends_with("does nothing\n"), "{far}");
        }
        assert_eq!(
            told("DPOR_SPEED"),
            "dpor: the variable `DPOR_SPEED` of the environment is unknown, and does nothing\n"
        );
        assert_eq!(
            told("DPOR_SWITCH_BOUND"),
            "dpor: the variable `DPOR_SWITCH_BOUND` of the environment is unknown, and does nothing; is `DPOR_MAX_SWITCHES` \
             meant?\n"
        );
        assert_eq!(told("DPOR_MAX_THREADS"), "");
        assert_eq!(told("DPOR_FUZZ"), "");
        assert_eq!(told("DPOR_TEST_ANYTHING"), "");
        assert_eq!(told("DPOR_FLEET_DATABASE"), "");
        assert_ne!(told("DPOR_FUZZY"), "");
    }

    #[test]
    fn typos_are_counted() {
        assert_eq!(typos("", ""), 0);
        assert_eq!(typos("abc", "abc"), 0);
        assert_eq!(typos("abc", "ac"), 1);
        assert_eq!(typos("ac", "abc"), 1);
        assert_eq!(typos("abc", "axc"), 1);
        assert_eq!(typos("kitten", "sitting"), 3);
        assert_eq!(typos("", "ab"), 2);
    }
}
