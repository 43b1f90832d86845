//! The command line.
//!
//! `cargo dpor test` passes on all arguments that are not its own, in any order. So its own ones
//! are moved to the front before the line is parsed.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

/// The line that cargo passes to its subcommand.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum Cargo {
    Dpor(Dpor),
}

/// Sets a crate up for dpor, runs its models, and shows what came of each.
#[derive(Args)]
#[command(version)]
pub(crate) struct Dpor {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Set up a crate: manifest, `mod sync`, a first test. A second run changes nothing.
    Init(Init),
    /// Build and run the tests under the cfg, and show a table of their models.
    Test(Test),
    /// Run a failure of the last `cargo dpor test` again.
    Replay(Again),
    /// Print the path of the page that shows a failure of the last `cargo dpor test`.
    Report(Report),
    /// Show one execution of a test, also one that passes.
    Trace(Trace),
    /// Show what most executions of a test are due to, and what would make them fewer.
    Explain(Explain),
    /// Add up the parts of explorations (`cargo dpor test --shard`), and say whether they are all.
    Merge(Merge),
}

#[derive(Args)]
pub(crate) struct Init {
    /// The workspace member to set up.
    #[arg(short, long)]
    pub(crate) package: Option<String>,
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Depend on the dpor in this directory.
    #[arg(long, value_name = "DIR", group = "source")]
    pub(crate) path: Option<PathBuf>,
    /// Depend on the dpor in this git repository.
    #[arg(long, value_name = "URL", group = "source")]
    pub(crate) git: Option<String>,
    /// Depend on this version of dpor.
    #[arg(long, value_name = "VERSION", group = "source", default_value = "0.1")]
    pub(crate) version: String,
    /// Write .github/workflows/dpor.yml, too.
    #[arg(long)]
    pub(crate) ci: bool,
    /// Write rust-analyzer's cfgs to .vscode/settings.json, too.
    #[arg(long)]
    pub(crate) editor: bool,
    /// Show what would change, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
#[command(
    override_usage = "cargo dpor test [OPTIONS] [arguments of cargo test]\n       \
                      cargo dpor test --nextest [OPTIONS] [arguments of cargo nextest run]",
    after_help = "Exit codes: 0 all explored in full, 1 a test failed, 2 unusable arguments or files, \
                  3 not built, 4 no model ran, 5 a model was not explored in full."
)]
pub(crate) struct Test {
    /// Run the tests with cargo-nextest.
    #[arg(long)]
    pub(crate) nextest: bool,
    /// Stop each model after this time: 500ms, 60s, 5m (DPOR_MAX_DURATION).
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Explore spurious wake-ups and failures without a budget (DPOR_THOROUGH=1).
    #[arg(long)]
    pub(crate) thorough: bool,
    /// The memory model (DPOR_MEMORY).
    #[arg(long, value_name = "MODEL")]
    pub(crate) memory: Option<Memory>,
    /// Explore each model with so many OS threads: a number, or auto (DPOR_WORKERS).
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<String>,
    /// Explore this part of each model, such as 3/8 (DPOR_SHARD); `cargo dpor merge` adds up.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Set this cfg instead of the one that the manifest asks for. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) cfg: Vec<String>,
    /// Succeed although a model was not explored in full.
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
    /// Stop after the first test program that fails.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    #[arg(last = true, hide = true)]
    pub(crate) cargo: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Memory {
    /// Sequential consistency, then C11 if it has other executions.
    Auto,
    /// Sequential consistency alone.
    Sc,
    /// C11 alone.
    C11,
}

#[derive(Args)]
pub(crate) struct Again {
    #[command(flatten)]
    pub(crate) of: Replay,
    /// Run it under gdb or lldb, which stops at the panic. Not for failures without one: there the
    /// debugger runs to the end.
    #[arg(long)]
    pub(crate) debugger: bool,
    /// With --debugger: print the stack at the panic, and end.
    #[arg(long, requires = "debugger")]
    pub(crate) batch: bool,
}

/// A test of the last run.
#[derive(Args)]
pub(crate) struct Replay {
    /// The test, or a part of its name; by default the failure that the table shows first.
    pub(crate) test: Option<String>,
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) of: Replay,
    /// Open the page in a browser.
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Args)]
pub(crate) struct Trace {
    /// The test, or a part of its name.
    pub(crate) test: String,
    /// The number of the execution, from 1.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) execution: u64,
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// The test, or a part of its name; by default the one with the most executions.
    pub(crate) test: Option<String>,
    /// The longest time to look.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) time: String,
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all parts are there and nothing failed, 1 a test failed, 2 unusable files, \
                  4 no model in the files, 5 a part is missing or was not explored in full."
)]
pub(crate) struct Merge {
    /// The summaries of the runs of all parts: each run's target/dpor/summary.json, or the
    /// file that DPOR_SUMMARY named.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Parses the line. A line that does not parse ends the process, with exit code 2.
pub(crate) fn parse(line: impl Iterator<Item = OsString>) -> Result<Dpor> {
    let mut words = line
        .map(|word| word.into_string())
        .collect::<Result<Vec<String>, OsString>>()
        .map_err(|word| anyhow::anyhow!("the argument `{}` is no UTF-8", word.to_string_lossy()))?;
    // Cargo passes the name of the subcommand. The program may also be started by its own name.
    if words.get(1).is_none_or(|word| word != "dpor") {
        words.insert(words.len().min(1), "dpor".to_owned());
    }
    if words.get(2).is_some_and(|word| word == "test") {
        let rest = words.split_off(3);
        words.extend(own_first(rest));
    }
    let Cargo::Dpor(dpor) = Cargo::parse_from(words);
    if let Action::Test(arguments) = &dpor.action
        && let Some(time) = &arguments.time
    {
        check_time(time)?;
    }
    if let Action::Test(arguments) = &dpor.action {
        check_parts(arguments)?;
    }
    if let Action::Explain(arguments) = &dpor.action {
        check_time(&arguments.time)?;
    }
    Ok(dpor)
}

/// Moves the arguments of `cargo dpor test` in front of a `--`, and all others behind it.
fn own_first(words: Vec<String>) -> Vec<String> {
    let cargo = Cargo::command();
    let test = (cargo.find_subcommand("dpor")).and_then(|dpor| dpor.find_subcommand("test"));
    // Whether the option of this name takes a value.
    let takes_value = |name: &str| {
        let mut options = test.into_iter().flat_map(|test| test.get_arguments());
        let option = options.find(|option| option.get_long() == Some(name))?;
        Some(option.get_action().takes_values())
    };
    let (mut own, mut others) = (Vec::new(), vec!["--".to_owned()]);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            others.push(word);
            break;
        }
        let name = word.strip_prefix("--").unwrap_or_default();
        let (name, has_value) = match name.split_once('=') {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        match takes_value(name) {
            Some(takes_value) => {
                own.push(word);
                if takes_value && !has_value {
                    own.extend(words.next());
                }
            }
            None if matches!(&*word, "-h" | "--help") => own.push(word),
            None => others.push(word),
        }
    }
    others.extend(words);
    own.extend(others);
    own
}

