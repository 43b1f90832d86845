//! Does a failure that is due to a limit name the setting that raises it?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Builder, FailureKind};

use super::failure;

#[test]
fn too_many_events_name_the_limit_its_value_and_how_to_raise_it() {
    let mut builder = Builder::new();
    builder.max_branches = 50;
    let found = builder
        .explore(|| {
            let x = AtomicUsize::new(0);
            for _ in 0..100 {
                x.fetch_add(1, SeqCst);
            }
        })
        .expect_err("over the limit");
    assert_eq!(found.kind(), FailureKind::Limit);
    let text = found.to_string();
    assert!(text.contains("more than 50, the last at"), "{text}");
    assert!(
        text.contains("`Builder::max_branches` (DPOR_MAX_BRANCHES)"),
        "{text}"
    );
}

#[test]
fn too_many_events_of_a_loop_with_a_hint_are_not_put_down_to_a_missing_one() {
    let advice = |hints: bool| {
        let mut builder = Builder::new();
        builder.max_branches = 200;
        let found = builder.explore(move || {
            let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
            while !stop.load(SeqCst) {
                rounds.fetch_add(1, SeqCst);
                if hints {
                    dpor::hint::spin_loop();
                }
            }
        });
        found.expect_err("it has no end").to_string()
    };
    let missing = "or give a loop that waits here a `dpor::hint::spin_loop()`";
    let counts = "times to the hint at tests/verdict/failures/limits.rs:";
    let (with, without) = (advice(true), advice(false));
    assert!(with.contains(counts) && !with.contains(missing), "{with}");
    assert!(
        without.contains(missing) && !without.contains(counts),
        "{without}"
    );
    assert!(
        with.contains("DPOR_MAX_ROUNDS") && with.contains("DPOR_MAX_BRANCHES"),
        "{with}"
    );
}

#[test]
fn a_stack_that_ends_in_the_middle_of_an_access_is_told_with_the_setting() {
    fn descend(x: &AtomicUsize, depth: usize) -> usize {
        if x.load(SeqCst) == usize::MAX {
            return 0;
        }
        descend(x, depth + 1) + std::hint::black_box([depth; 4])[depth % 4]
    }
    for _ in 0..2 {
        let found = failure(|| {
            let x = AtomicUsize::new(0);
            descend(&x, 0);
        });
        assert_eq!(found.kind(), FailureKind::StackOverflow);
        assert!(found.to_string().contains("DPOR_STACK_SIZE"), "{found}");
    }
}
