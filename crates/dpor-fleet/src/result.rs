//! What the test program tells of a task (`docs/PARALLEL.md` has the fields).

use std::collections::BTreeMap;
use std::hash::Hasher;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The form of results that is read here.
const FORMAT: u64 = 1;

/// A task at a place in the order of tasks: the numbers of the tasks that lead to it.
pub(crate) type Path = Vec<i32>;

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
pub(crate) struct TaskResult {
    pub(crate) format: u64,
    pub(crate) identity: BTreeMap<String, String>,
    /// Whether the task has explored everything.
    pub(crate) whole: bool,
    pub(crate) verdict: String,
    pub(crate) executions: u64,
    pub(crate) pruned: u64,
    pub(crate) events: u64,
    pub(crate) longest: u64,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) weak: String,
    pub(crate) failure: Option<Failure>,
    /// The files of the further tasks.
    pub(crate) tasks: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
pub(crate) struct Failure {
    /// Empty if the program has crashed before it could tell.
    pub(crate) schedule: String,
    pub(crate) report: String,
}

impl TaskResult {
    /// Reads a result and compares its checksum.
    pub(crate) fn parse(text: &str) -> Result<TaskResult> {
        let (line, sum) = text
            .trim_end()
            .split_once('\n')
            .context("a result has two lines")?;
        let theirs = u64::from_str_radix(sum, 16).context("the second line is no checksum")?;
        ensure!(fnv(line.as_bytes()) == theirs, "the checksum is wrong");
        let result: TaskResult = serde_json::from_str(line)?;
        ensure!(
            result.format == FORMAT,
            "the result has the form {}, and this version reads the form {FORMAT}: use the dpor-fleet of the \
             program's dpor",
            result.format
        );
        Ok(result)
    }

    /// The result of a task on which the program crashes.
    pub(crate) fn crashed(report: String) -> TaskResult {
        TaskResult {
            format: FORMAT,
            verdict: "failed".to_owned(),
            failure: Some(Failure {
                schedule: String::new(),
                report,
            }),
            ..TaskResult::default()
        }
    }
}

pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "{\"format\":1,\"identity\":{\"build\":\"a\"},\"task\":\"root\",\"whole\":false,\"verdict\":\"task\",\
        \"executions\":5,\"pruned\":0,\"events\":60,\"longest\":12,\"outcomes\":{\"7\":5},\"weak\":\"unasked\",\
        \"failure\":null,\"tasks\":[\"x.task\"],\"new\":1}";

    #[test]
    fn a_result_is_read_only_as_it_was_written() {
        let text = format!("{LINE}\n{:016x}\n", fnv(LINE.as_bytes()));
        let result = TaskResult::parse(&text).expect("it is right");
        assert_eq!((result.executions, &*result.tasks[0]), (5, "x.task"));
        let told = |text: &str| format!("{:#}", TaskResult::parse(text).expect_err("refused"));
        let other = text.replace("\"executions\":5", "\"executions\":6");
        assert_eq!(told(&other), "the checksum is wrong");
        assert_eq!(told(LINE), "a result has two lines");
        assert_eq!(
            told("{}\nx"),
            "the second line is no checksum: invalid digit found in string"
        );
        let newer = LINE.replace("\"format\":1", "\"format\":2");
        let newer = format!("{newer}\n{:016x}\n", fnv(newer.as_bytes()));
        assert!(
            told(&newer).starts_with("the result has the form 2"),
            "{newer}"
        );
    }
}
