//! Do the algorithms find every trace, and each how often?
//!
//! Random programs against brute force ([`random`]), and the figures that papers give for theirs
//! ([`figures`]).

mod blocking;
mod figures;
mod random;

use super::testing::{Ins, Val};

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
