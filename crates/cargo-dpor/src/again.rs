//! `cargo dpor replay`, `report` and `trace`: run one test of the last run again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::Exit;
use crate::build_flags::BuildFlags;
use crate::cargo_args::CargoArgs;
use crate::cli;
use crate::debugger::{self, Debugger};
use crate::last_run::{self, LastRun, is_of, stem};
use crate::project::{Project, cargo};
use crate::run::wait_for_children;
use crate::summary::Line;

pub(crate) fn replay(arguments: &cli::Again) -> Result<Exit> {
    let debugger = arguments.debugger.then(Debugger::find).transpose()?;
    let project = Project::read(arguments.of.manifest_path.clone())?;
    let run = LastRun::read(&project)?;
    let line = &run.failure(arguments.of.test.as_deref())?.line;
    let schedule = saved(&run, line)?;
    say!(
        "replays {} with the schedule in {}",
        line.name(),
        schedule.display()
    );
    let replayed = format!("@{}", schedule.display());
    wait_for_children();
    if let Some(debugger) = debugger {
        let Some(program) = debugger::build(built(&project, &run, line)?)? else {
            return Ok(Exit::NotBuilt);
        };
        let mut command = debugger.command(arguments.batch);
        command.arg(program).args(harness(line));
        debugger::as_under_cargo(&mut command, project.package(line.package.as_deref())?);
        set(&mut command, &run);
        command.env("DPOR_REPLAY", replayed);
        command.status().context("the debugger")?;
        return Ok(Exit::Success);
    }
    let mut command = command(&project, &run, line)?;
    command.env("DPOR_REPLAY", replayed);
    let status = command.status().context("cargo")?;
    if status.success() {
        say!("the failure has not come again");
        return Ok(Exit::Success);
    }
    Ok(Exit::Failed)
}

pub(crate) fn report(arguments: &cli::Report) -> Result<Exit> {
    let project = Project::read(arguments.of.manifest_path.clone())?;
    let run = LastRun::read(&project)?;
    let line = &run.failure(arguments.of.test.as_deref())?.line;
    let schedule = saved(&run, line)?;
    let text =
        std::fs::read_to_string(&schedule).with_context(|| schedule.display().to_string())?;
    // The library names a page after its test alone, so tests of two programs may have one page.
    let own = project.state().join("reports");
    let again = own
        .join(line.package.as_deref().unwrap_or("program"))
        .join(&line.target);
    let page = |directory: &Path, extension| directory.join(format!("{}.{extension}", stem(line)));
    let mut found = [&own, &again]
        .into_iter()
        .find(|at| is_of(&page(at, "json"), &text));
    if found.is_none() {
        let mut command = command(&project, &run, line)?;
        command.env("DPOR_REPLAY", format!("@{}", schedule.display()));
        command.env("DPOR_REPORT_DIR", &again);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().context("cargo")?;
        found = Some(&again).filter(|at| page(at, "html").is_file());
    }
    let Some(directory) = found else {
        bail!(
            "the failure of `{0}` has not come again, so there is no page; `cargo dpor replay {0}` shows why",
            line.name()
        );
    };
    let page = page(directory, "html");
    say!("{}", page.display());
    if arguments.open {
        opener::open(&page).with_context(|| page.display().to_string())?;
    }
    Ok(Exit::Success)
}

pub(crate) fn trace(arguments: &cli::Trace) -> Result<Exit> {
    let project = Project::read(arguments.manifest_path.clone())?;
    let run = LastRun::read(&project)?;
    let line = &run.model(&arguments.test)?.line;
    let pages = project.state().join("reports");
    let mut command = command(&project, &run, line)?;
    command.env("DPOR_TRACE", arguments.execution.to_string());
    command.env("DPOR_REPORT_DIR", &pages);
    // The execution is among the first ones, and what comes behind it is not asked for.
    command.env("DPOR_MAX_PERMUTATIONS", arguments.execution.to_string());
    command.env("DPOR_THOROUGH", "0");
    let page = pages.join(format!(
        "{}-execution-{}.html",
        stem(line),
        arguments.execution
    ));
    let before = changed(&page);
    wait_for_children();
    let status = command.status().context("cargo")?;
    if changed(&page) != before {
        say!("{}", page.display());
        return Ok(Exit::Success);
    }
    if !status.success() {
        say!(
            "`{}` has failed, so there is no later execution; the report above shows the one that fails",
            line.name()
        );
        return Ok(Exit::Failed);
    }
    bail!(
        "`{}` has no execution {}: there are {}",
        line.name(),
        arguments.execution,
        line.executions
    )
}

fn changed(file: &Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(file).and_then(|it| it.modified()).ok()
}

fn saved(run: &LastRun, line: &Line) -> Result<PathBuf> {
    run.schedule(line).with_context(|| {
        format!(
            "no schedule is saved of the failure of `{}`: its report names the command that replays it",
            line.name()
        )
    })
}

/// Returns the command that runs the test of this model alone, and shows all of its output.
pub(crate) fn command(project: &Project, run: &LastRun, line: &Line) -> Result<Command> {
    let mut command = built(project, run, line)?;
    command.arg("--").args(harness(line));
    set(&mut command, run);
    Ok(command)
}

/// The arguments of the test's program that run the test alone and show all of its output.
fn harness(line: &Line) -> Vec<&str> {
    let exact = |test| vec!["--exact", test, "--nocapture", "--include-ignored"];
    line.test().map_or_else(Vec::new, exact)
}

/// Sets the variables of the last run.
fn set(command: &mut Command, run: &LastRun) {
    command.envs(&run.settings).envs(last_run::settings());
    command
        .env("DPOR_SUMMARY", "0")
        .env_remove("DPOR_TRACE")
        .env_remove("DPOR_REPLAY");
}

/// Returns the command that builds and runs the program of this model.
fn built(project: &Project, run: &LastRun, line: &Line) -> Result<Command> {
    let package = line.package.as_deref().unwrap_or_default();
    let target = project.target_arguments(package, &line.target);
    ensure!(
        !target.is_empty(),
        "`{}` ran in the program `{}`, which is no target of a package here (a test in the documentation \
         is none): run it with `cargo dpor test`",
        line.name(),
        line.target
    );
    let mut command = cargo();
    command
        .args(["test", "--quiet", "--package", package])
        .args(target);
    command.arg("--target-dir").arg(&run.target_directory);
    command.args(&run.build);
    command.args(project.features(&[package], false));
    let here = std::env::current_dir().context("the current directory")?;
    let cfgs = run.cfgs.iter().cloned().collect();
    BuildFlags::new(&here, &CargoArgs::new(&run.build), &cfgs)?.apply(&mut command);
    Ok(command)
}
