//! Which execution comes next?
//!
//! An [`Explorer`] decides it, and nothing else: the driver tells the explorer which events
//! happened, and the explorer answers with the next step. Each algorithm has one file, and one loop
//! drives all of them ([`driver`]). This module knows no coroutines, closures or values: the same
//! code explores abstract programs (`testing`) and live ones, and the tests compare the abstract
//! ones with brute force.
//!
//! | explorer | file |
//! |---|---|
//! | `Naive`, `SleepSets` | `exhaustive.rs` |
//! | `Classic`, `Source` | `backtrack.rs` |
//! | `FinalStates` | `context_sensitive.rs` |
//! | `Optimal` | `optimal.rs`; in another order than depth-first `frontier.rs` |
//! | `Parsimonious` | `parsimonious.rs` |
//! | `Bounded` | `bound.rs`, `price.rs` |
//! | `Random`, `Pct`, `Pos` | `sample.rs`, `enabled_set.rs`, `pct.rs`, `pos.rs` |
//! | replay of one schedule | `replay.rs` |

pub(crate) mod blocking_pairs;
pub(crate) mod checkpoint;
mod choices;
mod cover;
pub(crate) mod critical;
pub(crate) mod driver;
pub(crate) mod enabled_set;
pub(crate) mod enabling;
mod ended;
pub(crate) mod estimate;
pub(crate) mod exclude_thread;
pub(crate) mod expand_awaits;
mod explorer;
#[cfg(feature = "bench")]
pub(crate) mod floor;
pub(crate) mod hotspots;
mod known;
pub(crate) mod linearise;
pub(crate) mod look_out;
mod open_tree;
pub(crate) mod order;
pub(crate) mod plan;
mod point;
pub(crate) mod price;
pub(crate) mod regions;
mod relabel;
pub(crate) mod replay;
pub(crate) mod reversal;
pub(crate) mod rng;
pub(crate) mod run_out;
pub(crate) mod sequence;
pub(crate) mod sleep;
mod slots;
mod snapshots;
pub(crate) mod solo_run;
pub(crate) mod stats;
pub(crate) mod strategies;
mod tried_values;
pub(crate) mod turns;
pub(crate) mod wakeup_tree;
pub(crate) mod weak_memory;

#[cfg(any(test, feature = "bench"))]
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "tests use all of it, benches a part"
    )
)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use crate::rt::engine::ended::Execution;
pub(crate) use crate::rt::engine::explorer::{Coverage, Explorer};
pub(crate) use crate::rt::engine::point::{Choice, Point, TieBreak, default_thread};
