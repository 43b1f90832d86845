//! Does the search without wakeup trees find every trace once, whatever the objects are?
//!
//! The tests of the other files explore their random programs with it, too. Here the sequence of
//! the search varies. `DPOR_FUZZ` is the number of random programs, `DPOR_FUZZ_SEED` the first
//! seed, and `DPOR_FUZZ_FAMILY` leaves out the other families.

use std::time::Instant;

use crate::rt::engine::driver::Driver;
use crate::rt::engine::stats::Stats;
use crate::rt::engine::strategies::parsimonious::{Parsimonious, Sequence};
use crate::rt::engine::testing::programs::{
    filesystem, indexer, lastzero, lost_update, readers, wakeup_stress,
};
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::checkpoints::NoStatics;
use crate::rt::engine::tests::random::{Rng, number};
use crate::rt::engine::tests::{counts, dense, exact, let_go, load, random, store};
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::event::operation::{ObjectKind, OpKind};

/// A family of random programs.
struct Family {
    name: &'static str,
    /// The share of the programs that are of this family, in hundredths.
    share: u64,
    /// The most prefixes of a program.
    most: usize,
    program: fn(u64) -> Program,
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "random",
        share: 40,
        most: 600,
        program: random::program,
    },
    Family {
        name: "heads",
        share: 30,
        most: 2_000,
        program: heads,
    },
    Family {
        name: "counts",
        share: 10,
        most: 800,
        program: counts::program,
    },
    Family {
        name: "dense",
        share: 10,
        most: 800,
        program: dense::program,
    },
    Family {
        name: "waiting",
        share: 7,
        most: 500,
        program: exact::waiting,
    },
    Family {
        name: "let_go",
        share: 1,
        most: 3_000,
        program: let_go::program,
    },
    Family {
        name: "unfair",
        share: 1,
        most: 3_000,
        program: let_go::unfair,
    },
    Family {
        name: "served",
        share: 1,
        most: 3_000,
        program: let_go::served,
    },
];

/// A program with several schedules against one default, which commute: one thread stores, and the
/// others make some accesses before each loads what was stored.
fn heads(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let mut all = vec![vec![store(0, 1)]];
    for _ in 0..3 {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let var = 1 + rng.below(3) as i64;
            code.push(match rng.below(2) {
                0 => load(var, 1),
                _ => store(var, 1),
            });
        }
        code.push(load(0, 0));
        all.push(code);
    }
    if rng.one_in(2) {
        let first = all.remove(0);
        all.insert(rng.below(4) as usize, first);
    }
    Program::of(all)
}

/// Explores the program of this seed in several ways; returns the number of traces if brute force
/// can tell it, and the number of executions that got stuck.
fn check(family: &Family, seed: u64) -> Option<(usize, u64)> {
    let program = (family.program)(seed);
    let oracle = brute_force(&program, family.most)?;
    let random = TieBreak::Random(seed | 1);
    let ways = [
        (TieBreak::Last, Sequence::LastFirst),
        (random, Sequence::LastFirst),
        match seed % 2 {
            0 => (TieBreak::Last, Sequence::FirstFirst),
            _ => (random, Sequence::Shuffled(seed)),
        },
    ];
    let mut stuck = 0;
    for (free, sequence) in ways {
        let context = || {
            let way = (family.name, free, sequence);
            format!("{way:?}, seed {seed}:\n{}", program.listing())
        };
        let explorer = Box::new(Parsimonious::in_sequence(free, sequence));
        let found = std::panic::catch_unwind(|| {
            // A wrong search may have no end.
            explore_with(&program, explorer, true, 50 * oracle.traces.len() as u64)
        });
        let Ok(Some(found)) = found else {
            panic!("a trace more than once, or a panic: {}", context())
        };
        let twice = found.traces.values().find(|&&n| n != 1);
        assert_eq!(twice, None, "a trace more than once: {}", context());
        assert_eq!(found.keys(), oracle.keys(), "traces of {}", context());
        assert_eq!(found.finals, oracle.finals, "final states of {}", context());
        assert_eq!(found.deadlocks, oracle.deadlocks, "{}", context());
        assert_eq!(found.livelocks, oracle.livelocks, "{}", context());
        stuck += found.stats.asleep;
    }
    Some((oracle.traces.len(), stuck))
}

