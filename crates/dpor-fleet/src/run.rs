//! A run: one exploration, with its program and its limits.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use postgres::{Client, GenericClient};

use crate::database::Database;
use crate::program::Program;
use crate::{Exit, cli};

/// A run as its row tells it.
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) program: Program,
    /// Number of executions of a task.
    pub(crate) executions: i64,
    /// Number of times that the program may crash on one task.
    pub(crate) crashes: i64,
    /// Number of workers that may vanish with one task.
    pub(crate) vanished: i64,
}

/// How far a run is.
pub(crate) struct State {
    /// Whether a task has explored everything.
    pub(crate) whole: bool,
    pub(crate) stopped: bool,
    /// Whether tasks are left.
    pub(crate) more: bool,
}

impl State {
    pub(crate) fn is_over(&self) -> bool {
        self.whole || self.stopped || !self.more
    }
}

impl Run {
    /// Creates the run unless it exists, and lets it go on if it was stopped.
    pub(crate) fn create(client: &mut Client, arguments: &cli::Lead) -> Result<Run> {
        let name = &arguments.named.run;
        if !arguments.program.is_empty() {
            let program = Program::new(&arguments.program)?;
            let known = Run::find(client, name)?;
            match known {
                Some(known) => known.is_of(&program)?,
                None => Run::insert(client, arguments, &program)?,
            }
        }
        let continues = "update dpor_fleet_1.run set stopped = false where name = $1";
        client.execute(continues, &[name])?;
        Run::known(client, name)
    }

    fn insert(client: &mut Client, arguments: &cli::Lead, program: &Program) -> Result<()> {
        let name = &arguments.named.run;
        let number = |of: std::num::NonZeroUsize| i64::try_from(of.get());
        let mut transaction = client.transaction()?;
        let created = transaction.execute(
            "insert into dpor_fleet_1.run (name, program, hash, arguments, environment, executions, crashes, vanished) \
             values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing",
            &[
                name,
                &program.path.to_string_lossy().into_owned(),
                &program.hash,
                &program.arguments,
                &serde_json::to_string(&program.environment)?,
                &number(arguments.executions)?,
                &number(arguments.crashes)?,
                &number(arguments.vanished)?,
            ],
        )?;
        if created == 0 {
            // Another lead has been faster.
            drop(transaction);
            return Run::known(client, name)?.is_of(program);
        }
        let root = "insert into dpor_fleet_1.task (run, path) values ($1, '{}')";
        transaction.execute(root, &[name])?;
        transaction.commit()?;
        Ok(())
    }

    /// The run of this name, if there is one.
    fn find(client: &mut Client, name: &str) -> Result<Option<Run>> {
        let row = client.query_opt(
            "select program, hash, arguments, environment, executions, crashes, vanished \
             from dpor_fleet_1.run where name = $1",
            &[&name],
        )?;
        let Some(row) = row else { return Ok(None) };
        let environment: BTreeMap<String, String> =
            serde_json::from_str(row.get(3)).context("the settings of the run")?;
        Ok(Some(Run {
            name: name.to_owned(),
            program: Program {
                path: row.get::<_, String>(0).into(),
                hash: row.get(1),
                arguments: row.get(2),
                environment,
            },
            executions: row.get(4),
            crashes: row.get(5),
            vanished: row.get(6),
        }))
    }

    /// The run of this name.
    pub(crate) fn known(client: &mut Client, name: &str) -> Result<Run> {
        Run::find(client, name)?.with_context(|| {
            format!("there is no run {name}: create it with `dpor-fleet lead {name} -- PROGRAM --exact TEST`")
        })
    }

    /// Checks that the run is one of this program, with these arguments and settings.
    fn is_of(&self, program: &Program) -> Result<()> {
        let name = &self.name;
        let ours = &self.program;
        let other = |what: &str, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
            format!(
                "the run {name} exists, with {what} {ours:?} instead of {theirs:?}: take another name, or \
                 `dpor-fleet remove {name}`"
            )
        };
        ensure!(
            ours.hash == program.hash,
            other(
                "a program of another build, of the hash",
                &ours.hash,
                &program.hash
            )
        );
        ensure!(
            ours.arguments == program.arguments,
            other("the arguments", &ours.arguments, &program.arguments)
        );
        ensure!(
            ours.environment == program.environment,
            other("the settings", &ours.environment, &program.environment)
        );
        Ok(())
    }

    /// How far the run is.
    pub(crate) fn state(&self, client: &mut impl GenericClient) -> Result<State> {
        let row = client.query_opt(
            "select whole is not null, stopped, exists (select from dpor_fleet_1.task where run = name and not done \
             and (least is null or path < least)) from dpor_fleet_1.run where name = $1",
            &[&self.name],
        )?;
        let Some(row) = row else {
            bail!("the run {} was removed", self.name)
        };
        Ok(State {
            whole: row.get(0),
            stopped: row.get(1),
            more: row.get(2),
        })
    }
}

/// `dpor-fleet stop`.
pub(crate) fn stop(arguments: &cli::Named) -> Result<Exit> {
    let stopped = "update dpor_fleet_1.run set stopped = true where name = $1";
    change(arguments, stopped)?;
    say!(
        "the run {0} stops; its workers end with their tasks, and `dpor-fleet lead {0}` continues it",
        arguments.run
    );
    Ok(Exit::Success)
}

/// `dpor-fleet remove`.
pub(crate) fn remove(arguments: &cli::Named) -> Result<Exit> {
    change(arguments, "delete from dpor_fleet_1.run where name = $1")?;
    say!("the run {} is removed", arguments.run);
    Ok(Exit::Success)
}

fn change(arguments: &cli::Named, statement: &str) -> Result<()> {
    let (database, mut client) = Database::new(&arguments.database, "dpor-fleet")?;
    let changed = database.again(&mut client, |client| {
        Ok(client.execute(statement, &[&arguments.run])?)
    })?;
    ensure!(changed > 0, "there is no run {}", arguments.run);
    Ok(())
}
