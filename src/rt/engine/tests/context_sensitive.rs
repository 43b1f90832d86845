//! Does the context-sensitive search reach every final state, and how many executions does it take?
//!
//! The oracle enumerates all states ([`final_states`]).

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{Rng, number};
use crate::rt::engine::tests::{load, store};
use crate::rt::event::operation::{ObjectKind, OpKind, Rmw};

const QUEUE: u32 = 40;
const SHARED: u32 = 50;
const COUNT: u32 = 60;

fn update(var: u32, function: Function) -> Ins {
    Ins::Update {
        var,
        function,
        to: 0,
    }
}

fn channel(kind: OpKind) -> Ins {
    let (var, to) = (QUEUE, 7);
    Ins::Op { var, kind, to }
}

/// An operation on the counted value. A thread that is not told of the last release learns nothing.
fn counting(kind: OpKind, to: u8) -> Ins {
    let var = COUNT;
    match kind {
        OpKind::Release { told: false } => Ins::Release(var),
        _ => Ins::Op { var, kind, to },
    }
}

/// The random program of this seed.
fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 2 + rng.below(3) as usize;
    let vars = 1 + rng.below(3);
    let most = [5, 3, 2][threads - 2];
    let menu = [
        rng.one_in(2),
        rng.one_in(2),
        rng.one_in(3),
        rng.one_in(3),
        rng.one_in(4),
    ];
    let [queue, shared, cas, count, spawns] = menu;
    let drops = rng.one_in(2);
    let mut all = Vec::new();
    for me in 0..threads {
        let mut code = Vec::new();
        // The references to the counted value that the thread has.
        let mut owned = 1;
        for _ in 0..1 + rng.below(most) {
            let to = rng.below(3) as u8;
            let var = Val::Const(rng.below(vars) as i64);
            let value = match rng.below(4) {
                0 => Val::Reg(rng.below(3) as u8),
                1 => Val::Add(rng.below(3) as u8, 1),
                _ => Val::Const(rng.below(3) as i64),
            };
            match rng.below(16) {
                0 | 1 if queue => code.push(Ins::Push { var: QUEUE, value }),
                2 if queue && me == 0 => {
                    let waits = rng.one_in(2);
                    let var = QUEUE;
                    code.push(Ins::Pop { var, waits, to });
                }
                4..=6 if shared => {
                    let function = match rng.below(6) {
                        0 => Function::Get,
                        1 => Function::Next(1),
                        2 => Function::Append(1 + rng.below(2) as i64),
                        3 => Function::Order(0),
                        _ => Function::Add(rng.below(3) as i64),
                    };
                    let var = SHARED + rng.below(2) as u32;
                    code.push(Ins::Update { var, function, to });
                }
                7 | 8 if cas => code.push(Ins::Cas {
                    var,
                    expected: Val::Const(rng.below(3) as i64),
                    new: value,
                    weak: rng.one_in(3),
                    to,
                }),
                9 if count && owned > 0 => {
                    let told = rng.one_in(2);
                    let kinds = [
                        OpKind::Retain,
                        OpKind::Release { told },
                        OpKind::ReadCount { unique: true },
                        OpKind::Upgrade,
                    ];
                    let kind = kinds[rng.below(4) as usize];
                    owned = match kind {
                        OpKind::Retain | OpKind::Upgrade => owned + 1,
                        OpKind::Release { .. } => owned - 1,
                        _ => owned,
                    };
                    code.push(counting(kind, to));
                }
                10 => code.push(Ins::Rmw {
                    var: rng.below(vars) as u32,
                    rmw: [Rmw::Add, Rmw::Swap, Rmw::Or][rng.below(3) as usize],
                    operand: value,
                    to,
                }),
                11 => code.push(Ins::Op {
                    var: rng.below(vars) as u32,
                    kind: OpKind::Rmw {
                        order: std::sync::atomic::Ordering::SeqCst,
                        rmw: [Rmw::Add, Rmw::Or, Rmw::Swap][rng.below(3) as usize],
                        operand: rng.below(3),
                        blind: true,
                    },
                    to: 7,
                }),
                0..6 => code.push(Ins::Load { var, to }),
                12 => {
                    code.push(Ins::Load { var, to });
                    code.push(Ins::Unless {
                        reg: to,
                        value: Val::Const(rng.below(2) as i64),
                        by: 1,
                    });
                    let var = Val::Const(rng.below(vars) as i64);
                    code.push(Ins::Store { var, value });
                }
                13 if spawns && rng.one_in(3) => {
                    code.push(Ins::Unless {
                        reg: to,
                        value: Val::Const(1),
                        by: 1,
                    });
                    code.push(Ins::GiveUp);
                }
                14 if spawns => {
                    let options = 2;
                    code.push(Ins::Choose { options, to });
                }
                _ => code.push(Ins::Store { var, value }),
            }
        }
        if count {
            let told = rng.one_in(4);
            code.extend(vec![counting(OpKind::Release { told }, 7); owned]);
        }
        if queue && drops && !rng.one_in(4) {
            code.push(channel(OpKind::DropSender));
        }
        all.push(code);
    }
    let mut program = Program::of(all);
    if queue {
        // Each thread has a sender.
        let more = vec![channel(OpKind::AddSender); threads - 1];
        program.threads[0].splice(0..0, more);
    }
    if spawns {
        let main = &mut program.threads[0];
        for me in 1..=threads as u32 {
            match rng.below(4) {
                0 => main.push(Ins::Join(me)),
                1 => main.push(load(0, 0)),
                2 if me == 1 => main.push(Ins::IsFinished { thread: me, to: 1 }),
                _ => {}
            }
        }
        main.push(store(0, 2));
    }
    // No room, or room for one message or any number.
    let room = [0, 2, 0][rng.below(3) as usize];
    program = program.with(QUEUE, ObjectKind::Channel, room);
    let observed = rng.one_in(2);
    program = program.with(COUNT, ObjectKind::Count { observed }, threads as u64);
    for shared in SHARED..SHARED + 2 {
        program = program.with(shared, ObjectKind::Opaque, 0);
    }
    program
}

