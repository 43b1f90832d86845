//! What is counted, or pointed out, without being a failure?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

#[test]
fn an_execution_given_up_is_counted_and_not_a_failure() {
    let report = Builder::new().check(|| {
        dpor::assume(dpor::any::<bool>());
        assert_eq!(dpor::choose(1), 0);
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
    assert!(report.complete);
    let told = report.to_string();
    assert!(
        told.starts_with("complete: 1 execution, 1 given up by `assume(false)`, "),
        "{told}"
    );
}

#[test]
fn what_was_given_up_is_told_by_reason() {
    let mut builder = Builder::new();
    builder.algorithm = dpor::Algorithm::SleepSets;
    let report = builder.check(|| {
        dpor::assume(dpor::choose(3) > 0);
        let cells = Arc::new([0; 3].map(AtomicUsize::new));
        let sum = cells.clone();
        let other = thread::spawn(move || sum.iter().map(|cell| cell.load(SeqCst)).sum::<usize>());
        cells.iter().for_each(|cell| cell.store(1, SeqCst));
        other.join().unwrap();
    });
    let pruned = report.pruned_by;
    assert!(pruned.covered > 0, "{report}");
    assert_eq!((pruned.assumed, pruned.rounds, pruned.in_vain), (1, 0, 0));
    assert_eq!(report.pruned, 1 + pruned.covered);
    let told = format!(
        "1 given up by `assume(false)`, {} because others cover the rest",
        pruned.covered
    );
    assert_eq!(pruned.to_string(), told);
    assert!(
        report.to_string().contains(&format!(", {told}, ")),
        "{report}"
    );
}

#[test]
fn a_choice_among_thousands_has_an_execution_for_each() {
    let report = Builder::new().check(|| assert!(dpor::choose(10_000) < 10_000));
    assert_eq!(report.executions, 10_000);
}

#[test]
fn a_limit_on_executions_is_no_silent_pass() {
    let mut builder = Builder::new();
    builder.max_permutations = Some(3);
    let report = builder.check(|| {
        dpor::choose(10);
    });
    assert_eq!(report.executions, 3);
    assert!(!report.complete);
    assert!(
        report
            .to_string()
            .starts_with("stopped by max_permutations = 3 (DPOR_MAX_PERMUTATIONS)"),
        "{report}"
    );
}
