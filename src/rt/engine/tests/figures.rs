//! Do programs with published numbers of traces have them?

use crate::rt::engine::testing::programs::{filesystem, indexer, lastzero, readers, wakeup_stress};
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::{load, lost_update, store, var};
use crate::rt::event::operation::ObjectKind;

/// \[SS\] Fig. 10: the reader `p` walks from one group of threads to the next.
fn figure_10(groups: u32) -> Program {
    let [x, y, z] = [0, 100, 200].map(|base| move |group: u32| var(base + group as i64));
    let set = |var| Ins::Store {
        var,
        value: Val::Const(1),
    };
    let get = |var| Ins::Load { var, to: 0 };
    let only_if = |value, by| Ins::Unless {
        reg: 0,
        value: Val::Const(value),
        by,
    };
    // Thread 1 is `p`; the threads of group i are 3i - 1, 3i and 3i + 1.
    let spawn = |group: u32| [3 * group - 1, 3 * group, 3 * group + 1].map(Ins::Spawn);
    let mut reader = Vec::new();
    for group in 1..=groups {
        let rest = (groups - group) * 5;
        reader.push(get(x(group)));
        reader.push(only_if(1, rest as u8));
        if group < groups {
            reader.extend(spawn(group + 1));
        }
    }
    let mut main = spawn(1).to_vec();
    main.push(Ins::Spawn(1));
    let mut threads = vec![main, reader];
    for group in 1..=groups {
        threads.push(vec![set(y(group))]);
        threads.push(vec![get(y(group)), only_if(0, 1), set(z(group))]);
        threads.push(vec![
            get(z(group)),
            only_if(1, 3),
            get(y(group)),
            only_if(0, 1),
            set(x(group)),
        ]);
    }
    Program {
        threads,
        ..Program::default()
    }
}

#[test]
fn optimal_and_parsimonious_explore_each_trace_of_the_published_programs_once() {
    let check = |name: &str, n: i64, program: Program, expected: u64| {
        for algorithm in ["optimal", "parsimonious"] {
            assert_eq!(
                count(&program, algorithm),
                expected,
                "{algorithm}: {name}({n})"
            );
        }
    };
    for (n, traces) in [(2, 4), (8, 256), (13, 8192)] {
        check("readers", n, readers(n), traces);
    }
    for (n, traces) in [(1, 2), (2, 5), (3, 12), (4, 28), (5, 64), (10, 3328)] {
        check("lastzero", n, lastzero(n), traces);
    }
    for (n, traces) in [(2, 4), (3, 36), (4, 576)] {
        check("lost_update", n, lost_update(n as usize), traces);
    }
    for (n, traces) in [(4, 48), (5, 240), (6, 1440)] {
        check("wakeup_stress", n, wakeup_stress(n as u32), traces);
    }
    for n in 1..=9 {
        check("figure 10", n, figure_10(n as u32), 4 * n as u64 + 1);
    }
    for (n, traces) in [(12, 8), (15, 4096)] {
        check("indexer", n, indexer(n), traces);
    }
    for (n, traces) in [(14, 2), (16, 8), (18, 32), (19, 64)] {
        check("filesystem", n, filesystem(n), traces);
    }
}

#[test]
fn lastzero_of_15_has_147456_traces() {
    assert_eq!(count(&lastzero(15), "optimal"), 147_456);
}

#[test]
fn small_programs_that_catch_wrong_implementations_have_their_traces() {
    const X: i64 = 0;
    const Y: i64 = 1;
    const Z: i64 = 2;
    let only_if = |value, by| Ins::Unless {
        reg: 0,
        value: Val::Const(value),
        by,
    };
    let check = |name: &str, threads: Vec<Vec<Ins>>, expected: u64| {
        // Every tie-break is right, and each takes another path through the program.
        for seed in 1..200 {
            let free = crate::rt::engine::TieBreak::Random(seed);
            let program = Program::of(threads.clone());
            let found = explore_up_to(&program, "optimal", free, 1000).expect("few executions");
            assert_eq!(found.stats.complete, expected, "{name}, seed {seed}");
            assert_eq!(found.traces.len() as u64, expected, "{name}, seed {seed}");
        }
    };
    let reader = |flag, value| vec![load(flag, 0), only_if(value, 1), load(X, 1)];
    let writers = [vec![store(X, 1)], vec![store(Y, 1)], vec![store(Z, 1)]];
    check(
        "a shortened wakeup sequence loses a trace",
        [&writers[..], &[reader(Z, 1), reader(Y, 1)]].concat(),
        9,
    );
    check(
        "a reader behind a flag",
        vec![
            vec![store(Y, 1)],
            vec![store(X, 1)],
            vec![load(X, 0), only_if(1, 1), load(Y, 1)],
        ],
        3,
    );
    check(
        "source sets block here",
        vec![
            vec![store(X, 1)],
            vec![store(Y, 1)],
            vec![load(Y, 0), only_if(0, 1), store(Z, 1)],
            vec![
                load(Z, 0),
                only_if(1, 3),
                load(Y, 0),
                only_if(0, 1),
                store(X, 2),
            ],
        ],
        5,
    );
    let buffer = |mine, other| vec![store(mine, 1), load(other, 0)];
    check("store buffering", vec![buffer(X, Y), buffer(Y, X)], 3);
    let two = vec![load(X, 0), load(Y, 1)];
    let other_two = vec![load(Y, 0), load(X, 1)];
    check("IRIW", [&writers[..2], &[two, other_two]].concat(), 15);
}

#[test]
fn source_and_classic_find_the_same_traces_and_block_on_top() {
    let lastzero = lastzero(5);
    for algorithm in ["source", "classic", "sleep_sets"] {
        let stats = stats(&lastzero, algorithm);
        assert_eq!(stats.complete, 64, "{algorithm}");
        assert!(stats.asleep > 0, "{algorithm} blocks nowhere");
    }
}

#[test]
fn two_mutexes_taken_in_opposite_order_have_three_traces_one_of_them_a_deadlock() {
    let (a, b) = (var(0), var(1));
    let body = |a, b| vec![Ins::Lock(a), Ins::Lock(b), Ins::Unlock(b), Ins::Unlock(a)];
    let program = Program::of(vec![body(a, b), body(b, a)])
        .with(0, ObjectKind::Mutex, 0)
        .with(1, ObjectKind::Mutex, 0);
    let found = explore_up_to(&program, "optimal", crate::rt::engine::TieBreak::Last, 100);
    let found = found.expect("few executions");
    assert_eq!((found.traces.len(), found.deadlocks), (3, 1));
}
