//! Is a setting with an impossible value refused, and is one that has no effect pointed out?

use std::time::Duration;

use dpor::Builder;

use super::children::process_of;
use super::{lost_update, printed};

/// What exploring with these settings panics with, before anything is executed.
fn refused(set: impl FnOnce(&mut Builder)) -> String {
    let mut builder = Builder::new();
    set(&mut builder);
    let explored = std::panic::catch_unwind(move || builder.explore(|| unreachable!()).is_ok());
    let payload = explored.expect_err("the value is refused");
    payload
        .downcast_ref::<String>()
        .expect("a sentence")
        .clone()
}

#[test]
fn a_value_that_a_setting_cannot_have_is_refused_with_its_variable() {
    for stack_size in [usize::MAX / 2, usize::MAX, (1 << 30) + 1] {
        let text = refused(|builder| builder.stack_size = stack_size);
        let start = format!(
            "stack_size = {stack_size} bytes (DPOR_STACK_SIZE): a thread's stack has at most "
        );
        assert!(text.starts_with(&start), "{text}");
    }
    assert_eq!(
        refused(|builder| builder.pct_depth = 0),
        "pct_depth = 0 (DPOR_PCT_DEPTH): a bug needs at least 1 ordering constraint, with which priorities \
         never change"
    );
    assert_eq!(
        refused(|builder| builder.max_failures = 0),
        "max_failures = 0 (DPOR_MAX_FAILURES): an exploration ends with at least 1 failure, or with none"
    );
    assert_eq!(
        refused(|builder| builder.checkpoint_interval = 0),
        "checkpoint_interval = 0 (DPOR_CHECKPOINT_INTERVAL): there is at least 1 execution between two writes \
         of the file"
    );
    assert_eq!(
        refused(|builder| builder.iterations = 0),
        "iterations = 0 (DPOR_ITERATIONS): an algorithm that samples draws at least 1 execution"
    );
    assert_eq!(
        refused(|builder| builder.max_permutations = Some(0)),
        "max_permutations = 0 (DPOR_MAX_PERMUTATIONS): an exploration has at least 1 execution; leave the limit \
         out to have no limit"
    );
    assert_eq!(
        refused(|builder| builder.max_duration = Some(Duration::ZERO)),
        "max_duration = 0 s (DPOR_MAX_DURATION): no execution would be run; leave the limit out to have no limit"
    );
}

