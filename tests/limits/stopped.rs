//! Is a limit that stopped the search named with its value and its variable?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Limit, Verdict, thread};

use super::{captured, lost_update};

#[test]
fn a_limit_that_was_hit_is_named_with_its_value_and_its_variable() {
    let mut builder = Builder::new();
    builder.max_permutations = Some(35);
    let report = builder.check(lost_update);
    assert_eq!(report.executions, 35);
    assert_eq!(report.verdict, Verdict::Stopped(Limit::Permutations(35)));
    assert!(!report.complete);
    let text = report.to_string();
    let expected = "stopped by max_permutations = 35 (DPOR_MAX_PERMUTATIONS): 35 executions";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_limit_that_is_just_enough_is_not_hit() {
    let mut builder = Builder::new();
    builder.max_permutations = Some(36);
    let report = builder.check(lost_update);
    assert_eq!((report.executions, report.verdict), (36, Verdict::Complete));
    assert!(report.complete);
    assert!(report.to_string().starts_with("complete: 36 executions"));
    let one = Builder::new().check(|| assert_eq!(dpor::choose(1), 0));
    assert!(
        one.to_string().starts_with("complete: 1 execution, "),
        "{one}"
    );
}

#[test]
fn no_time_and_no_memory_stop_an_exploration_before_its_end() {
    let mut builder = Builder::new();
    builder.max_duration = Some(Duration::ZERO);
    let report = builder.check(lost_update);
    let limit = Limit::Duration(Duration::ZERO);
    assert_eq!(
        (report.executions, report.verdict),
        (0, Verdict::Stopped(limit))
    );
    let text = report.to_string();
    assert!(
        text.contains("max_duration = 0 s (DPOR_MAX_DURATION)"),
        "{text}"
    );

    let mut builder = Builder::new();
    builder.max_memory = Some(100);
    let report = builder.check(lost_update);
    assert_eq!(report.verdict, Verdict::Stopped(Limit::Memory(100)));
    assert_eq!(
        report.executions, 1,
        "after one execution something is planned"
    );
    let text = report.to_string();
    assert!(
        text.contains("max_memory = 100 bytes (DPOR_MAX_MEMORY)"),
        "{text}"
    );
}

/// Not a test of its own: what [`a_search_that_a_limit_stopped_says_so_past_what_the_harness_keeps`] runs.
#[test]
fn child_that_may_be_cut_short() {
    for _ in 0..3 {
        Builder::new().check(lost_update);
    }
}

#[test]
fn a_search_that_a_limit_stopped_says_so_past_what_the_harness_keeps() {
    let child = "stopped::child_that_may_be_cut_short";
    for (limit, value) in [
        ("DPOR_MAX_PERMUTATIONS", "7"),
        ("DPOR_MAX_DURATION", "0"),
        ("DPOR_MAX_MEMORY", "100"),
    ] {
        let text = captured(child, &[(limit, value)]);
        // Once for all three.
        let lines = text.lines().filter(|line| line.contains(limit));
        assert_eq!(lines.count(), 1, "{text}");
        assert!(text.ends_with('\n'), "{text}");
    }
    // Who bounds or samples all tests is not told by each that it did so.
    for (variable, value) in [("DPOR_MAX_PREEMPTIONS", "0"), ("DPOR_ALGORITHM", "random")] {
        assert_eq!(captured(child, &[(variable, value)]), "", "{variable}");
    }
    // But a bound within which nothing comes to its end is no choice.
    let text = captured(child, &[("DPOR_MAX_SWITCHES", "0")]);
    assert!(
        text.contains("(DPOR_MAX_SWITCHES): 0 executions, "),
        "{text}"
    );
    assert!(
        text.contains(" given up over the bound, or because others cover the rest"),
        "{text}"
    );
}

/// Not tests of their own: what [`what_a_loop_does_that_gives_up_is_told_past_the_capture`] runs.
#[test]
fn child_that_gives_up_at_a_hint() {
    Builder::new().check(|| {
        let set = Arc::new(AtomicUsize::new(0));
        let theirs = set.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        for _ in 0..5 {
            if set.load(SeqCst) == 1 {
                break;
            }
            dpor::hint::spin_loop();
        }
        other.join().unwrap();
    });
}

#[test]
fn child_that_gives_up_after_timeouts() {
    Builder::new().check(|| {
        let main = thread::current();
        let other = thread::spawn(move || main.unpark());
        for _ in 0..4 {
            thread::park_timeout(Duration::from_millis(1));
        }
        other.join().unwrap();
    });
}

#[test]
fn what_a_loop_does_that_gives_up_is_told_past_the_capture() {
    for (child, variable, value, told) in [
        (
            "stopped::child_that_gives_up_at_a_hint",
            "DPOR_SPIN_BOUND",
            "4",
            "gives up after 5 rounds in which nothing changes;",
        ),
        (
            "stopped::child_that_gives_up_after_timeouts",
            "DPOR_TIMEOUT_BOUND",
            "4",
            "is given up after it has timed out 4 times;",
        ),
    ] {
        let text = captured(child, &[]);
        assert!(text.contains(told), "{text}");
        assert!(text.contains(&format!("({variable}={value})")), "{text}");
        assert_eq!(captured(child, &[(variable, value)]), "");
    }
}
