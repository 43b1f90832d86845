//! Are blocks that are one step explored as by brute force?
//!
//! A block depends on the events on the objects of its footprint, and on other blocks that share an
//! object with it. The oracle executes one step after the other, so a block is one of its steps.

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::checkpoints::interrupted;
use crate::rt::engine::tests::exact::check;
use crate::rt::engine::tests::random::{MUTEX, Rng, agree, number};
use crate::rt::engine::tests::{load, store};
use crate::rt::event::operation::{Key, ObjectKind, OpKind, Rmw, Touch};

const COUNT: u32 = 20;
const FLAG: u32 = 30;
const OBJECT: u32 = 40;

/// The variables that a block may declare.
const VARS: [u32; 5] = [0, 1, 2, MUTEX, OBJECT];

fn bit(var: u32) -> u64 {
    1 << var
}

fn block(reads: u64, writes: u64, code: Vec<Ins>) -> Vec<Ins> {
    let mut all = vec![Ins::Begin { reads, writes }];
    all.extend(code);
    all.push(Ins::End);
    all
}

fn touch(touch: Touch) -> Ins {
    Ins::Op {
        var: OBJECT,
        kind: OpKind::Touch(touch),
        to: 7,
    }
}

/// An access to this variable, one that changes nothing unless it `writes`.
fn access(rng: &mut Rng, var: u32, writes: bool, code: &mut Vec<Ins>) {
    let to = rng.below(3) as u8;
    let value = match rng.below(3) {
        0 => Val::Reg(rng.below(3) as u8),
        1 => Val::Add(rng.below(3) as u8, 1),
        _ => Val::Const(1 + rng.below(2) as i64),
    };
    let at = Val::Const(i64::from(var));
    let key = Key::of(1 + rng.below(2));
    match (var, writes) {
        (MUTEX, true) => {
            code.push(Ins::TryLock { mutex: var, to: 7 });
            code.push(Ins::Unless {
                reg: 7,
                value: Val::Const(1),
                by: 1,
            });
            code.push(Ins::Unlock(at));
        }
        // A failed `try_lock` would change nothing, and a successful one does.
        (MUTEX, false) => {}
        (OBJECT, true) => code.push(touch(
            [Touch::All, Touch::KeyShape(key), Touch::KeyWrite(key)][rng.below(3) as usize],
        )),
        (OBJECT, false) => code.push(touch(
            [Touch::ReadAll, Touch::KeyRead(key), Touch::ReadKeys][rng.below(3) as usize],
        )),
        (_, false) => code.push(Ins::Load { var: at, to }),
        (_, true) => match rng.below(6) {
            0 | 1 => code.push(Ins::Store { var: at, value }),
            2 => code.push(Ins::Rmw {
                var,
                rmw: Rmw::Add,
                operand: Val::Const(1),
                to,
            }),
            3 => code.push(Ins::Cas {
                var: at,
                expected: Val::Const(rng.below(2) as i64),
                new: value,
                weak: false,
                to,
            }),
            _ => {
                code.push(Ins::Load { var: at, to });
                code.push(Ins::Unless {
                    reg: to,
                    value: Val::Const(rng.below(2) as i64),
                    by: 1,
                });
                code.push(Ins::Store { var: at, value });
            }
        },
    }
}

/// A block over some of these variables, or over everything.
fn any_block(rng: &mut Rng, vars: &[u32]) -> Vec<Ins> {
    let is_open = rng.one_in(4);
    let (mut reads, mut writes) = (0, 0);
    let mut code = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let var = vars[rng.below(vars.len() as u64) as usize];
        let changes = rng.one_in(2);
        access(rng, var, changes, &mut code);
        if changes {
            writes |= bit(var);
        } else {
            reads |= bit(var);
        }
    }
    if rng.one_in(4) {
        // Declared, and not touched.
        writes |= bit(vars[0]);
    }
    match is_open {
        true => block(0, 0, code),
        false => block(reads, writes, code),
    }
}

