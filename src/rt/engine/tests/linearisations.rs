//! Is the order in a report the same trace, and is no order simpler?

use crate::rt::engine::TieBreak;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::linearise::{fewest_switches, past};
use crate::rt::engine::replay::Replay;
use crate::rt::engine::testing::{Program, driver, explorer, key_of, run};
use crate::rt::engine::tests::random::{number, program};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Outcome;
use crate::rt::event::schedule::Schedule;
use crate::rt::relation::key::Hashes;

fn switches(threads: impl Iterator<Item = ThreadId>) -> usize {
    let threads: Vec<ThreadId> = threads.collect();
    threads.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// The fewest switches of all orders of the events, found by trying every next event; `last` made
/// the last step.
fn fewest(driver: &Driver, done: &mut Vec<u32>, last: Option<ThreadId>) -> usize {
    let (trace, clocks) = (&driver.trace, &driver.clocks);
    let mut least = None;
    for position in 0..trace.len() as u32 {
        let event = trace.at(position);
        let me = event.thread.index();
        let ready = done[me] == event.index
            && (0..done.len())
                .all(|t| t == me || clocks.clock(position, ThreadId(t as u32)) <= done[t]);
        if ready {
            done[me] += 1;
            let switch = usize::from(last.is_some_and(|last| last != event.thread));
            let rest = switch + fewest(driver, done, Some(event.thread));
            done[me] -= 1;
            least = Some(least.map_or(rest, |known: usize| known.min(rest)));
        }
    }
    least.unwrap_or(0)
}

#[test]
fn the_shown_order_is_the_same_trace_with_the_fewest_switches() {
    let mut compared = 0;
    for seed in 1..=number("DPOR_FUZZ", 30_000) / 60 {
        let program = program(seed);
        let mut driver = driver(&program, explorer("optimal", TieBreak::Random(seed | 1)));
        for _ in 0..4 {
            let Some(end) = run(&program, &mut driver) else {
                break;
            };
            let (trace, clocks) = (&driver.trace, &driver.clocks);
            let let_go = |e: &crate::rt::event::Event| e.outcome.is_released();
            if trace.len() > 12 || trace.events().iter().any(let_go) {
                continue;
            }
            let mut counts = vec![0; trace.threads()];
            for event in trace.events() {
                counts[event.thread.index()] += 1;
            }
            let order = fewest_switches(trace, clocks, &counts).expect("few events");
            let context = || format!("seed {seed}:\n{}", program.listing());
            let shown = switches(order.iter().map(|&at| trace.at(at).thread));
            let least = fewest(&driver, &mut vec![0; counts.len()], None);
            assert_eq!(shown, least, "{}", context());

            let schedule: Schedule = (order.iter())
                .map(|&at| {
                    let event = trace.at(at);
                    (driver.machine.names.path(event.thread), event.alternative)
                })
                .collect();
            let text = schedule.to_string();
            let read = Schedule::parse(&text).expect(&text);
            assert_eq!(read.to_string(), text);
            let mut again =
                crate::rt::engine::testing::driver(&program, Box::new(Replay::new(schedule)));
            let same = run(&program, &mut again).expect("one execution");
            again.compute_clocks();
            assert_eq!(
                std::mem::discriminant(&same),
                std::mem::discriminant(&end),
                "{same:?}, {}",
                context()
            );
            // Two explorations, each with names of its own.
            let key = |driver: &Driver| {
                let hashes = &mut Hashes::default();
                key_of(hashes, &driver.trace, &driver.clocks, &driver.machine)
            };
            assert_eq!(key(&again), key(&driver), "{}", context());
            compared += 1;
        }
    }
    assert!(compared > 0);
}

#[test]
fn the_past_of_a_thread_is_what_it_may_depend_on() {
    // Two independent threads, and one that reads the value of the second one's store.
    let threads = vec![
        vec![
            crate::rt::engine::tests::store(1, 1),
            crate::rt::engine::tests::store(1, 2),
        ],
        vec![crate::rt::engine::tests::store(0, 1)],
        vec![crate::rt::engine::tests::load(0, 0)],
    ];
    let program = Program::of(threads);
    let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
    run(&program, &mut driver).expect("one execution");
    let (trace, clocks) = (&driver.trace, &driver.clocks);
    let reader = trace
        .events()
        .iter()
        .rfind(|e| e.outcome == Outcome::Value(1));
    let reader = reader.expect("the load comes after the store");
    let counts = past(trace, clocks, &[(reader.thread, reader.index + 1)]);
    let order = fewest_switches(trace, clocks, &counts).expect("few events");
    let threads: Vec<ThreadId> = order.iter().map(|&at| trace.at(at).thread).collect();
    let other = ThreadId(trace.events().iter().map(|e| e.thread.0).max().unwrap_or(0));
    assert_eq!(counts.iter().sum::<u32>() as usize, order.len());
    assert!(order.len() < trace.len(), "{threads:?} without {other:?}");
}
