//! Random programs whose loops wait for each other, against brute force: those that wait are let go together, and one may
//! write what is there already before another one goes on.

use super::super::testing::*;
use super::random::{Rng, agree};
use crate::rt::trace::operation::Rmw;

/// What one loop writes and another one waits for, and the other way round.
const TOLD: [u32; 2] = [0, 1];
/// What everybody may use.
const SHARED: u32 = 2;
/// What only one of them uses.
const OWN: u32 = 3;

/// Waits until `flag` holds `value`; in each round it does `first` before it looks.
fn wait(code: &mut Vec<Ins>, first: &[Ins], flag: u32, value: i64) {
    code.extend(first.iter().copied());
    code.push(Ins::Load {
        var: Val::Const(flag as i64),
        to: 6,
    });
    code.push(Ins::Unless {
        reg: 6,
        value: Val::Const(value),
        by: 1,
    });
    code.push(Ins::Jump(3));
    code.push(Ins::Hint);
    code.push(Ins::Jump(-4 - first.len() as i8));
}

/// Some accesses to what everybody may use, or to what is waited for.
fn accesses(rng: &mut Rng, code: &mut Vec<Ins>, most: u64) {
    for _ in 0..rng.below(most + 1) {
        let var = Val::Const([SHARED, SHARED, TOLD[0]][rng.below(3) as usize] as i64);
        code.push(match rng.below(4) {
            0 | 1 => Ins::Load { var, to: 1 },
            2 => Ins::Store {
                var,
                value: Val::Const(rng.below(2) as i64),
            },
            _ => Ins::Rmw {
                var: TOLD[0],
                rmw: Rmw::Swap,
                operand: Val::Const(0),
                to: 2,
            },
        });
    }
}

/// The random program of this seed.
fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let store = |flag: usize, value| Ins::Store {
        var: Val::Const(TOLD[flag] as i64),
        value: Val::Const(value),
    };
    let (mut told, mut tells, mut other) = (Vec::new(), Vec::new(), Vec::new());
    accesses(&mut rng, &mut told, 1);
    let again = match rng.below(3) {
        0 => vec![],
        1 => vec![store(0, 2)],
        _ => vec![store(0, 2), store(0, 2)],
    };
    wait(&mut told, &again, TOLD[1], 1);
    accesses(&mut rng, &mut told, 1);
    accesses(&mut rng, &mut tells, 2);
    // It may look at what nobody else uses, too, and has written there.
    let looks_at_own = rng.one_in(3);
    let (own, one) = (Val::Const(OWN as i64), Val::Const(1));
    let look = [Ins::Load { var: own, to: 3 }];
    if looks_at_own && rng.one_in(2) {
        tells.push(Ins::Store {
            var: own,
            value: one,
        });
    }
    let first = if looks_at_own { &look[..] } else { &[] };
    wait(&mut tells, first, TOLD[0], [0, 2, 2][rng.below(3) as usize]);
    tells.push(store(1, 1));
    accesses(&mut rng, &mut other, 2);
    let mut program = Program::of(vec![told, tells, other]);
    program.spin_bound = rng.below(2) as u32;
    program
}

#[test]
fn each_trace_of_loops_that_are_let_go_together_is_explored_once() {
    agree(120, 20_000, 3, program);
}
