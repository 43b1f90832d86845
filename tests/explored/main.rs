//! Is each execution that makes a difference explored once, and is every outcome seen?
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod atomically;
mod bounds;
#[path = "../support/channels.rs"]
mod channels;
#[path = "../support/children.rs"]
mod children;
mod coarser;
mod commuting;
mod counts;
#[path = "../support/drawn.rs"]
mod drawn;
mod final_states;
mod futures;
mod keyed;
mod loops;
#[path = "../support/needs.rs"]
mod needs;
#[path = "../support/orders.rs"]
mod orders;
mod outcomes;
mod published;
mod random_awaits;
mod random_live;
mod random_tasks;
mod sampling;
mod search_orders;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod symptoms;
mod threads;
