//! Random programs by the public calls, against brute force inside.

use crate::config::{Algorithm, Builder, Order};
use crate::engine::Relation;
use crate::engine::tests::client::{CHANNELS, LOCKS, OBJECTS, WORDS, engine, explore};
use crate::rt::engine::testing::reference::DECLARED;
use crate::rt::engine::testing::{Ins, Program, Val, brute_force};
use crate::rt::event::operation::{AtomicType, Key, ObjectKind, OpKind, Rmw, Touch};

/// xorshift64*; only reproducibility matters.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 24) % n
    }
}

/// The object with a relation.
const DECLARING: u32 = OBJECTS + 2;

pub(super) fn relation() -> Relation {
    let pairs: Vec<(usize, usize)> = DECLARED
        .iter()
        .map(|&(one, other)| (one.into(), other.into()))
        .collect();
    Relation::new(5, &pairs)
}

fn declared(number: u8) -> Touch {
    let row = |other: u8| u16::from(relation().conflict(number.into(), other.into())) << other;
    let against = (0..5).map(row).sum();
    Touch::Declared { number, against }
}

fn touch(rng: &mut Rng) -> Ins {
    let var = OBJECTS + rng.below(3) as u32;
    let key = Key::of(1 + rng.below(2));
    let touch = match rng.below(8) {
        _ if var == DECLARING => declared(rng.below(5) as u8),
        0 => Touch::All,
        1 => Touch::ReadAll,
        2 => Touch::WeakRead,
        3 => Touch::WeakWrite,
        4 => Touch::KeyRead(key),
        5 => Touch::KeyWrite(key),
        6 => Touch::KeyShape(key),
        _ => Touch::ReadKeys,
    };
    let kind = OpKind::Touch(touch);
    Ins::Op { var, kind, to: 7 }
}

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let threads = 2 + rng.below(3) as u32;
    let most = [4, 3, 2][threads as usize - 2];
    let mut all = Vec::new();
    for me in 1..=threads {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(most) {
            let to = rng.below(3) as u8;
            let word = WORDS + rng.below(2) as u32;
            let var = Val::Const(word.into());
            let value = match rng.below(2) {
                0 => Val::Add(rng.below(3) as u8, 1),
                _ => Val::Const(1 + rng.below(2) as i64),
            };
            let (lock, channel) = (LOCKS + rng.below(2) as u32, CHANNELS);
            let lock_of = Val::Const(lock.into());
            let step = match rng.below(16) {
                0..=2 => vec![Ins::Load { var, to }],
                3 | 4 => vec![Ins::Store { var, value }],
                5 => vec![Ins::Rmw {
                    var: word,
                    rmw: [Rmw::Add, Rmw::Swap][rng.below(2) as usize],
                    operand: value,
                    to,
                }],
                6 | 7 => vec![Ins::Cas {
                    var,
                    expected: Val::Const(rng.below(2) as i64),
                    new: value,
                    weak: false,
                    to,
                }],
                8 => vec![Ins::Lock(lock_of), touch(&mut rng), Ins::Unlock(lock_of)],
                9 => vec![
                    Ins::TryLock { mutex: lock, to: 6 },
                    Ins::Unless {
                        reg: 6,
                        value: Val::Const(1),
                        by: 2,
                    },
                    Ins::Store { var, value },
                    Ins::Unlock(lock_of),
                ],
                10 => {
                    let kind = match me {
                        1 => OpKind::Recv { timed: false },
                        _ => OpKind::Send,
                    };
                    let var = channel;
                    vec![Ins::Op { var, kind, to: 5 }]
                }
                11 if rng.below(3) == 0 => vec![Ins::Choose { options: 2, to }],
                12 if me > 1 && rng.below(3) == 0 => vec![Ins::Join(1)],
                13 if rng.below(6) == 0 => vec![
                    Ins::Unless {
                        reg: to,
                        value: Val::Const(1),
                        by: 1,
                    },
                    Ins::GiveUp,
                ],
                _ => vec![touch(&mut rng)],
            };
            code.extend(step);
        }
        all.push(code);
    }
    let word = (ObjectKind::Atomic(AtomicType::U64), 0);
    let mut program = Program::of(all);
    for (var, (kind, value)) in [
        (WORDS, word),
        (WORDS + 1, (word.0, 1)),
        (LOCKS, (ObjectKind::Mutex, 0)),
        (LOCKS + 1, (ObjectKind::Mutex, 0)),
        (CHANNELS, (ObjectKind::Channel, 0)),
        (OBJECTS, (ObjectKind::Opaque, 0)),
        (OBJECTS + 1, (ObjectKind::Opaque, 0)),
        // The value says that the object has a relation; its state has no use for it.
        (DECLARING, (ObjectKind::Opaque, 1)),
    ] {
        program = program.with(var, kind, value);
    }
    program
}

