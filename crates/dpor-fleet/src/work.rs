//! `dpor-fleet work`: explores tasks, each in one transaction.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use postgres::{Client, Transaction};

use crate::database::Database;
use crate::program::{Ended, Program, hash};
use crate::result::{Path, TaskResult};
use crate::run::Run;
use crate::{Exit, cli, interrupt};

/// The pauses between two looks for a task: the first one, and the longest one.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];

/// The name under which a connection of a worker is shown.
pub(crate) fn name_of_worker(run: &str) -> String {
    // The server keeps 63 bytes of a name.
    let name = format!("dpor-fleet work {run}");
    name.chars().take(50).collect()
}

/// The jobs of this process.
struct Worker {
    database: Database,
    run: Run,
    /// The name of the process.
    name: String,
    /// The connection that notes attempts, outside of transactions with tasks.
    notes: Mutex<Client>,
    /// What the first result belongs to.
    identity: Mutex<Option<String>>,
    /// Whether a job has failed.
    fails: AtomicBool,
    explored: [AtomicU64; 2],
    dies: Option<Dies>,
}

/// For tests: where the process ends as if it was killed.
struct Dies {
    at: String,
    each: u64,
    times: AtomicU64,
}

/// What a job does next.
enum Next {
    Task,
    Wait,
    End,
}

/// A task that a transaction holds.
struct Taken<'a> {
    transaction: Transaction<'a>,
    path: Path,
    attempt: i64,
    begin: Instant,
}

pub(crate) fn work(arguments: &cli::Work) -> Result<Exit> {
    let name = &arguments.named.run;
    let (database, mut client) = Database::new(&arguments.named.database, &name_of_worker(name))?;
    let mut run = Run::known(&mut client, name)?;
    run.program = program_here(&run, arguments.program.clone())?;
    let dies = arguments.die_at.as_deref().map(Dies::parse).transpose()?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let worker = Worker {
        database,
        run,
        name: format!("{}:{}", host.trim(), std::process::id()),
        notes: Mutex::new(client),
        identity: Mutex::default(),
        fails: AtomicBool::new(false),
        explored: Default::default(),
        dies,
    };
    let jobs = match arguments.jobs {
        Some(jobs) => jobs,
        None => std::thread::available_parallelism().context("the number of processors")?,
    };
    let done: Vec<Result<()>> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..jobs.get())
            .map(|_| scope.spawn(|| worker.job()))
            .collect();
        let jobs = jobs.into_iter();
        jobs.map(|job| {
            job.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
        .collect()
    });
    let [tasks, executions] = &worker.explored;
    say!(
        "{} tasks, {} executions were explored here",
        tasks.load(SeqCst),
        executions.load(SeqCst)
    );
    if interrupt::asked() {
        return Ok(Exit::Interrupted);
    }
    done.into_iter().collect::<Result<()>>()?;
    Ok(Exit::Success)
}

/// The program of the run, at its path on this machine.
fn program_here(run: &Run, path: Option<PathBuf>) -> Result<Program> {
    let theirs = &run.program;
    let path = path.unwrap_or_else(|| theirs.path.clone());
    let path = std::fs::canonicalize(&path).with_context(|| {
        format!(
            "the program {}: where is it here? (dpor-fleet work {} -- PROGRAM)",
            path.display(),
            run.name
        )
    })?;
    let ours = hash(&path)?;
    ensure!(
        ours == theirs.hash,
        "{} is another build than that of the run {}: its hash is {ours}, and not {}",
        path.display(),
        run.name,
        theirs.hash
    );
    Ok(Program {
        path,
        ..theirs.clone()
    })
}

impl Worker {
    /// Explores tasks until the run is over.
    fn job(&self) -> Result<()> {
        let done = self
            .database
            .connect()
            .and_then(|client| self.explore(client));
        if done.is_err() {
            self.fails.store(true, SeqCst);
        }
        done
    }

    fn explore(&self, mut client: Client) -> Result<()> {
        let [first, longest] = PAUSES;
        let mut pause = first;
        while !interrupt::asked() && !self.fails.load(SeqCst) {
            match self
                .database
                .again(&mut client, |client| self.explore_one(client))?
            {
                Next::Task => pause = first,
                Next::Wait => {
                    std::thread::sleep(pause);
                    pause = longest.min(2 * pause);
                }
                Next::End => break,
            }
        }
        Ok(())
    }

