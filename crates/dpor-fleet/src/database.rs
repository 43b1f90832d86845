//! Connections to the server, which may go away and come back.

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use postgres::{Client, Config, NoTls};

use crate::{cli, interrupt};

/// The tables. Their schema has the number of their form.
const SCHEMA: &str = include_str!("schema.sql");

/// The pause between two tries to reach the server.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Database {
    config: Config,
    patience: Duration,
}

impl Database {
    /// The database of a command, with the tables.
    pub(crate) fn new(arguments: &cli::Database, name: &str) -> Result<(Database, Client)> {
        let mut config = arguments.config.clone();
        config
            .application_name(name)
            .connect_timeout(Duration::from_secs(10))
            // A peer that vanishes without closing its connection is noticed after a minute.
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3);
        let database = Database {
            config,
            patience: Duration::from_secs(arguments.patience),
        };
        let mut client = database.connect()?;
        let made = database.again(&mut client, create_tables);
        made.context("the tables of dpor-fleet")?;
        Ok((database, client))
    }

    /// Connects, as often as it takes.
    pub(crate) fn connect(&self) -> Result<Client> {
        let begin = Instant::now();
        loop {
            match self.try_to_connect() {
                Ok(client) => return Ok(client),
                Err(error) => {
                    let error = Error::from(error);
                    if interrupt::asked() {
                        bail!("interrupted");
                    }
                    if !is_away(&error) || begin.elapsed() > self.patience {
                        let seconds = self.patience.as_secs();
                        return Err(error.context(format!(
                            "the database cannot be reached (--patience {seconds})"
                        )));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    fn try_to_connect(&self) -> Result<Client, postgres::Error> {
        let mut client = self.config.connect(NoTls)?;
        // The server notices a worker that vanishes as soon as the worker would notice the server.
        client.batch_execute(
            "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3; \
             set idle_in_transaction_session_timeout = 0; set statement_timeout = 0",
        )?;
        Ok(client)
    }

    /// Does the work, again with a new connection each time that the server goes away. The work is
    /// of one transaction, or can be done twice.
    pub(crate) fn again<T>(
        &self,
        client: &mut Client,
        mut work: impl FnMut(&mut Client) -> Result<T>,
    ) -> Result<T> {
        loop {
            match work(client) {
                Err(error) if is_away(&error) && !interrupt::asked() => {
                    eprintln!("dpor-fleet: the server went away: {error:#}; trying again");
                    *client = self.connect()?;
                }
                done => return done,
            }
        }
    }
}

/// Whether the reason of an error is that the server cannot be reached now.
fn is_away(error: &Error) -> bool {
    let Some(error) = error.downcast_ref::<postgres::Error>() else {
        return false;
    };
    let is_of_connections = error.code().is_some_and(|code| {
        // Connections that break, an end or a start of the server, and too many connections.
        let code = code.code();
        code.starts_with("08") || code.starts_with("57P") || code == "53300"
    });
    let is_of_io = || {
        let mut causes = std::iter::successors(std::error::Error::source(error), |it| it.source());
        causes.any(|cause| cause.is::<std::io::Error>())
    };
    is_of_connections || error.is_closed() || is_of_io()
}

/// Creates the tables, unless they are there.
fn create_tables(client: &mut Client) -> Result<()> {
    let mut transaction = client.transaction()?;
    // Another process may be about to do the same.
    transaction.execute("select pg_advisory_xact_lock(7238446)", &[])?;
    let known = transaction.query_one("select to_regclass('dpor_fleet_1.run') is not null", &[])?;
    if !known.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA)?;
    }
    transaction.commit()?;
    Ok(())
}
