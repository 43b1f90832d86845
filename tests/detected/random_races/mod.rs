//! Is a data race reported in exactly those random programs that have one?
//!
//! Whether a program has one is said by an oracle that shares nothing with the detector: it makes every interleaving,
//! and reads the order of two accesses off the sentences of the standard. That also asks whether one execution per
//! trace is enough to see every race.
//! What the reports say of orderings that are too weak is compared with what comes of stronger ones (`orderings.rs`).
//! `DPOR_RACES` says how many programs of each family there are to be, and `DPOR_RACES_FROM` the first one's seed.

use crate::channels;
mod draw;
use crate::drawn;
mod happens_before;
mod oracle;
mod orderings;
mod places;
mod program;
mod run;

use dpor::{Builder, FailureKind, Memory};

use draw::Family;
use drawn::{setting, smallest, without_one};
use orderings::Claims;
use program::Program;

/// More interleavings than this are too many for a test that has thousands of programs.
const INTERLEAVINGS_MAX: usize = 3_000;

/// Whether `dpor` finds a data race, or a use after a free; what it says of their orderings is checked.
fn is_found(program: &Program, claims: &mut Claims) -> Result<bool, String> {
    let mut builder = Builder::new();
    // A `park` of these programs stands in no loop.
    builder.thorough = dpor::Thorough::Off;
    // The oracle knows no memory but one that is sequentially consistent.
    builder.memory = Memory::Sc;
    builder.max_failures = usize::MAX;
    builder.progress = Some(false);
    // No program has so many waits that end by themselves.
    builder.timeout_bound = 100;
    let body = program.clone();
    let failure = match builder.explore(move || run::run(&body)) {
        Ok(report) if report.complete => return Ok(false),
        Ok(report) => return Err(report.to_string()),
        Err(failure) => failure,
    };
    let mut found = false;
    for failure in std::iter::once(&*failure).chain(failure.others()) {
        match failure.kind() {
            FailureKind::DataRace | FailureKind::UseAfterFree => found = true,
            FailureKind::Deadlock => {}
            _ => return Err(failure.to_string()),
        }
        orderings::check(program, failure, claims)?;
    }
    Ok(found)
}

/// Whether the program has a race, and what is wrong with what was found; `None` if it has too many interleavings.
fn verdict(program: &Program, claims: &mut Claims) -> Option<(bool, Result<(), String>)> {
    let is_racy = oracle::is_racy(program, INTERLEAVINGS_MAX)?;
    let found = is_found(program, claims).and_then(|found| match (is_racy, found) {
        (true, false) => Err("a race is missed".to_owned()),
        (false, true) => Err("a race is reported that is none".to_owned()),
        _ => Ok(()),
    });
    Some((is_racy, found))
}

/// The programs without one of its operations, or in which one waits for nothing.
fn simpler(program: &Program) -> Vec<Program> {
    let less = without_one(&program.threads).map(|threads| Program {
        threads,
        ..program.clone()
    });
    let mut all: Vec<Program> = less.collect();
    for thread in 0..program.threads.len() {
        for at in 0..program.threads[thread].len() {
            if program.threads[thread][at].only_after.is_some() {
                let mut plainer = program.clone();
                plainer.threads[thread][at].only_after = None;
                all.push(plainer);
            }
        }
    }
    all
}

/// Compares the programs of these seeds; gives how many of them are small enough, how many of those have a race, and what the
/// reports name.
fn compare(family: Family, seeds: impl Iterator<Item = u64>) -> ([u64; 2], Claims) {
    let (mut compared, mut racy) = (0, 0);
    let mut claims = Claims::default();
    for seed in seeds {
        let program = Program::random(family, seed);
        let Some((is_racy, found)) = verdict(&program, &mut claims) else {
            continue;
        };
        compared += 1;
        racy += u64::from(is_racy);
        if found.is_err() {
            let program = smallest(program, simpler, |program| {
                matches!(verdict(program, &mut Claims::default()), Some((_, Err(_))))
            });
            let why = verdict(&program, &mut Claims::default()).and_then(|(_, found)| found.err());
            panic!(
                "{family:?}, seed {seed}: {}\n{program:#?}",
                why.unwrap_or_default()
            );
        }
    }
    ([compared, racy], claims)
}

/// Compares as many programs as there are to be, and sees to it that they say something.
fn check(family: Family, default: u64) {
    let (from, count) = (
        setting("DPOR_RACES_FROM", 0),
        setting("DPOR_RACES", default),
    );
    let seeds = |half| (from..from + count).filter(move |seed| seed % 2 == half);
    let [even, odd] = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || compare(family, seeds(half))));
        halves.map(|half| match half.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    let [compared, racy] = [0, 1].map(|at| even.0[at] + odd.0[at]);
    eprintln!("{family:?}: {compared} programs compared, {racy} have a race");
    let all = |count: fn(&Claims) -> u64| count(&even.1) + count(&odd.1);
    let [one, any, together] = [all(|it| it.one), all(|it| it.any), all(|it| it.together)];
    eprintln!("{family:?}: {one} reports name a pair, {any} several, {together} several together");
    assert!(
        compared > count / 2,
        "{compared} of {count} are small enough"
    );
    let share = racy * 100 / compared;
    assert!((10..90).contains(&share), "{share}% have a race");
    // Primitives are not too weak; there it is only the sign that orders nothing.
    let several = family == Family::Primitives || any > 0 && together > 0;
    assert!(one > 0 && several, "too few reports name orderings");
}

#[test]
fn atomics_and_fences_order_what_the_standard_says() {
    check(Family::Atomics, 2_000);
}

#[test]
fn a_free_must_be_ordered_behind_every_use() {
    check(Family::Frees, 1_000);
}

#[test]
fn locks_threads_channels_and_references_order_what_std_promises() {
    check(Family::Primitives, 1_000);
}
