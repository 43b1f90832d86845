//! Do the algorithms find every trace, and how often each?
//!
//! Random programs against brute force ([`random`]; those of [`counts`], [`dense`] and [`let_go`]
//! concentrate on one kind of operation), and published programs against their published figures
//! ([`figures`]); the bounded search against every interleaving ([`bounds`]).

mod blocking;
mod blocks;
mod bounds;
mod checkpoints;
mod context_sensitive;
mod counts;
mod dense;
mod ends;
mod estimates;
mod exact;
mod figures;
mod fixtures;
mod graphs;
mod let_go;
mod linearisations;
mod long_histories;
mod looks_back;
mod opaque;
mod orders;
mod parsimonious;
mod random;
mod raw_uses;
mod room;
mod samples;
mod scaling;
mod trees;

use crate::rt::engine::testing::programs::{load, lost_update, store, var};
