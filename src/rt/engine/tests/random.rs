//! Random programs over every kind of object, against brute force.
//!
//! `DPOR_FUZZ=1200000 cargo test --release --lib random` is the long mode, with about a million
//! programs that are small enough; `DPOR_FUZZ_SEED` starts at another seed, `DPOR_FUZZ_ALGORITHM`
//! leaves out the other algorithms. A failing program prints itself and its seed.

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::blocking::{Blocking, OBJECT};
use crate::rt::event::operation::{ObjectKind, OpKind, Rmw};

/// xorshift64*; only reproducibility matters.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 24
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(super) const MUTEX: u32 = 10;
const COUNT: u32 = 20;
const FLAG: u32 = 30;

/// The kinds of operations that a random program may use besides atomics.
#[derive(Clone, Copy, Debug, Default)]
struct Menu {
    mutex: bool,
    count: bool,
    choice: bool,
    park: bool,
    spin: bool,
    threads: bool,
    assume: bool,
    blocking: Option<Blocking>,
}

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let menu = Menu {
        mutex: rng.one_in(3),
        count: rng.one_in(4),
        choice: rng.one_in(5),
        park: rng.one_in(5),
        spin: rng.one_in(5),
        threads: rng.one_in(5),
        assume: rng.one_in(20),
        blocking: rng.one_in(2).then(|| Blocking::any(&mut rng)),
    };
    let threads = 2 + rng.below(3) as u32;
    let vars = 1 + rng.below(3);
    let most = match menu.blocking {
        None => [5, 5, 5, 3, 2][threads as usize],
        Some(_) => [3, 3, 3, 2, 1][threads as usize],
    };
    let mut all = Vec::new();
    for me in 1..=threads {
        let mut code = Vec::new();
        let mut held: Vec<i64> = Vec::new();
        let mut owned = 1;
        for _ in 0..1 + rng.below(most) {
            instruction(
                &mut rng, menu, me, threads, vars, &mut code, &mut held, &mut owned,
            );
        }
        if let Some(kind) = menu.blocking {
            kind.end(OBJECT, &mut rng, me, &mut code);
        }
        for mutex in held {
            if !rng.one_in(8) {
                code.push(Ins::Unlock(Val::Const(mutex)));
            }
        }
        for _ in 0..owned {
            if menu.count && !rng.one_in(6) {
                code.push(Ins::Release(COUNT));
            }
        }
        all.push(code);
    }
    let mut program = Program::of(all);
    program.spin_bound = rng.below(2) as u32;
    if menu.threads {
        let main = &mut program.threads[0];
        for me in 1..=threads {
            match rng.below(4) {
                0 => main.push(Ins::Join(me)),
                1 => main.push(Ins::IsFinished { thread: me, to: 0 }),
                _ => {}
            }
        }
        main.push(Ins::Load {
            var: Val::Const(0),
            to: 0,
        });
    }
    let observed = rng.one_in(2);
    program = program.with(COUNT, ObjectKind::Count { observed }, threads as u64);
    if let Some(kind) = menu.blocking {
        program = kind.declare(OBJECT, &mut rng, threads, program);
    }
    for mutex in 0..2 {
        program = program.with(MUTEX + mutex, ObjectKind::Mutex, 0);
    }
    program
}

