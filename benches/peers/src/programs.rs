//! The programs that are measured.
//!
//! Their texts are those of the other benches; this module gives them names. The ones with an
//! ordering in the name load and store relaxed, or with acquire and release; the others are
//! sequentially consistent.

#[path = "../../programs/text.rs"]
pub(crate) mod text;

macro_rules! programs {
    ($krate:ident) => {
        use crate::measure::{check, step};

        crate::programs::text::texts!($krate);

        /// The orderings of loads and of stores.
        const RELAXED: [Ordering; 2] = [Ordering::Relaxed; 2];
        const RELEASE: [Ordering; 2] = [Ordering::Acquire, Ordering::Release];

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
                "store_buffering(2), relaxed" => store_buffering(2, RELAXED),
                "store_buffering(2), release" => store_buffering(2, RELEASE),
                "store_buffering(3), release" => store_buffering(3, RELEASE),
                "passing(2), relaxed" => passing(2, RELAXED),
                "passing(2), release" => passing(2, RELEASE),
                "passing(3), release" => passing(3, RELEASE),
                "iriw, release" => iriw(RELEASE),
                "lastzero(1), relaxed" => lastzero_with(1, RELAXED),
                "lastzero(2), relaxed" => lastzero_with(2, RELAXED),
                "lastzero(2), release" => lastzero_with(2, RELEASE),
                "lastzero(3), release" => lastzero_with(3, RELEASE),
                "lost_update(2), relaxed" => lost_update_with(2, RELAXED),
                "lost_update(3), relaxed" => lost_update_with(3, RELAXED),
                "spsc(2), release" => spsc_with(2, RELEASE),
                "spsc(4), release" => spsc_with(4, RELEASE),
                tasks => tasks::run(tasks),
            }
        }
    };
}
pub(crate) use programs;

pub(crate) const NAMES: [&str; 34] = [
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
    "store_buffering(2), relaxed",
    "store_buffering(2), release",
    "store_buffering(3), release",
    "passing(2), relaxed",
    "passing(2), release",
    "passing(3), release",
    "iriw, release",
    "lastzero(1), relaxed",
    "lastzero(2), relaxed",
    "lastzero(2), release",
    "lastzero(3), release",
    "lost_update(2), relaxed",
    "lost_update(3), relaxed",
    "spsc(2), release",
    "spsc(4), release",
];

/// The programs that only `dpor` runs: their goals are in seconds, or are ratios to another line of
/// `dpor`.
pub(crate) const ALONE: [&str; 4] = [
    "lastzero(15)",
    "indexer(15)",
    "filesystem(22)",
    "handoff(100)",
];
