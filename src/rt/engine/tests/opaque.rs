//! Are accesses to objects with unknown contents, and updates of which no thread learns anything,
//! explored as by brute force, and do those commute that may be swapped?

use std::sync::atomic::Ordering::SeqCst;

use crate::rt::engine::testing::reference::DECLARED;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::exact::check;
use crate::rt::engine::tests::random::{MUTEX, Rng, agree, number};
use crate::rt::engine::tests::{load, store};
use crate::rt::event::operation::{Key, ObjectKind, OpKind, Rmw, Touch};

const OBJECT: u32 = 40;

/// The objects with unknown contents: two with the fixed accesses, and one with a table.
const DECLARING: u32 = OBJECT + 2;

fn touch(object: u32, touch: Touch) -> Ins {
    Ins::Op {
        var: object,
        kind: OpKind::Touch(touch),
        to: 7,
    }
}

/// The access with this number in the table of the tests.
fn declared(number: u8) -> Touch {
    let against = DECLARED.iter().fold(0, |against, &(a, b)| {
        let others = [(a, b), (b, a)].into_iter().filter(|pair| pair.0 == number);
        others.fold(against, |against, (_, other)| against | 1 << other)
    });
    Touch::Declared { number, against }
}

fn any_touch(rng: &mut Rng) -> Ins {
    let key = Key::of([1, 2, 0x1_0001][rng.below(3) as usize]);
    let object = OBJECT + rng.below(3) as u32;
    if object == DECLARING {
        let kind = match rng.below(8) {
            0 => Touch::All,
            1 => Touch::ReadAll,
            _ => declared(rng.below(5) as u8),
        };
        return touch(object, kind);
    }
    touch(
        object,
        match rng.below(10) {
            0 => Touch::All,
            1 => Touch::ReadAll,
            2 => Touch::WeakRead,
            3 => Touch::WeakWrite,
            4 | 5 => Touch::KeyRead(key),
            6 => Touch::KeyWrite(key),
            7 | 8 => Touch::KeyShape(key),
            _ => Touch::ReadKeys,
        },
    )
}

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 2 + rng.below(3) as u32;
    let most = [5, 4, 2][threads as usize - 2];
    let mutex = Val::Const(i64::from(MUTEX));
    let mut all = Vec::new();
    for _ in 0..threads {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(most) {
            match rng.below(10) {
                0 => code.extend([load(0, 0), store(1, 1)]),
                1 => code.push(store(0, 1)),
                2 => {
                    code.push(Ins::Lock(mutex));
                    code.push(any_touch(&mut rng));
                    code.push(Ins::Unlock(mutex));
                }
                3 => {
                    // An access that another thread decides on.
                    code.push(load(0, 0));
                    code.push(Ins::Unless {
                        reg: 0,
                        value: Val::Const(1),
                        by: 1,
                    });
                    code.push(any_touch(&mut rng));
                }
                _ => code.push(any_touch(&mut rng)),
            }
        }
        all.push(code);
    }
    let mut program = Program::of(all).with(MUTEX, ObjectKind::Mutex, 0);
    for object in OBJECT..=DECLARING {
        program = program.with(object, ObjectKind::Opaque, 0);
    }
    program
}

#[test]
fn accesses_to_unknown_contents_are_explored_as_by_brute_force() {
    agree(8_000, 1_500, 2, program);
}

#[test]
fn no_trace_of_accesses_to_unknown_contents_is_executed_twice() {
    let programs = number("DPOR_FUZZ", 2_000);
    let mut checked = 0;
    for seed in 1..=programs {
        checked += u64::from(check(&program(seed), 800, seed).is_some());
    }
    assert!(checked * 2 >= programs, "only {checked} of {programs}");
}

/// The number of traces of threads that make one access each.
fn traces(touches: &[Touch]) -> u64 {
    let threads = touches.iter().map(|&it| vec![touch(OBJECT, it)]).collect();
    let program = Program::of(threads).with(OBJECT, ObjectKind::Opaque, 0);
    let traces = count(&program, "optimal");
    assert_eq!(check(&program, usize::MAX, 0), Some(traces as usize));
    traces
}

