//! How does the time of an exploration fall with the number of workers?
//!
//! A simulation in one OS thread. The time of a worker is the number of events that it has made, so
//! no clock is needed, and there may be more workers than processors. The rules are those of
//! [`workers`](crate::exploration): one worker explores alone at first, and a worker that is asked
//! gives away the part that it would explore last, with a least number of events in between.

use crate::rt::engine::TieBreak;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::stats::Stats;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::checkpoints::NoStatics;
use crate::rt::engine::tests::random::number;
use crate::rt::pooled::Pooled;

/// Number of events that are made by one worker at first.
const ALONE: u64 = 20_000;

/// Number of events between two parts that one worker gives away.
const BETWEEN_SPLITS: u64 = 4_000;

/// What it costs to give a part away, and to begin with one, in events.
const HAND_OVER: u64 = 100;

struct Worker {
    time: u64,
    driver: Option<Pooled<Box<Driver>>>,
    /// The number of events of the driver from which on it may be split.
    split_at: u64,
}

/// How an exploration by several workers went.
struct Simulated {
    stats: Stats,
    /// The time at which the last worker has ended.
    time: u64,
    parts: u64,
}

impl Simulated {
    /// The share of their time in which the workers have explored.
    fn efficiency(&self, workers: u64) -> f64 {
        self.stats.events as f64 / (workers * self.time) as f64
    }

    /// The efficiency if hand-overs were free and parts of equal size.
    fn ideal(&self, workers: u64) -> f64 {
        let events = self.stats.events;
        let shared = events.saturating_sub(ALONE) as f64 / workers as f64;
        events as f64 / (workers as f64 * (ALONE as f64 + shared))
    }
}

/// Explores the program with a number of workers.
fn simulate(program: &Program, workers: usize) -> Simulated {
    let new = || driver(program, explorer("parsimonious", TieBreak::Last));
    let mut found = Found::default();
    let mut first = new();
    let alone = |driver: &Driver| driver.stats.events < ALONE;
    explore_on(program, &mut first, false, &mut found, alone);
    let mut all = Vec::new();
    all.resize_with(workers, || Worker {
        time: first.stats.events,
        driver: None,
        split_at: 0,
    });
    all[0].driver = Some(first);
    let mut stats = Stats::default();
    let mut parts = 0;
    let earliest = |all: &[Worker], is_busy: bool| {
        let some = (0..all.len()).filter(|&it| all[it].driver.is_some() == is_busy);
        some.min_by_key(|&it| all[it].time)
    };
    while let Some(at) = earliest(&all, true) {
        let hungry = earliest(&all, false);
        let worker = &mut all[at];
        let Some(driver) = &mut worker.driver else {
            unreachable!("it is busy");
        };
        let before = driver.stats.events;
        let more = !explore_on(program, driver, false, &mut found, |_| false) && driver.more();
        worker.time += driver.stats.events - before;
        if !more {
            stats.add(&driver.stats);
            worker.driver = None;
            continue;
        }
        if let Some(hungry) = hungry
            && driver.stats.events >= worker.split_at
            && let Some(part) = driver.split(&NoStatics)
        {
            worker.split_at = driver.stats.events + BETWEEN_SPLITS;
            worker.time += HAND_OVER;
            let given_at = worker.time;
            let part = part.expect("no statics");
            let mut driver = new();
            let parts_of = std::iter::once((&*part, Stats::default()));
            assert!(driver.restore_parts(parts_of, Stats::default(), &NoStatics));
            let taker = &mut all[hungry];
            taker.time = taker.time.max(given_at) + HAND_OVER;
            taker.driver = Some(driver);
            taker.split_at = 0;
            parts += 1;
        }
    }
    let time = all.iter().map(|worker| worker.time).max().unwrap_or(0);
    Simulated { stats, time, parts }
}

/// `DPOR_SCALING` is a number that is added to the size of each program; the table of
/// `docs/PARALLEL.md` is that of 4.
#[test]
fn more_workers_take_less_time() {
    let larger = number("DPOR_SCALING", 0);
    let size = i64::try_from(larger).expect("a small number");
    let shown = std::env::var_os("DPOR_SCALING").is_some();
    for (name, program) in [
        ("lastzero", programs::lastzero(14 + size)),
        (
            "lost_update",
            programs::lost_update(5 + usize::from(size > 0)),
        ),
        ("indexer", programs::indexer(15)),
    ] {
        let alone = simulate(&program, 1);
        assert_eq!(alone.time, alone.stats.events, "{name}");
        for (workers, least) in [(8, 0.9), (64, 0.4), (512, 0.1)] {
            let it = simulate(&program, workers);
            let workers = workers as u64;
            assert_eq!(it.stats.begun(), alone.stats.begun(), "{name}, {workers}");
            assert_eq!(it.stats.events, alone.stats.events, "{name}, {workers}");
            let efficiency = it.efficiency(workers);
            if shown {
                let (begun, events) = (it.stats.begun(), it.stats.events);
                println!(
                    "{name}: {begun} executions, {events} events, {workers} workers: {efficiency:.3}, {} parts",
                    it.parts
                );
            }
            let ideal = it.ideal(workers);
            assert!(
                efficiency >= least * ideal,
                "{name}, {workers} workers: {efficiency} of {ideal}"
            );
        }
    }
}
