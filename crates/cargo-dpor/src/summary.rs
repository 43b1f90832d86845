//! Reads the summary of a run: a line of JSON for each place that explores.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A place that explores, and all its explorations. A field that this version does not know is
/// ignored, and one that the library did not write has its default.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Line {
    pub(crate) package: Option<String>,
    pub(crate) target: String,
    pub(crate) test: Option<String>,
    pub(crate) place: String,
    pub(crate) models: u64,
    pub(crate) complete: bool,
    pub(crate) verdicts: BTreeMap<String, u64>,
    pub(crate) reason: Option<String>,
    pub(crate) executions: u64,
    pub(crate) pruned: u64,
    pub(crate) events: u64,
    /// The part of each exploration that the run explored, such as `3/8`, if not all.
    pub(crate) shard: Option<String>,
    /// The explorations that were such parts; the others were explored in full.
    pub(crate) parts: Parts,
    pub(crate) seconds: f64,
    pub(crate) assumptions: Vec<Assumption>,
    pub(crate) vacuous: Vec<String>,
    /// Number of explorations by what they say about weak memory.
    pub(crate) weak: Weak,
    /// The passes that have explored spurious behaviour.
    pub(crate) further: Further,
}

/// A field of a form that may change with the library. Another form is read as nothing.
macro_rules! lenient {
    ($name:ident, $form:ty) => {
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(from = "serde_json::Value")]
        pub(crate) struct $name(pub(crate) $form);

        impl From<serde_json::Value> for $name {
            fn from(value: serde_json::Value) -> $name {
                $name(serde_json::from_value(value).unwrap_or_default())
            }
        }
    };
}

lenient!(Weak, BTreeMap<String, u64>);
lenient!(Further, Vec<Pass>);

/// The explorations of a line that were parts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Parts {
    pub(crate) models: u64,
    pub(crate) executions: u64,
    pub(crate) pruned: u64,
    pub(crate) events: u64,
    pub(crate) outcomes: BTreeMap<String, u64>,
}

/// The further passes for one kind of behaviour.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Pass {
    pub(crate) kind: String,
    pub(crate) executions: u64,
    pub(crate) complete: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Assumption {
    pub(crate) kind: String,
    pub(crate) places: Vec<String>,
}

impl Line {
    /// The name of the test, unless the thread that explored is no test's.
    pub(crate) fn test(&self) -> Option<&str> {
        self.test.as_deref().filter(|test| *test != "main")
    }

    /// The test, or the place if the test has no name.
    pub(crate) fn name(&self) -> &str {
        self.test().unwrap_or(&self.place)
    }

    pub(crate) fn is_of_the_test_of(&self, other: &Line) -> bool {
        let test = |line: &Line| {
            (
                line.name().to_owned(),
                line.target.clone(),
                line.package.clone(),
            )
        };
        test(self) == test(other)
    }

    /// What distinguishes the place from others.
    pub(crate) fn key(&self) -> [&str; 4] {
        let package = self.package.as_deref().unwrap_or_default();
        let test = self.test.as_deref().unwrap_or_default();
        [package, &self.target, test, &self.place]
    }

    /// Whether the line is of this place and part.
    fn is_of(&self, other: &Line) -> bool {
        (self.key(), &self.shard) == (other.key(), &other.shard)
    }

    /// Number of explorations with a verdict that is none of these.
    pub(crate) fn other_verdicts(&self, known: &[&str]) -> u64 {
        let others = self.verdicts.iter();
        let others = others.filter(|(verdict, _)| !known.contains(&&***verdict));
        others.map(|(_, times)| times).sum()
    }
}

/// Returns the last line of each place and part, in the order of the first ones, and a warning for
/// each line that cannot be read. A file that is not there has no lines.
pub(crate) fn read(file: &Path) -> Result<(Vec<Line>, Vec<String>)> {
    let text = match std::fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| file.display().to_string()),
    };
    let (mut lines, mut warnings) = (Vec::<Line>::new(), Vec::new());
    for (number, text) in text.lines().enumerate() {
        match serde_json::from_str::<Line>(text) {
            Ok(line) => match lines.iter_mut().find(|known| known.is_of(&line)) {
                Some(known) => *known = line,
                None => lines.push(line),
            },
            // A program may have been killed in the middle of a line.
            Err(error) => warnings.push(format!("{}:{}: {error}", file.display(), number + 1)),
        }
    }
    Ok((lines, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_place_counts_and_unknown_fields_do_not_matter() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("summary.json");
        assert!(read(&file).expect("no file").0.is_empty());
        let text = r#"{"run":"1","target":"races","test":"a","place":"x.rs:1:1","executions":1}
{"target":"races","test":"b","place":"x.rs:1:1","weak":{"new":[1]}}
{"target":"rac
{"target":"races","test":"a","place":"x.rs:1:1","executions":7,"weak":{"explored":1},"further":[{"kind":"writers_first","passes":1}]}
"#;
        std::fs::write(&file, text).expect("a file");
        let (lines, warnings) = read(&file).expect("a file");
        assert!(lines[1].weak.0.is_empty(), "another form is nothing");
        let read: Vec<_> = lines
            .iter()
            .map(|line| (line.name(), line.executions))
            .collect();
        assert_eq!(read, [("a", 7), ("b", 0)]);
        assert_eq!(lines[0].weak.0["explored"], 1);
        assert_eq!(lines[0].further.0[0].kind, "writers_first");
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("summary.json:3: "), "{warnings:?}");
    }
}
