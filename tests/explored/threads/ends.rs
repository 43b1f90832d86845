//! Is the end of a thread an event of its own once somebody looks for it, however late that is?

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, Report, thread};

use super::children::process_of;

/// What was stored, and whether the thread that has stored it had finished, if that was looked at.
type Seen = BTreeSet<(usize, Option<bool>)>;

/// Looks whether a thread has finished only where it has done something, which is not so in the first execution.
fn looks_late(seen: impl Fn((usize, Option<bool>))) {
    let done = dpor::sync::Arc::new(AtomicUsize::new(0));
    let theirs = done.clone();
    let other = thread::spawn(move || theirs.store(1, SeqCst));
    let found = match done.load(SeqCst) {
        0 => (0, None),
        stored => (stored, Some(other.is_finished())),
    };
    other.join().unwrap();
    seen(found);
}

fn explored(builder: &Builder) -> (Report, Seen) {
    let seen = Arc::new(Mutex::new(Seen::new()));
    let mine = seen.clone();
    let report = builder.check(move || {
        looks_late(|found| {
            mine.lock().unwrap().insert(found);
        });
    });
    let seen = seen.lock().unwrap().clone();
    (report, seen)
}

fn all() -> Seen {
    [(0, None), (1, Some(false)), (1, Some(true))].into()
}

#[test]
fn a_look_in_a_later_execution_has_all_explored_anew() {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Source,
        Algorithm::Classic,
        Algorithm::SleepSets,
        Algorithm::Naive,
        Algorithm::Bounded,
        Algorithm::Random,
        Algorithm::Pct,
        Algorithm::Pos,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.iterations = 200;
        builder.seed = Some(7);
        let (report, seen) = explored(&builder);
        assert_eq!(seen, all(), "{algorithm:?}");
        if algorithm == Algorithm::Optimal {
            // The store and the load in either order, and if the store is first, the look and the end in either order.
            assert_eq!((report.executions, report.pruned), (3, 0));
            assert!(report.complete);
        }
    }
}

#[test]
fn a_failure_that_hangs_on_the_end_of_a_thread_comes_again_from_its_schedule() {
    let body = || looks_late(|found| assert_ne!(found, (1, Some(true)), "it has finished"));
    let failure = Builder::new().explore(body).expect_err("it may have");
    let text = failure.to_string();
    let schedule = failure.schedule();
    assert!(schedule.starts_with("v2 ends main"), "{schedule}");
    assert!(text.contains("is_finished of main.1: true"), "{text}");
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    let again = builder.explore(body).expect_err("the same");
    assert_eq!(again.schedule(), schedule);
    // The end of the thread is a step that other schedules do not have.
    builder.replay = Some(schedule.replace(" ends", ""));
    let unfit = builder.explore(body).expect_err("another execution");
    assert_eq!(unfit.kind(), dpor::FailureKind::Schedule, "{unfit}");
}

#[test]
fn an_end_that_the_failure_hangs_on_has_a_row() {
    let body = || {
        let other = thread::spawn(|| {});
        assert!(!other.is_finished());
        other.join().unwrap();
    };
    let failure = Builder::new().explore(body).expect_err("it may have");
    let text = failure.to_string();
    assert!(text.contains("main.1's \"end\" (event 2)"), "{text}");
    let row = text.lines().find(|line| line.contains("2* "));
    let row = row.unwrap_or_else(|| panic!("no row of event 2: {text}"));
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, ["2*", "end", "main", "is", "preempted"], "{text}");
}

#[test]
fn a_schedule_without_ends_may_go_on_to_a_look_for_one() {
    let mut builder = Builder::new();
    builder.replay = Some("v2 main*2 main.1 main".to_owned());
    let (report, seen) = explored(&builder);
    assert_eq!(report.executions, 1);
    assert!(seen.iter().all(|(stored, _)| *stored == 1), "{seen:?}");
    // Also in the middle, as of a test that did not look for one before: the steps are there with ends, too.
    builder.replay = Some("v2 main*2 main.1 main*2".to_owned());
    assert_eq!(explored(&builder).1, seen);
}

#[test]
fn failures_of_before_the_look_are_told_once() {
    let mut builder = Builder::new();
    builder.max_failures = 5;
    let body = || looks_late(|found| assert_ne!(found, (0, None), "it was not there"));
    let failure = builder.explore(body).expect_err("the first execution");
    assert_eq!(failure.others().len(), 0, "{failure}");
    // As it was found the second time.
    let schedule = failure.schedule();
    assert!(schedule.starts_with("v2 ends main"), "{schedule}");
}

#[test]
fn an_exploration_with_ends_is_taken_up_where_it_was() {
    let name = format!("dpor-{}-ends", std::process::id());
    let file = std::env::temp_dir().join(name);
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.clone());
    builder.max_permutations = Some(1);
    let mut seen = Seen::new();
    let mut parts = 0;
    let last = loop {
        let (report, now) = explored(&builder);
        parts += 1;
        seen.extend(now);
        if report.complete {
            break report;
        }
        assert!(file.exists(), "a limit leaves a checkpoint");
    };
    assert!(parts > 2, "{parts}");
    assert_eq!((last.executions, seen), (3, all()));
}

/// Looks for the end of a thread when it is dropped.
struct Looks(Option<thread::JoinHandle<()>>);

impl Drop for Looks {
    fn drop(&mut self) {
        let other = self.0.take().expect("until here");
        while !other.is_finished() {
            dpor::hint::spin_loop();
        }
    }
}

#[test]
fn a_look_of_a_destructor_that_runs_for_a_panic_does_not_hide_the_panic() {
    let body = || {
        let done = dpor::sync::Arc::new(AtomicUsize::new(0));
        let theirs = done.clone();
        let _looks = Looks(Some(thread::spawn(move || theirs.store(1, SeqCst))));
        assert_eq!(done.load(SeqCst), 0, "it was there");
    };
    let failure = Builder::new().explore(body).expect_err("it may be there");
    assert_eq!(failure.kind(), dpor::FailureKind::Panic, "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(body).expect_err("the same");
    assert_eq!(again.kind(), dpor::FailureKind::Panic, "{again}");
    // Where nothing panics the loop waits for the end.
    let report = Builder::new().check(|| drop(Looks(Some(thread::spawn(|| ())))));
    assert!(report.complete);
}

/// Not a test of its own: what [`who_looks_at_each_execution_is_told_that_it_begins_anew`] runs.
#[test]
fn child_that_looks_late() {
    if std::env::var_os("DPOR_LOG").is_some() {
        dpor::model(|| looks_late(|_| ()));
    }
}

#[test]
fn who_looks_at_each_execution_is_told_that_it_begins_anew() {
    let mut child = process_of("threads::ends::child_that_looks_late");
    child.arg("--nocapture").env("DPOR_LOG", "1");
    let output = child.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let anew = "asks whether a thread has finished, so it is explored anew, with the ends of threads as events";
    let at = lines.iter().position(|line| line.ends_with(anew));
    let (before, after) = lines.split_at(at.expect("it is told"));
    // Other lines may be among them, of the watchdog for example.
    let begins = |line: &&&str| line.contains(": v2 ");
    assert!(
        (before.iter().filter(begins)).all(|line| line.contains(": v2 main")),
        "{said}"
    );
    let with_ends = |line: &&str| line.contains(": v2 ends main");
    assert_eq!(
        after[1..].iter().filter(|line| with_ends(line)).count(),
        3,
        "{said}"
    );
}
