//! Runs the test program on a task.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use shared_child::SharedChild;
use tempfile::TempDir;

use crate::interrupt;
use crate::result::{TaskResult, fnv};

/// Number of bytes of the output of a program that crashes that are kept.
const KEPT: usize = 16_384;

/// Variables that belong to a process, and not to an exploration.
const OF_A_PROCESS: [&str; 8] = [
    "DPOR_FLEET_DATABASE",
    "DPOR_LOG",
    "DPOR_PROGRESS",
    "DPOR_REPORT_DIR",
    "DPOR_RESULT",
    "DPOR_SUMMARY",
    "DPOR_TASK",
    "DPOR_TASK_EXECUTIONS",
];

/// Variables that have no meaning for a run, each with the reason.
const REFUSED: [(&str, &str); 5] = [
    ("DPOR_CHECKPOINT_FILE", "the database is the checkpoint"),
    (
        "DPOR_MAX_DURATION",
        "it would limit each task, and not the run; use `dpor-fleet stop`",
    ),
    (
        "DPOR_MAX_PERMUTATIONS",
        "it would limit each task, and not the run; use `dpor-fleet stop`",
    ),
    ("DPOR_SHARD", "a run is shared by tasks, and not by parts"),
    (
        "DPOR_WORKERS",
        "a task has one worker; use `dpor-fleet work --jobs`",
    ),
];

/// A test program as all workers run it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The hash of its file.
    pub(crate) hash: String,
    pub(crate) arguments: Vec<String>,
    /// The settings: variables with names that begin with `DPOR_`.
    pub(crate) environment: BTreeMap<String, String>,
}

/// How the program has ended.
pub(crate) enum Ended {
    /// With a result, and the further tasks in its order.
    Told(Box<TaskResult>, Vec<Vec<u8>>),
    /// Without a result; this is the text about it.
    Crashed(String),
    /// Because this process is to end.
    Interrupted,
}

impl Program {
    /// The program on a command line, with the settings of this process.
    pub(crate) fn new(line: &[String]) -> Result<Program> {
        let (path, arguments) = line.split_first().context(
            "the program of the test is missing: dpor-fleet lead RUN -- PROGRAM --exact TEST",
        )?;
        let set = std::env::vars().filter(|(name, _)| name.starts_with("DPOR_"));
        let environment: BTreeMap<String, String> = set
            .filter(|(name, _)| !OF_A_PROCESS.contains(&name.as_str()))
            .collect();
        for (name, reason) in REFUSED {
            if environment.contains_key(name) {
                bail!("{name} is set, but {reason}; unset it");
            }
        }
        let path = fs::canonicalize(path).with_context(|| format!("the program {path}"))?;
        Ok(Program {
            hash: hash(&path)?,
            path,
            arguments: arguments.to_vec(),
            environment,
        })
    }

    /// The command that runs the failure with this schedule again.
    pub(crate) fn replay(&self, schedule: &str) -> String {
        let settings = self.environment.iter();
        let settings: String = settings
            .map(|(name, value)| format!("{name}='{value}' "))
            .collect();
        let arguments = self.arguments.join(" ");
        let path = self.path.display();
        format!("DPOR_REPLAY='{schedule}' {settings}{path} {arguments} --nocapture")
    }

    /// Explores a task, `None` being the whole exploration.
    pub(crate) fn explore(&self, task: Option<&[u8]>, executions: i64) -> Result<Ended> {
        let folder = tempfile::Builder::new()
            .prefix("dpor-fleet-")
            .tempdir()
            .context("a folder for a task")?;
        let at = |name: &str| folder.path().join(name);
        let task_file = match task {
            Some(bytes) => {
                fs::write(at("task"), bytes).context("the file of a task")?;
                at("task")
            }
            None => PathBuf::from("root"),
        };
        let output = File::create(at("output")).context("the output of the program")?;
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DPOR_")) {
            command.env_remove(name);
        }
        command
            .args(&self.arguments)
            .envs(&self.environment)
            .env("DPOR_PROGRESS", "0")
            .env("DPOR_SUMMARY", "0")
            .env("DPOR_TASK", task_file)
            .env("DPOR_RESULT", at("result"))
            .env("DPOR_TASK_EXECUTIONS", executions.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("the output of the program")?)
            .stderr(output);
        // Ctrl-C is for this process, which then kills the program.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = SharedChild::spawn(&mut command);
        let child = child.with_context(|| format!("{} cannot be run", self.path.display()))?;
        let status = interrupt::wait(child).context("the program")?;
        if interrupt::asked() {
            return Ok(Ended::Interrupted);
        }
        match fs::read_to_string(at("result")) {
            Ok(text) => {
                let result = TaskResult::parse(&text).context("the result of a task")?;
                let further = further(&result, &folder)?;
                Ok(Ended::Told(Box::new(result), further))
            }
            Err(_) => Ok(Ended::Crashed(crashed(status, &at("output")))),
        }
    }
}

/// Reads the further tasks of a result.
fn further(result: &TaskResult, folder: &TempDir) -> Result<Vec<Vec<u8>>> {
    let read = |name: &String| {
        let is_beside = Path::new(name).file_name() == Some(name.as_ref());
        anyhow::ensure!(is_beside, "{name} is no file beside the result");
        fs::read(folder.path().join(name)).with_context(|| format!("the further task {name}"))
    };
    result.tasks.iter().map(read).collect()
}

/// The text about a program that has ended without a result.
fn crashed(status: ExitStatus, output: &Path) -> String {
    let output = fs::read(output).unwrap_or_default();
    let tail = &output[output.len().saturating_sub(KEPT)..];
    let tail = String::from_utf8_lossy(tail);
    format!("the program ended with {status} and told no result; the end of its output:\n{tail}")
}

/// The hash of a program's file.
pub(crate) fn hash(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("the program {}", path.display()))?;
    Ok(format!("{:016x}", fnv(&bytes)))
}
