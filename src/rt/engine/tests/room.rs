//! Is an exploration the same regardless of the explorations before it on its OS thread?

use std::fmt::Write;
use std::thread;

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::program;

/// A description of the first executions of the program, and of the facts known behind them.
fn told(seed: u64) -> String {
    let program = program(seed);
    let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
    let mut told = String::new();
    for _ in 0..20 {
        let Some(end) = run(&program, &mut driver) else {
            break;
        };
        let (trace, races) = (&driver.trace, driver.clocks.races());
        let contended = |object| driver.clocks.is_contended(object);
        let objects = driver.machine.objects();
        let contended: Vec<bool> = objects.iter().copied().map(contended).collect();
        let names: Vec<_> = objects
            .iter()
            .map(|&object| driver.machine.names.place(object))
            .collect();
        let known = (trace.events(), trace.threads(), races, contended, names);
        writeln!(told, "{end:?} {known:?} {:?}", driver.estimate()).expect("it is a string");
    }
    let most: Vec<_> = driver.hotspots.most::<10>().collect();
    let machine = &driver.machine;
    let waits = (machine.hintless(), machine.rounds_left_out());
    write!(told, "{:?} {most:?} {waits:?}", driver.stats).expect("it is a string");
    told
}

#[test]
fn an_exploration_leaves_nothing_but_room_to_the_next_one() {
    for seed in 0..200 {
        let alone = thread::spawn(move || told(seed));
        let alone = alone.join().expect("it explores");
        // This OS thread has explored all the others before.
        assert_eq!(told(seed), alone, "seed {seed}");
    }
}
