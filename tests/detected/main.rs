//! Are data races and wrong uses of memory found, and right programs left in peace?
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod arc;
#[path = "../support/channels.rs"]
mod channels;
#[path = "../support/children.rs"]
mod children;
mod data_races;
#[path = "../support/drawn.rs"]
mod drawn;
mod memory;
mod outsiders;
mod owners;
mod random_races;
mod reclamation;
