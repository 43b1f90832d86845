//! Does a loop that changes something in each round leave the other threads their turns?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, Verdict, hint, thread};

/// Skips slots for as long as another thread is busy, as a queue does that is being read.
fn skips_until_free() {
    let busy = Arc::new(AtomicBool::new(true));
    let tail = Arc::new(AtomicUsize::new(0));
    let (theirs, skipped) = (busy.clone(), tail.clone());
    let skips = thread::spawn(move || {
        while theirs.load(SeqCst) {
            skipped.fetch_add(1, SeqCst);
            hint::spin_loop();
        }
    });
    busy.store(false, SeqCst);
    skips.join().unwrap();
}

/// Main goes round until a worker is done, which takes so many of its rounds.
fn serves(rounds: usize) -> impl Fn() + Send + Sync + Clone {
    move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
        let theirs = shared.clone();
        let worker = thread::spawn(move || {
            let (served, done) = &*theirs;
            for _ in 0..rounds {
                let seen = served.load(SeqCst);
                while served.load(SeqCst) == seen {
                    thread::yield_now();
                }
            }
            done.store(true, SeqCst);
        });
        let (served, done) = &*shared;
        while !done.load(SeqCst) {
            served.fetch_add(1, SeqCst);
            thread::yield_now();
        }
        worker.join().unwrap();
    }
}

#[test]
fn a_loop_that_changes_something_in_each_round_lets_the_others_go_first() {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Source,
        Algorithm::Bounded,
        Algorithm::Naive,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(skips_until_free);
        let told = format!("{algorithm:?}: {report}");
        assert_eq!(
            (report.verdict, report.complete),
            (Verdict::Fair(2), false),
            "{told}"
        );
        if algorithm != Algorithm::Naive {
            // The flag is cleared before the first look, behind one of two rounds, or where the loop lets main go first.
            assert_eq!(report.executions, 4, "{told}");
        }
        assert!(
            told.contains("explored where a loop that has no last round lets the others go first behind 2 rounds: "),
            "{told}"
        );
    }
    for algorithm in [Algorithm::Random, Algorithm::Pct, Algorithm::Pos] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.max_permutations = Some(100);
        builder.check(skips_until_free);
    }
}

#[test]
fn a_loop_without_which_another_one_does_not_get_on_is_bounded_only_by_that_one() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    let report = builder.check(serves(4));
    assert!(report.executions > 0, "{report}");
    let said = "bounded by preemption_bound = 2 (DPOR_MAX_PREEMPTIONS), and where a loop that has no last round";
    assert!(report.to_string().starts_with(said), "{report}");
    let report = Builder::new().check(serves(1));
    assert_eq!(report.verdict, Verdict::Fair(2), "{report}");
    // With a bound on the rounds there are executions that come to their ends, too.
    builder.max_rounds = Some(8);
    let report = builder.check(serves(4));
    assert!(report.executions > 0, "{report}");
    // If there are too few rounds, nothing was tested.
    builder.max_rounds = Some(1);
    let report = builder.explore(serves(4)).expect("nothing fails");
    assert_eq!(
        (report.executions, report.within_rounds),
        (0, Some(1)),
        "{report}"
    );
    let checked = catch_unwind(AssertUnwindSafe(|| builder.check(serves(4))));
    let told = checked.expect_err("nothing was tested");
    let told = told.downcast_ref::<String>().expect("a text");
    assert!(
        told.starts_with("no execution came to its end, so nothing was tested: raise "),
        "{told}"
    );
    assert!(told.ends_with("max_rounds = 1 (DPOR_MAX_ROUNDS)"), "{told}");
}

#[test]
fn what_fails_where_others_were_let_go_first_comes_again_from_its_schedule() {
    let fails = || {
        let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let stopper = thread::spawn(move || theirs.0.store(true, SeqCst));
        let (stopped, rounds) = &*shared;
        while !stopped.load(SeqCst) {
            assert!(rounds.fetch_add(1, SeqCst) < 2, "a third round");
            thread::yield_now();
        }
        stopper.join().unwrap();
    };
    // The third round begins behind two hints, and needs nobody's turn.
    let failure = Builder::new()
        .explore(fails)
        .expect_err("there are three rounds");
    assert!(!failure.schedule().contains("fair"), "{failure}");

    let fails = || {
        let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let stopper = thread::spawn(move || {
            theirs.0.store(true, SeqCst);
            assert_ne!(theirs.1.load(SeqCst), 3, "behind three rounds");
        });
        let (stopped, rounds) = &*shared;
        while !stopped.load(SeqCst) {
            rounds.fetch_add(1, SeqCst);
            thread::yield_now();
        }
        stopper.join().unwrap();
    };
    let failure = Builder::new()
        .explore(fails)
        .expect_err("three rounds are explored");
    assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(fails).expect_err("it fails again");
    assert_eq!(again.kind(), FailureKind::Panic, "{again}");
}

#[test]
fn a_loop_that_keeps_nobody_from_going_on_has_too_many_events() {
    let mut builder = Builder::new();
    builder.max_branches = 1000;
    let failure = builder.explore(|| {
        let raised = AtomicUsize::new(0);
        loop {
            raised.fetch_add(1, SeqCst);
            thread::yield_now();
        }
    });
    let failure = failure.expect_err("it has no last round");
    assert_eq!(failure.kind(), FailureKind::Limit);
    let text = failure.to_string();
    assert!(
        text.contains("`Builder::max_rounds` (DPOR_MAX_ROUNDS=3, say)"),
        "{text}"
    );
    assert!(!failure.schedule().contains("fair"), "{text}");
}

#[test]
fn a_loop_with_a_last_round_is_explored_in_full() {
    // As without the hints: the stores of one thread before, between and behind fifty of the other one.
    let explored = |hint: fn()| {
        let report = Builder::new().check(move || {
            let raised = Arc::new(AtomicUsize::new(0));
            let theirs = raised.clone();
            let raises = thread::spawn(move || {
                for _ in 0..50 {
                    theirs.fetch_add(1, SeqCst);
                    hint();
                }
            });
            raised.store(7, SeqCst);
            raises.join().unwrap();
        });
        (report.executions, report.complete)
    };
    assert_eq!(explored(thread::yield_now), (51, true));
    assert_eq!(explored(|| ()), (51, true));
}
