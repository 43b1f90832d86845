//! `cargo dpor`: sets a crate up for `dpor`, runs its models, and shows what came of each.

/// Writes a line to standard output. A closed pipe is no reason to fail.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stdout(), $($text)*);
    }};
}

mod again;
mod build_flags;
mod cargo_args;
mod cli;
mod debugger;
mod explain;
mod harness;
mod init;
mod last_run;
mod merge;
mod project;
mod run;
mod summary;
mod table;

use std::process::ExitCode;

use cli::Action;

/// How a command ends, as its exit code. `docs/CARGO_DPOR.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success = 0,
    /// A test has failed.
    Failed = 1,
    /// The arguments, or a file that the command needs, cannot be used.
    Unusable = 2,
    /// Cargo could not build the tests.
    NotBuilt = 3,
    NoModel = 4,
    /// A model was not explored in full.
    NotInFull = 5,
    /// Ctrl-C has ended the run.
    Interrupted = 130,
}

fn main() -> ExitCode {
    let done = cli::parse(std::env::args_os()).and_then(|dpor| match dpor.action {
        Action::Init(arguments) => init::init(&arguments),
        Action::Test(arguments) => run::test(&arguments),
        Action::Replay(arguments) => again::replay(&arguments),
        Action::Report(arguments) => again::report(&arguments),
        Action::Trace(arguments) => again::trace(&arguments),
        Action::Explain(arguments) => explain::explain(&arguments),
        Action::Merge(arguments) => merge::merge(&arguments),
    });
    let exit = done.unwrap_or_else(|error| {
        use std::io::Write as _;
        let red = anstyle::AnsiColor::Red.on_default().bold();
        let _ = writeln!(anstream::stderr(), "{red}error{red:#}: {error:#}");
        Exit::Unusable
    });
    ExitCode::from(exit as u8)
}