fn program_with(seed: u64, counts: bool, waits: bool) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 2 + rng.below(3) as u32;
    let most = [4, 3, 2][threads as usize - 2];
    let vars: Vec<u32> = VARS.into_iter().filter(|_| rng.one_in(2)).collect();
    let vars = if vars.is_empty() { vec![0, 1] } else { vars };
    let mutex = Val::Const(i64::from(MUTEX));
    let mut all = Vec::new();
    for _ in 0..threads {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(most) {
            match rng.below(12) {
                0..5 => code.extend(any_block(&mut rng, &vars)),
                5 if vars.contains(&MUTEX) => {
                    code.push(Ins::Lock(mutex));
                    if rng.one_in(2) {
                        code.push(load(0, 0));
                    }
                    code.push(Ins::Unlock(mutex));
                }
                6 if counts => {
                    code.push(Ins::Release(COUNT));
                }
                7 => {
                    let options = 2;
                    code.push(Ins::Choose { options, to: 0 });
                }
                8 if waits => {
                    // Waits until a block finds the flag set.
                    let mut look = vec![load(i64::from(FLAG), 6)];
                    look.extend([
                        Ins::Unless {
                            reg: 6,
                            value: Val::Const(1),
                            by: 1,
                        },
                        store(0, 2),
                    ]);
                    let writes = if rng.one_in(2) {
                        bit(0)
                    } else {
                        bit(0) | bit(FLAG)
                    };
                    let look = block(bit(FLAG), writes, look);
                    let back = look.len() as i8 + 2;
                    code.extend(look);
                    code.push(Ins::Unless {
                        reg: 6,
                        value: Val::Const(0),
                        by: 2,
                    });
                    code.push(Ins::Hint);
                    code.push(Ins::Jump(-back));
                }
                9 | 10 if waits => {
                    let set = store(i64::from(FLAG), rng.below(2) as i64);
                    match rng.one_in(2) {
                        true => code.push(set),
                        false => code.extend(block(0, bit(FLAG) | bit(1), vec![set, store(1, 1)])),
                    }
                }
                _ => {
                    let var = vars[rng.below(vars.len() as u64) as usize];
                    let writes = rng.one_in(2);
                    access(&mut rng, var, writes, &mut code);
                }
            }
        }
        all.push(code);
    }
    let mut program = Program::of(all).with(MUTEX, ObjectKind::Mutex, 0);
    program.spin_bound = rng.below(2) as u32;
    let observed = rng.one_in(2);
    program = program.with(COUNT, ObjectKind::Count { observed }, 20);
    program.with(OBJECT, ObjectKind::Opaque, 0)
}

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    program_with(seed, true, false)
}

fn waiting(seed: u64) -> Program {
    program_with(seed, true, true)
}

/// Without counts, for which the reference has no names.
fn uncounted(seed: u64) -> Program {
    program_with(seed, false, false)
}

#[test]
fn blocks_of_random_programs_are_explored_as_by_brute_force() {
    agree(6_000, 1_000, 2, program);
}

#[test]
fn blocks_that_wait_in_random_programs_are_explored_as_by_brute_force() {
    agree(4_000, 1_000, 3, waiting);
}

/// Seeds of programs that have exposed errors: a block over everything was the only event on a
/// count that the execution had not met.
const TELLING: [u64; 1] = [23_459];

#[test]
fn an_object_that_an_execution_has_not_met_is_touched_by_blocks_all_the_same() {
    for seed in TELLING {
        let program = waiting(seed);
        let oracle = brute_force(&program, 1_000).expect("a small program");
        for algorithm in ["optimal", "source", "parsimonious"] {
            for free in [TieBreak::Last, TieBreak::Random(seed | 1)] {
                let found = explore_up_to(&program, algorithm, free, u64::MAX);
                let found = found.expect("there is no limit");
                assert_eq!(found.keys(), oracle.keys(), "{algorithm}, seed {seed}");
            }
        }
    }
}

#[test]
fn no_trace_of_blocks_is_executed_twice() {
    let programs = number("DPOR_FUZZ", 2_000);
    let mut checked = 0;
    for seed in 1..=programs {
        checked += u64::from(check(&uncounted(seed), 800, seed).is_some());
    }
    assert!(checked * 2 >= programs, "only {checked} of {programs}");
}

#[test]
fn an_interrupted_exploration_keeps_its_blocks() {
    let mut interruptions = 0;
    for seed in 1..=number("DPOR_FUZZ", 300) {
        let program = program(seed);
        let Some(oracle) = brute_force(&program, 300) else {
            continue;
        };
        let order = ["optimal", "stride", "parsimonious"][seed as usize % 3];
        let every = 1 + seed % 4;
        let most = oracle.traces.len() as u64;
        let found = interrupted(&program, order, every, most + 1);
        assert_eq!(found.keys(), oracle.keys(), "{order}, seed {seed}");
        assert!(
            found.traces.values().all(|&times| times == 1),
            "seed {seed}"
        );
        interruptions += most / every;
    }
    assert!(interruptions > 100, "only {interruptions} interruptions");
}

fn traces(threads: Vec<Vec<Ins>>) -> u64 {
    let program = Program::of(threads);
    let traces = count(&program, "optimal");
    assert_eq!(check(&program, usize::MAX, 0), Some(traces as usize));
    traces
}

#[test]
fn a_block_depends_on_its_footprint_alone() {
    let (x, y) = (bit(0), bit(1));
    let both = || block(0, x | y, vec![store(0, 1), store(1, 1)]);
    let look = || block(x | y, 0, vec![load(0, 0), load(1, 1)]);
    let open = || block(0, 0, vec![store(0, 1)]);
    assert_eq!(traces(vec![both(), both()]), 2);
    assert_eq!(traces(vec![look(), look()]), 1);
    assert_eq!(traces(vec![look(), both()]), 2);
    assert_eq!(traces(vec![both(), vec![store(2, 1)]]), 1);
    assert_eq!(traces(vec![open(), vec![store(2, 1)]]), 2);
    assert_eq!(traces(vec![look(), vec![load(0, 0)], vec![load(1, 0)]]), 1);
    // Two stores that the block comes before, between or behind.
    assert_eq!(traces(vec![look(), vec![store(0, 1), store(1, 1)]]), 3);
    assert_eq!(
        traces(vec![look(), vec![store(0, 1)], vec![store(1, 1)]]),
        4
    );
    assert_eq!(traces(vec![open(), open(), open()]), 6);
}
