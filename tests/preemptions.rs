//! Does a bound on preemptions hide what it must, and nothing else?

use dpor::{Algorithm, Builder, Limit, Verdict};

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

#[test]
fn each_bound_has_its_traces_and_no_bound_has_all_of_them() {
    let mut builder = Builder::new();
    for (bound, traces) in [(0, 2), (1, 6), (2, 14), (3, 18), (4, 20)] {
        builder.preemption_bound = Some(bound);
        let report = builder.check(three_and_three);
        assert_eq!(report.executions, traces);
        assert_eq!(report.verdict, Verdict::Bounded { preemptions: bound });
        assert_eq!(report.preemptions, Some(bound));
        let text = format!("bounded by preemption_bound = {bound} (DPOR_MAX_PREEMPTIONS): ");
        assert!(report.to_string().starts_with(&text), "{report}");
    }
    builder.preemption_bound = None;
    builder.algorithm = Algorithm::Bounded;
    let report = builder.check(three_and_three);
    assert_eq!((report.executions, report.verdict), (20, Verdict::Complete));
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
    assert_eq!(report.preemptions, Some(2));
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
