//! Is what a test leaves out of the search executed only once, and does the verdict say so?

use dpor::{Algorithm, Bound, Builder, Verdict};

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

#[test]
fn a_bound_says_nothing_of_what_the_test_has_excluded() {
    let mut builder = Builder::new();
    builder.algorithm = dpor::Algorithm::Bounded;
    builder.preemption_bound = Some(1);
    let whole = builder.check(|| twice(2, || ()));
    let bound = Bound::Preemptions(1);
    assert_eq!((whole.within, whole.excludes), (Some(bound), false));
    let half = builder.check(|| twice(2, dpor::stop_exploring));
    assert_eq!(half.verdict, Verdict::Bounded(bound));
    assert_eq!((half.within, half.excludes), (None, true));
    let text = half.to_string();
    let both = "bounded by preemption_bound = 1 (DPOR_MAX_PREEMPTIONS), and by what the test excluded (`stop_exploring`): ";
    assert!(text.starts_with(both), "{text}");
}

#[test]
#[should_panic(
    expected = "choose(16777217) has more values than can be explored: 16777216 at most"
)]
fn a_choice_of_more_values_than_can_be_planned_is_refused() {
    Builder::new().check(|| {
        dpor::choose((1 << 24) + 1);
    });
}
