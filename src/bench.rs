//! How much of the time is the exploration? For `benches/core.rs`, and for nobody else.

use std::panic::Location;
use std::time::{Duration, Instant};

use crate::config::Builder;
use crate::rt::engine::driver::Stats;
use crate::rt::engine::floor::{Floor, Recorded, Recorder};
use crate::rt::engine::strategies::optimal::Optimal;
use crate::rt::engine::testing::{Found, Program, driver, explore_on, programs};
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::exec::run::{Explored, explore, stacks};
use crate::rt::object::machine::Learnt;

/// What was measured of one program.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Executions, all of them complete.
    pub executions: u64,
    /// Events of all executions together.
    pub events: u64,
    /// The least time of several explorations.
    pub exploring: Duration,
    /// The least time in which the same executions were run from a record, without exploration.
    pub floor: Duration,
}

/// How often each is measured, in turns.
const TURNS: usize = 7;

/// Measures a closure.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn live(body: impl Fn() + Send + Sync + 'static) -> Measured {
    let builder = Builder {
        max_branches: 1_000_000,
        patience: None,
        ..Builder::default()
    };
    let site = Location::caller();
    let mut pool = stacks(builder.stack_size);
    measure(|explorer| {
        let driver = builder.driver(explorer, Learnt::default());
        let settings = builder.running(site, &[]);
        match explore(&body, driver, &mut pool, settings, |_| true) {
            Explored::Passed(driver) => driver.stats,
            Explored::Failed(found) => panic!("the program fails: {:?}", found.end),
        }
    })
}

/// Measures the programs of the core's own tests by name: no closure, no stack, nothing but the
/// core.
pub fn abstract_programs() -> Vec<(&'static str, Measured)> {
    let programs = [
        ("readers(8)", programs::readers(8)),
        ("readers(13)", programs::readers(13)),
        ("lastzero(10)", programs::lastzero(10)),
        ("indexer(15)", programs::indexer(15)),
        ("filesystem(19)", programs::filesystem(19)),
        ("lost_update(4)", programs::lost_update(4)),
    ];
    programs.map(|(name, p)| (name, without_stacks(&p))).into()
}

fn without_stacks(program: &Program) -> Measured {
    measure(|explorer| {
        let mut driver = driver(program, explorer);
        explore_on(program, &mut driver, false, &mut Found::default(), |_| true);
        driver.stats
    })
}

/// Measures what `run` does with an explorer.
fn measure(mut run: impl FnMut(Box<dyn Explorer>) -> Stats) -> Measured {
    let recorded = Recorded::default();
    let optimal = || Optimal::new(TieBreak::Last);
    let stats = run(Box::new(Recorder::new(*optimal(), &recorded)));
    let mut timed = |explorer: Box<dyn Explorer>| {
        let start = Instant::now();
        let again = run(explorer);
        let time = start.elapsed();
        let counts = |stats: &Stats| (stats.complete, stats.asleep, stats.events);
        assert_eq!(counts(&again), counts(&stats), "another exploration");
        time
    };
    let mut measured = Measured {
        executions: stats.complete,
        events: stats.events,
        exploring: Duration::MAX,
        floor: Duration::MAX,
    };
    for _ in 0..TURNS {
        measured.exploring = measured.exploring.min(timed(optimal()));
        measured.floor = measured.floor.min(timed(Box::new(Floor::new(&recorded))));
    }
    measured
}
