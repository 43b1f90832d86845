//! Measures the share of the exploration in the run time, for `benches/core.rs` only.

use std::panic::Location;
use std::time::{Duration, Instant};

use crate::config::Builder;
use crate::rt::engine::floor::{Floor, Recorded, Recorder};
use crate::rt::engine::stats::Stats;
use crate::rt::engine::strategies::optimal::Optimal;
use crate::rt::engine::testing::{Found, Program, driver, explore_on, programs};
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::exec::run::{Explored, explore, stacks};
use crate::rt::object::machine::Learnt;

/// The measurements of one program.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Number of executions, all of them complete.
    pub executions: u64,
    /// Number of events in all executions together.
    pub events: u64,
    /// The shortest time of several explorations.
    pub exploring: Duration,
    /// The shortest time of a run of the same executions from a record, without exploration.
    pub floor: Duration,
}

/// How often each program is measured. Explorations and runs from the record take turns.
const TURNS: usize = 7;

/// Measures a closure.
///
/// # Panics
///
/// If an execution of the closure fails.
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

/// Measures the programs of the core's own tests by name. These have no closures and no stacks, so
/// only the core runs.
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

/// Measures `run` with an explorer and with the record of the same executions.
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
