//! Bounds, samples, several failures and outcomes under C11, and what the report says of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::Relaxed;
use dpor::{Algorithm, Bound, Builder, Memory, Report, Verdict, WeakMemory, thread};

use super::c11;

/// Threads in pairs: each stores to its own and reads that of the other one. Returns what each has
/// read.
fn pairs<const N: usize>() -> [[usize; 2]; N] {
    let threads = [(); N].map(|()| {
        let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
        [0, 1].map(|at| {
            let all = all.clone();
            thread::spawn(move || {
                all[at].store(1, Relaxed);
                all[1 - at].load(Relaxed)
            })
        })
    });
    threads.map(|pair| pair.map(|it| it.join().unwrap()))
}

/// Bounded by name, so that no search without the bound takes turns.
fn within(set: impl FnOnce(&mut Builder), body: fn()) -> Report {
    let mut builder = c11();
    builder.algorithm = Algorithm::Bounded;
    set(&mut builder);
    builder.explore(body).expect("it does not fail")
}

#[test]
fn a_bound_on_old_values_leaves_out_what_needs_more_of_them() {
    let two_pairs = || _ = pairs::<2>();
    for (most, executions) in [(0, 9), (1, 15), (2, 16), (7, 16)] {
        let report = within(|it| it.stale_bound = Some(most), two_pairs);
        assert_eq!(report.executions, executions, "{report}");
        let told = report.to_string();
        if executions < 16 {
            assert_eq!(report.verdict, Verdict::Bounded(Bound::OldValues(most)));
            let bound = format!("bounded by stale_bound = {most} (DPOR_STALE_BOUND): ");
            assert!(told.starts_with(&bound), "{told}");
        } else {
            assert_eq!(report.verdict, Verdict::Complete);
            let unneeded = format!("stale_bound = {most} (DPOR_STALE_BOUND) was not needed");
            assert!(told.contains(&unneeded), "{told}");
        }
        assert!(told.contains("; under C11"), "{told}");
    }
}

#[test]
fn a_bound_on_old_values_takes_turns_with_no_bound() {
    let mut builder = c11();
    builder.stale_bound = Some(1);
    let report = builder.explore(|| _ = pairs::<2>()).expect("no failure");
    assert_eq!((report.executions, report.verdict), (16, Verdict::Complete));
}

#[test]
fn a_bound_on_old_values_holds_behind_sequential_consistency() {
    let explore = |most| {
        let mut builder = Builder::new();
        builder.memory = Memory::Auto;
        builder.stale_bound = Some(most);
        // Executions that are told of are those within the bound alone.
        builder.log = true;
        builder.explore(|| _ = pairs::<2>()).expect("no failure")
    };
    for (most, executions, is_all) in [(0, 9, false), (1, 15, false), (2, 16, true)] {
        let report = explore(most);
        assert!(
            matches!(report.weak, WeakMemory::Explored { sequential: 9, .. }),
            "{report}"
        );
        let verdict = match is_all {
            true => Verdict::Complete,
            false => Verdict::Bounded(Bound::OldValues(most)),
        };
        assert_eq!((report.executions, report.verdict), (executions, verdict));
    }
}

#[test]
fn a_failure_that_needs_one_old_value_is_found_within_one() {
    let explore = |most| {
        let mut builder = c11();
        builder.algorithm = Algorithm::Bounded;
        builder.stale_bound = Some(most);
        builder.explore(|| assert_ne!(pairs::<1>(), [[0, 0]]))
    };
    explore(0).expect("it needs an old value");
    let failure = explore(1).expect_err("it fails");
    assert!(failure.schedule().starts_with("v2 c11"), "{failure}");
}

#[test]
fn an_old_value_costs_nothing_under_sequential_consistency() {
    let mut builder = super::sc();
    builder.stale_bound = Some(0);
    let report = builder.explore(|| _ = pairs::<2>()).expect("no failure");
    assert_eq!((report.executions, report.verdict), (9, Verdict::Complete));
}

#[test]
fn a_bound_on_old_values_keeps_no_checkpoint() {
    for memory in [Memory::C11, Memory::Auto] {
        let told = std::panic::catch_unwind(|| {
            let mut builder = Builder::new();
            builder.memory = memory;
            builder.stale_bound = Some(1);
            builder.checkpoint_file = Some("never written".into());
            builder.check(|| ())
        });
        let told = told.map(drop).expect_err("it is refused");
        let told = told.downcast_ref::<String>().expect("a sentence");
        assert!(
            told.contains("stale_bound = 1 (DPOR_STALE_BOUND)"),
            "{told}"
        );
    }
}

#[test]
fn a_bound_on_threads_holds_under_c11() {
    let one_pair = || _ = pairs::<1>();
    for set in [
        |it: &mut Builder, most| it.preemption_bound = Some(most),
        |it: &mut Builder, most| it.switch_bound = Some(most),
        |it: &mut Builder, most| it.delay_bound = Some(most),
    ] {
        let all = within(|it| set(it, 20), one_pair);
        assert_eq!((all.executions, all.verdict), (4, Verdict::Complete));
        let few = within(|it| set(it, 0), one_pair);
        assert!(few.executions < 4, "{few}");
        assert!(matches!(few.verdict, Verdict::Bounded(_)), "{few}");
    }
    let all = within(|_| {}, one_pair);
    assert_eq!((all.executions, all.verdict), (4, Verdict::Complete));
}

#[test]
fn samples_are_told_as_samples_of_c11() {
    for algorithm in [Algorithm::Random, Algorithm::Pct, Algorithm::Pos] {
        let mut builder = c11();
        builder.algorithm = algorithm;
        builder.iterations = 300;
        builder.seed = Some(3);
        let body = || dpor::outcome(format_args!("{:?}", pairs::<1>()));
        let report = builder.explore(body).expect("no failure");
        assert_eq!(report.verdict, Verdict::Sampled { seed: 3 });
        assert_eq!(report.executions, 300);
        assert!(report.outcomes.contains_key("[[0, 0]]"), "{report}");
        let told = report.to_string();
        assert!(told.contains("; under C11"), "{told}");
    }
}

#[test]
fn several_failures_are_found_under_c11() {
    let mut builder = c11();
    builder.max_failures = 3;
    let failure = builder
        .explore(|| {
            let [[mine, theirs]] = pairs::<1>();
            assert!(mine + theirs != 1 || mine == 1, "one is old");
            assert!(mine + theirs > 0, "both are old");
        })
        .expect_err("it fails");
    let all: Vec<String> = std::iter::once(failure.to_string())
        .chain(failure.others().iter().map(ToString::to_string))
        .collect();
    assert_eq!(all.len(), 2, "{all:?}");
    for what in ["one is old", "both are old"] {
        assert!(all.iter().any(|it| it.contains(what)), "{what}: {all:?}");
    }
}

#[test]
fn outcomes_are_those_of_c11() {
    let outcomes = c11().outcomes(|| pairs::<1>()[0]);
    let each = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|it| (it, 1));
    assert_eq!(outcomes, BTreeMap::from(each));
}
