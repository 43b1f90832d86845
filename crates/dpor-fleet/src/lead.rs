//! `dpor-fleet lead`: creates a run, shows its progress, and tells how it ends.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;

use crate::database::Database;
use crate::result::{Path, TaskResult};
use crate::run::{Run, State};
use crate::totals::Totals;
use crate::work::name_of_worker;
use crate::{Exit, cli, interrupt};

/// The pause between two looks at a run.
const PAUSE: Duration = Duration::from_millis(100);

/// The time between two lines of progress: on a terminal, where a line replaces the one before, and
/// elsewhere.
const LINES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

pub(crate) fn lead(arguments: &cli::Lead) -> Result<Exit> {
    let (database, mut client) = Database::new(&arguments.named.database, "dpor-fleet lead")?;
    let run = database.again(&mut client, |client| Run::create(client, arguments))?;
    eprintln!(
        "dpor-fleet: the run {0} is there; `dpor-fleet work {0} -- {1}` explores it, on any machine",
        run.name,
        run.program.path.display()
    );
    let progress = std::io::stderr().is_terminal();
    let [often, rarely] = LINES;
    let between = if progress { often } else { rarely };
    let mut last = Instant::now();
    let state = loop {
        let state = database.again(&mut client, |client| run.state(client))?;
        if state.is_over() {
            break state;
        }
        if interrupt::asked() {
            eprintln!(
                "the run {0} goes on; `dpor-fleet lead {0}` shows it again",
                run.name
            );
            return Ok(Exit::Interrupted);
        }
        if last.elapsed() >= between {
            last = Instant::now();
            let line = database.again(&mut client, |client| progress_of(&run, client))?;
            // A terminal that is gone is no reason to fail.
            let _ = match progress {
                true => write!(std::io::stderr(), "\r{line}\x1b[K"),
                false => writeln!(std::io::stderr(), "{line}"),
            };
        }
        std::thread::sleep(PAUSE);
    };
    if progress {
        eprint!("\r\x1b[K");
    }
    let totals = database.again(&mut client, |client| totals(&run, &state, client))?;
    Ok(tell(&run, &totals))
}

fn progress_of(run: &Run, client: &mut Client) -> Result<String> {
    let row = client.query_one(
        "select (select count(*) from dpor_fleet_1.result where run = $1), \
         (select count(*) from dpor_fleet_1.task where run = $1 and not done), \
         (select coalesce(sum(executions), 0)::bigint from dpor_fleet_1.result where run = $1), \
         (select count(*) from pg_stat_activity where application_name = $2 and state = 'idle in transaction')",
        &[&run.name, &name_of_worker(&run.name)],
    )?;
    let [explored, left, executions, busy]: [i64; 4] =
        [row.get(0), row.get(1), row.get(2), row.get(3)];
    let name = &run.name;
    Ok(format!(
        "{name}: {executions} executions, {explored} tasks explored, {left} known and left, {busy} being explored"
    ))
}

/// Adds the results up that count, in the order of one process.
fn totals(run: &Run, state: &State, client: &mut Client) -> Result<Totals> {
    let mut totals = Totals::default();
    let mut rows = client.query_raw(
        "select path, result from dpor_fleet_1.result join dpor_fleet_1.run on run = name where name = $1 \
         and (whole is null or path = whole) and (least is null or path <= least) order by path",
        [&run.name],
    )?;
    while let Some(row) = rows.next()? {
        let path: Path = row.get(0);
        let result: TaskResult = serde_json::from_str(row.get(1)).context("a stored result")?;
        totals.add(&path, result);
    }
    drop(rows);
    if state.stopped && state.more && !state.whole {
        totals.gap(format!(
            "the run was stopped; `dpor-fleet lead {}` continues it",
            run.name
        ));
    }
    Ok(totals)
}

fn tell(run: &Run, totals: &Totals) -> Exit {
    let name = &run.name;
    let Totals {
        executions,
        pruned,
        events,
        longest,
        ..
    } = totals;
    let exit = match &totals.failure {
        Some(failure) => {
            say!("{}", failure.report.trim_end());
            say!();
            say!(
                "{name}: failed, execution {}, with {pruned} pruned before it",
                executions + 1
            );
            if failure.schedule.is_empty() {
                say!("the program did not tell a schedule");
            } else {
                say!("replay: {}", run.program.replay(&failure.schedule));
            }
            Exit::Failed
        }
        None => {
            let verdict = match totals.gaps.is_empty() {
                true => "complete",
                false => "not in full",
            };
            say!(
                "{name}: {verdict}, {executions} executions, {pruned} pruned, {events} events, the longest {longest}"
            );
            match totals.gaps.is_empty() {
                true => Exit::Success,
                false => Exit::NotInFull,
            }
        }
    };
    for gap in &totals.gaps {
        say!("  {gap}");
    }
    for (outcome, times) in &totals.outcomes {
        say!("  {times} times {outcome}");
    }
    exit
}
