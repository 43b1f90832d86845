//! Does it make a difference whether the end of a thread is an event, if no thread checks for one?

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::{ALGORITHMS, Ins, Program, explore_up_to};
use crate::rt::engine::tests::random::{number, program};
use crate::rt::engine::tests::{load, store};

fn looks_for_ends(program: &Program) -> bool {
    let mut all = program.threads.iter().flatten();
    all.any(|ins| matches!(ins, Ins::IsFinished { .. }))
}

#[test]
fn there_are_as_many_traces_with_ends_that_are_events_as_without() {
    let (mut compared, mut shorter) = (0, 0);
    for seed in 1..=number("DPOR_FUZZ", 30_000) / 10 {
        let without = program(seed);
        if looks_for_ends(&without) {
            continue;
        }
        let mut with = without.clone();
        with.ends_are_events = true;
        let found = |program| explore_up_to(program, "optimal", TieBreak::Random(seed | 1), 300);
        let (Some(without), Some(with)) = (found(&without), found(&with)) else {
            continue;
        };
        let outcomes = |found: &crate::rt::engine::testing::Found| {
            let ends = (found.deadlocks, found.livelocks, found.given_up);
            (found.traces.len(), found.finals.clone(), ends)
        };
        assert_eq!(outcomes(&without), outcomes(&with), "seed {seed}");
        compared += 1;
        shorter += u32::from(without.stats.longest < with.stats.longest);
    }
    assert!(compared > 0);
    assert!(shorter * 10 > compared * 9, "{shorter} of {compared}");
}

#[test]
fn a_thread_without_events_ends_when_it_begins() {
    // A thread that begins late must have begun before it is joined, on every path that leads
    // there.
    let threads = vec![
        vec![
            Ins::Spawn(1),
            Ins::Spawn(2),
            store(0, 1),
            Ins::Join(2),
            Ins::Join(1),
            load(1, 0),
        ],
        vec![load(0, 0), store(1, 1)],
        vec![],
    ];
    let program = Program {
        threads,
        ..Program::default()
    };
    for algorithm in ALGORITHMS {
        for seed in 1..20 {
            let found = explore_up_to(&program, algorithm, TieBreak::Random(seed), 1000);
            let found = found.expect("few executions");
            assert_eq!(found.traces.len(), 2, "{algorithm} with {seed}");
        }
    }
}