#[test]
fn each_trace_of_random_programs_is_explored_once_in_any_sequence() {
    let programs = number("DPOR_FUZZ", 3_000);
    let start = number("DPOR_FUZZ_SEED", 1);
    let only = std::env::var("DPOR_FUZZ_FAMILY").ok();
    let families = FAMILIES.iter().filter(|family| {
        let only = only.as_deref();
        only.is_none_or(|only| only == family.name)
    });
    for family in families {
        let share = if only.is_some() { 100 } else { family.share };
        let seeds = start..start + (programs * share).div_ceil(100);
        let all: Vec<(usize, u64)> = seeds.filter_map(|seed| check(family, seed)).collect();
        let traces: usize = all.iter().map(|(traces, _)| traces).sum();
        let stuck = all.iter().filter(|(_, stuck)| *stuck > 0).count();
        let (name, checked) = (family.name, all.len());
        println!("{name}: {checked} programs, {traces} traces, {stuck} programs got stuck");
        // None does in a default run.
        assert!(stuck * 500 <= checked, "{name}: {stuck} got stuck");
        assert!(checked > 0, "{}: all programs are too large", family.name);
    }
}

#[test]
fn the_sequence_of_the_search_changes_no_number() {
    let programs = [
        (wakeup_stress(5), 240),
        (lastzero(7), 320),
        (readers(7), 128),
    ];
    for (program, traces) in programs {
        for sequence in [
            Sequence::FirstFirst,
            Sequence::Shuffled(1),
            Sequence::Shuffled(2),
        ] {
            let explorer = Box::new(Parsimonious::in_sequence(TieBreak::Last, sequence));
            assert_eq!(peak(&program, explorer).traces, traces, "{sequence:?}");
        }
    }
}

/// An exploration from begin to end.
#[derive(Debug)]
struct Peak {
    traces: u64,
    /// The events of the longest execution.
    longest: usize,
    /// The most bytes that the explorer held between two executions.
    bytes: usize,
}

fn peak(program: &Program, explorer: Box<dyn Explorer>) -> Peak {
    let mut driver = driver(program, explorer);
    let mut bytes = 0;
    while run(program, &mut driver).is_some() {
        bytes = bytes.max(driver.memory());
    }
    assert_eq!(driver.stats.asleep, 0, "pruned");
    Peak {
        traces: driver.stats.complete,
        longest: driver.stats.longest,
        bytes,
    }
}

#[test]
fn memory_grows_with_the_square_of_an_execution_and_not_with_the_number_of_traces() {
    // Twice the threads are seventy times the traces, and trees that are as much larger.
    for (small, large, trees_grow) in [
        (lastzero(6), lastzero(12), true),
        (wakeup_stress(4), wakeup_stress(7), false),
    ] {
        let of = |program, algorithm| peak(program, explorer(algorithm, TieBreak::Last));
        let [a, b] = [&small, &large].map(|program| of(program, "parsimonious"));
        let [c, d] = [&small, &large].map(|program| of(program, "optimal"));
        assert_eq!((a.traces, b.traces), (c.traces, d.traces));
        let is_quadratic = |a: &Peak, b: &Peak| {
            b.bytes * a.longest * a.longest <= 2 * a.bytes * b.longest * b.longest
        };
        assert!(is_quadratic(&a, &b), "{a:?} {b:?}");
        assert_eq!(!is_quadratic(&c, &d), trees_grow, "{c:?} {d:?}");
    }
}

/// With `DPOR_PEAKS=9` the figures of `docs/BIG_STATE_SPACES.md`:
/// `DPOR_PEAKS=9 cargo test --release --lib peaks -- --nocapture`.
#[test]
fn peaks_of_memory_with_trees_and_without() {
    let most = number("DPOR_PEAKS", 5) as i64;
    let named = |name: &str, n: i64, program| (format!("{name}({n})"), program);
    let stress = (5..=most).map(|n| named("wakeup_stress", n, wakeup_stress(n as u32)));
    let zero = (8..=most + 6).map(|n| named("lastzero", n, lastzero(n)));
    let others = [
        named("readers", most + 4, readers(most + 4)),
        named("indexer", 12, indexer(12)),
        named("filesystem", 19, filesystem(19)),
        named("lost_update", 4, lost_update(4)),
    ];
    for (name, program) in stress.chain(zero).chain(others) {
        let [(trees, with), (flat, without)] = ["optimal", "parsimonious"].map(|algorithm| {
            let start = Instant::now();
            let peak = peak(&program, explorer(algorithm, TieBreak::Last));
            (peak, start.elapsed())
        });
        assert_eq!(trees.traces, flat.traces, "{name}");
        let (bytes, events) = ([trees.bytes, flat.bytes], flat.longest);
        println!("{name}: {events} events, {bytes:?} bytes, {with:?}, {without:?}");
    }
}

