//! Tests that environment variables are read as documented.

use super::*;

fn with(name: &str, value: &str) -> Result<Builder, String> {
    let get = |asked: &str| Ok((asked == name).then(|| value.to_owned()));
    Builder::from(&Environment { get: &get })
}

#[test]
fn variables_of_loom_s_count_with_its_signatures() {
    let builder = with("LOOM_MAX_PREEMPTIONS", "2").unwrap();
    assert_eq!(builder.preemption_bound, LOOM.then_some(2));
    let error = with("LOOM_MAX_PREEMPTIONS", "two").err();
    let expected = "LOOM_MAX_PREEMPTIONS=`two`: expected a whole number of preemptions";
    assert_eq!(error.as_deref(), LOOM.then_some(expected));
}

#[test]
fn a_variable_that_does_not_parse_is_named_with_its_value_and_what_was_expected() {
    for (name, value, expected) in [
        (
            "DPOR_MAX_BRANCHES",
            "many",
            "expected a whole number of events",
        ),
        (
            "DPOR_MAX_THREADS",
            "-1",
            "expected a whole number of threads",
        ),
        (
            "DPOR_MAX_PERMUTATIONS",
            "1e6",
            "expected a whole number of executions",
        ),
        (
            "DPOR_MAX_DURATION",
            "soon",
            "expected a number of seconds, or one with a unit: 500ms, 1.5, 10s, 2m or 1h",
        ),
        (
            "DPOR_PATIENCE",
            "long",
            "expected a number of seconds, or one with a unit: 500ms, 1.5, 10s, 2m or 1h",
        ),
        ("DPOR_CATCH_PANICS", "yes", "expected 0 or 1"),
        ("DPOR_REQUIRE_COMPLETE", "yes", "expected 0 or 1"),
        ("DPOR_DETACHED_MAY_BLOCK", "no", "expected 0 or 1"),
        ("DPOR_SPURIOUS_FAILURES", "2", "expected 0 or 1"),
        (
            "DPOR_SPURIOUS_WAKEUPS",
            "-1",
            "expected a number of waits below 2^32",
        ),
        ("DPOR_MAX_MEMORY", "1G", "expected a whole number of bytes"),
        (
            "DPOR_MAX_PREEMPTIONS",
            "two",
            "expected a whole number of preemptions",
        ),
        (
            "DPOR_MAX_SWITCHES",
            "-1",
            "expected a whole number of context switches",
        ),
        (
            "DPOR_MAX_DELAYS",
            "few",
            "expected a whole number of delays",
        ),
        ("DPOR_MAX_ROUNDS", "-1", "expected a whole number of rounds"),
        (
            "DPOR_ITERATIONS",
            "-",
            "expected a whole number of executions",
        ),
        (
            "DPOR_CHECKPOINT_INTERVAL",
            "often",
            "expected a whole number of executions",
        ),
        ("DPOR_AWAIT_LOOPS", "some", "expected 0 or 1"),
        (
            "DPOR_SPURIOUS_WAKEUPS",
            "often",
            "expected a number of waits below 2^32",
        ),
        ("DPOR_PROGRESS", "yes", "expected 0 or 1"),
        (
            "DPOR_MAX_FAILURES",
            "all",
            "expected a whole number of failures",
        ),
        (
            "DPOR_LOG",
            "my_crate=loud",
            "expected 0, 1, or what to show of the test's log, such as `debug` or \
             `my_crate=trace,other=warn`",
        ),
        (
            "DPOR_LOG",
            "true",
            "expected 0, 1, or what to show of the test's log, such as `debug` or \
             `my_crate=trace,other=warn`",
        ),
        ("DPOR_CHECK_LEAKS", "no", "expected 0 or 1"),
        ("DPOR_LOCATION", "on", "expected 0 or 1"),
        (
            "DPOR_TRACE",
            "0",
            "expected `all`, or the number of an execution, from 1",
        ),
        ("DPOR_SEED", "x", "expected a number below 2^64"),
        (
            "DPOR_PCT_DEPTH",
            "deep",
            "expected a whole number of ordering constraints",
        ),
        (
            "DPOR_ALGORITHM",
            "best",
            "expected one of optimal, parsimonious, source, classic, final_states, sleep_sets, naive, bounded, random, pct, pos",
        ),
        (
            "DPOR_ORDER",
            "breadth_first",
            "expected one of depth_first, bit_reversal, round_robin, stride, conflict_first",
        ),
    ] {
        let error = with(name, value).expect_err(name);
        assert_eq!(error, format!("{name}=`{value}`: {expected}"));
    }
}

