//! The programs that are measured.
//!
//! Their texts are those of the other benches; this module gives them names.

#[path = "../../programs/text.rs"]
pub(crate) mod text;

macro_rules! programs {
    ($krate:ident) => {
        use crate::measure::{check, step};

        crate::programs::text::texts!($krate);

        mod tasks {
            crate::tasks::threads!($krate);
        }

        /// Runs the program of this name, which is in [`NAMES`](crate::programs::NAMES), in the
        /// list for [one checker](crate::programs::ALONE) or among the
        /// [tasks](crate::tasks::NAMES).
        pub(crate) fn program(name: &str) {
            match name {
                "empty(4)" => empty(4),
                "readers(3)" => readers(3),
                "readers(8)" => readers(8),
                "readers(13)" => readers(13),
                "lastzero(3)" => lastzero(3),
                "lastzero(10)" => lastzero(10),
                "lastzero(15)" => lastzero(15),
                "indexer(15)" => indexer(15),
                "filesystem(22)" => filesystem(22),
                "counter(2)" => counter(2),
                "counter(3)" => counter(3),
                "lost_update(2)" => lost_update(2),
                "lost_update(3)" => lost_update(3),
                "lost_update(2), asserted" => asserted_update(2),
                "lost_update(3), asserted" => asserted_update(3),
                "spsc(2)" => spsc(2),
                "spsc(4)" => spsc(4),
                "independent(2, 10000)" => independent(2, 10_000),
                "switch(2, 20000)" => switch(2, 20_000),
                "handoff(100)" => handoff(100),
                "handoff(10000)" => handoff(10_000),
                "length(2, 100)" => length(2, 100),
                "length(2, 10000)" => length(2, 10_000),
                tasks => tasks::run(tasks),
            }
        }
    };
}
pub(crate) use programs;

pub(crate) const NAMES: [&str; 19] = [
    "empty(4)",
    "readers(3)",
    "readers(8)",
    "readers(13)",
    "lastzero(3)",
    "lastzero(10)",
    "counter(2)",
    "counter(3)",
    "lost_update(2)",
    "lost_update(3)",
    "lost_update(2), asserted",
    "lost_update(3), asserted",
    "spsc(2)",
    "spsc(4)",
    "independent(2, 10000)",
    "switch(2, 20000)",
    "handoff(10000)",
    "length(2, 100)",
    "length(2, 10000)",
];

/// The programs that only `dpor` runs: their goals are in seconds, or are ratios to another line of
/// `dpor`.
pub(crate) const ALONE: [&str; 4] = [
    "lastzero(15)",
    "indexer(15)",
    "filesystem(22)",
    "handoff(100)",
];
