//! How soon does each way to search find the planted bugs?

use dpor::{Algorithm, Bound, Builder, Verdict};

use super::REAL;
use super::orders::ORDERS;
use super::support::bugs::BUGS;

/// For each bound from 0 on whether the bug is found within it, up to the first that does.
fn first_bound(bug: fn()) -> usize {
    let within = |bound| {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(bound);
        builder.explore(bug)
    };
    for bound in 0..10 {
        match within(bound) {
            Err(_) => return bound,
            Ok(report) => {
                assert_eq!(report.verdict, Verdict::Bounded(Bound::Preemptions(bound)));
                assert!(!report.complete, "{report}");
            }
        }
    }
    panic!("not within ten preemptions");
}

#[test]
fn the_planted_bugs_are_missed_below_their_number_of_preemptions_and_found_with_it() {
    let real = REAL.map(|real| (real.name, real.run, real.preemptions));
    for (name, bug, preemptions) in BUGS.into_iter().chain(real) {
        assert_eq!(first_bound(bug), preemptions, "{name}");
    }
}

/// The number of the execution in which a bug is found.
fn first_failure(bug: fn(), settings: impl Fn(&mut Builder)) -> u64 {
    let mut builder = Builder::new();
    builder.iterations = 20_000;
    builder.simplify = 0;
    settings(&mut builder);
    let found = builder.explore(bug);
    let failure = found.expect_err(&format!("nothing is found by {builder:?}"));
    // What is run to find out more about it, once it is found, does not count.
    let text = failure.to_string();
    let number = text.split("(execution ").nth(1);
    let digits = number.and_then(|rest| rest.split(',').next());
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("its number")
}

/// The bugs within reach of every strategy: more than two preemptions are out of reach of `pct` with
/// depth 3.
fn bugs() -> impl Iterator<Item = (&'static str, fn())> {
    let real = REAL.map(|real| (real.name, real.run, real.preemptions));
    let all = BUGS.into_iter().chain(real);
    let within = all.filter(|(.., preemptions)| *preemptions <= 2);
    within.map(|(name, bug, _)| (name, bug))
}

/// The table of `docs/BIG_STATE_SPACES.md`; `cargo test --test real_bugs planted -- --nocapture`
/// prints it.
#[test]
fn every_planted_bug_is_found_by_every_strategy() {
    println!(
        "| bug | optimal | bit_reversal | round_robin | stride | conflict_first | random | pct, depth 3 \
         | pos |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (name, bug) in bugs() {
        let mut row = format!("| {name}");
        for order in ORDERS {
            let found = first_failure(bug, |builder| builder.order = order);
            row.push_str(&format!(" | {found}"));
        }
        for algorithm in [Algorithm::Random, Algorithm::Pct, Algorithm::Pos] {
            let seeds = 20;
            let failure = |seed| {
                first_failure(bug, |builder| {
                    builder.algorithm = algorithm;
                    builder.seed = Some(seed);
                })
            };
            let mean = (1..=seeds).map(failure).sum::<u64>() as f64 / seeds as f64;
            row.push_str(&format!(" | {mean:.1}"));
        }
        println!("{row} |");
    }
}
