//! Are the outcomes counted that a test says of itself?

use std::collections::BTreeMap;
use std::fmt;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::SeqCst;
use dpor::{Algorithm, Builder, Report, thread};

/// What was said, with in how many executions.
fn said(report: &Report) -> Vec<(&str, u64)> {
    let said = report.outcomes.iter();
    said.map(|(text, times)| (text.as_str(), *times)).collect()
}

/// Two threads add 1 with a load and a store, and both say what they have read.
fn adders() -> usize {
    let counter = Arc::new(AtomicUsize::new(0));
    let theirs = counter.clone();
    let add = |counter: &AtomicUsize| {
        let value = counter.load(SeqCst);
        counter.store(value + 1, SeqCst);
        dpor::outcome(value);
    };
    let other = thread::spawn(move || add(&theirs));
    add(&counter);
    other.join().unwrap();
    counter.load(SeqCst)
}

#[test]
fn each_outcome_of_any_thread_counts_once_in_an_execution() {
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Naive] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let sum = adders();
            dpor::outcome(format_args!("sum {sum}"));
        });
        if algorithm == Algorithm::Optimal {
            // Both read 0 where an update is lost, which is so in two of four.
            let all = [("0", 4), ("1", 2), ("sum 1", 2), ("sum 2", 2)];
            assert_eq!(said(&report), all);
            let returned = dpor::outcomes(adders);
            assert_eq!(returned, BTreeMap::from([(1, 2), (2, 2)]));
        }
        assert_eq!(report.outcomes.len(), 4, "{algorithm:?}");
    }
    let silent = Builder::new().check(|| assert!(dpor::choose(2) < 2));
    assert_eq!(said(&silent), []);
}

#[test]
fn what_is_given_up_comes_to_nothing() {
    let report = Builder::new().check(|| {
        let value = dpor::choose(4);
        dpor::outcome(value);
        dpor::assume(value != 2);
        // Nor does what comes later, in a destructor or not.
        dpor::outcome("behind");
    });
    assert_eq!(
        said(&report),
        [("\"behind\"", 3), ("0", 1), ("1", 1), ("3", 1)]
    );
    let pruned = report.pruned_by;
    assert_eq!((pruned.assumed, pruned.covered, report.pruned), (1, 0, 1));
}

#[test]
fn what_is_explored_anew_is_counted_anew() {
    // That somebody asks for the end of a thread is seen in the last execution, and makes more of them.
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        let seen = flag.load(SeqCst);
        let is_over = seen == 1 && other.is_finished();
        dpor::outcome((seen, is_over));
        (seen, is_over)
    };
    let report = Builder::new().check(move || _ = body());
    let all = [("(0, false)", 1), ("(1, false)", 1), ("(1, true)", 1)];
    assert_eq!(said(&report), all);
    let returned = dpor::outcomes(body).into_iter().collect::<Vec<_>>();
    assert_eq!(returned, [((0, false), 1), ((1, false), 1), ((1, true), 1)]);
}

/// A value that looks at the model when it is written.
struct Looks(Arc<AtomicUsize>);

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.load(SeqCst).fmt(f)
    }
}

#[test]
fn to_write_a_value_is_part_of_the_program() {
    let report = Builder::new().check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        dpor::outcome(Looks(x.clone()));
        other.join().unwrap();
    });
    assert_eq!(said(&report), [("0", 1), ("1", 1)]);
}

#[test]
fn outside_a_model_nothing_is_counted() {
    dpor::outcome(1);
    let report = Builder::new().check(|| dpor::outcome(AtomicUsize::new(2).load(SeqCst)));
    assert_eq!(said(&report), [("2", 1)]);
}
