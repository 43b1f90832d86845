//! Random programs with loops that wait for each other, against brute force. The waiting threads
//! are released together, and one may write a value that is there already before another one
//! continues. In other programs the loops continue until there are too many events, possibly in the
//! middle of such a release.

use std::collections::BTreeSet;

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{Rng, agree, number};
use crate::rt::event::operation::Rmw;
use crate::rt::event::verdict::End;
use crate::rt::relation::key::Hashes;

/// The flags that one loop writes and another one waits for, in both directions.
const TOLD: [u32; 2] = [0, 1];
/// The variable that every thread may use.
const SHARED: u32 = 2;
/// The variable that only one thread uses.
const OWN: u32 = 3;

/// Waits until `flag` holds `value`; each round runs `first` before it reads the flag.
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

/// Some accesses to the shared variable, or to a flag.
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
pub(super) fn program(seed: u64) -> Program {
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
    // The loop may also read the variable that no other thread uses, and that its thread may have
    // written.
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

/// The random program of this seed, in which one or two loops change a variable in each round until
/// another thread, which may wait for such a change, ends them.
pub(super) fn unfair(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let change = |rng: &mut Rng, var: u32| Ins::Rmw {
        var,
        rmw: [Rmw::Xor, Rmw::Add][rng.below(2) as usize],
        operand: Val::Const(1),
        to: 5,
    };
    let mut all = Vec::new();
    for own in 0..1 + rng.below(2) as u32 {
        let mut code = Vec::new();
        accesses(&mut rng, &mut code, 1);
        let var = [SHARED, OWN + own][rng.below(2) as usize];
        let first = [change(&mut rng, var)];
        wait(&mut code, &first, TOLD[1], 1);
        accesses(&mut rng, &mut code, 1);
        all.push(code);
    }
    let mut tells = Vec::new();
    accesses(&mut rng, &mut tells, 1);
    if rng.one_in(2) {
        // This thread reads the variable that one of the loops may change, but not for ever.
        let var = Val::Const([SHARED, OWN][rng.below(2) as usize] as i64);
        let back = [Ins::Load { var, to: 3 }, Ins::Hint];
        for _ in 0..1 + rng.below(2) {
            tells.extend(back);
        }
    }
    tells.push(Ins::Store {
        var: Val::Const(TOLD[1] as i64),
        value: Val::Const(1),
    });
    accesses(&mut rng, &mut tells, 1);
    all.push(tells);
    let mut program = Program::of(all);
    program.spin_bound = rng.below(2) as u32;
    program.rounds_of_turn = Some(1 + rng.below(2) as usize);
    program
}

#[test]
fn each_trace_in_which_loops_let_the_others_go_first_is_explored_once() {
    agree(120, 20_000, 3, unfair);
}

/// The random program of this seed, in which the thread that ends a loop waits for the changes by
/// that loop.
pub(super) fn served(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let (mut serves, mut served) = (Vec::new(), Vec::new());
    accesses(&mut rng, &mut serves, 1);
    let change = Ins::Rmw {
        var: OWN,
        rmw: Rmw::Xor,
        operand: Val::Const(1),
        to: 5,
    };
    wait(&mut serves, &[change], TOLD[1], 1);
    for value in [1, 0, 1].into_iter().take(1 + rng.below(3) as usize) {
        wait(&mut served, &[], OWN, value);
        accesses(&mut rng, &mut served, 1);
    }
    served.push(Ins::Store {
        var: Val::Const(TOLD[1] as i64),
        value: Val::Const(1),
    });
    let mut all = vec![serves, served];
    if rng.one_in(2) {
        let mut other = Vec::new();
        accesses(&mut rng, &mut other, 2);
        all.push(other);
    }
    let mut program = Program::of(all);
    program.spin_bound = rng.below(2) as u32;
    program.rounds_of_turn = Some(1);
    program
}

#[test]
fn who_waits_for_what_a_loop_changes_that_lets_others_go_first_is_explored_once_in_each_trace() {
    agree(60, 20_000, 6, served);
}

/// The random program of this seed, with loops that may write a variable, and undo this write or
/// not, in each round before they read.
fn tiring(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let thread = |rng: &mut Rng| {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(2) {
            accesses(rng, &mut code, 1);
            let (flag, other) = (rng.below(3) as u32, rng.below(3) as u32);
            let add = |n| Ins::Rmw {
                var: other,
                rmw: Rmw::Add,
                operand: Val::Const(n),
                to: 5,
            };
            let first = match rng.below(6) {
                0 | 1 => vec![add(1), add(-1)],
                2 => vec![add(1)],
                3 => vec![Ins::Store {
                    var: Val::Const(other as i64),
                    value: Val::Const(rng.below(3) as i64),
                }],
                _ => vec![],
            };
            if !rng.one_in(4) {
                wait(&mut code, &first, flag, rng.below(3) as i64);
            }
        }
        accesses(rng, &mut code, 1);
        code
    };
    let threads = 2 + rng.below(2);
    let mut program = Program::of((0..threads).map(|_| thread(&mut rng)).collect());
    program.spin_bound = rng.below(2) as u32;
    program
}

/// The most executions of each program.
const LOOKED_AT: usize = 300;

/// Explores `program` where executions end after this many events. Returns the number of executions
/// that did so.
fn explore_tired(program: &Program, algorithm: &str, free: TieBreak, events_max: usize) -> usize {
    let mut driver = driver_up_to(program, explorer(algorithm, free), events_max);
    let (mut hashes, mut seen) = (Hashes::default(), BTreeSet::new());
    let mut too_long = 0;
    for _ in 0..LOOKED_AT {
        let Some(end) = run(program, &mut driver) else {
            break;
        };
        too_long += usize::from(matches!(end, End::TooManyEvents { .. }));
        assert!(!matches!(end, End::NotDeterministic(_)), "{end:?}");
        if !["optimal", "parsimonious"]
            .into_iter()
            .chain(ORDERS)
            .any(|it| it == algorithm)
        {
            continue;
        }
        assert_eq!(driver.stats.asleep, 0, "pruned");
        driver.compute_clocks();
        let key = key_of(&mut hashes, &driver.trace, &driver.clocks, &driver.machine);
        assert!(seen.insert(key), "a trace more than once");
    }
    too_long
}

/// When there are too many events, one released wait may have happened and another one not.
#[test]
fn what_is_planned_of_executions_that_are_too_long_comes_out_so() {
    let programs = number("DPOR_FUZZ", 60);
    let start = number("DPOR_FUZZ_SEED", 1);
    let mut too_long = 0;
    for seed in start..start + programs {
        let program = tiring(seed);
        let order = ORDERS[seed as usize % ORDERS.len()];
        for events_max in [12, 20, 30] {
            for algorithm in ["optimal", "source", order] {
                for free in [TieBreak::Last, TieBreak::Random(seed | 1)] {
                    let found = std::panic::catch_unwind(|| {
                        explore_tired(&program, algorithm, free, events_max)
                    });
                    too_long += found.unwrap_or_else(|_| {
                        let listing = program.listing();
                        panic!(
                            "{algorithm}, {free:?}, {events_max} events, seed {seed}:\n{listing}"
                        )
                    });
                }
            }
        }
    }
    println!("{too_long} executions were too long");
    assert!(too_long as u64 > programs * 100, "only {too_long}");
}
