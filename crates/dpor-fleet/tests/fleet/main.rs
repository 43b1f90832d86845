//! Does a run end like one process, whatever dies?
//!
//! The tests start a PostgreSQL server of their own. Where there is none they say so, and pass
//! unless `DPOR_TEST_REQUIRE` names `postgresql`.

mod models;
mod refusals;
mod runs;
mod server;
