//! What the results of a run are together.

use std::collections::BTreeMap;

use crate::result::{Failure, Path, TaskResult};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) executions: u64,
    pub(crate) pruned: u64,
    pub(crate) events: u64,
    pub(crate) longest: u64,
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// The first failure in the order of one process. Its execution is the one behind those that
    /// are counted.
    pub(crate) failure: Option<Failure>,
    /// Why not all was explored, each once.
    pub(crate) gaps: Vec<String>,
}

impl Totals {
    /// Adds the result of the task that comes next. Results behind a failure do not count.
    pub(crate) fn add(&mut self, path: &Path, result: TaskResult) {
        if self.failure.is_some() {
            return;
        }
        self.executions += result.executions;
        self.pruned += result.pruned;
        self.events += result.events;
        self.longest = self.longest.max(result.longest);
        for (outcome, times) in result.outcomes {
            *self.outcomes.entry(outcome).or_default() += times;
        }
        if !matches!(&*result.verdict, "task" | "complete" | "failed") {
            let verdict = &result.verdict;
            self.gap(format!(
                "the task {path:?} was not explored in full: {verdict}"
            ));
        }
        if result.weak == "possible" {
            self.gap(
                "weak behaviour is possible, and was not explored (DPOR_MEMORY=c11)".to_owned(),
            );
        }
        self.failure = result.failure;
    }

    pub(crate) fn gap(&mut self, gap: String) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(executions: u64, verdict: &str) -> TaskResult {
        TaskResult {
            executions,
            verdict: verdict.to_owned(),
            outcomes: BTreeMap::from([("7".to_owned(), executions)]),
            longest: executions,
            ..TaskResult::default()
        }
    }

    #[test]
    fn results_are_added_up_to_the_first_failure() {
        let mut totals = Totals::default();
        totals.add(&vec![], result(5, "task"));
        totals.add(&vec![0], result(2, "task"));
        assert_eq!(
            (totals.executions, totals.longest, totals.outcomes["7"]),
            (7, 5, 7)
        );
        let failure = Failure {
            schedule: "main".to_owned(),
            report: "it panicked".to_owned(),
        };
        let failed = TaskResult {
            failure: Some(failure.clone()),
            ..result(3, "failed")
        };
        totals.add(&vec![1], failed);
        totals.add(&vec![2], result(100, "stopped"));
        assert_eq!((totals.executions, totals.failure), (10, Some(failure)));
        assert!(totals.gaps.is_empty());
    }

    #[test]
    fn what_was_not_explored_is_told_once() {
        let mut totals = Totals::default();
        totals.add(&vec![], result(5, "stopped"));
        let weak = TaskResult {
            weak: "possible".to_owned(),
            ..result(1, "complete")
        };
        totals.add(&vec![0], weak.clone());
        totals.add(&vec![1], weak);
        assert_eq!(totals.gaps.len(), 2, "{:?}", totals.gaps);
        assert_eq!(
            totals.gaps[0],
            "the task [] was not explored in full: stopped"
        );
    }
}
