//! How does one process explore a task, and tell what is left?
//!
//! A task is a file in the form of a checkpoint, with numbers that begin at 0. Its result is a file
//! of JSON, and names the further tasks, which are files beside it. A task ends behind a number of
//! executions, and not of seconds. So a task that is explored twice has the same result, and the
//! same further tasks under the same names.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::config::Builder;
use crate::exploration::checkpoint_file::{Checkpoint, fnv};
use crate::exploration::progress::above_captured;
use crate::exploration::{Exploration, Task};
use crate::rt::engine::stats::Stats;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::report::json;
use crate::rt::statics::image::Image;
use crate::verdict::failure::Failure;
use crate::verdict::report::Passed;

/// The number of the form of a result.
const FORMAT: u64 = 1;

/// The name of the task that is the whole exploration.
const ROOT: &str = "root";

/// A result, without its checksum.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Told<'a> {
    format: u64,
    identity: BTreeMap<&'static str, &'a str>,
    /// The task, as it was named.
    task: String,
    /// Whether the task has explored everything, whatever it was to explore.
    whole: bool,
    verdict: &'static str,
    executions: u64,
    pruned: u64,
    events: u64,
    longest: usize,
    outcomes: BTreeMap<&'a str, u64>,
    /// What is said about weak memory. A task explores under sequential consistency alone.
    weak: &'static str,
    failure: Option<Failed<'a>>,
    /// The names of the further tasks, in the order in which one process would explore them.
    tasks: &'a [String],
}

/// The first failure.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Failed<'a> {
    schedule: &'a str,
    report: &'a str,
}

impl Exploration<'_> {
    /// Explores the task of the settings, unless it is for another model.
    pub(super) fn search_task(&mut self, mut driver: PooledDriver, task: &Path) -> PooledDriver {
        /// Whether a model of this process has taken the first task.
        static ROOT_IS_TAKEN: AtomicBool = AtomicBool::new(false);
        if task.as_os_str() == ROOT {
            let is_taken = !cfg!(test) && ROOT_IS_TAKEN.swap(true, Relaxed);
            if is_taken {
                return self.search(driver);
            }
        } else {
            assert!(
                task.is_file(),
                "the task {} (DPOR_TASK) is no file",
                task.display()
            );
            let known = self.file_of(task).resume(&mut driver);
            match known.unwrap_or_else(|error| panic!("{}", of_task(&error))) {
                Some(known) => self.watch.take_up(known),
                None => return self.search(driver),
            }
        }
        self.task = Some(Task::default());
        self.until = self.settings.task_executions;
        driver = self.search(driver);
        if !std::mem::take(&mut self.paused) {
            return driver;
        }
        let stats = std::mem::take(&mut driver.stats);
        let rest = driver.save(&Image);
        let mut parts: Vec<Result<Vec<u8>, String>> = Vec::new();
        while let Some(part) = driver.split(&Image) {
            parts.push(part);
        }
        // What stays is explored first.
        let rest = if parts.is_empty() {
            rest
        } else {
            driver.save(&Image)
        };
        parts.extend(rest);
        driver.stats = stats;
        let made = parts.into_iter().rev().map(|part| {
            let part = part.unwrap_or_else(|error| panic!("{error}"));
            self.write_task(&part)
        });
        let made = made.collect();
        if let Some(task) = &mut self.task {
            task.made = made;
        }
        driver
    }

    fn file_of(&self, file: &Path) -> Checkpoint {
        let settings = Builder {
            checkpoint_file: Some(file.to_owned()),
            ..self.settings.clone()
        };
        let checkpoint = Checkpoint::new(&settings, &self.site);
        let checkpoint = checkpoint.unwrap_or_else(|error| panic!("{}", of_task(&error)));
        checkpoint.unwrap_or_else(|| unreachable!("dpor bug: a file is set"))
    }

    /// Writes a further task beside the result, and returns its name.
    fn write_task(&self, bytes: &[u8]) -> String {
        let name = format!("{:016x}.task", fnv(bytes));
        let result = self.settings.result.as_deref().unwrap_or(Path::new("."));
        let file = self.file_of(&result.with_file_name(&name));
        let written = file.write(&self.watch.known(), bytes);
        written.unwrap_or_else(|error| panic!("the task {name} cannot be written: {error}"));
        name
    }

    /// Writes the result, if this was a task.
    pub(super) fn write_result(&self, explored: &Result<Passed, Box<Failure>>) {
        let (Some(task), Some(result)) = (&self.task, &self.settings.result) else {
            return;
        };
        let named = self.settings.task.as_deref().unwrap_or(Path::new(ROOT));
        let file = self.file_of(result);
        let identity = file.identity().iter();
        let identity = identity
            .map(|(what, line)| (*what, line.as_str()))
            .collect();
        let stats = match explored {
            Ok(passed) => passed.driver.stats,
            Err(failure) => Stats {
                complete: failure.executions,
                asleep: failure.pruned,
                ..Stats::default()
            },
        };
        let outcomes = explored.as_ref().ok();
        let outcomes = outcomes.and_then(|passed| passed.outcomes.as_deref());
        let said = outcomes.into_iter().flat_map(|outcomes| outcomes.said());
        let failure = explored.as_ref().err().map(|failure| Failed {
            schedule: &failure.schedule,
            report: &failure.text,
        });
        let told = Told {
            format: FORMAT,
            identity,
            task: named.display().to_string(),
            whole: task.is_whole,
            verdict: match explored {
                Ok(passed) => passed.verdict.name(),
                Err(_) => "failed",
            },
            executions: stats.complete,
            pruned: stats.given_up(),
            events: stats.events,
            longest: stats.longest,
            outcomes: said.map(|(said, times)| (said.as_str(), *times)).collect(),
            weak: match explored {
                Ok(passed) => passed.weak.name(),
                Err(_) => "unasked",
            },
            failure,
            tasks: if explored.is_ok() { &task.made } else { &[] },
        };
        let text = json::compact(&told);
        let sum = fnv(text.as_bytes());
        let mut beside = result.clone().into_os_string();
        beside.push(format!(".{}.new", std::process::id()));
        let written = fs::File::create(&beside).and_then(|mut file| {
            writeln!(file, "{text}\n{sum:016x}")?;
            file.sync_all()?;
            fs::rename(&beside, result)
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&beside);
            let file = result.display();
            above_captured(&format!(
                "dpor: the result {file} (DPOR_RESULT) cannot be written: {error}\n"
            ));
        }
    }
}

/// The sentence about a checkpoint as one about a task.
fn of_task(error: &str) -> String {
    error
        .replace("checkpoint", "task")
        .replace("DPOR_CHECKPOINT_FILE", "DPOR_TASK")
}

#[cfg(test)]
mod tests;
