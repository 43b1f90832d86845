//! What does a bound on the rounds of loops leave out, and does the report say so?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, FailureKind, Verdict, thread};

use super::two_flags;

/// A counter that main raises for as long as nobody has stopped it.
fn raised_until_stopped(last: usize) -> impl Fn() + Send + Sync + Clone {
    move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let stopper = thread::spawn(move || theirs.0.store(1, SeqCst));
        let (stopped, raised) = &*shared;
        while stopped.load(SeqCst) == 0 {
            assert!(raised.fetch_add(1, SeqCst) < last, "too often");
            thread::yield_now();
        }
        stopper.join().expect("no thread panics");
    }
}

#[test]
fn a_loop_that_gets_on_in_each_round_has_as_many_rounds_as_the_bound_says() {
    for rounds in 1..=4 {
        for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Naive] {
            let mut builder = Builder::new();
            builder.algorithm = algorithm;
            builder.max_rounds = Some(rounds);
            let report = builder.check(raised_until_stopped(usize::MAX));
            let told = format!("{algorithm:?}: {report}");
            if algorithm == Algorithm::Optimal {
                // It is stopped before its first round, behind one of so many, or not in time.
                let both = (report.executions, report.pruned);
                assert_eq!(both, (rounds as u64 + 1, 1), "{told}");
                assert_eq!(report.pruned_by.rounds, 1, "{told}");
            }
            assert_eq!(report.verdict, Verdict::Rounds(rounds), "{told}");
            assert_eq!(report.within_rounds, Some(rounds), "{told}");
            assert!(!report.complete, "{told}");
            let said = format!("bounded by max_rounds = {rounds} (DPOR_MAX_ROUNDS): ");
            assert!(told.contains(&said), "{told}");
        }
    }
}

#[test]
fn what_fails_within_the_rounds_is_found_and_what_needs_more_is_not() {
    let explore = |rounds| {
        let mut builder = Builder::new();
        builder.max_rounds = Some(rounds);
        builder.explore(raised_until_stopped(3))
    };
    // The assertion fails in the fourth round, which begins behind the third hint.
    assert_eq!(explore(2).expect("it is left out").within_rounds, Some(2));
    let failure = explore(3).expect_err("three rounds are free");
    assert_eq!(failure.kind(), FailureKind::Panic);
    let schedule = failure.schedule().to_owned();
    let again = dpor_replays(&schedule, raised_until_stopped(3));
    assert!(again.contains("too often"), "{again}");
}

/// What comes of this schedule without a bound on the rounds.
fn dpor_replays(schedule: &str, f: impl Fn() + Send + Sync + 'static) -> String {
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    builder.explore(f).expect_err("it fails again").to_string()
}

#[test]
fn a_bound_on_rounds_that_leaves_nothing_out_is_not_told() {
    let mut builder = Builder::new();
    builder.max_rounds = Some(1);
    let report = builder.check(two_flags(2));
    assert_eq!(
        (report.verdict, report.within_rounds),
        (Verdict::Complete, None)
    );
    builder.max_rounds = Some(0);
    let refused = catch_unwind(AssertUnwindSafe(|| builder.check(|| ())));
    let refused = refused.expect_err("no loop has no round");
    let text = refused.downcast_ref::<String>().expect("a text");
    assert!(text.contains("max_rounds = 0 (DPOR_MAX_ROUNDS)"), "{text}");
}

#[test]
fn a_bound_on_rounds_goes_with_one_on_preemptions() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(0);
    builder.max_rounds = Some(2);
    let report = builder.check(raised_until_stopped(usize::MAX));
    let text = report.to_string();
    assert_eq!(report.within_rounds, Some(2), "{text}");
    assert!(
        text.starts_with("bounded by preemption_bound = 0 (DPOR_MAX_PREEMPTIONS), and by max_rounds = 2 (DPOR_MAX_ROUNDS): "),
        "{text}"
    );
}

/// Fails if it is dropped before the counter has been stopped, as no execution of [`loops_before_a_destructor`] does.
struct Watcher(Arc<(AtomicUsize, AtomicUsize)>);

impl Drop for Watcher {
    fn drop(&mut self) {
        assert_eq!(self.0.0.load(SeqCst), 1, "dropped too early");
    }
}

fn loops_before_a_destructor() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = shared.clone();
    let loops = thread::spawn(move || {
        let watcher = Watcher(theirs);
        let (stopped, raised) = &*watcher.0;
        while stopped.load(SeqCst) == 0 {
            raised.fetch_add(1, SeqCst);
            thread::yield_now();
        }
    });
    // It has the lock of nobody, and may have to wait for the other one's rounds.
    if shared.1.load(SeqCst) < 3 {
        shared.0.store(1, SeqCst);
        loops.join().expect("no thread panics");
    } else {
        shared.0.store(1, SeqCst);
    }
}

#[test]
fn a_thread_that_has_made_its_rounds_still_comes_to_its_end() {
    // To be unwound in the middle of its loop would be a panic in a destructor, and the end of the process.
    let mut builder = Builder::new();
    builder.max_rounds = Some(2);
    let report = builder.check(loops_before_a_destructor);
    assert_eq!(report.verdict, Verdict::Rounds(2));
    assert!(report.pruned > 0, "{report}");
}
