//! Do the algorithms find every trace, and each how often?
//!
//! Random programs against brute force ([`random`]), and the figures that papers give for theirs
//! ([`figures`]); the bounded search against every interleaving ([`bounds`]).

mod blocking;
mod bounds;
mod checkpoints;
mod estimates;
mod figures;
mod linearisations;
mod orders;
mod random;
mod samples;

use super::testing::{Ins, Program, Val};

fn var(v: i64) -> Val {
    Val::Const(v)
}

fn load(v: i64, to: u8) -> Ins {
    Ins::Load { var: var(v), to }
}

fn store(v: i64, x: i64) -> Ins {
    Ins::Store {
        var: var(v),
        value: Val::Const(x),
    }
}

fn lost_update(n: usize) -> Program {
    let body = vec![
        load(0, 0),
        Ins::Store {
            var: var(0),
            value: Val::Add(0, 1),
        },
    ];
    Program::of(vec![body; n])
}