#[test]
fn the_variables_that_are_read_are_the_documented_ones() {
    let settings = include_str!("../../docs/SETTINGS.md");
    let known = Builder::variables();
    assert!(known.contains("DPOR_REPLAY") && known.contains("DPOR_SEED"));
    for name in known {
        let told = settings.contains(&format!("`{name}`"));
        assert!(told, "{name} is not in docs/SETTINGS.md");
    }
}

#[test]
fn a_variable_that_parses_sets_its_field_and_an_empty_one_sets_nothing() {
    let seed = with("DPOR_SEED", " 17 ").map(|b| b.seed);
    assert_eq!(seed, Ok(Some(17)));
    for (name, algorithm) in ALGORITHMS {
        let set = with("DPOR_ALGORITHM", name).map(|b| b.algorithm);
        assert_eq!(set, Ok(algorithm));
        assert_eq!(algorithm.name(), name);
    }
    for (name, order) in ORDERS {
        assert_eq!(with("DPOR_ORDER", name).map(|b| b.order), Ok(order));
        assert_eq!(order.name(), name);
    }
    for name in Builder::variables() {
        let (empty, none) = (with(&name, " "), with("", ""));
        assert_eq!(format!("{empty:?}"), format!("{none:?}"), "{name}");
    }
    for (value, time) in [
        ("10s", 10_000),
        ("1.5", 1500),
        ("500ms", 500),
        ("2m", 120_000),
    ] {
        let time = Some(Duration::from_millis(time));
        let most = with("DPOR_MAX_DURATION", value).map(|b| b.max_duration);
        assert_eq!(most, Ok(time));
        assert_eq!(with("DPOR_PATIENCE", value).map(|b| b.patience), Ok(time));
    }
    assert_eq!(with("DPOR_PATIENCE", "0").map(|b| b.patience), Ok(None));
    let is_on = |name, is_on: fn(Builder) -> bool| with(name, "1").map(is_on);
    assert_eq!(is_on("DPOR_CATCH_PANICS", |b| b.catch_panics), Ok(true));
    let must_be = is_on("DPOR_REQUIRE_COMPLETE", |b| b.require_complete);
    assert_eq!(must_be, Ok(true));
    let may_block = is_on("DPOR_DETACHED_MAY_BLOCK", |b| b.detached_may_block);
    assert_eq!(may_block, Ok(true));
    let may_fail = is_on("DPOR_SPURIOUS_FAILURES", |b| b.spurious_failures);
    assert_eq!(may_fail, Ok(true));
    let wakeups = with("DPOR_SPURIOUS_WAKEUPS", "2").map(|b| b.spurious_wakeups);
    assert_eq!(wakeups, Ok(2));
    for (value, thorough) in [
        (
            "",
            if LOOM {
                Thorough::Off
            } else {
                Thorough::Bounded
            },
        ),
        ("0", Thorough::Off),
        ("1", Thorough::Full),
    ] {
        let set = with("DPOR_THOROUGH", value).map(|b| b.thorough);
        assert_eq!(set, Ok(thorough));
    }
    let summary = |value| with("DPOR_SUMMARY", value).map(|b| b.summary);
    assert_eq!(summary("0"), Ok(Summary::Nothing));
    assert_eq!(summary("a/b"), Ok(Summary::File("a/b".into())));
    let memory = with("DPOR_MAX_MEMORY", "1000").map(|b| b.max_memory);
    assert_eq!(memory, Ok(Some(1000)));
}