/// The number of final states, and how many of them the search loses; `None` if there are too many
/// states.
fn lost(program: &Program, free: TieBreak) -> Option<(usize, usize)> {
    let oracle = final_states(program, 400)?;
    let found = explore_up_to(program, "final_states", free, 100_000)?;
    assert!(found.finals.is_subset(&oracle), "{}", program.listing());
    Some((oracle.len(), oracle.len() - found.finals.len()))
}

/// The smallest part of a program with a final state that the search loses.
fn shrunk(mut program: Program, free: TieBreak) -> Program {
    loop {
        let mut parts = (1..program.threads.len())
            .flat_map(|thread| (0..program.threads[thread].len()).map(move |at| (thread, at)))
            .map(|(thread, at)| {
                let mut part = program.clone();
                part.threads[thread].remove(at);
                part
            });
        match parts.find(|part| lost(part, free).is_some_and(|(_, lost)| lost > 0)) {
            Some(part) => program = part,
            None => return program,
        }
    }
}

fn agrees(seed: u64) -> Option<usize> {
    let program = program(seed);
    let mut finals = None;
    for free in [
        TieBreak::Last,
        TieBreak::Random(seed | 1),
        TieBreak::Random(seed << 20 | 1),
    ] {
        let (all, lost) = lost(&program, free)?;
        if lost > 0 {
            let smallest = shrunk(program.clone(), free).listing();
            panic!(
                "{lost} of {all} lost, {free:?}, seed {seed}:\n{}\n{smallest}",
                program.listing()
            );
        }
        finals = Some(all);
    }
    finals
}

#[test]
fn every_final_state_of_random_programs_is_reached() {
    let programs = number("DPOR_FUZZ", 12_500);
    let start = number("DPOR_FUZZ_SEED", 1);
    let (mut checked, mut finals) = (0, 0);
    for seed in start..start + programs {
        if let Some(n) = agrees(seed) {
            checked += 1;
            finals += n;
        }
    }
    println!("{checked} programs, {finals} final states");
    assert!(
        checked * 5 >= programs * 4,
        "only {checked} were small enough"
    );
}

/// The numbers of complete executions and of those given up.
fn counts(program: &Program) -> (u64, u64) {
    let stats = stats(program, "final_states");
    (stats.numbered(), stats.asleep)
}

/// Threads that apply these functions to one value, which begins with these digits.
fn functions(digits: &[i64], threads: Vec<Vec<Function>>) -> Program {
    let mut all: Vec<Vec<Ins>> = Vec::new();
    for functions in threads {
        let of = functions.into_iter();
        all.push(of.map(|function| update(SHARED, function)).collect());
    }
    let mut program = Program::of(all).with(SHARED, ObjectKind::Opaque, 0);
    let digits = digits.iter().map(|&digit| Function::Append(digit));
    let begins = digits.map(|function| update(SHARED, function));
    program.threads[0].splice(0..0, begins);
    program
}

/// The number of final states, and of the executions that reach them, as the explored program has
/// them.
fn finals_and_executions(program: &Program) -> (usize, u64) {
    let finals = final_states(program, usize::MAX).expect("there is no limit");
    (finals.len(), counts(program).0)
}

/// A tree of actors: each adds to the sum of its parent, an inner one when its children have.
fn merge_tree(depth: u32) -> Program {
    let first_leaf = 1 << depth;
    // The children of node i are 2i and 2i + 1. The root is a sum alone, and the last node is
    // thread 1, so that children are spawned before their parents.
    let thread = |node: u32| 2 * first_leaf - node;
    let actor = |node: u32| {
        let children = (node < first_leaf).then_some([2 * node, 2 * node + 1]);
        let joins = children.into_iter().flatten().map(thread);
        let mut code: Vec<Ins> = joins.map(Ins::Join).collect();
        code.push(update(SHARED + node / 2, Function::Add(1)));
        code
    };
    let nodes = (2..2 * first_leaf).rev();
    let mut program = Program::of(nodes.map(actor).collect());
    for sum in 1..first_leaf {
        program = program.with(SHARED + sum, ObjectKind::Opaque, 0);
    }
    program
}

