//! `cargo dpor explain`: what most executions of a test are due to, and what would make them fewer.
//!
//! The library says so of an exploration that a limit has stopped. So the test runs again, and is
//! stopped one execution before its end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::Exit;
use crate::again::command;
use crate::cli;
use crate::last_run::LastRun;
use crate::project::Project;
use crate::run::wait_for_children;
use crate::table::thousands;

/// The beginning of the lines of the library.
const OURS: &str = "dpor: ";

/// The beginning of the line with the costs.
const COSTS: &str = "most executions are due to races: ";

pub(crate) fn explain(arguments: &cli::Explain) -> Result<Exit> {
    let project = Project::read(arguments.manifest_path.clone())?;
    let run = LastRun::read(&project)?;
    let model = match &arguments.test {
        Some(test) => run.model(test)?,
        None => (run.models.iter())
            .max_by_key(|model| model.line.executions)
            .context("no model ran in the last run")?,
    };
    let line = &model.line;
    say!("{}, at {}", line.name(), line.place);
    say!(
        "  {} executions in {:.3} s{}",
        thousands(line.executions),
        line.seconds,
        match line.pruned {
            0 => String::new(),
            pruned => format!(", and {} that were begun and given up", thousands(pruned)),
        }
    );
    if line.executions < 2 {
        say!("  one execution has no races to reverse: nothing would make it less");
        return Ok(Exit::Success);
    }
    let mut command = command(&project, &run, line)?;
    command.env("DPOR_MAX_PERMUTATIONS", (line.executions - 1).to_string());
    command.env("DPOR_MAX_DURATION", &arguments.time);
    command.env("DPOR_THOROUGH", "0").env("DPOR_PROGRESS", "0");
    command.env_remove("DPOR_REQUIRE_COMPLETE");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    wait_for_children();
    let mut child = command.spawn().context("cargo")?;
    let errors = child.stderr.take().map(BufReader::new);
    let lines = errors
        .into_iter()
        .flat_map(|errors| errors.split(b'\n').map_while(Result::ok));
    let lines: Vec<String> = lines
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .collect();
    let status = child.wait().context("cargo")?;
    let said: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix(OURS))
        .collect();
    if !status.success() && said.is_empty() {
        for line in &lines {
            say!("{line}");
        }
        say!("  the test failed before anything could be said of its executions");
        return Ok(Exit::Failed);
    }
    print(&said);
    Ok(Exit::Success)
}

/// Prints the costs, then the advice.
fn print(said: &[&str]) {
    let costs = said.iter().find_map(|line| line.strip_prefix(COSTS));
    let places = costs.map(|costs| costs.split_once("; ").map_or(costs, |(places, _)| places));
    say!();
    match places {
        Some(places) => {
            say!("most executions are due to races of");
            for place in split(places) {
                say!("  {place}");
            }
        }
        None => say!("no place stands out: few executions are due to a race"),
    }
    if let Some(total) = said
        .iter()
        .find_map(|line| line.rsplit_once("; ")?.1.strip_suffix(" executions in all"))
    {
        say!("in all there are {total} executions");
    }
    say!();
    say!("what makes them fewer");
    for line in said
        .iter()
        .filter(|line| !line.starts_with(COSTS) && !line.contains("was not explored in full"))
    {
        say!("  {line}");
    }
    say!(
        "  fewer threads, or fewer operations of each: two threads with two operations find most bugs"
    );
    if places.is_some() {
        say!(
            "  `dpor::stop_exploring()` around operations at these places, if their order does not matter"
        );
    }
    say!("  DPOR_MAX_PREEMPTIONS=2, within which most bugs lie; the verdict is then `bounded`");
    say!("  docs/BIG_STATE_SPACES.md says what each of these promises");
}

/// Splits `a at x.rs:1 (87 %), b at ..`. A place may have commas in it.
fn split(places: &str) -> Vec<String> {
    let parts = places.split_inclusive("%)");
    let parts = parts.map(|part| part.trim_start_matches(", ").to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn places_are_split() {
        let places = super::split("a[1, 2] at x.rs:1:2 (87 %), b at y.rs:3 (12 %)");
        assert_eq!(places, ["a[1, 2] at x.rs:1:2 (87 %)", "b at y.rs:3 (12 %)"]);
    }
}
