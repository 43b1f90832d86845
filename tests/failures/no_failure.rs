//! What is counted, or pointed out, without being a failure?

use dpor::Builder;

#[test]
fn an_execution_given_up_is_counted_and_not_a_failure() {
    let report = Builder::new().check(|| {
        dpor::assume(dpor::any::<bool>());
        assert_eq!(dpor::choose(1), 0);
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
    assert!(report.complete);
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
