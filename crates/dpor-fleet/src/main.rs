//! `dpor-fleet`: one exploration, on many machines.
//!
//! A test program knows tasks and results, which are files, and no network. Here these files are
//! rows of a PostgreSQL database: a worker takes a task in a transaction, has the program explore
//! it, and commits the result together with the further tasks. So either a task has a result, and
//! all that it leaves is there, or it is as if no worker had taken it. That makes the sums exact,
//! whatever dies.

/// Writes a line to standard output. A closed pipe is no reason to fail.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod cli;
mod database;
mod interrupt;
mod lead;
mod program;
mod result;
mod run;
mod totals;
mod work;

use std::process::ExitCode;

use clap::Parser;

/// How a command ends, as its exit code. The codes are those of `cargo dpor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Success = 0,
    /// The exploration has found a failure.
    Failed = 1,
    /// The arguments, the program or the database cannot be used.
    Unusable = 2,
    /// Not all was explored.
    NotInFull = 5,
    /// Ctrl-C has ended the command. The run goes on without it.
    Interrupted = 130,
}

fn main() -> ExitCode {
    let done = interrupt::listen().and_then(|()| match cli::Fleet::parse().action {
        cli::Action::Lead(arguments) => lead::lead(&arguments),
        cli::Action::Work(arguments) => work::work(&arguments),
        cli::Action::Stop(arguments) => run::stop(&arguments),
        cli::Action::Remove(arguments) => run::remove(&arguments),
    });
    let exit = done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        Exit::Unusable
    });
    ExitCode::from(exit as u8)
}
