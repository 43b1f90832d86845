//! `cargo dpor test`: builds and runs the tests under the cfg, and shows what came of each model.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::Exit;
use crate::build_flags::BuildFlags;
use crate::cargo_args::CargoArgs;
use crate::cli::{self, Memory};
use crate::harness::{Form, Told, follow};
use crate::last_run::LastRun;
use crate::project::{Project, cargo};
use crate::summary::{self, Line};
use crate::table::{self, Ended, Model, Outcome};

/// The most models of a kind for which the commands are shown.
const SHOWN: usize = 5;

pub(crate) fn test(arguments: &cli::Test) -> Result<Exit> {
    let passed_on = CargoArgs::new(&arguments.cargo);
    let project = Project::read(passed_on.manifest_path())?;
    let packages = packages(&passed_on);
    let cfgs = match &arguments.cfg[..] {
        [] => project.cfgs(&packages),
        cfgs => cfgs.iter().cloned().collect(),
    };
    let here = std::env::current_dir().context("the current directory")?;
    let flags = BuildFlags::new(&here, &passed_on, &cfgs)?;
    let mut run = LastRun::new(&project);
    if let Some(directory) = passed_on.values(&["--target-dir"]).pop() {
        run.target_directory = std::path::absolute(directory).context("--target-dir")?;
    }
    run.build = build_arguments(&passed_on, arguments.nextest)?;
    run.cfgs = cfgs.into_iter().collect();
    run.settings.extend(settings(arguments));
    wait_for_children();

    let features = project.features(&packages, may_be_all(&passed_on, &packages));
    let command = |extra: &[&str]| {
        let mut command = cargo();
        command.args(match arguments.nextest {
            true => &["nextest", "run"][..],
            false => &["test"],
        });
        if !passed_on.has(&["--target-dir"]) && passed_on.values(&["--target-dir"]).is_empty() {
            command.arg("--target-dir").arg(&run.target_directory);
        }
        command.args(extra).args(&features).args(passed_on.own());
        flags.apply(&mut command);
        command
    };
    // Tests in the documentation cannot be built alone.
    if !passed_on.has(&["--doc"]) {
        let built = command(match passed_on.has(&["--no-run"]) {
            true => &[],
            false => &["--no-run"],
        })
        .args(passed_on.rest())
        .status()
        .context("cargo")?;
        if was_interrupted(built) {
            return Ok(Exit::Interrupted);
        }
        if !built.success() {
            say!("the tests were not built: what cargo says is above");
            return Ok(Exit::NotBuilt);
        }
        if passed_on.has(&["--no-run"]) {
            return Ok(Exit::Success);
        }
    }

    let state = project.state();
    std::fs::create_dir_all(&state).with_context(|| state.display().to_string())?;
    let file = state.join("summary.json");
    remove(&file)?;
    let extra = extra(arguments, &passed_on);
    let mut command = command(&extra);
    command.args(passed_on.rest());
    command.envs(&run.settings);
    command.env("DPOR_SUMMARY", &file);
    set_unless(&mut command, "DPOR_REPORT_DIR", state.join("reports"));
    if std::io::stderr().is_terminal() {
        set_unless(&mut command, "DPOR_PROGRESS", "1");
    }
    let form = match arguments.nextest {
        true => Form::Json,
        false => Form::Standard,
    };
    if arguments.nextest {
        command.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("cargo")?;
    let told = child
        .stdout
        .take()
        .map_or_else(Told::default, |out| follow(out, form));
    let status = child.wait().context("cargo")?;

    let (lines, warnings) = summary::read(&file)?;
    for warning in warnings {
        say!("warning: {warning}");
    }
    let ended = Ended {
        passed: status.success(),
        failed: &told.failed,
    };
    run.models = lines
        .into_iter()
        .map(|line| Model::new(line, &ended))
        .collect();
    table::sort(&mut run.models);
    run.write(&project)?;
    if !run.models.is_empty() {
        table::print(&run.models);
    }
    let exit = exit(arguments, &project, &packages, &run, &told, status);
    Ok(exit)
}

/// Returns the names of the packages that are selected by name. None are if one of them is selected
/// by a pattern.
fn packages<'a>(passed_on: &CargoArgs<'a>) -> Vec<&'a str> {
    let specs = passed_on.values(&["-p", "--package"]).into_iter();
    let name = |spec: &'a str| {
        let name = spec.split('@').next().unwrap_or(spec);
        let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        name.chars().all(plain).then_some(name)
    };
    specs.map(name).collect::<Option<_>>().unwrap_or_default()
}

