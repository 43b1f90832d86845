//! Does a bound on preemptions, switches or delays hide what it must, and nothing else?

use dpor::{Algorithm, Bound, Builder, Limit, Verdict};

/// Two threads of three steps that depend on each other: 20 traces, 14 of them within 2 preemptions.
fn three_and_three() {
    use dpor::sync::Arc;
    use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let x = Arc::new(AtomicUsize::new(0));
    let body = |x: Arc<AtomicUsize>| {
        move || {
            for _ in 0..3 {
                x.fetch_add(1, SeqCst);
            }
        }
    };
    let one = dpor::thread::spawn(body(x.clone()));
    let two = dpor::thread::spawn(body(x));
    one.join().unwrap();
    two.join().unwrap();
}

/// Explores [`three_and_three`] with a bound, and checks what the report calls it.
fn explored(bound: Bound) -> u64 {
    let mut builder = Builder::new();
    let name = match bound {
        Bound::Preemptions(most) => {
            builder.preemption_bound = Some(most);
            format!("preemption_bound = {most} (DPOR_MAX_PREEMPTIONS)")
        }
        Bound::Switches(most) => {
            builder.switch_bound = Some(most);
            format!("switch_bound = {most} (DPOR_MAX_SWITCHES)")
        }
        Bound::Delays(most) => {
            builder.delay_bound = Some(most);
            format!("delay_bound = {most} (DPOR_MAX_DELAYS)")
        }
        other => panic!("unknown: {other}"),
    };
    let report = builder.check(three_and_three);
    assert_eq!(report.verdict, Verdict::Bounded(bound));
    assert_eq!(report.within, Some(bound));
    assert!(!report.complete);
    let text = format!("bounded by {name}: ");
    assert!(report.to_string().starts_with(&text), "{report}");
    report.executions
}

#[test]
fn each_bound_has_its_traces_and_no_bound_has_all_of_them() {
    let counts =
        |bound: fn(usize) -> Bound| [0, 1, 2, 3, 4, 5, 6].map(|most| explored(bound(most)));
    assert_eq!(counts(Bound::Preemptions), [2, 6, 14, 18, 20, 20, 20]);
    assert_eq!(counts(Bound::Switches), [0, 0, 0, 2, 6, 14, 18]);
    assert_eq!(counts(Bound::Delays), [1, 4, 10, 16, 19, 20, 20]);
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Bounded;
    let report = builder.check(three_and_three);
    assert_eq!((report.executions, report.verdict), (20, Verdict::Complete));
}

#[test]
fn more_than_any_execution_needs_is_no_bound() {
    let mut builder = Builder::new();
    builder.switch_bound = Some(100);
    let report = builder.check(three_and_three);
    assert_eq!((report.executions, report.verdict), (20, Verdict::Complete));
    builder.switch_bound = None;
    builder.delay_bound = Some(100);
    let report = builder.check(three_and_three);
    assert_eq!((report.executions, report.verdict), (20, Verdict::Complete));
}

#[test]
#[should_panic(
    expected = "preemption_bound = 2 (DPOR_MAX_PREEMPTIONS) and delay_bound = 1 (DPOR_MAX_DELAYS) are both set"
)]
fn two_bounds_at_once_are_refused() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.delay_bound = Some(1);
    builder.check(three_and_three);
}

#[test]
fn a_search_that_is_stopped_says_how_many_preemptions_it_has_covered() {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Bounded;
    let full = builder.check(three_and_three);
    builder.max_permutations = Some((full.executions + full.pruned) as usize / 2);
    let report = builder.check(three_and_three);
    assert!(matches!(
        report.verdict,
        Verdict::Stopped(Limit::Permutations(_))
    ));
    assert_eq!(report.within, Some(Bound::Preemptions(2)));
    let text = report.to_string();
    assert!(
        text.contains("everything within 2 preemptions explored"),
        "{text}"
    );
}

#[test]
#[should_panic(expected = "has no meaning for the algorithm `pct` (DPOR_ALGORITHM)")]
fn a_bound_on_a_sample_is_refused() {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Pct;
    builder.preemption_bound = Some(2);
    builder.check(three_and_three);
}
