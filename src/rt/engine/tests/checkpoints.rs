//! Does an exploration that was interrupted and restored stay the same exploration?

use crate::rt::engine::TieBreak;
use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::testing::programs::var;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{number, program};

pub(super) struct NoStatics;

impl Statics for NoStatics {
    fn number(&self, _address: usize) -> Option<u64> {
        None
    }

    fn address(&self, _number: u64) -> Option<usize> {
        None
    }
}

/// Explores `program` and drops the driver after each `every` executions; only the bytes of a
/// checkpoint reach the next driver. There must be `most` executions in all.
pub(super) fn interrupted(program: &Program, order: &str, every: u64, most: u64) -> Found {
    let mut found = Found::default();
    // With the estimate of the number of executions.
    let mut saved: Option<(Vec<u8>, Option<f64>)> = None;
    loop {
        let mut driver = driver(program, explorer(order, TieBreak::Last));
        if let Some((bytes, estimate)) = &saved {
            assert!(driver.restore(bytes, &NoStatics), "its own checkpoint");
            assert_eq!(driver.estimate(), *estimate, "{order}");
            let again = driver.save(&NoStatics);
            assert!(
                again.is_none(),
                "nothing is written before the first execution"
            );
        }
        let start = driver.stats.begun();
        assert!(
            start <= most,
            "more than the {most} executions of one piece: {program:#?}"
        );
        let go_on = |driver: &Driver| driver.stats.begun() < start + every;
        if explore_on(program, &mut driver, true, &mut found, go_on) {
            return found;
        }
        saved = match driver.save(&NoStatics) {
            Some(bytes) => Some((bytes.expect("no statics"), driver.estimate())),
            None => {
                found.stats = driver.stats;
                return found;
            }
        };
    }
}

#[test]
fn interruptions_at_any_point_lose_nothing_and_repeat_nothing() {
    let mut interruptions = 0;
    for seed in 1..=number("DPOR_FUZZ", 45_000).div_ceil(100).max(200) {
        let program = program(seed);
        let Some(whole) = explore_up_to(&program, "optimal", TieBreak::Last, 150) else {
            continue;
        };
        for every in [1, 2, 7] {
            for order in ORDERS.into_iter().chain(["optimal", "parsimonious"]) {
                let parts = interrupted(&program, order, every, whole.stats.begun());
                let context = format!("{order}, every {every}, seed {seed}: {program:#?}");
                assert_eq!(parts, whole, "{context}");
                interruptions += whole.stats.begun() / every;
            }
        }
    }
    println!("{interruptions} interruptions");
    assert!(interruptions > 1000, "only {interruptions} interruptions");
}

#[test]
fn what_only_earlier_executions_have_done_to_an_object_is_not_forgotten() {
    let cas = |new| Ins::Cas {
        var: var(0),
        expected: var(0),
        new: var(new),
        weak: true,
        to: 0,
    };
    let program = Program::of([1, 2].map(|new| vec![cas(new)]).to_vec());
    // Either one operation succeeds, and the other one fails behind it or has failed before,
    // spuriously; or both fail. The sequence in which one succeeds behind the spurious failure of
    // the other is planned where both fail: in an execution that only reads.
    for order in ORDERS.into_iter().chain(["optimal", "parsimonious"]) {
        let whole = explore_up_to(&program, order, TieBreak::Last, 5).expect("five traces");
        assert_eq!(whole.traces.len(), 5);
        assert_eq!(interrupted(&program, order, 1, 5), whole, "{order}");
    }
}

#[test]
fn a_damaged_checkpoint_is_no_checkpoint_or_still_one_but_never_a_crash() {
    let program = crate::rt::engine::tests::lost_update(3);
    for order in ["optimal", "round_robin", "parsimonious"] {
        damage(&program, order);
    }
}

fn damage(program: &Program, order: &str) {
    let mut first = driver(program, explorer(order, TieBreak::Last));
    let mut found = Found::default();
    let go_on = |driver: &Driver| driver.stats.begun() < 10;
    explore_on(program, &mut first, false, &mut found, go_on);
    let bytes = first
        .save(&NoStatics)
        .expect("unfinished")
        .expect("no statics");
    check_damage(&bytes, |bytes| {
        let mut driver = driver(program, explorer(order, TieBreak::Last));
        driver.restore(bytes, &NoStatics)
    });
}

/// Checks that a checkpoint of another length is none, and that no damage of a bit ends in a panic.
pub(super) fn check_damage(bytes: &[u8], restores: impl Fn(&[u8]) -> bool) {
    assert!(restores(bytes));
    for length in 0..bytes.len() {
        assert!(!restores(&bytes[..length]), "cut to {length} bytes");
    }
    assert!(!restores(&[bytes, &[0]].concat()), "a byte more");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << bit;
            restores(&damaged);
        }
    }
}
