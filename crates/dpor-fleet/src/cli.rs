//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Spreads one exploration of dpor over many machines, which share a PostgreSQL database.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 all explored in full, 1 a failure was found, 2 unusable arguments, program or database, \
                  5 not all was explored, 130 Ctrl-C."
)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a run unless it exists, show its progress, and tell how it ends.
    Lead(Lead),
    /// Explore tasks of a run until nothing is left.
    Work(Work),
    /// Let all workers of a run end. A lead that is started again continues it.
    Stop(Named),
    /// Remove a run, with its tasks and results.
    Remove(Named),
}

#[derive(Args)]
pub(crate) struct Database {
    /// The database: `host=.. user=.. dbname=..` or `postgresql://user@host/name`.
    ///
    /// The connection is not encrypted: use a socket, a network of your own or a tunnel.
    #[arg(
        long = "database",
        value_name = "CONFIG",
        env = "DPOR_FLEET_DATABASE",
        hide_env_values = true
    )]
    pub(crate) config: postgres::Config,
    /// The seconds for which a server that does not answer is tried again.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) patience: u64,
}

#[derive(Args)]
pub(crate) struct Named {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The name of the run.
    pub(crate) run: String,
}

#[derive(Args)]
pub(crate) struct Lead {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Number of executions that a task explores. A task should take a second or more.
    #[arg(long, value_name = "N", default_value = "20000")]
    pub(crate) executions: NonZeroUsize,
    /// Number of times that the program may crash on one task. The last one is a failure.
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) crashes: NonZeroUsize,
    /// Number of workers that may vanish with one task. The last one is a failure.
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) vanished: NonZeroUsize,
    /// The program of the test, and its arguments, such as `--exact pops_what_was_pushed`. They may
    /// be left out where the run exists.
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Number of tasks that are explored at once; otherwise one for each processor.
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// The program of the test, if it is at another path here than where the run was created.
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Option<PathBuf>,
    /// For tests: ends the process at this point of each third task (`stored/3`).
    #[arg(long, value_name = "POINT", hide = true)]
    pub(crate) die_at: Option<String>,
}
