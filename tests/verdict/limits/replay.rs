//! Is a schedule followed exactly to its end, and refused if it does not fit?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, FailureKind, Verdict, thread};

use super::children::process_of;
use super::{captured, lost_update, printed, twice};

#[test]
fn a_replay_says_that_it_is_one() {
    let mut builder = Builder::new();
    builder.replay = Some("v2 main".to_owned());
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

/// What such a child says on standard error whose schedule this is.
fn said_by_a_child_that_chooses(schedule: &str) -> String {
    let variables = [("DPOR_TEST_CHOOSES", "1"), ("DPOR_REPLAY", schedule)];
    captured("limits::replay::child_that_chooses", &variables)
}

#[test]
fn a_replay_says_that_it_has_held_up_nobody() {
    // It has one event, and that is a choice.
    for events in [1, 3] {
        let text = said_by_a_child_that_chooses(&format!("v2 held main*{events} main:1"));
        let told = format!(
            "dpor: main was not held up behind its event {events}, which it has not made or behind which nobody is held up\n"
        );
        assert!(text.ends_with(&told), "{text}");
    }
}

#[test]
fn a_replay_that_does_not_fail_is_told_whatever_the_harness_keeps_to_itself() {
    for (schedule, told) in [
        (
            "v2",
            "0 steps, and gone on for 1 more; it was given up by `assume(false)`",
        ),
        ("v2 main:1", "1 step; nothing failed"),
    ] {
        let text = said_by_a_child_that_chooses(schedule);
        assert!(
            text.starts_with("dpor: the model at tests/verdict/limits/replay.rs:"),
            "{text}"
        );
        let end = format!(" has followed the schedule to its end, {told}\n");
        assert!(text.ends_with(&end), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// Not a test of its own: what [`a_model_that_the_schedule_is_not_for_says_so`] runs.
#[test]
fn child_with_two_models() {
    if std::env::var_os("DPOR_TEST_TWO_MODELS").is_some() {
        for _ in 0..2 {
            dpor::model(|| {
                dpor::any::<bool>();
            });
        }
    }
}

#[test]
fn a_model_that_the_schedule_is_not_for_says_so() {
    let other = |nth, model| {
        format!(
            "dpor: the schedule of DPOR_REPLAY is for model {nth} of the test; this is model {model}, which is explored as \
             usual"
        )
    };
    for (replay, told) in [
        ("v2 main", vec![other(1, 2)]),
        ("model 2: v2 main", vec![other(2, 1)]),
        ("model 9: v2 main", vec![other(9, 1), other(9, 2)]),
    ] {
        // Not with `--nocapture`.
        let child = process_of("limits::replay::child_with_two_models")
            .env("DPOR_TEST_TWO_MODELS", "1")
            .env("DPOR_REPLAY", replay)
            .output()
            .unwrap();
        assert!(child.status.success());
        let text = String::from_utf8(child.stderr).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.contains("has followed the schedule"));
        assert_eq!(lines.collect::<Vec<_>>(), told, "{replay}: {text}");
    }
}

#[test]
fn what_has_begun_early_begins_early_again() {
    use std::sync::atomic::AtomicBool;

    // Who preempts has to know what the others are about to do, so all begin at once.
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    builder.algorithm = dpor::Algorithm::Bounded;
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
    assert_eq!(failure.schedule(), "v2 main main.1*0 main");
    let mut builder = Builder::new();
    for (schedule, fails) in [(failure.schedule(), true), ("v2 main*2", false)] {
        builder.replay = Some(schedule.to_owned());
        assert_eq!(builder.explore(body).is_err(), fails, "{schedule}");
    }
    // It begins once.
    assert_eq!(followed("v2 main*0 main*0", || ()), "replayed");
    assert_eq!(
        followed("v2 main.1*0", || ()),
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
        (0, None, "v2 main*4 main.1*2 main.2*0"),
        (0, Some(0), "v2 main*2 main.1*0 main main.2*0"),
        (1000, None, "v2 main*3 main.2*0"),
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
    assert_eq!(followed("v2", fixed), "replayed");
    assert_eq!(followed("v2 main*2", fixed), "replayed");
    assert_eq!(
        followed("v2 main*3", fixed),
        format!("{misfit} 1 step after the end of the execution")
    );
    assert_eq!(
        followed("v2 main*2 main.1*5 main*3", fixed),
        format!("{misfit} 8 steps after the end of the execution")
    );
    // Nobody has the memory to write these down one by one.
    assert_eq!(
        followed("v2 main*4294967295 main.1 main*4294967295", fixed),
        format!("{misfit} 8589934589 steps after the end of the execution")
    );
    // An execution that is given up is over too.
    assert_eq!(
        followed("v2 main*9", || dpor::assume(false)),
        format!("{misfit} 9 steps after the end of the execution")
    );
}

#[test]
fn a_failure_is_told_although_the_schedule_goes_on_after_it() {
    let mut builder = Builder::new();
    builder.replay = Some("v2 main*9".to_owned());
    let deadlock = builder
        .explore(thread::park)
        .expect_err("nobody unparks it");
    assert_eq!(deadlock.kind(), FailureKind::Deadlock);
    let leak = builder.explore(|| std::mem::forget(dpor::alloc::Track::new(())));
    assert_eq!(leak.expect_err("is forgotten").kind(), FailureKind::Leak);
}

/// Not a test of its own: what [`the_command_has_the_limit_without_which_nothing_fails`] runs.
#[test]
fn child_that_makes_ten_steps() {
    Builder::new().check(|| twice(5, || ()));
}

#[test]
fn the_command_has_the_limit_without_which_nothing_fails() {
    let child = "limits::replay::child_that_makes_ten_steps";
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

/// Not a test of its own: what [`a_log_has_the_schedule_of_each_execution`] runs.
#[test]
fn child_of_the_log_test() {
    if std::env::var_os("DPOR_LOG").is_some() {
        Builder::new().check(|| twice(1, || ()));
    }
}

#[test]
fn a_log_has_the_schedule_of_each_execution() {
    let child = process_of("limits::replay::child_of_the_log_test")
        .arg("--nocapture")
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
        let start = format!("dpor: execution {}: v2 main", i + 1);
        assert!(line.starts_with(&start), "{line}");
    }
    assert!((1..4).all(|i| lines[i][20..] != lines[0][20..]), "{text}");
}

/// What a panic says that is raised.
fn raised(run: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("it fails");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast::<&str>().expect("words")).to_owned(),
    }
}

/// The main thread panics if the other one comes first, and while it unwinds the other one may go on.
fn unwinds() {
    let x = Arc::new(AtomicUsize::new(0));
    let y = x.clone();
    let other = thread::spawn(move || y.store(1, SeqCst));
    assert_eq!(x.load(SeqCst), 0, "own message");
    other.join().unwrap();
}

#[test]
fn a_schedule_that_goes_on_behind_the_panic_raises_what_the_test_raises() {
    for schedule in ["v2 main*2 main.1 main", "v2 main*2 main.1 main main.1*3"] {
        let text = raised(|| dpor::replay(schedule, unwinds));
        assert!(
            text.ends_with("own message\n  left: 1\n right: 0"),
            "{text}"
        );
        let mut builder = Builder::new();
        builder.replay = Some(schedule.to_owned());
        let report = builder.explore(unwinds).expect_err("it fails").to_string();
        assert!(!report.contains("does not decide"), "{report}");
    }
}

#[test]
fn a_panic_that_never_ends_to_unwind_raises_its_words() {
    struct Waits(Arc<AtomicUsize>);
    impl Drop for Waits {
        fn drop(&mut self) {
            while self.0.load(SeqCst) == 0 {
                dpor::hint::spin_loop();
            }
        }
    }
    let text = raised(|| {
        dpor::model(|| {
            let x = Arc::new(AtomicUsize::new(0));
            let y = x.clone();
            let _waits = Waits(x);
            thread::spawn(move || {
                if y.load(SeqCst) == 7 {
                    y.store(1, SeqCst);
                }
            });
            panic!("own message");
        });
    });
    assert_eq!(text, "own message");
}
