//! What is kept of a run, so that its tests can be run again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::project::Project;
use crate::summary::Line;
use crate::table::{Model, Outcome};

#[derive(Deserialize, Serialize)]
pub(crate) struct LastRun {
    /// The root of the workspace. A target directory may serve several.
    root: PathBuf,
    pub(crate) began: SystemTime,
    /// The arguments of `cargo test` that decide what is built.
    pub(crate) build: Vec<String>,
    pub(crate) cfgs: Vec<String>,
    pub(crate) target_directory: PathBuf,
    /// The settings of the library in the environment.
    pub(crate) settings: BTreeMap<String, String>,
    /// The worst first.
    pub(crate) models: Vec<Model>,
}

/// The settings that say what to do with a run, and not how to explore.
const OF_ONE_RUN: [&str; 7] = [
    "DPOR_SUMMARY",
    "DPOR_REPORT_DIR",
    "DPOR_REPLAY",
    "DPOR_TRACE",
    "DPOR_PROGRESS",
    "DPOR_CHECKPOINT_FILE",
    "DPOR_REQUIRE_COMPLETE",
];

/// Returns the settings of the library in the environment that decide how it explores.
pub(crate) fn settings() -> BTreeMap<String, String> {
    let text = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let ours = |name: &str| name.starts_with("DPOR_") || name.starts_with("LOOM_");
    text.filter(|(name, value)| ours(name) && !value.is_empty() && !OF_ONE_RUN.contains(&&**name))
        .collect()
}

fn file(project: &Project) -> PathBuf {
    project.state().join("last-run.json")
}

impl LastRun {
    pub(crate) fn new(project: &Project) -> LastRun {
        LastRun {
            root: project.root().to_owned(),
            began: SystemTime::now(),
            build: Vec::new(),
            cfgs: Vec::new(),
            target_directory: project.build(),
            settings: settings(),
            models: Vec::new(),
        }
    }

    pub(crate) fn write(&self, project: &Project) -> Result<()> {
        let file = file(project);
        let text = serde_json::to_string_pretty(self).context("the record of the run")?;
        std::fs::write(&file, text).with_context(|| file.display().to_string())
    }

    pub(crate) fn read(project: &Project) -> Result<LastRun> {
        let file = file(project);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("there is no run yet; `cargo dpor test` is one")
            }
            Err(error) => return Err(error).with_context(|| file.display().to_string()),
        };
        let run: LastRun = serde_json::from_str(&text).map_err(|error| {
            anyhow::anyhow!(
                "{}:{}:{}: {error}; `cargo dpor test` writes the file anew",
                file.display(),
                error.line(),
                error.column()
            )
        })?;
        ensure!(
            run.root == project.root(),
            "the last run in this target directory was that of {}; `cargo dpor test` makes a new one",
            run.root.display()
        );
        Ok(run)
    }

    /// Returns the model of this test: the one with this name, or else the only one with a part of
    /// it. Several models of one test are one, the worst of them.
    pub(crate) fn model(&self, test: &str) -> Result<&Model> {
        let exact = self.models.iter().find(|model| model.line.name() == test);
        if let Some(model) = exact {
            return Ok(model);
        }
        let mut found: Vec<&Model> = Vec::new();
        for model in self
            .models
            .iter()
            .filter(|it| it.line.name().contains(test))
        {
            if !found
                .iter()
                .any(|known| known.line.is_of_the_test_of(&model.line))
            {
                found.push(model);
            }
        }
        match found[..] {
            [model] => Ok(model),
            [] => bail!(
                "no model of the last run is one of a test `{test}`; there are {}",
                names(self.models.iter())
            ),
            _ => bail!(
                "`{test}` is a part of several names: {}",
                names(found.into_iter())
            ),
        }
    }

    /// Returns the failure of this test, or the first one.
    pub(crate) fn failure(&self, test: Option<&str>) -> Result<&Model> {
        let mut failed = (self.models.iter()).filter(|model| model.outcome == Outcome::Failed);
        match test {
            None => failed.next().context("no model of the last run has failed"),
            Some(test) => {
                let model = self.model(test)?;
                ensure!(
                    model.outcome == Outcome::Failed,
                    "`{}` has not failed in the last run",
                    model.line.name()
                );
                Ok(model)
            }
        }
    }

    /// Returns the file in which the library has saved the schedule of the model's failure.
    pub(crate) fn schedule(&self, line: &Line) -> Option<PathBuf> {
        let mut inner = PathBuf::from("dpor");
        // The library gives a package a directory of its own, unless its program has its name.
        inner.extend(
            line.package
                .as_ref()
                .filter(|package| **package != line.target),
        );
        inner.push(&line.target);
        inner.push(format!("{}.schedule", stem(line)));
        let triples = std::fs::read_dir(&self.target_directory).ok()?;
        let triples = triples.flatten().map(|entry| entry.path());
        let places = std::iter::once(self.target_directory.clone()).chain(triples);
        // Some file systems keep the seconds alone.
        let since = self.began - Duration::from_secs(2);
        let is_new = |file: &PathBuf| {
            let changed = std::fs::metadata(file).and_then(|it| it.modified());
            changed.is_ok_and(|changed| changed >= since)
        };
        places.map(|place| place.join(&inner)).find(is_new)
    }
}

fn names<'a>(models: impl Iterator<Item = &'a Model>) -> String {
    let mut names: Vec<_> = models.map(|model| model.line.name()).collect();
    names.dedup();
    let more = names.len().saturating_sub(10);
    names.truncate(10);
    let names = names.join(", ");
    match more {
        0 if names.is_empty() => "none".to_owned(),
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Returns the beginning of the names of the model's files, as the library forms it.
pub(crate) fn stem(line: &Line) -> String {
    let name = match line.test() {
        Some(test) => test.to_owned(),
        None => {
            let mut parts = line.place.rsplitn(3, ':');
            let number = parts.nth(1).unwrap_or_default();
            format!("{}-{number}", parts.next().unwrap_or_default())
        }
    };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = name.replace("::", ".");
    let mut name: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    if name.starts_with('.') {
        name.insert(0, '_');
    }
    let mut end = name.len().min(200);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

/// Returns whether the page's data is that of the failure with this schedule.
pub(crate) fn is_of(data: &Path, schedule: &str) -> bool {
    #[derive(Deserialize)]
    struct Data {
        schedule: String,
    }
    let text = std::fs::read_to_string(data).unwrap_or_default();
    // The saved schedule may begin with the number of the model in its test.
    let schedule = match schedule
        .strip_prefix("model ")
        .and_then(|it| it.split_once(": "))
    {
        Some((_, schedule)) => schedule,
        None => schedule,
    };
    let data = serde_json::from_str::<Data>(&text);
    data.is_ok_and(|data| data.schedule.trim() == schedule.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_as_the_library_names_it() {
        let mut line = Line {
            test: Some("queue::pops once".to_owned()),
            place: "tests/a b.rs:12:5".to_owned(),
            ..Line::default()
        };
        assert_eq!(stem(&line), "queue.pops_once");
        line.test = None;
        assert_eq!(stem(&line), "tests_a_b.rs-12");
        line.place = "odd".to_owned();
        stem(&line);
    }
}
