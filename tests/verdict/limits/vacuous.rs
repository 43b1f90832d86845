//! Is it pointed out if a search has shown nothing?

use dpor::Builder;

use super::printed;

#[test]
fn a_limit_that_lets_nothing_run_is_all_that_is_told() {
    let text = printed(
        "limits::vacuous::child_that_explores_quietly",
        &[("DPOR_MAX_DURATION", "0.000000001")],
    );
    let start = "dpor: no execution of the model at tests/verdict/limits/vacuous.rs:";
    assert!(text.starts_with(start), "{text}");
    let end = " was run: stopped by max_duration = 0.000000001 s (DPOR_MAX_DURATION)\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    // With an execution, it is the closure that did nothing.
    let text = printed("limits::child_that_explores", &[]);
    assert!(text.contains("did nothing that can be seen"), "{text}");
}

/// Not a test of its own: what [`a_limit_that_lets_nothing_run_is_all_that_is_told`] runs.
#[test]
fn child_that_explores_quietly() {
    Builder::new().explore(|| ()).expect("nothing fails");
}

/// Not tests of their own: what [`what_is_no_event_can_be_seen`] runs.
#[test]
#[should_panic(
    expected = "no execution came to its end, so nothing was tested: all were given up by `assume(false)`"
)]
fn child_that_assumes() {
    Builder::new().check(|| dpor::assume(false));
}

#[test]
fn child_that_assumes_now_and_then() {
    Builder::new().check(|| dpor::assume(dpor::any()));
}

#[test]
fn child_that_uses_a_cell() {
    Builder::new().check(|| {
        let cell = dpor::cell::UnsafeCell::new(0);
        // SAFETY: there is one thread.
        cell.with_mut(|cell| unsafe { *cell = 1 });
    });
}

#[test]
fn what_is_no_event_can_be_seen() {
    let text = printed("limits::vacuous::child_that_assumes", &[]);
    let start = "dpor: no execution of the model at tests/verdict/limits/vacuous.rs:";
    assert!(text.starts_with(start), "{text}");
    let end = " came to its end: all were given up by `assume(false)`\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(
        printed("limits::vacuous::child_that_assumes_now_and_then", &[]),
        ""
    );
    assert_eq!(printed("limits::vacuous::child_that_uses_a_cell", &[]), "");
}
