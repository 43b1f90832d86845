//! Random programs in which several threads release several counts, and arrive at a barrier,
//! against brute force. A walk may consume so many releases that are not in its sequence that one
//! of the sequence's own releases becomes the last.

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{Rng, agree};
use crate::rt::event::operation::{ObjectKind, OpKind};

/// Two counts; every thread has a reference to each.
const COUNTS: [u32; 2] = [20, 21];
/// A count that gets another reference each time the last one to another count is released.
const INNER: u32 = 22;
const BARRIER: u32 = 30;

/// A release; an observed one sets a register to whether it was the last.
fn release(count: u32, observed: bool) -> Ins {
    if !observed {
        return Ins::Release(count);
    }
    Ins::Op {
        var: count,
        kind: OpKind::Release { told: false },
        to: 7,
    }
}

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 3 + rng.below(2) as usize;
    let most = [3, 2][threads - 3];
    let vars = 1 + rng.below(2);
    // Otherwise no thread can tell which release was the last.
    let observed = COUNTS.map(|_| !rng.one_in(4));
    let mut references = [0; COUNTS.len()];
    let mut all = Vec::new();
    for _ in 0..threads {
        let mut code = Vec::new();
        // Each thread has a reference to each, or none.
        let mut held: Vec<usize> = (0..COUNTS.len()).filter(|_| !rng.one_in(4)).collect();
        held.iter().for_each(|&count| references[count] += 1);
        for _ in 0..1 + rng.below(most) {
            let var = Val::Const(rng.below(vars) as i64);
            match rng.below(9) {
                0..4 if !held.is_empty() => {
                    let count = held.remove(rng.below(held.len() as u64) as usize);
                    code.push(release(COUNTS[count], observed[count]));
                    if observed[count] && rng.one_in(2) {
                        // The effects of the last release: another release, and a load.
                        code.push(Ins::Unless {
                            reg: 7,
                            value: Val::Const(1),
                            by: 2,
                        });
                        code.push(release(INNER, true));
                        code.push(Ins::Load { var, to: 1 });
                    }
                }
                4 if !held.is_empty() => {
                    let count = held[rng.below(held.len() as u64) as usize];
                    code.push(Ins::Retain(COUNTS[count]));
                    held.push(count);
                }
                5 => code.push(Ins::Arrive {
                    var: BARRIER,
                    to: 2,
                }),
                6 => code.push(Ins::Load { var, to: 1 }),
                // Through a reference that another thread holds.
                7 => code.push(Ins::ReadCount {
                    count: COUNTS[rng.below(2) as usize],
                    to: 3,
                }),
                _ => code.push(Ins::Store {
                    var,
                    value: Val::Const(1),
                }),
            }
        }
        for count in held {
            if !rng.one_in(8) {
                code.push(release(COUNTS[count], observed[count]));
            }
        }
        all.push(code);
    }
    let mut program = Program::of(all);
    for count in 0..COUNTS.len() {
        // The main thread has references as well.
        if rng.one_in(2) {
            program.threads[0].push(release(COUNTS[count], observed[count]));
            references[count] += 1;
        }
        let kind = ObjectKind::Count {
            observed: observed[count],
        };
        program = program.with(COUNTS[count], kind, references[count]);
    }
    program = program.with(INNER, ObjectKind::Count { observed: true }, 2);
    let size = 2 + rng.below(threads as u64 - 1);
    program.with(BARRIER, ObjectKind::Barrier, size)
}

#[test]
fn counts_are_those_of_the_planned_sequence() {
    agree(1_500, 800, 5, program);
}

#[test]
fn what_a_plan_releases_need_not_be_known_to_every_execution() {
    // The count `INNER` appears in an execution only where the third thread makes the last release.
    let last = COUNTS[0];
    let arrive = Ins::Arrive {
        var: BARRIER,
        to: 2,
    };
    let mut program = Program::of(vec![
        vec![arrive, release(COUNTS[1], true)],
        vec![
            Ins::Store {
                var: Val::Const(0),
                value: Val::Const(1),
            },
            arrive,
        ],
        vec![
            arrive,
            release(last, true),
            Ins::Unless {
                reg: 7,
                value: Val::Const(1),
                by: 2,
            },
            release(INNER, true),
            Ins::Load {
                var: Val::Const(0),
                to: 1,
            },
        ],
    ]);
    program.threads[0].push(release(last, true));
    for (count, references) in [(last, 2), (COUNTS[1], 1), (INNER, 2)] {
        let kind = ObjectKind::Count { observed: true };
        program = program.with(count, kind, references);
    }
    program = program.with(BARRIER, ObjectKind::Barrier, 3);
    let oracle = brute_force(&program, 5_000).expect("it is small");
    // The seed decides in which order the threads continue.
    for seed in 0..200 {
        let free = TieBreak::Random(seed);
        for algorithm in ["optimal", "bit_reversal"] {
            let found = explore_up_to(&program, algorithm, free, u64::MAX).expect("no limit");
            assert_eq!(found.keys(), oracle.keys(), "{algorithm}, {free:?}");
            assert_eq!(found.stats.complete as usize, oracle.traces.len());
        }
    }
}

#[test]
fn what_a_reader_releases_that_a_writer_leaves_out_is_not_counted() {
    const LOCK: u32 = 40;
    let on_lock = |kind| Ins::Op {
        var: LOCK,
        kind,
        to: 0,
    };
    let count = COUNTS[0];
    // The writer acquires the lock only if it comes before the readers, which keep the lock.
    let program = Program::of(vec![
        vec![on_lock(OpKind::ReadLock)],
        vec![on_lock(OpKind::ReadLock), release(count, false)],
        vec![release(count, false), on_lock(OpKind::WriteLock)],
    ]);
    let kind = ObjectKind::Count { observed: true };
    let program = program
        .with(count, kind, 3)
        .with(LOCK, ObjectKind::RwLock, 0);
    let oracle = brute_force(&program, 5_000).expect("it is small");
    for algorithm in ORDERS.into_iter().chain(["optimal", "parsimonious"]) {
        let found = explore_up_to(&program, algorithm, TieBreak::Last, u64::MAX).expect("no limit");
        assert_eq!(found.keys(), oracle.keys(), "{algorithm}");
        assert_eq!(found.stats.complete as usize, oracle.traces.len());
    }
}