/// The settings of one of the ways to explore everything, in turn.
fn settings(nth: u64) -> Builder {
    let plain = Builder::new();
    let by = |algorithm| Builder {
        algorithm,
        ..Builder::new()
    };
    let in_order = |order| Builder {
        order,
        ..Builder::new()
    };
    match nth % 10 {
        0 => by(Algorithm::Parsimonious),
        1 => by(Algorithm::Source),
        2 => by(Algorithm::Classic),
        3 => by(Algorithm::SleepSets),
        4 => by(Algorithm::Bounded),
        5 => in_order(Order::BitReversal),
        6 => in_order(Order::RoundRobin),
        7 => in_order(Order::Stride),
        8 => in_order(Order::ConflictFirst),
        _ => plain,
    }
}

#[test]
fn programs_by_public_calls_are_explored_as_by_brute_force() {
    let (mut checked, mut traces) = (0, 0);
    let relation = relation();
    for seed in 1.. {
        let program = program(seed);
        let Some(oracle) = brute_force(&program, 400) else {
            continue;
        };
        for settings in [Builder::new(), settings(seed)] {
            let algorithm = settings.algorithm;
            let context = || format!("{algorithm:?}, seed {seed}:\n{}", program.listing());
            let mut engine = engine(&program, &settings, &relation);
            let found = explore(&program, &mut engine, true);
            let keys = found.traces.keys().copied();
            assert!(keys.eq(oracle.keys()), "traces of {}", context());
            assert_eq!(found.deadlocks, oracle.deadlocks, "{}", context());
            assert_eq!(found.given_up, oracle.given_up, "{}", context());
            assert_eq!(
                found.executions,
                oracle.traces.len() as u64,
                "{}",
                context()
            );
            if algorithm == Algorithm::Optimal {
                assert_eq!(found.pruned, 0, "{}", context());
            }
            assert!(
                engine.is_complete() && !engine.is_aborted(),
                "{}",
                context()
            );
        }
        checked += 1;
        traces += oracle.traces.len();
        if checked == 20_000 {
            println!("{checked} programs of {seed}, {traces} traces");
            break;
        }
    }
}

#[test]
fn an_exploration_that_was_saved_goes_on_in_another_engine() {
    let relation = relation();
    let mut halved = 0;
    for seed in 1..400 {
        let program = program(seed);
        let Some(oracle) = brute_force(&program, 400) else {
            continue;
        };
        let most = oracle.traces.len() / 2;
        if most == 0 {
            continue;
        }
        for algorithm in [Algorithm::Optimal, Algorithm::Parsimonious] {
            let half = Builder {
                algorithm,
                max_permutations: Some(most),
                ..Builder::new()
            };
            let mut first = engine(&program, &half, &relation);
            let mut found = explore(&program, &mut first, true);
            assert!(!first.is_complete(), "seed {seed}");
            let saved = first
                .save()
                .expect("there are more")
                .expect("all have names");
            let rest = Builder {
                algorithm,
                ..Builder::new()
            };
            let mut second = engine(&program, &rest, &relation);
            assert!(second.restore(&saved), "seed {seed}");
            let more = explore(&program, &mut second, true);
            found.traces.extend(more.traces);
            assert!(found.traces.into_keys().eq(oracle.keys()), "seed {seed}");
            assert_eq!(more.executions, oracle.traces.len() as u64, "seed {seed}");
            halved += 1;
        }
    }
    assert!(halved > 200, "{halved}");
}

#[test]
fn executions_drawn_by_chance_are_executions_of_the_program() {
    let relation = relation();
    for seed in 1..60 {
        let program = program(seed);
        let Some(oracle) = brute_force(&program, 400) else {
            continue;
        };
        for algorithm in [Algorithm::Random, Algorithm::Pct, Algorithm::Pos] {
            let settings = Builder {
                algorithm,
                seed: Some(seed),
                iterations: 30,
                ..Builder::new()
            };
            let mut engine = engine(&program, &settings, &relation);
            let found = explore(&program, &mut engine, true);
            let known = |key| oracle.traces.contains_key(key);
            assert!(found.traces.keys().all(known), "{algorithm:?}, seed {seed}");
            assert!(!engine.is_complete());
        }
    }
}