    /// Takes a task, explores it, and leaves its result.
    fn explore_one(&self, client: &mut Client) -> Result<Next> {
        let run = &self.run;
        let mut transaction = client.transaction()?;
        let row = transaction.query_opt(
            "select path, bytes from dpor_fleet_1.task join dpor_fleet_1.run on run = name \
             where name = $1 and not done and not stopped and whole is null and (least is null or path < least) \
             order by path limit 1 for update of task skip locked",
            &[&run.name],
        )?;
        let Some(row) = row else {
            let state = run.state(&mut transaction)?;
            return Ok(if state.is_over() {
                Next::End
            } else {
                Next::Wait
            });
        };
        self.may_die("taken");
        let (path, bytes): (Path, Option<Vec<u8>>) = (row.get(0), row.get(1));
        // The row is locked, so no other worker that is alive has begun this task.
        let vanished = self.attempts(&path, "ended is null")?;
        let attempt = self.note(|notes| {
            let begun = "insert into dpor_fleet_1.attempt (run, path, worker) values ($1, $2, $3) returning number";
            Ok(notes.query_one(begun, &[&run.name, &path, &self.name])?.get(0))
        })?;
        let mut taken = Taken {
            transaction,
            path,
            attempt,
            begin: Instant::now(),
        };
        if vanished >= run.vanished {
            let report = format!(
                "{vanished} workers have begun a task and vanished (--vanished {}): does the test use up the memory of \
                 a machine?",
                run.vanished
            );
            self.store(&mut taken, &TaskResult::crashed(report), Vec::new())?;
            return self.commit(taken);
        }
        match run.program.explore(bytes.as_deref(), run.executions)? {
            Ended::Told(result, further) => {
                self.may_die("explored");
                self.check_identity(&mut taken.transaction, &result)?;
                self.store(&mut taken, &result, further)?;
                self.explored[0].fetch_add(1, SeqCst);
                self.explored[1].fetch_add(result.executions, SeqCst);
            }
            Ended::Crashed(report) => {
                self.end_attempt(attempt, "crashed")?;
                let crashes = self.attempts(&taken.path, "ended = 'crashed'")?;
                if crashes < run.crashes {
                    eprintln!(
                        "dpor-fleet: crash {crashes} of {} (--crashes): {report}",
                        run.crashes
                    );
                    return Ok(Next::Task);
                }
                let report = format!("{crashes} crashes (--crashes {}): {report}", run.crashes);
                self.store(&mut taken, &TaskResult::crashed(report), Vec::new())?;
            }
            Ended::Interrupted => {
                self.end_attempt(attempt, "interrupted")?;
                return Ok(Next::End);
            }
        }
        self.commit(taken)
    }

    /// Number of earlier attempts at a task with such an end.
    fn attempts(&self, path: &Path, ended: &str) -> Result<i64> {
        let count = format!(
            "select count(*) from dpor_fleet_1.attempt where run = $1 and path = $2 and {ended}"
        );
        self.note(|notes| Ok(notes.query_one(&count, &[&self.run.name, path])?.get(0)))
    }

    fn end_attempt(&self, attempt: i64, ended: &str) -> Result<()> {
        let end = "update dpor_fleet_1.attempt set ended = $2 where number = $1";
        self.note(|notes| Ok(notes.execute(end, &[&attempt, &ended])?))
            .map(drop)
    }

    /// Does work outside of the transaction with the task.
    fn note<T>(&self, work: impl FnMut(&mut Client) -> Result<T>) -> Result<T> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        self.database.again(&mut notes, work)
    }

    /// Checks that the result is one of the build and the settings of the run.
    fn check_identity(&self, transaction: &mut Transaction<'_>, result: &TaskResult) -> Result<()> {
        let ours = serde_json::to_string(&result.identity)?;
        let mut known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let name = &self.run.name;
            let first =
                "update dpor_fleet_1.run set identity = $2 where name = $1 and identity is null";
            transaction.execute(first, &[name, &ours])?;
            let theirs = "select identity from dpor_fleet_1.run where name = $1";
            *known = transaction.query_one(theirs, &[name])?.get(0);
        }
        if let Some(theirs) = known.as_ref().filter(|theirs| **theirs != ours) {
            bail!(
                "the result belongs to {ours}, and the run {} to {theirs}",
                self.run.name
            );
        }
        Ok(())
    }

    /// Stores a result with the further tasks, in the transaction that holds the task.
    fn store(
        &self,
        taken: &mut Taken<'_>,
        result: &TaskResult,
        further: Vec<Vec<u8>>,
    ) -> Result<()> {
        let name = &self.run.name;
        let Taken {
            transaction,
            path,
            attempt,
            begin,
        } = taken;
        transaction.execute(
            "insert into dpor_fleet_1.result (run, path, executions, seconds, worker, result) \
             values ($1, $2, $3, $4, $5, $6)",
            &[
                name,
                path,
                &i64::try_from(result.executions)?,
                &begin.elapsed().as_secs_f64(),
                &self.name,
                &serde_json::to_string(result)?,
            ],
        )?;
        self.may_die("stored");
        let insert = transaction
            .prepare("insert into dpor_fleet_1.task (run, path, bytes) values ($1, $2, $3)")?;
        for (at, bytes) in further.into_iter().enumerate() {
            let mut path = path.clone();
            path.push(i32::try_from(at)?);
            transaction.execute(&insert, &[name, &path, &bytes])?;
        }
        self.may_die("published");
        let done =
            "update dpor_fleet_1.task set done = true, bytes = null where run = $1 and path = $2";
        transaction.execute(done, &[name, path])?;
        let told =
            "update dpor_fleet_1.attempt set ended = 'told' where number = $1 and ended is null";
        transaction.execute(told, &[attempt])?;
        if result.failure.is_some() {
            let first = "update dpor_fleet_1.run set least = $2 where name = $1 and (least is null or least > $2)";
            transaction.execute(first, &[name, path])?;
        }
        if result.whole {
            let whole = "update dpor_fleet_1.run set whole = $2 where name = $1 and (whole is null or whole > $2)";
            transaction.execute(whole, &[name, path])?;
        }
        Ok(())
    }

    fn commit(&self, taken: Taken<'_>) -> Result<Next> {
        taken.transaction.commit()?;
        self.may_die("committed");
        Ok(Next::Task)
    }

    fn may_die(&self, point: &str) {
        let Some(dies) = &self.dies else { return };
        if dies.at == point && (dies.times.fetch_add(1, SeqCst) + 1).is_multiple_of(dies.each) {
            std::process::abort();
        }
    }
}

impl Dies {
    fn parse(text: &str) -> Result<Dies> {
        let (at, each) = text.split_once('/').context("--die-at POINT/NUMBER")?;
        Ok(Dies {
            at: at.to_owned(),
            each: each.parse().context("--die-at POINT/NUMBER")?,
            times: AtomicU64::new(0),
        })
    }
}