/// Whether all members may be selected: by an argument, or by a pattern.
fn may_be_all(passed_on: &CargoArgs<'_>, packages: &[&str]) -> bool {
    let is_pattern = packages.is_empty() && !passed_on.values(&["-p", "--package"]).is_empty();
    is_pattern || passed_on.has(&["--workspace", "--all"])
}

/// Returns the arguments that decide what is built, with a path that holds in any directory.
fn build_arguments(passed_on: &CargoArgs<'_>, nextest: bool) -> Result<Vec<String>> {
    let mut arguments = passed_on.of_the_build(nextest);
    let path = arguments.iter().position(|it| it == "--manifest-path");
    if let Some(path) = path.and_then(|at| arguments.get_mut(at + 1)) {
        let absolute = std::path::absolute(&*path).context("--manifest-path")?;
        *path = absolute.to_string_lossy().into_owned();
    }
    Ok(arguments)
}

/// The settings that the arguments stand for.
fn settings(arguments: &cli::Test) -> Vec<(String, String)> {
    let time = (arguments.time.as_ref()).map(|time| ("DPOR_MAX_DURATION", time.as_str()));
    let thorough = arguments.thorough.then_some(("DPOR_THOROUGH", "1"));
    let memory = arguments.memory.map(|memory| {
        let name = match memory {
            Memory::Auto => "auto",
            Memory::Sc => "sc",
            Memory::C11 => "c11",
        };
        ("DPOR_MEMORY", name)
    });
    let workers = (arguments.workers.as_ref()).map(|it| ("DPOR_WORKERS", it.as_str()));
    let shard = (arguments.shard.as_ref()).map(|it| ("DPOR_SHARD", it.as_str()));
    let all = [time, thorough, memory, workers, shard]
        .into_iter()
        .flatten();
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The arguments of the run that the user has not given.
fn extra(arguments: &cli::Test, passed_on: &CargoArgs<'_>) -> Vec<&'static str> {
    let mut extra = Vec::new();
    // A program that fails would hide the models of those behind it.
    let decided = ["--no-fail-fast", "--max-fail"];
    let is_decided = passed_on.has(&decided) || !passed_on.values(&decided[1..]).is_empty();
    match (arguments.fail_fast, arguments.nextest) {
        (false, _) if !is_decided => extra.push("--no-fail-fast"),
        (true, true) => extra.push("--fail-fast"),
        _ => {}
    }
    if arguments.nextest {
        extra.extend(["--message-format", "libtest-json"]);
    }
    extra
}

/// Prints what to do, and returns the exit code.
fn exit(
    arguments: &cli::Test,
    project: &Project,
    packages: &[&str],
    run: &LastRun,
    told: &Told,
    status: ExitStatus,
) -> Exit {
    let manifest = project.manifest_argument();
    let failed = tests(run, Outcome::Failed);
    for line in failed
        .iter()
        .take(SHOWN)
        .filter(|line| run.schedule(line).is_some())
    {
        let name = quoted(line.name());
        say!();
        say!("{}", line.name());
        say!("  see it again   cargo dpor replay{manifest} {name}");
        say!("  its page       cargo dpor report{manifest} {name}");
    }
    more(failed.len());
    let in_part = tests(run, Outcome::NotInFull);
    if !in_part.is_empty() {
        say!();
        say!("not explored in full");
    }
    for line in in_part.iter().take(SHOWN) {
        let reason = line.reason.as_deref().unwrap_or("something was left out");
        say!("  {}: {reason}", line.name());
        say!(
            "    what it costs  cargo dpor explain{manifest} {}",
            quoted(line.name())
        );
    }
    more(in_part.len());
    if !in_part.is_empty() {
        say!(
            "  raise the limit that is named there (--time, DPOR_MAX_PERMUTATIONS), make the test smaller{}",
            match arguments.allow_incomplete {
                true => "",
                false => ", or accept it (--allow-incomplete)",
            }
        );
    }
    if was_interrupted(status) {
        say!();
        say!("interrupted: models that ran then are not in the table");
        return Exit::Interrupted;
    }
    if told.crashed > 0 {
        say!();
        say!(
            "a test program crashed (what cargo says is above): a model that ran then is not in the table; \
             `-- --test-threads=1 --nocapture` shows which test it was"
        );
    }
    if !status.success() {
        if failed.is_empty() && told.crashed == 0 && !told.failed.is_empty() {
            let names: Vec<_> = told.failed.iter().map(String::as_str).collect();
            say!();
            say!("a test failed, and no model of it: {}", names.join(", "));
        }
        // Nextest has a code of its own for a run without a test.
        if arguments.nextest && told.ran == 0 && status.code() == Some(4) {
            no_model(arguments, project, packages, told);
            return Exit::NoModel;
        }
        return Exit::Failed;
    }
    if run.models.is_empty() {
        no_model(arguments, project, packages, told);
        return Exit::NoModel;
    }
    if !in_part.is_empty() && !arguments.allow_incomplete {
        return Exit::NotInFull;
    }
    Exit::Success
}

/// Returns a line of each test with a model that ended so. Several models of a test are one.
fn tests(run: &LastRun, outcome: Outcome) -> Vec<&Line> {
    let mut found: Vec<&Line> = Vec::new();
    for model in run.models.iter().filter(|model| model.outcome == outcome) {
        if !found
            .iter()
            .any(|known| known.is_of_the_test_of(&model.line))
        {
            found.push(&model.line);
        }
    }
    found
}

fn more(models: usize) {
    if models > SHOWN {
        say!("  and {} more", models - SHOWN);
    }
}

/// Says why no model may have run.
fn no_model(arguments: &cli::Test, project: &Project, packages: &[&str], told: &Told) {
    say!();
    let all = may_be_all(&CargoArgs::new(&arguments.cargo), packages);
    if !project.depends(packages, all) {
        let manifest = project.root().join("Cargo.toml");
        say!(
            "no model ran: no selected package depends on dpor ({}); `cargo dpor init` adds it, and a first test",
            manifest.display()
        );
    } else if told.ran == 0 {
        say!(
            "no model ran, and no test at all: the arguments leave none, or the tests are not compiled \
             under this cfg"
        );
    } else {
        let tests = match told.ran {
            1 => "1 test ran, and does not call".to_owned(),
            ran => format!("{ran} tests ran, and none calls"),
        };
        say!(
            "no model ran: {tests} `dpor::model` or `dpor::Builder`, or DPOR_SUMMARY is set by the test itself"
        );
    }
}

/// Quotes a name for a shell.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-:./".contains(c);
    match name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| file.display().to_string())
        }
        _ => Ok(()),
    }
}

fn set_unless(command: &mut Command, name: &str, value: impl AsRef<std::ffi::OsStr>) {
    if std::env::var_os(name).is_none_or(|value| value.is_empty()) {
        command.env(name, value);
    }
}

/// Lets this process outlive Ctrl-C. The children get the signal, too, and print what they have.
pub(crate) fn wait_for_children() {
    // Without a handler the table is not shown, which is no reason to fail.
    let _ = ctrlc::set_handler(|| {});
}

/// Whether Ctrl-C has ended the process, or the tests that it has waited for.
fn was_interrupted(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        status.signal() == Some(2) || status.code() == Some(130)
    }
    #[cfg(not(unix))]
    {
        status.code() == Some(0xC000_013A_u32 as i32)
    }
}
