//! Does an execution that a thread stops count, without a failure?

use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dpor::sync::{Arc, Mutex};
use dpor::{Algorithm, Builder, FailureKind, Memory, thread};

/// The number of executions; none is pruned.
fn executions(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().explore(f).expect("no failure");
    assert_eq!(report.pruned, 0);
    assert!(report.complete);
    report.executions
}

#[test]
fn an_execution_that_is_stopped_counts_and_keeps_its_outcomes() {
    let test = || {
        let turn = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| turn.store(1, SeqCst));
            if turn.load(SeqCst) == 0 {
                dpor::outcome("early");
                dpor::stop();
                unreachable!("the execution is over");
            }
            dpor::outcome("late");
        });
    };
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Parsimonious,
        Algorithm::Source,
    ] {
        let mut settings = Builder::new();
        settings.algorithm = algorithm;
        let report = settings.explore(test).expect("no failure");
        assert_eq!((report.executions, report.pruned), (2, 0));
        let outcomes: Vec<_> = report.outcomes.into_iter().collect();
        assert_eq!(
            outcomes,
            [("\"early\"".to_owned(), 1), ("\"late\"".to_owned(), 1)],
            "{algorithm:?}"
        );
    }
    let mut weak = Builder::new();
    weak.memory = Memory::C11;
    assert_eq!(weak.explore(test).expect("no failure").executions, 2);
}

#[test]
fn threads_that_wait_for_the_one_that_stops_are_no_deadlock_and_leak_nothing() {
    let found = executions(|| {
        let lock = Arc::new((Mutex::new(Box::new(0)), AtomicUsize::new(0)));
        let theirs = lock.clone();
        let other = thread::spawn(move || {
            let mut value = theirs.0.lock().unwrap();
            **value += 1;
            dpor::stop();
        });
        let value = lock.0.lock().unwrap();
        drop(value);
        other.join().unwrap();
    });
    assert_eq!(found, 2);
}

#[test]
fn what_others_do_beside_a_stop_is_explored() {
    let failing = Builder::new().explore(|| {
        let turn = Arc::new(AtomicUsize::new(0));
        let theirs = turn.clone();
        thread::spawn(move || {
            // Fails in the order in which main has stored before.
            assert_eq!(theirs.load(SeqCst), 0);
        });
        turn.store(1, SeqCst);
        dpor::stop();
    });
    assert_eq!(failing.expect_err("it is found").kind(), FailureKind::Panic);
}

#[test]
fn an_assumption_that_fails_beside_a_stop_prunes() {
    let report = Builder::new()
        .explore(|| {
            let turn = Arc::new(AtomicUsize::new(0));
            let theirs = turn.clone();
            thread::spawn(move || dpor::assume(theirs.load(SeqCst) == 0));
            turn.store(1, SeqCst);
            dpor::stop();
        })
        .expect("no failure");
    assert_eq!((report.executions, report.pruned), (1, 1));
}

#[test]
fn outside_of_a_model_nothing_stops() {
    dpor::stop();
}
