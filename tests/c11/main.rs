//! C11 on live closures: litmus programs, algorithms with and without their fences, and schedules.
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod algorithms;
#[path = "../support/children.rs"]
mod children;
mod found;
mod from_loom;
mod litmus;
mod locks;
mod loops;
mod orderings;
mod settings;

use dpor::cell::UnsafeCell;
use dpor::{Builder, Failure, FailureKind, Memory};

fn c11() -> Builder {
    let mut builder = Builder::new();
    builder.memory = Memory::C11;
    // Further passes are sequentially consistent, and a `park` of these tests stands in no loop.
    builder.thorough = dpor::Thorough::Off;
    builder
}

fn sc() -> Builder {
    let mut builder = Builder::new();
    builder.memory = Memory::Sc;
    builder.thorough = dpor::Thorough::Off;
    builder
}

/// The number of executions of an exploration that is complete.
fn explored(builder: &Builder, f: impl Fn() + Sync + Send + 'static) -> u64 {
    let report = builder
        .explore(f)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.complete, "{report:?}");
    report.executions
}

/// The numbers of executions under sequential consistency and under C11.
fn counts(f: impl Fn() + Sync + Send + Copy + 'static) -> (u64, u64) {
    (explored(&sc(), f), explored(&c11(), f))
}

fn passes(f: impl Fn() + Sync + Send + Copy + 'static) -> u64 {
    explored(&c11(), f)
}

/// The failure under these settings, which needs weak memory, after its schedule was replayed.
fn failure_of(builder: &Builder, f: impl Fn() + Sync + Send + Copy + 'static) -> Failure {
    let failure = *builder.explore(f).expect_err("it fails under C11");
    let schedule = failure.schedule().to_owned();
    assert!(schedule.starts_with("v2 c11"), "{schedule}");
    let mut replay = Builder::new();
    replay.replay = Some(schedule);
    let again = *replay.explore(f).expect_err("it fails again");
    assert_eq!(again.kind(), failure.kind());
    assert_eq!(headline(&again), headline(&failure));
    // Under sequential consistency it does not fail.
    explored(&sc(), f);
    failure
}

/// What has failed, without the number of the execution.
fn headline(failure: &Failure) -> String {
    let text = failure.to_string();
    let is_head = |line: &&str| !line.starts_with("thread '") && line.contains(" (execution ");
    let line = text.lines().find(is_head).expect("a headline");
    let (what, _) = line.split_once(" (execution ").expect("it is there");
    what.to_owned()
}

fn fails(f: impl Fn() + Sync + Send + Copy + 'static) -> Failure {
    failure_of(&c11(), f)
}

fn fails_with_race(f: impl Fn() + Sync + Send + Copy + 'static) {
    let failure = *c11().explore(f).expect_err("it fails");
    assert_eq!(failure.kind(), FailureKind::DataRace);
}

/// Plain data that threads share.
struct Cell(UnsafeCell<u64>);

// SAFETY: the models find races.
unsafe impl Sync for Cell {}

impl Cell {
    fn new() -> Cell {
        Cell(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: the model reports two accesses at a time.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }
}