// Numbers without a use in a menu without the kind fall through to atomics.
#[allow(clippy::too_many_arguments, overlapping_range_endpoints)]
fn instruction(
    rng: &mut Rng,
    menu: Menu,
    me: u32,
    threads: u32,
    vars: u64,
    code: &mut Vec<Ins>,
    held: &mut Vec<i64>,
    owned: &mut u32,
) {
    let to = rng.below(3) as u8;
    let var = Val::Const(rng.below(vars) as i64);
    let value = match rng.below(3) {
        0 => Val::Reg(rng.below(3) as u8),
        1 => Val::Add(rng.below(3) as u8, 1),
        _ => Val::Const(1 + rng.below(2) as i64),
    };
    if let Some(kind) = menu.blocking
        && rng.one_in(2)
    {
        return kind.instructions(OBJECT, rng, me, code, (var, value));
    }
    match rng.below(20) {
        0..3 if menu.mutex => {
            let mutex = rng.below(2) as i64 + MUTEX as i64;
            match held.iter().position(|&m| m == mutex) {
                Some(at) => {
                    held.remove(at);
                    code.push(Ins::Unlock(Val::Const(mutex)));
                }
                None => {
                    held.push(mutex);
                    code.push(Ins::Lock(Val::Const(mutex)));
                }
            }
        }
        3 if menu.mutex => {
            let mutex = MUTEX + rng.below(2) as u32;
            code.push(Ins::TryLock { mutex, to: 7 });
            code.push(Ins::Unless {
                reg: 7,
                value: Val::Const(1),
                by: 2,
            });
            code.push(Ins::Store { var, value });
            code.push(Ins::Unlock(Val::Const(mutex as i64)));
        }
        4..=6 if menu.count && *owned > 0 => match rng.below(8) {
            0 => {
                code.push(Ins::Retain(COUNT));
                *owned += 1;
            }
            1 => code.push(Ins::ReadCount { count: COUNT, to }),
            2 => {
                code.push(Ins::Upgrade {
                    count: COUNT,
                    to: 7,
                });
                code.push(Ins::Unless {
                    reg: 7,
                    value: Val::Const(1),
                    by: 1,
                });
                code.push(Ins::Release(COUNT));
            }
            3 => {
                // Takes the payload if its reference is the only one, and otherwise drops the
                // reference.
                code.push(Ins::TakeUnique {
                    count: COUNT,
                    to: 7,
                });
                code.push(Ins::Unless {
                    reg: 7,
                    value: Val::Const(0),
                    by: 1,
                });
                code.push(Ins::Release(COUNT));
                *owned -= 1;
            }
            4 => {
                // Like `Arc::into_inner`.
                code.push(Ins::Op {
                    var: COUNT,
                    kind: OpKind::Release { told: true },
                    to,
                });
                *owned -= 1;
            }
            5 => {
                for kind in [OpKind::RetainWeak, OpKind::ReleaseWeak] {
                    let var = COUNT;
                    code.push(Ins::Op { var, kind, to: 7 });
                }
            }
            _ => {
                code.push(Ins::Release(COUNT));
                *owned -= 1;
            }
        },
        4..=6 if menu.count => {
            // No reference left: like a `Weak` that upgrades.
            code.push(Ins::Upgrade {
                count: COUNT,
                to: 7,
            });
            code.push(Ins::Unless {
                reg: 7,
                value: Val::Const(1),
                by: 1,
            });
            code.push(Ins::Release(COUNT));
        }
        7 if menu.choice => {
            let options = 2 + rng.below(2) as u32;
            code.push(Ins::Choose { options, to });
        }
        8 if menu.park => code.push(Ins::ParkTimeout { to }),
        9 if menu.park => code.push(Ins::Park),
        8..11 if menu.park => {
            // A thread exists only once main has spawned it. An earlier sibling is spawned before
            // this thread.
            let other = 1 + rng.below(threads as u64) as u32;
            if other < me {
                code.push(Ins::Unpark(other));
            }
        }
        11 if menu.spin => {
            // while flag == 0 { hint }
            let flag = Val::Const(FLAG as i64 + rng.below(2) as i64);
            code.push(Ins::Load { var: flag, to: 6 });
            code.push(Ins::Unless {
                reg: 6,
                value: Val::Const(0),
                by: 2,
            });
            code.push(Ins::Hint);
            code.push(Ins::Jump(-3));
        }
        12 | 13 if menu.spin => {
            let flag = Val::Const(FLAG as i64 + rng.below(2) as i64);
            code.push(Ins::Store {
                var: flag,
                value: Val::Const(rng.below(2) as i64),
            });
        }
        14 if menu.spin => {
            // A swap spinlock, taken and released.
            let lock = FLAG + 1;
            let operand = Val::Const(1);
            code.push(Ins::Rmw {
                var: lock,
                rmw: Rmw::Swap,
                operand,
                to: 6,
            });
            code.push(Ins::Unless {
                reg: 6,
                value: Val::Const(1),
                by: 2,
            });
            code.push(Ins::Hint);
            code.push(Ins::Jump(-3));
            code.push(Ins::Store {
                var: Val::Const(lock as i64),
                value: Val::Const(0),
            });
        }
        16 if menu.spin && menu.mutex => {
            // while { lock; look; unlock } { hint }
            let flag = Val::Const(FLAG as i64);
            if !held.contains(&(MUTEX as i64)) {
                let kind = OpKind::Unlock { changed: false };
                code.push(Ins::Lock(Val::Const(MUTEX as i64)));
                code.push(Ins::Load { var: flag, to: 6 });
                code.push(Ins::Op {
                    var: MUTEX,
                    kind,
                    to: 7,
                });
                code.push(Ins::Unless {
                    reg: 6,
                    value: Val::Const(0),
                    by: 2,
                });
                code.push(Ins::Hint);
                code.push(Ins::Jump(-5));
            }
        }
        15 if menu.assume => {
            code.push(Ins::Unless {
                reg: to,
                value: Val::Const(1),
                by: 1,
            });
            code.push(Ins::GiveUp);
        }
        0..6 => code.push(Ins::Load { var, to }),
        6..11 => code.push(Ins::Store { var, value }),
        11..13 => code.push(Ins::Rmw {
            var: rng.below(vars) as u32,
            rmw: [Rmw::Add, Rmw::Swap][rng.below(2) as usize],
            operand: value,
            to,
        }),
        13..16 => code.push(Ins::Cas {
            var,
            expected: Val::Const(rng.below(2) as i64),
            new: value,
            weak: menu.choice && rng.one_in(2),
            to,
        }),
        _ => {
            // A store that depends on the value of the load.
            code.push(Ins::Load { var, to });
            code.push(Ins::Unless {
                reg: to,
                value: Val::Const(rng.below(2) as i64),
                by: 1,
            });
            let var = Val::Const(rng.below(vars) as i64);
            code.push(Ins::Store { var, value });
        }
    }
}

