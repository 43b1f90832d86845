//! Does a verdict say what was found, what was not looked at, and how to see it again?
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod assumptions;
mod checkpoint;
#[path = "../support/children.rs"]
mod children;
mod failures;
mod kills;
mod limits;
mod summary;
mod unseen_wakers;
mod unwinding;
mod vacuous;