#[test]
fn a_limit_of_the_environment_under_which_nothing_runs_is_no_pass() {
    for (variable, setting) in [
        ("DPOR_MAX_PERMUTATIONS", "max_permutations = 0"),
        ("DPOR_MAX_DURATION", "max_duration = 0 s"),
    ] {
        let child = process_of("limits::child_that_explores")
            .env(variable, "0")
            .output()
            .unwrap();
        let told = String::from_utf8(child.stdout).unwrap();
        assert!(!child.status.success(), "{told}");
        assert!(told.contains(&format!("{setting} ({variable})")), "{told}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused_at_the_line_that_explores_with_them() {
    for [(one, value), (other, its)] in [
        [("DPOR_ALGORITHM", "pct"), ("DPOR_MAX_PREEMPTIONS", "1")],
        [("DPOR_MAX_DELAYS", "1"), ("DPOR_MAX_SWITCHES", "1")],
        [("DPOR_ALGORITHM", "source"), ("DPOR_CHECKPOINT_FILE", "no")],
        [("DPOR_ORDER", "stride"), ("DPOR_MAX_PREEMPTIONS", "1")],
    ] {
        let text = printed("limits::child_that_explores", &[(one, value), (other, its)]);
        assert!(
            text.contains(" panicked at tests/verdict/limits/mod.rs:"),
            "{text}"
        );
        assert!(text.contains(one) && text.contains(other), "{text}");
    }
}

#[test]
fn a_bound_is_told_to_replace_an_algorithm_that_was_chosen() {
    let told = |algorithm| {
        let variables = [("DPOR_ALGORITHM", algorithm), ("DPOR_MAX_PREEMPTIONS", "1")];
        let text = printed("limits::child_that_explores", &variables);
        text.contains(&format!(
            "the algorithm `{algorithm}` (DPOR_ALGORITHM), which knows of no bound"
        ))
    };
    for algorithm in ["parsimonious", "source", "classic", "sleep_sets", "naive"] {
        assert!(told(algorithm), "{algorithm}");
    }
    for algorithm in ["optimal", "bounded"] {
        assert!(!told(algorithm), "{algorithm}");
    }
}

#[test]
fn a_large_stack_can_be_had() {
    let mut builder = Builder::new();
    builder.stack_size = 64 << 20;
    assert!(builder.check(lost_update).complete);
}

#[test]
fn an_unknown_variable_is_told_once_in_a_process_whatever_the_harness_keeps_to_itself() {
    // Not with `--nocapture`, and both tests explore.
    let child = process_of("limits::child_that_explores")
        .arg("limits::replay::a_replay_says_that_it_is_one")
        .env("DPOR_MAX_BRANCH", "3")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stderr).unwrap();
    // One of the two explores nothing, which is said, too.
    let (nothing, told): (Vec<_>, Vec<_>) = text
        .lines()
        .partition(|line| line.contains(" did nothing that can be seen"));
    assert_eq!(nothing.len(), 1, "{text}");
    let unknown = "dpor: the variable `DPOR_MAX_BRANCH` of the environment is unknown, and does nothing; is \
                   `DPOR_MAX_BRANCHES` meant?";
    assert_eq!(told, [unknown]);
}

#[test]
fn a_variable_that_has_no_meaning_where_nothing_is_drawn_is_told() {
    let seed = ("DPOR_SEED", "7");
    let told = "the variable `DPOR_SEED` does nothing here: the algorithm `optimal`";
    let text = printed("limits::child_that_explores", &[seed]);
    assert_eq!(text.matches(told).count(), 1, "{text}");
    let text = printed(
        "limits::child_that_explores",
        &[seed, ("DPOR_ALGORITHM", "pct")],
    );
    assert!(!text.contains("DPOR_SEED` does nothing"), "{text}");
}

#[test]
fn a_limit_may_be_as_large_as_its_type_allows() {
    let mut builder = Builder::new();
    builder.max_branches = usize::MAX;
    builder.max_permutations = Some(usize::MAX);
    builder.max_duration = Some(Duration::MAX);
    builder.max_memory = Some(usize::MAX);
    builder.max_rounds = Some(usize::MAX);
    builder.max_failures = usize::MAX;
    builder.checkpoint_interval = usize::MAX;
    builder.spin_bound = u32::MAX;
    builder.spurious_wakeups = u32::MAX;
    builder.timeout_bound = u32::MAX;
    builder.simplify = u64::MAX;
    builder.patience = Some(Duration::MAX);
    assert!(builder.check(lost_update).complete);
    builder.preemption_bound = Some(usize::MAX);
    assert!(builder.check(lost_update).complete);
}

/// Not a test of its own: what [`the_environment_is_read_once`] runs.
#[test]
fn child_that_changes_the_environment() {
    if std::env::var_os("DPOR_TEST_CHANGES").is_some() {
        let before = Builder::new();
        // SAFETY: this is the only test of the process, and nobody else looks at the environment.
        unsafe { std::env::set_var("DPOR_SEED", "4") };
        eprintln!("{:?}, {:?}", before.seed, Builder::new().seed);
    }
}

#[test]
fn the_environment_is_read_once() {
    let variables = [("DPOR_TEST_CHANGES", "1"), ("DPOR_SEED", "3")];
    let text = printed(
        "limits::settings::child_that_changes_the_environment",
        &variables,
    );
    assert!(text.contains("Some(3), Some(3)"), "{text}");
}