#[test]
fn two_accesses_are_two_traces_if_they_may_not_be_swapped() {
    let (one, two) = (Key::of(1), Key::of(2));
    assert_eq!(traces(&[Touch::WeakWrite, Touch::WeakWrite]), 1);
    assert_eq!(traces(&[Touch::WeakWrite, Touch::WeakRead]), 1);
    assert_eq!(traces(&[Touch::WeakWrite, Touch::ReadAll]), 2);
    assert_eq!(traces(&[Touch::WeakRead, Touch::All]), 2);
    assert_eq!(traces(&[Touch::KeyShape(one), Touch::KeyShape(two)]), 1);
    assert_eq!(traces(&[Touch::KeyShape(one), Touch::KeyShape(one)]), 2);
    assert_eq!(traces(&[Touch::KeyShape(one), Touch::ReadKeys]), 2);
    assert_eq!(traces(&[Touch::KeyWrite(one), Touch::ReadKeys]), 1);
    assert_eq!(traces(&[Touch::KeyWrite(one), Touch::ReadAll]), 2);
    assert_eq!(traces(&[declared(0), declared(0)]), 1);
    assert_eq!(traces(&[declared(0), declared(1)]), 2);
    assert_eq!(traces(&[declared(0), declared(1), declared(2)]), 4);
    for threads in 1..=6 {
        let inserts: Vec<Touch> = (0..threads)
            .map(|key| Touch::KeyShape(Key::of(key)))
            .collect();
        assert_eq!(traces(&inserts), 1, "{threads} keys");
    }
}

/// An update of an atomic, of which its thread learns nothing.
fn update(var: u32, rmw: Rmw, operand: u64) -> Ins {
    let kind = OpKind::Rmw {
        order: SeqCst,
        rmw,
        operand,
        blind: true,
    };
    Ins::Op { var, kind, to: 7 }
}

/// A random program of updates, and of loads and other operations on the same atomics.
fn updates(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 2 + rng.below(3) as u32;
    let most = [5, 4, 2][threads as usize - 2];
    let all = (0..threads).map(|_| {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(most) {
            let var = rng.below(2) as u32;
            let at = Val::Const(i64::from(var));
            let family = [Rmw::Add, Rmw::Add, Rmw::Sub, Rmw::Or, Rmw::Max];
            match rng.below(9) {
                0 | 1 => code.push(load(var.into(), rng.below(2) as u8)),
                2 => code.push(store(var.into(), 1)),
                3 => code.push(Ins::Cas {
                    var: at,
                    expected: Val::Const(1),
                    new: Val::Const(2),
                    weak: false,
                    to: 0,
                }),
                4 => code.push(Ins::Rmw {
                    var,
                    rmw: Rmw::Add,
                    operand: Val::Const(1),
                    to: 0,
                }),
                5 => {
                    // An update that the value of another atomic decides on.
                    code.push(load(1, 0));
                    code.push(Ins::Unless {
                        reg: 0,
                        value: Val::Const(1),
                        by: 1,
                    });
                    code.push(update(0, Rmw::Add, 1));
                }
                _ => {
                    let rmw = family[rng.below(5) as usize];
                    code.push(update(var, rmw, 1 + rng.below(2)));
                }
            }
        }
        code
    });
    Program::of(all.collect())
}

#[test]
fn updates_that_commute_are_explored_as_by_brute_force() {
    agree(6_000, 1_500, 2, updates);
}

#[test]
fn no_trace_of_updates_is_executed_twice() {
    let programs = number("DPOR_FUZZ", 2_000);
    let mut checked = 0;
    for seed in 1..=programs {
        checked += u64::from(check(&updates(seed), 800, seed).is_some());
    }
    assert!(checked * 2 >= programs, "only {checked} of {programs}");
}

#[test]
fn updates_of_one_group_are_one_trace() {
    let traces = |updates: &[(Rmw, u64)]| {
        let threads = updates.iter().map(|&(rmw, by)| vec![update(0, rmw, by)]);
        count(&Program::of(threads.collect()), "optimal")
    };
    for threads in 1..=8 {
        assert_eq!(
            traces(&vec![(Rmw::Add, 1); threads]),
            1,
            "{threads} threads"
        );
    }
    assert_eq!(traces(&[(Rmw::Add, 1), (Rmw::Sub, 2)]), 1);
    assert_eq!(traces(&[(Rmw::Add, 1), (Rmw::Or, 2)]), 2);
    // Each of the two additions comes before the `or` or behind it.
    assert_eq!(traces(&[(Rmw::Add, 1), (Rmw::Or, 2), (Rmw::Add, 1)]), 4);
    assert_eq!(traces(&[(Rmw::Swap, 1), (Rmw::Swap, 2)]), 2);
}
