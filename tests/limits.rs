//! Is a search that was cut short ever taken for a whole one?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex, mpsc};
use dpor::{Algorithm, Builder, FailureKind, Limit, Verdict, thread};

/// Three threads that add one with a load and a store: 36 traces.
fn lost_update() {
    let x = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..3)
        .map(|_| {
            let x = x.clone();
            thread::spawn(move || x.store(x.load(SeqCst) + 1, SeqCst))
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

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

#[test]
fn a_replay_says_that_it_is_one() {
    let mut builder = Builder::new();
    builder.replay = Some("v1 main".to_owned());
    let report = builder.check(lost_update);
    assert_eq!((report.executions, report.verdict), (1, Verdict::Replayed));
    assert!(!report.complete);
}

/// Not a test of its own: what [`a_replay_that_does_not_fail_is_told_whatever_the_harness_keeps_to_itself`] runs.
#[test]
fn child_that_chooses() {
    if std::env::var_os("DPOR_TEST_CHOOSES").is_some() {
        dpor::model(|| dpor::assume(dpor::any::<bool>()));
    }
}

#[test]
fn a_replay_that_does_not_fail_is_told_whatever_the_harness_keeps_to_itself() {
    for (schedule, told) in [
        (
            "v1",
            "0 steps, and gone on for 1 more; it was given up by `assume(false)`",
        ),
        (
            "v1 main:1",
            "1 step, and gone on for 1 more; nothing failed",
        ),
        ("v1 main:1 main", "2 steps; nothing failed"),
    ] {
        // Not with `--nocapture`.
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_chooses"])
            .env("DPOR_TEST_CHOOSES", "1")
            .env("DPOR_REPLAY", schedule)
            .output()
            .unwrap();
        let text = String::from_utf8(child.stderr).unwrap();
        assert!(
            text.starts_with("dpor: the model at tests/limits.rs:"),
            "{text}"
        );
        let end = format!(" has followed the schedule to its end, {told}\n");
        assert!(text.ends_with(&end), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn what_has_begun_early_begins_early_again() {
    use std::sync::atomic::AtomicBool;

    // Who preempts has to know what the others are about to do, so all begin at once.
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    builder.simplify = 0;
    let body = || {
        let begun = std::sync::Arc::new(AtomicBool::new(false));
        let (x, theirs) = (Arc::new(AtomicUsize::new(0)), begun.clone());
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        x.store(1, SeqCst);
        assert!(!begun.load(SeqCst), "it has begun");
        other.join().unwrap();
    };
    let failure = builder.explore(body).expect_err("it has");
    assert_eq!(failure.schedule(), "v1 main main.1*0 main");
    let mut builder = Builder::new();
    for (schedule, fails) in [(failure.schedule(), true), ("v1 main*2", false)] {
        builder.replay = Some(schedule.to_owned());
        assert_eq!(builder.explore(body).is_err(), fails, "{schedule}");
    }
    // It begins once.
    assert_eq!(followed("v1 main*0 main*0", || ()), "replayed");
    assert_eq!(
        followed("v1 main.1*0", || ()),
        "the schedule does not fit the program: at step 1 it asks for the beginning of main.1, which is not there"
    );
}

#[test]
fn what_fails_before_the_first_step_of_its_thread_is_led_to_without_it() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.load(SeqCst));
        let third = thread::spawn(|| panic!("at its beginning"));
        x.store(3, SeqCst);
        other.join().unwrap();
        third.join().unwrap();
    };
    let mut builder = Builder::new();
    for (simplify, bound, schedule) in [
        // Who goes on until it has to wait, who has all begin at once, and what the failure depends on.
        (0, None, "v1 main*4 main.1*3 main.2*0"),
        (0, Some(0), "v1 main*2 main.1*0 main main.2*0"),
        (1000, None, "v1 main*3 main.2*0"),
    ] {
        (builder.simplify, builder.preemption_bound) = (simplify, bound);
        builder.replay = None;
        let failure = builder.explore(body).expect_err("panics");
        assert_eq!(failure.schedule(), schedule);
        builder.replay = Some(schedule.to_owned());
        let again = builder.explore(body).expect_err("panics again");
        assert_eq!(again.events().len(), failure.events().len());
        assert!(again.to_string().contains("at its beginning"), "{again}");
    }
}

/// What following this schedule comes to, as one sentence.
fn followed(schedule: &str, body: fn()) -> String {
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    match builder.explore(body) {
        Ok(report) => report.verdict.to_string(),
        Err(failure) => {
            assert_eq!(failure.kind(), FailureKind::Schedule, "{failure}");
            // What is told as the schedule is the one that does not fit.
            assert_eq!(failure.schedule(), schedule);
            assert!(!failure.to_string().contains("DPOR_REPLAY"), "{failure}");
            failure.to_string().lines().next().unwrap().to_owned()
        }
    }
}

#[test]
fn a_schedule_that_goes_on_after_the_end_of_the_execution_does_not_fit() {
    let fixed = || {
        let m = Mutex::new(0);
        *m.lock().unwrap() = 1;
    };
    let misfit = "the schedule does not fit the program: it goes on for";
    assert_eq!(followed("v1", fixed), "replayed");
    assert_eq!(followed("v1 main*3", fixed), "replayed");
    assert_eq!(
        followed("v1 main*4", fixed),
        format!("{misfit} 1 step after the end of the execution")
    );
    assert_eq!(
        followed("v1 main*3 main.1*5 main*3", fixed),
        format!("{misfit} 8 steps after the end of the execution")
    );
    // Nobody has the memory to write these down one by one.
    assert_eq!(
        followed("v1 main*4294967295 main.1 main*4294967295", fixed),
        format!("{misfit} 8589934588 steps after the end of the execution")
    );
    // An execution that is given up is over too.
    assert_eq!(
        followed("v1 main*9", || dpor::assume(false)),
        format!("{misfit} 9 steps after the end of the execution")
    );
}

#[test]
fn a_failure_is_told_although_the_schedule_goes_on_after_it() {
    let mut builder = Builder::new();
    builder.replay = Some("v1 main*9".to_owned());
    let deadlock = builder
        .explore(thread::park)
        .expect_err("nobody unparks it");
    assert_eq!(deadlock.kind(), FailureKind::Deadlock);
    let leak = builder.explore(|| std::mem::forget(dpor::alloc::Track::new(())));
    assert_eq!(leak.expect_err("is forgotten").kind(), FailureKind::Leak);
}

/// Two threads of `n` steps that depend on each other, and then again; `between` runs in the middle.
fn twice(n: usize, between: fn()) {
    let x = Arc::new(AtomicUsize::new(0));
    for round in 0..2 {
        if round == 1 {
            between();
        }
        let other = x.clone();
        let handle = thread::spawn(move || {
            for _ in 0..n {
                other.fetch_add(1, SeqCst);
            }
        });
        for _ in 0..n {
            x.fetch_add(1, SeqCst);
        }
        handle.join().unwrap();
    }
}

const EXHAUSTIVE: [Algorithm; 5] = [
    Algorithm::Optimal,
    Algorithm::Source,
    Algorithm::Classic,
    Algorithm::SleepSets,
    Algorithm::Bounded,
];

#[test]
fn what_comes_after_stop_exploring_is_executed_once() {
    for algorithm in EXHAUSTIVE {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let full = builder.check(|| twice(2, || ()));
        assert_eq!((full.executions, full.verdict), (36, Verdict::Complete));
        for between in [dpor::stop_exploring, dpor::skip_branch] as [fn(); 2] {
            let half = builder.check(move || twice(2, between));
            assert_eq!(half.executions, 6, "{algorithm:?}");
            assert_eq!(half.verdict, Verdict::Marked);
            assert!(!half.complete);
        }
    }
}

#[test]
fn explore_takes_back_stop_exploring_and_not_skip_branch() {
    let between = || {
        dpor::stop_exploring();
        dpor::explore();
    };
    let report = Builder::new().check(move || twice(2, between));
    assert_eq!((report.executions, report.verdict), (36, Verdict::Complete));
    let between = || {
        dpor::skip_branch();
        dpor::explore();
    };
    let report = Builder::new().check(move || twice(2, between));
    assert_eq!((report.executions, report.verdict), (6, Verdict::Marked));
}

#[test]
fn nothing_is_explored_before_the_test_asks_for_it_if_that_is_expected() {
    let mut builder = Builder::new();
    builder.expect_explicit_explore = true;
    let report = builder.check(|| twice(2, dpor::explore));
    assert_eq!((report.executions, report.verdict), (6, Verdict::Marked));
}

#[test]
fn a_choice_that_is_not_explored_has_its_first_outcome() {
    for algorithm in [Algorithm::Optimal, Algorithm::SleepSets, Algorithm::Random] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.check(|| {
            dpor::stop_exploring();
            assert_eq!(dpor::choose(10), 0);
        });
    }
}

#[test]
fn a_search_that_is_stopped_estimates_the_rest_and_names_what_costs_most() {
    let mut builder = Builder::new();
    let full = builder.check(lost_update);
    assert_eq!(full.estimate, Some(36.0));
    let booked: u64 = full.hotspots.iter().map(|hotspot| hotspot.executions).sum();
    assert_eq!(
        booked, 35,
        "every execution but the first: {:?}",
        full.hotspots
    );
    builder.max_permutations = Some(20);
    let stopped = builder.check(lost_update);
    let estimate = stopped.estimate.expect("planned executions are known");
    assert!((20.0..72.0).contains(&estimate), "{estimate}");
    for hotspot in &stopped.hotspots {
        assert!(hotspot.place.starts_with("tests/limits.rs:"), "{hotspot:?}");
        assert_eq!(hotspot.object().as_deref(), Some("x"), "{hotspot:?}");
    }
}

#[test]
fn what_costs_most_is_at_no_place_of_the_crate_itself() {
    let report = Builder::new().check(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || sender.send(1).unwrap());
        while receiver.recv_timeout(Duration::from_secs(1)).is_err() {}
        other.join().unwrap();
    });
    let places = report.hotspots.iter().map(|hotspot| &*hotspot.place);
    let places: Vec<&str> = places.collect();
    let known = |place: &&str| place.starts_with("tests/limits.rs:") || *place == "in a drop";
    assert!(places.iter().all(known), "{places:?}");
    assert!(places.contains(&"in a drop"), "{places:?}");
}

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
    for stack_size in [99_999_999_999_999, usize::MAX, (1 << 30) + 1] {
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
}