#[test]
fn published_shapes_have_one_execution_for_each_final_state() {
    // Column `here` of the table in `docs/ALGORITHMS.md`.
    let five = || vec![store(0, 5)];
    let program = Program::of(vec![five(), five(), vec![load(0, 0)]]);
    assert_eq!(counts(&program), (2, 3), "x = 5; x = 5; x");
    for n in [3, 5, 7] {
        let (var, value) = (QUEUE, Val::Const(1));
        let push = Ins::Push { var, value };
        let (waits, to) = (false, 0);
        let pop = Ins::Pop { var, waits, to };
        let program = Program::of(vec![vec![push; n], vec![pop; n]]);
        let program = program.with(QUEUE, ObjectKind::Channel, 0);
        assert_eq!(counts(&program).0, 1 << n, "producer and consumer of {n}");
    }
    for n in [4, 6] {
        let program = functions(&[], vec![vec![Function::Add(1)]; n]);
        assert_eq!(finals_and_executions(&program), (1, 1), "{n} additions");
        let registers = |nth| vec![Function::Add(1_i64 << nth)];
        let program = functions(&[], (0..n).map(registers).collect());
        assert_eq!(finals_and_executions(&program), (1, 1), "{n} registrations");
    }
    // Each inner node of the tree is a sum of two, and 2^3 and 2^7 orders of them are traces.
    let trees = [2, 3].map(merge_tree);
    assert_eq!(trees.each_ref().map(|it| count(it, "optimal")), [8, 128]);
    assert_eq!(trees.each_ref().map(finals_and_executions), [(1, 1); 2]);
    // The table has 41 given up for the second one, and does not say how its actors wait.
    let found = trees.each_ref().map(counts);
    assert_eq!(found, [(1, 5), (1, 67)], "merge trees");
    for (length, states) in [(4, 4), (5, 8), (6, 16)] {
        let digits: Vec<i64> = (1..=length).rev().collect();
        let order = |place| vec![Function::Order(place)];
        let program = functions(&digits, (0..length as u32 - 1).map(order).collect());
        let expected = (states, states as u64);
        assert_eq!(
            finals_and_executions(&program),
            expected,
            "{length} neighbours"
        );
    }
    for (clients, expected) in [(2, (6, 9)), (3, (10, 27))] {
        let mut threads = vec![vec![Function::Add(5), Function::Add(-1)]; clients];
        threads.push(vec![Function::Get]);
        let program = functions(&[], threads);
        assert_eq!(
            finals_and_executions(&program),
            expected,
            "{clients} clients"
        );
    }
    for (lines, states) in [(4, 24), (5, 120)] {
        let append = |line| vec![Function::Append(line)];
        let program = functions(&[], (0..lines).map(append).collect());
        let expected = (states, states as u64);
        assert_eq!(
            finals_and_executions(&program),
            expected,
            "{lines} lines of a log"
        );
    }
}

/// Each final state of this program is reached, in some orders of choice.
fn all_reached(program: &Program) {
    for seed in 0..40 {
        let free = match seed {
            0 => TieBreak::Last,
            seed => TieBreak::Random(seed << 8 | 1),
        };
        let (all, lost) = lost(program, free).expect("a small program");
        assert_eq!(lost, 0, "of {all}, {free:?}: {}", program.listing());
    }
}

#[test]
fn an_execution_is_not_given_up_before_its_last_step() {
    // The load races with the second store only where it comes behind the first.
    let push = Ins::Push {
        var: QUEUE,
        value: Val::Const(2),
    };
    let threads = vec![vec![load(0, 0), push], vec![store(0, 0), store(0, 1)]];
    let program = Program::of(threads).with(QUEUE, ObjectKind::Channel, 0);
    assert_eq!(final_states(&program, 100).map(|all| all.len()), Some(2));
    all_reached(&program);
}

#[test]
fn races_that_only_what_was_given_up_would_show_are_reversed() {
    // In most orders of choice every execution in which the load of the third thread races with
    // the store of the last one is given up, because its state was reached in another order.
    let or = Ins::Op {
        var: 0,
        kind: OpKind::Rmw {
            order: std::sync::atomic::Ordering::SeqCst,
            rmw: Rmw::Or,
            operand: 2,
            blind: true,
        },
        to: 7,
    };
    let unless = Ins::Unless {
        reg: 2,
        value: Val::Const(0),
        by: 1,
    };
    let program = Program::of(vec![
        vec![load(0, 2), or],
        vec![or],
        vec![update(SHARED, Function::Add(0)), load(0, 1)],
        vec![load(0, 2), unless, store(0, 1)],
    ]);
    let program = program.with(SHARED, ObjectKind::Opaque, 0);
    all_reached(&program);
    assert_eq!(lost(&program, TieBreak::Random(9605)), Some((25, 0)));
}