/// Explores the program of this seed with `Optimal` and `Parsimonious`, and every other one with
/// each of the other algorithms too, which take longer; returns the number of traces.
fn check(seed: u64) -> Option<usize> {
    let program = program(seed);
    let oracle = brute_force(&program, 600)?;
    let random = TieBreak::Random(seed | 1);
    let only = std::env::var("DPOR_FUZZ_ALGORITHM").ok();
    for algorithm in ALGORITHMS {
        let wanted = match only.as_deref() {
            Some(only) => only == algorithm,
            None => ["optimal", "parsimonious"].contains(&algorithm) || seed.is_multiple_of(2),
        };
        if !wanted {
            continue;
        }
        for free in [TieBreak::Last, random] {
            // There are many interleavings even where traces are few.
            let most = if algorithm == "naive" { 500 } else { u64::MAX };
            let Some(found) = explore_up_to(&program, algorithm, free, most) else {
                continue;
            };
            let context = || format!("{algorithm}, {free:?}, seed {seed}:\n{}", program.listing());
            assert_eq!(found.keys(), oracle.keys(), "traces of {}", context());
            assert_eq!(found.finals, oracle.finals, "final states of {}", context());
            if algorithm != "naive" {
                let twice = found.traces.values().find(|&&n| n != 1);
                assert_eq!(twice, None, "a trace more than once: {}", context());
                assert_eq!(
                    found.deadlocks,
                    oracle.deadlocks,
                    "deadlocks of {}",
                    context()
                );
                assert_eq!(
                    found.livelocks,
                    oracle.livelocks,
                    "livelocks of {}",
                    context()
                );
            }
            if algorithm == "optimal" {
                assert_eq!(found.stats.asleep, 0, "pruned: {}", context());
            }
        }
    }
    Some(oracle.traces.len())
}

/// Checks these programs, this many unless `DPOR_FUZZ` gives a number, with `Optimal`,
/// `Parsimonious` and one of the others each. At least one of so many (`one_in`) must have no more
/// than `most` prefixes.
/// `DPOR_FUZZ_SEED` starts at another seed.
pub(super) fn agree(programs: u64, most: usize, one_in: u64, program: fn(u64) -> Program) {
    let programs = number("DPOR_FUZZ", programs);
    let start = number("DPOR_FUZZ_SEED", 1);
    let (mut checked, mut traces, mut stuck) = (0, 0, 0);
    for seed in start..start + programs {
        let program = program(seed);
        let Some(oracle) = brute_force(&program, most) else {
            continue;
        };
        checked += 1;
        traces += oracle.traces.len();
        // The others take longer, so each program gets one of them.
        let other = ["source"].into_iter().chain(ORDERS);
        let other = other.cycle().nth(seed as usize % 6);
        for algorithm in ["optimal", "parsimonious"].into_iter().chain(other) {
            for free in [TieBreak::Last, TieBreak::Random(seed | 1)] {
                let context =
                    || format!("{algorithm}, {free:?}, seed {seed}:\n{}", program.listing());
                let found = std::panic::catch_unwind(|| {
                    explore_up_to(&program, algorithm, free, u64::MAX).expect("there is no limit")
                });
                let Ok(found) = found else {
                    panic!("{}", context())
                };
                assert_eq!(found.keys(), oracle.keys(), "traces of {}", context());
                assert_eq!(found.finals, oracle.finals, "final states of {}", context());
                assert_eq!(
                    found.deadlocks,
                    oracle.deadlocks,
                    "deadlocks of {}",
                    context()
                );
                let twice = found.traces.values().find(|&&n| n != 1);
                assert_eq!(twice, None, "a trace more than once: {}", context());
                if algorithm == "parsimonious" {
                    // Where the default was shut out (`docs/ALGORITHMS.md`, deviation 9).
                    stuck += u64::from(found.stats.asleep > 0);
                } else if algorithm != "source" {
                    assert_eq!(found.stats.asleep, 0, "pruned: {}", context());
                }
            }
        }
    }
    println!("{checked} programs, {traces} traces, {stuck} explorations that got stuck");
    assert!(stuck * 500 <= checked, "{stuck} got stuck");
    assert!(
        checked * one_in >= programs,
        "only {checked} of {programs} were small enough"
    );
}

/// A number from the environment.
pub(super) fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

#[test]
fn every_algorithm_finds_the_traces_and_final_states_of_random_programs() {
    let programs = number("DPOR_FUZZ", 30_000);
    let start = number("DPOR_FUZZ_SEED", 1);
    let workers = 2;
    let (checked, traces) = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let (mut checked, mut traces) = (0, 0);
                    for seed in (start..start + programs).filter(|s| s / 2 % workers == worker) {
                        if let Some(n) = check(seed) {
                            checked += 1;
                            traces += n;
                        }
                    }
                    (checked, traces)
                })
            })
            .collect();
        let mut sum = (0u64, 0usize);
        for handle in handles {
            let part = match handle.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            sum = (sum.0 + part.0, sum.1 + part.1);
        }
        sum
    });
    println!("{checked} programs, {traces} traces");
    assert!(
        checked * 9 >= programs * 5,
        "only {checked} of {programs} were small enough for brute force"
    );
}