#[test]
fn settings_that_contradict_each_other_are_refused_at_the_line_that_explores_with_them() {
    for [(one, value), (other, its)] in [
        [("DPOR_ALGORITHM", "pct"), ("DPOR_MAX_PREEMPTIONS", "1")],
        [("DPOR_MAX_DELAYS", "1"), ("DPOR_MAX_SWITCHES", "1")],
        [("DPOR_ALGORITHM", "source"), ("DPOR_CHECKPOINT_FILE", "no")],
        [("DPOR_ORDER", "stride"), ("DPOR_MAX_PREEMPTIONS", "1")],
    ] {
        let text = printed("child_that_explores", &[(one, value), (other, its)]);
        assert!(text.contains(" panicked at tests/limits.rs:"), "{text}");
        assert!(text.contains(one) && text.contains(other), "{text}");
    }
}

#[test]
fn a_bound_is_told_to_replace_an_algorithm_that_was_chosen() {
    let told = |algorithm| {
        let variables = [("DPOR_ALGORITHM", algorithm), ("DPOR_MAX_PREEMPTIONS", "1")];
        let text = printed("child_that_explores", &variables);
        text.contains(&format!(
            "the algorithm `{algorithm}` (DPOR_ALGORITHM), which knows of no bound"
        ))
    };
    for algorithm in ["source", "classic", "sleep_sets", "naive"] {
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

/// What a test of this file prints on standard error, in a process of its own with these variables.
fn printed(test: &str, variables: &[(&str, &str)]) -> String {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(child.stderr).unwrap()
}

/// Not a test of its own: what [`a_limit_that_lets_nothing_run_is_all_that_is_told`] runs.
#[test]
fn child_that_explores() {
    Builder::new().check(|| ());
}

#[test]
fn a_limit_that_lets_nothing_run_is_all_that_is_told() {
    for (variable, told) in [
        ("DPOR_MAX_PERMUTATIONS", "max_permutations = 0"),
        ("DPOR_MAX_DURATION", "max_duration = 0 s"),
    ] {
        let text = printed("child_that_explores", &[(variable, "0")]);
        let start = "dpor: no execution of the model at tests/limits.rs:";
        assert!(text.starts_with(start), "{text}");
        let end = format!(" was run: stopped by {told} ({variable})\n");
        assert!(text.ends_with(&end), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    // With an execution, it is the closure that did nothing.
    let text = printed("child_that_explores", &[]);
    assert!(text.contains("did nothing that can be seen"), "{text}");
}

/// Waits for what another thread stores, and does `relax` in each round.
fn waits(relax: fn()) {
    let ready = Arc::new(AtomicUsize::new(0));
    let theirs = ready.clone();
    let other = thread::spawn(move || theirs.store(1, SeqCst));
    while ready.load(SeqCst) == 0 {
        relax();
    }
    other.join().unwrap();
}

/// Not tests of their own: what [`a_loop_without_a_hint_is_told_where_it_is`] runs.
#[test]
fn child_that_waits_without_a_hint() {
    Builder::new().check(|| waits(|| ()));
}

#[test]
fn child_that_waits_with_a_hint() {
    Builder::new().check(|| waits(dpor::hint::spin_loop));
}

#[test]
fn a_loop_without_a_hint_is_told_where_it_is() {
    let text = printed("child_that_waits_without_a_hint", &[]);
    let at = include_str!("limits.rs").lines();
    let at = at
        .take_while(|line| !line.contains("while ready.load"))
        .count()
        + 1;
    let said = format!(
        " a loop without a hint went round 1000 times before it was taken for waiting: it reads ready at tests/limits.rs:{at}:"
    );
    assert!(text.contains(&said), "{text}");
    assert_eq!(printed("child_that_waits_with_a_hint", &[]), "");
}

/// Not a test of its own: what [`a_loop_that_two_threads_keep_going_is_told_where_it_is`] runs.
#[test]
fn child_with_loops_that_take_and_put_back() {
    let mut builder = Builder::new();
    builder.max_permutations.get_or_insert(1000);
    builder.check(|| {
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let poll = |[lock, ready]: &[AtomicUsize; 2]| {
            loop {
                if lock.swap(1, SeqCst) == 0 {
                    let is_ready = ready.load(SeqCst) == 1;
                    lock.store(0, SeqCst);
                    if is_ready {
                        return;
                    }
                }
                dpor::hint::spin_loop();
            }
        };
        let others = [(), ()].map(|()| {
            let theirs = shared.clone();
            thread::spawn(move || poll(&theirs))
        });
        shared[1].store(1, SeqCst);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_loop_that_two_threads_keep_going_is_told_where_it_is() {
    let told = |variables: &[(&str, &str)]| {
        let text = printed("child_with_loops_that_take_and_put_back", variables);
        assert!(text.contains("was not explored in full"), "{text}");
        let at = include_str!("limits.rs").lines();
        let at = at.take_while(|line| line.trim() != "dpor::hint::spin_loop();");
        let said = format!(" times to the hint at tests/limits.rs:{}:", at.count() + 1);
        text.contains(&said) && text.contains("DPOR_MAX_ROUNDS=3")
    };
    assert!(told(&[]));
    // A few rounds are nothing, and who has bounded them knows.
    assert!(!told(&[("DPOR_MAX_PERMUTATIONS", "2")]));
    assert!(!told(&[("DPOR_MAX_ROUNDS", "2")]));
}

/// Not tests of their own: what [`what_is_no_event_can_be_seen`] runs.
#[test]
fn child_that_assumes() {
    Builder::new().check(|| dpor::assume(false));
}

#[test]
fn child_that_assumes_now_and_then() {
    Builder::new().check(|| dpor::assume(dpor::any()));
}

#[test]
fn child_that_uses_a_cell() {
    Builder::new().check(|| {
        let cell = dpor::cell::UnsafeCell::new(0);
        // SAFETY: there is one thread.
        cell.with_mut(|cell| unsafe { *cell = 1 });
    });
}

#[test]
fn what_is_no_event_can_be_seen() {
    let text = printed("child_that_assumes", &[]);
    let start = "dpor: no execution of the model at tests/limits.rs:";
    assert!(text.starts_with(start), "{text}");
    let end = " came to its end: all were given up by `assume(false)`\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(printed("child_that_assumes_now_and_then", &[]), "");
    assert_eq!(printed("child_that_uses_a_cell", &[]), "");
}

/// Not a test of its own: what [`the_command_has_the_limit_without_which_nothing_fails`] runs.
#[test]
fn child_that_makes_ten_steps() {
    Builder::new().check(|| twice(5, || ()));
}

#[test]
fn the_command_has_the_limit_without_which_nothing_fails() {
    let child = "child_that_makes_ten_steps";
    let limit = ("DPOR_MAX_BRANCHES", "7");
    let text = printed(child, &[limit]);
    assert!(text.contains("has more than 7"), "{text}");
    let line = text.lines().find(|line| line.starts_with("replay "));
    let (_, rest) = line.unwrap().split_once("DPOR_REPLAY=\"").unwrap();
    let (schedule, command) = rest.split_once("\" ").unwrap();
    assert!(command.starts_with("DPOR_MAX_BRANCHES=7 "), "{command}");
    let again = printed(child, &[("DPOR_REPLAY", schedule), limit]);
    assert!(again.contains("has more than 7"), "{again}");
    let without = printed(child, &[("DPOR_REPLAY", schedule)]);
    assert!(without.contains("nothing failed"), "{without}");
}

#[test]
fn an_unknown_variable_is_told_once_in_a_process_whatever_the_harness_keeps_to_itself() {
    // Not with `--nocapture`, and both tests explore.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_that_explores",
            "a_replay_says_that_it_is_one",
        ])
        .env("DPOR_MAX_BRANCH", "3")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(child.stderr).unwrap(),
        "dpor: the variable `DPOR_MAX_BRANCH` of the environment is unknown, and does nothing; is \
         `DPOR_MAX_BRANCHES` meant?\n"
    );
}

#[test]
fn a_variable_that_has_no_meaning_where_nothing_is_drawn_is_told() {
    let seed = ("DPOR_SEED", "7");
    let told = "the variable `DPOR_SEED` does nothing here: the algorithm `optimal`";
    let text = printed("child_that_explores", &[seed]);
    assert_eq!(text.matches(told).count(), 1, "{text}");
    let text = printed("child_that_explores", &[seed, ("DPOR_ALGORITHM", "pct")]);
    assert!(!text.contains("DPOR_SEED` does nothing"), "{text}");
}

/// Not a test of its own: what [`a_log_has_the_schedule_of_each_execution`] runs.
#[test]
fn child_of_the_log_test() {
    if std::env::var_os("DPOR_LOG").is_some() {
        Builder::new().check(|| twice(1, || ()));
    }
}

#[test]
fn a_log_has_the_schedule_of_each_execution() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_log_test", "--nocapture"])
        .env("DPOR_LOG", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stderr).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("dpor: "))
        .collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (i, line) in lines.iter().enumerate() {
        let start = format!("dpor: execution {}: v1 main", i + 1);
        assert!(line.starts_with(&start), "{line}");
    }
    assert!((1..4).all(|i| lines[i][20..] != lines[0][20..]), "{text}");
}

#[test]
fn distinct_failures_are_collected_and_each_can_be_replayed() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (1..=3)
            .map(|i| {
                let x = x.clone();
                thread::spawn(move || x.swap(i, SeqCst))
            })
            .collect();
        let seen: Vec<_> = handles.into_iter().map(|h| h.join().unwrap()).collect();
        assert_ne!(seen, [0, 1, 2], "one after the other");
        assert_ne!(seen, [2, 3, 0], "the other way round");
        if seen[1] == 0 && seen[0] == 3 {
            thread::park();
        }
    };
    let mut builder = Builder::new();
    let first = builder.explore(body).expect_err("three ways to fail");
    assert!(first.others().is_empty(), "one is enough by default");
    builder.max_failures = 10;
    let first = builder.explore(body).expect_err("three ways to fail");
    let all: Vec<_> = std::iter::once(&*first).chain(first.others()).collect();
    let count = |kind| all.iter().filter(|failure| failure.kind() == kind).count();
    assert_eq!(count(FailureKind::Panic), 2);
    assert_eq!(count(FailureKind::Deadlock), 1);
    for failure in all {
        let mut replay = Builder::new();
        replay.replay = Some(failure.schedule().to_owned());
        let again = replay.explore(body).expect_err("the same failure");
        assert_eq!(again.kind(), failure.kind());
    }
}

#[test]
fn a_failure_in_the_middle_of_a_wakeup_sequence_does_not_end_the_search() {
    // The first execution fails while two threads wait for a lock. Both are to have it before its
    // holder, after the store; but the store is where the executions fail.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        let x = Arc::new(AtomicUsize::new(0));
        let held = lock.clone();
        thread::spawn(move || {
            let _guard = held.lock().unwrap();
            thread::park();
        });
        for _ in 0..2 {
            let lock = lock.clone();
            thread::spawn(move || drop(lock.lock().unwrap()));
        }
        thread::spawn(move || {
            x.store(1, SeqCst);
            panic!("on purpose");
        });
    };
    for algorithm in EXHAUSTIVE {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.max_failures = 5;
        let failure = builder.explore(body).expect_err("fails");
        assert_eq!(failure.kind(), FailureKind::Panic, "{algorithm:?}");
        assert!(failure.to_string().contains("on purpose"), "{failure}");
    }
}
