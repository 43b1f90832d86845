//! Is what a test leaves out of the search executed only once, and does the verdict say so?

use dpor::{Algorithm, Builder, Verdict};

use super::{EXHAUSTIVE, twice};

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
