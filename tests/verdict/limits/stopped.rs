//! Is a limit that stopped the search named with its value and its variable?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
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
    builder.max_duration = Some(Duration::from_nanos(1));
    let report = builder.explore(lost_update).expect("nothing fails");
    let limit = Limit::Duration(Duration::from_nanos(1));
    assert_eq!(
        (report.executions, report.verdict),
        (0, Verdict::Stopped(limit))
    );
    let text = report.to_string();
    assert!(
        text.contains("max_duration = 0.000000001 s (DPOR_MAX_DURATION)"),
        "{text}"
    );

    // A test in which no execution was run does not pass.
    let checked = catch_unwind(AssertUnwindSafe(|| builder.check(lost_update)));
    let told = checked.expect_err("nothing was tested");
    let told = told.downcast_ref::<String>().expect("a text");
    let raise = "no execution came to its end, so nothing was tested: raise max_duration = 0.000000001 s (DPOR_MAX_DURATION)";
    assert_eq!(told, raise);

    let mut builder = Builder::new();
    builder.max_memory = Some(100);
    // What another model has left behind does not count.
    let mut report = builder.check(lost_update);
    for _ in 0..3 {
        assert_eq!(report.verdict, Verdict::Stopped(Limit::Memory(100)));
        assert_eq!(
            report.executions, 1,
            "after one execution something is planned"
        );
        report = builder.check(lost_update);
    }
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
    let child = "limits::stopped::child_that_may_be_cut_short";
    for (limit, value) in [
        ("DPOR_MAX_PERMUTATIONS", "7"),
        ("DPOR_MAX_DURATION", "0.000000001"),
        ("DPOR_MAX_MEMORY", "100"),
    ] {
        let text = captured(child, &[(limit, value)]);
        // Once for all three.
        let lines = text.lines().filter(|line| line.contains(limit));
        assert_eq!(lines.count(), 1, "{text}");
        assert!(text.ends_with('\n'), "{text}");
        let of_trees = " of them in one tree, with steps of ";
        let is_memory = limit == "DPOR_MAX_MEMORY";
        assert_eq!(text.contains(of_trees), is_memory, "{text}");
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

/// Not a test of its own: what [`a_failure_beyond_the_bound_is_told_and_fails_no_test`] runs.
#[test]
fn child_that_fails_behind_a_preemption() {
    if std::env::var_os("DPOR_MAX_PREEMPTIONS").is_none() {
        return;
    }
    Builder::new().check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let others = [(); 2].map(|()| {
            let x = x.clone();
            thread::spawn(move || x.store(x.load(SeqCst) + 1, SeqCst))
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(x.load(SeqCst), 2, "an update is lost");
    });
}

#[test]
fn a_failure_beyond_the_bound_is_told_and_fails_no_test() {
    let child = "limits::stopped::child_that_fails_behind_a_preemption";
    let text = captured(child, &[("DPOR_MAX_PREEMPTIONS", "0")]);
    let told = "passes within preemption_bound = 0 (DPOR_MAX_PREEMPTIONS) and fails without it (Panic at \
                tests/verdict/limits/stopped.rs:";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("\n  DPOR_REPLAY=\"v2 main"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    // The search within the bound alone does not meet it.
    let alone = [("DPOR_MAX_PREEMPTIONS", "0"), ("DPOR_ALGORITHM", "bounded")];
    assert_eq!(captured(child, &alone), "");
    let within = super::printed(child, &[("DPOR_MAX_PREEMPTIONS", "1")]);
    assert!(within.contains("an update is lost"), "{within}");
    assert!(!within.contains("fails without it"), "{within}");
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
            "limits::stopped::child_that_gives_up_at_a_hint",
            "DPOR_SPIN_BOUND",
            "4",
            "gives up after 5 rounds in which nothing changes;",
        ),
        (
            "limits::stopped::child_that_gives_up_after_timeouts",
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

/// How often a closure was called in all, with what the report says of that.
fn called(f: fn()) -> (u64, dpor::Report) {
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = calls.clone();
    let report = Builder::new().check(move || {
        counted.fetch_add(1, SeqCst);
        f();
    });
    (calls.load(SeqCst), report)
}

#[test]
fn every_run_of_the_closure_is_counted_as_an_execution_or_apart() {
    fn store_buffering() {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let theirs = words.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, SeqCst);
            theirs[1].load(SeqCst)
        });
        words[1].store(1, SeqCst);
        words[0].load(SeqCst);
        other.join().unwrap();
    }
    // The exploration begins anew with the ends of threads as events.
    fn asks_for_the_end() {
        let other = thread::spawn(|| dpor::choose(2));
        while !other.is_finished() {
            thread::yield_now();
        }
    }
    // It waits without a hint, which makes another exploration of it.
    fn waits_without_a_hint() {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        while flag.load(SeqCst) == 0 {}
        other.join().unwrap();
    }
    // The thread that gets the block frees it.
    fn takes_a_block() {
        let block = Box::into_raw(Box::new(AtomicUsize::new(1)));
        let slot = Arc::new(AtomicPtr::new(block));
        let theirs = slot.clone();
        let take = |slot: &AtomicPtr<AtomicUsize>| {
            let block = slot.swap(std::ptr::null_mut(), SeqCst);
            if !block.is_null() {
                // SAFETY: it is from a box, and no other thread has got it.
                drop(unsafe { Box::from_raw(block) });
            }
        };
        let other = thread::spawn(move || take(&theirs));
        take(&slot);
        other.join().unwrap();
    }
    for f in [
        takes_a_block,
        store_buffering,
        asks_for_the_end,
        waits_without_a_hint,
        || (),
    ] {
        let (calls, report) = called(f);
        assert!(report.complete);
        assert_eq!(calls, report.executions + report.pruned + report.reruns);
        let mostly = report.reruns > report.executions + report.pruned;
        assert_eq!(report.to_string().contains(" besides"), mostly, "{report}");
    }
    assert_eq!(called(store_buffering).1.executions, 3);
    assert!(called(asks_for_the_end).1.reruns > 0);
    // A thread that is held up might use what is freed.
    let looks = cfg!(all(unix, target_pointer_width = "64"));
    assert_eq!(called(takes_a_block).1.reruns > 0, looks);
    assert_eq!(called(|| ()).1.reruns, 0);
}

/// The process gets no more memory than it has, and a little.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_plan_for_which_the_system_has_no_memory_stops_the_exploration() {
    const CHILD: &str = "DPOR_TEST_NO_PLAN";
    if std::env::var_os(CHILD).is_none() {
        let name =
            "limits::stopped::a_plan_for_which_the_system_has_no_memory_stops_the_exploration";
        let output = super::children::process_of(name).env(CHILD, "1").output();
        let output = output.expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{says}");
        assert!(
            told.contains("stopped by the memory of the process"),
            "{told}"
        );
        return;
    }
    assert!(Builder::new().check(|| ()).complete);
    super::threads::limit_memory(40 << 20);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(usize::MAX);
    let report = builder.check(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let others = [(); 4].map(|()| {
            let counter = counter.clone();
            thread::spawn(move || {
                for _ in 0..5 {
                    counter.fetch_add(1, SeqCst);
                }
            })
        });
        for other in others {
            other.join().unwrap();
        }
    });
    assert!(
        matches!(report.verdict, Verdict::Stopped(Limit::System(4_000_000..))),
        "{report}"
    );
}