/// Two readers that never give a lock back shut a writer out together.
#[test]
fn no_execution_gets_stuck_where_readers_shut_a_writer_out() {
    let lock = |kind| Ins::Op {
        var: 0,
        kind,
        to: 7,
    };
    let reader = vec![lock(OpKind::ReadLock)];
    let threads = vec![vec![lock(OpKind::WriteLock)], reader.clone(), reader];
    let program = Program::of(threads).with(0, ObjectKind::RwLock, 0);
    let oracle = brute_force(&program, 100).expect("it is small");
    assert_eq!(oracle.traces.len(), 2);
    assert_eq!(count(&program, "parsimonious"), 2);
}

/// Any set of releases may come before another one, and nearly all of these sets are the same
/// trace.
#[test]
fn a_search_does_not_try_every_set_of_releases() {
    const THREADS: usize = 24;
    for (observed, traces) in [(false, 1), (true, THREADS as u64)] {
        let program = Program::of(vec![vec![Ins::Release(20)]; THREADS]);
        let program = program.with(20, ObjectKind::Count { observed }, THREADS as u64);
        assert_eq!(count(&program, "optimal"), traces);
        assert_eq!(count(&program, "parsimonious"), traces);
    }
}

/// Explores the program in parts: what is left of the search is split after executions by chance,
/// and put together again in other ways. Each driver has numbers of its own for threads and
/// objects.
fn explore_in_parts(program: &Program, rng: &mut Rng, most: u64) -> (Found, u64) {
    let mut found = Found::default();
    let mut stats = Stats::default();
    let mut waiting: Vec<Vec<u8>> = Vec::new();
    let mut merged = 0;
    let mut is_first = true;
    let saved = |bytes: Option<Result<Vec<u8>, String>>| bytes.map(|it| it.expect("no statics"));
    while is_first || !waiting.is_empty() {
        let mut driver = driver(program, explorer("parsimonious", TieBreak::Last));
        if !std::mem::take(&mut is_first) {
            let parts = 1 + rng.below(waiting.len().min(3) as u64) as usize;
            let mut own = Vec::new();
            for _ in 0..parts {
                let at = rng.below(waiting.len() as u64) as usize;
                own.push(waiting.swap_remove(at));
            }
            merged += u64::from(parts > 1);
            let own = own.iter().map(|part| (&**part, Stats::default()));
            assert!(driver.restore_parts(own, Stats::default(), &NoStatics));
        }
        loop {
            let some = 1 + rng.below(4);
            let until = driver.stats.begun() + some;
            let go_on = |driver: &Driver| driver.stats.begun() < until;
            let is_over = explore_on(program, &mut driver, true, &mut found, go_on);
            assert!(stats.begun() + driver.stats.begun() <= most, "too many");
            if is_over {
                stats.add(&driver.stats);
                break;
            }
            while rng.one_in(3)
                && let Some(part) = saved(driver.split(&NoStatics))
            {
                waiting.push(part);
            }
            match rng.below(4) {
                0 => {
                    waiting.extend(saved(driver.save(&NoStatics)));
                    stats.add(&driver.stats);
                    break;
                }
                // The next execution is begun, and left to another driver.
                1 => {
                    let before = driver.stats;
                    if run(program, &mut driver).is_some() {
                        let again = saved(driver.save_with_last(&NoStatics));
                        waiting.push(again.expect("not the first execution"));
                    }
                    stats.add(&before);
                    break;
                }
                _ => {}
            }
        }
    }
    found.stats = stats;
    (found, merged)
}

#[test]
fn a_search_in_parts_explores_each_trace_once() {
    let programs = number("DPOR_FUZZ", 3_000);
    let start = number("DPOR_FUZZ_SEED", 1);
    let (mut merged, mut traces) = (0, 0);
    for family in &FAMILIES {
        let seeds = start..start + (programs * family.share).div_ceil(100);
        for seed in seeds {
            let program = (family.program)(seed);
            if program.rounds_of_turn.is_some() {
                // An exploration learns that from an execution, and such a program knows it before.
                continue;
            }
            let most = 300;
            let Some(whole) = explore_up_to(&program, "parsimonious", TieBreak::Last, most) else {
                continue;
            };
            let mut rng = Rng::new(seed);
            let (parts, times) = explore_in_parts(&program, &mut rng, 2 * most);
            let context = || format!("{}, seed {seed}:\n{}", family.name, program.listing());
            assert_eq!(parts.traces, whole.traces, "{}", context());
            assert_eq!(parts.finals, whole.finals, "{}", context());
            let of = |found: &Found| (found.stats.numbered(), found.stats.asleep);
            assert_eq!(of(&parts), of(&whole), "{}", context());
            merged += times;
            traces += whole.traces.len();
        }
    }
    println!("{traces} traces, {merged} times parts were put together");
    assert!(merged > 100, "only {merged}");
}