/// Refuses a number of workers or a part that `dpor` would refuse, before anything is built.
fn check_parts(arguments: &Test) -> Result<()> {
    if let Some(text) = &arguments.workers {
        let is_number = text.parse().is_ok_and(|workers: usize| workers > 0);
        anyhow::ensure!(
            text == "auto" || is_number,
            "--workers `{text}`: expected a number from 1, or auto"
        );
    }
    if let Some(text) = &arguments.shard {
        anyhow::ensure!(
            crate::merge::part(text).is_some(),
            "--shard `{text}`: expected the number of a part, from 1, and of all parts, such as 3/8"
        );
    }
    Ok(())
}

/// Refuses a time that `dpor` would refuse, before anything is built.
fn check_time(text: &str) -> Result<()> {
    let digits = ["ms", "s", "m", "h"]
        .iter()
        .find_map(|unit| text.strip_suffix(unit))
        .unwrap_or(text);
    let number: f64 = digits
        .trim_end()
        .parse()
        .ok()
        .filter(|_| digits.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        .with_context(|| {
            format!(
                "--time `{text}`: expected seconds, or a number with a unit: 500ms, 60s, 5m, 1h"
            )
        })?;
    anyhow::ensure!(number > 0.0, "--time `{text}`: expected more than 0");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Test {
        let words = line.split(' ').map(OsString::from);
        match parse(words).expect("a line that parses").action {
            Action::Test(test) => test,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn the_line_is_well_formed() {
        Cargo::command().debug_assert();
    }

    #[test]
    fn own_arguments_are_found_among_those_of_cargo() {
        let line =
            "cargo-dpor dpor test -p queue --time 60s pops --memory=sc --lib -- --nocapture --time";
        let test = parsed(line);
        assert_eq!(test.time.as_deref(), Some("60s"));
        assert!(matches!(test.memory, Some(Memory::Sc)));
        let cargo = [
            "-p",
            "queue",
            "pops",
            "--lib",
            "--",
            "--nocapture",
            "--time",
        ];
        assert_eq!(test.cargo, cargo);
        assert!(parsed("cargo-dpor test --nextest").nextest);
    }

    #[test]
    fn parts_and_workers_are_checked_before_anything_is_built() {
        let of = |line: &str| {
            let words = format!("cargo-dpor dpor test {line}");
            parse(words.split(' ').map(OsString::from))
        };
        for line in ["--workers 2 --shard 3/8", "--workers=auto", "--shard=1/1"] {
            assert!(of(line).is_ok(), "{line}");
        }
        for line in [
            "--workers 0",
            "--workers many",
            "--shard 9/8",
            "--shard 0/8",
            "--shard 3",
        ] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_time_is_checked_before_anything_is_built() {
        for time in ["60", "60s", "1.5m", "500ms", "2h"] {
            check_time(time).expect(time);
        }
        for time in ["", "s", "0", "0s", "inf", "-1s", "1d"] {
            assert!(check_time(time).is_err(), "{time}");
        }
    }
}
