//! The search strategies: one algorithm a file, all driven by the one loop of
//! [`driver`](super::driver).

pub(crate) mod backtrack;
pub(crate) mod bound;
pub(crate) mod bounded_graphs;
pub(crate) mod context_sensitive;
pub(crate) mod exhaustive;
pub(crate) mod frontier;
pub(crate) mod graphs;
pub(crate) mod optimal;
pub(crate) mod parsimonious;
pub(crate) mod pct;
pub(crate) mod pos;
pub(crate) mod sample;
