//! Does a bound on preemptions, switches or delays hide what it must, and nothing else?

use std::panic::{AssertUnwindSafe, catch_unwind};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::{Arc, Mutex};
use dpor::{
    Algorithm, Bound, Builder, FailureKind, Limit, Order, Verdict, WeakMemory, hint, thread,
};

/// Two threads of three steps that depend on each other: 20 traces, 14 of them within 2 preemptions.
fn three_and_three() {
    additions(2, 3);
}

/// Settings with which the search within a bound takes no turns with one without the bound.
fn alone() -> Builder {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Bounded;
    builder
}

/// Explores [`three_and_three`] with a bound, and checks what the report calls it.
fn explored(bound: Bound) -> u64 {
    let mut builder = alone();
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
    let report = builder.explore(three_and_three).expect("nothing fails");
    if let Bound::Preemptions(4..) = bound {
        // Nothing is left that a fifth preemption could be for.
        assert!(report.complete);
        return report.executions;
    }
    assert_eq!(report.verdict, Verdict::Bounded(bound));
    assert_eq!(report.within, Some(bound));
    assert!(!report.complete);
    let text = format!("bounded by {name}: ");
    assert!(report.to_string().starts_with(&text), "{report}");
    if report.executions == 0 {
        // A test in which that is so does not pass.
        let checked = catch_unwind(AssertUnwindSafe(|| builder.check(three_and_three)));
        let told = checked.expect_err("nothing was tested");
        let told = told.downcast_ref::<String>().expect("a text");
        let raise = format!("no execution came to its end, so nothing was tested: raise {name}");
        assert_eq!(told, &raise);
    }
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
fn a_bound_is_no_limit_where_every_trace_was_explored() {
    let within = |bound, body: fn()| {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(bound);
        let report = builder.check(body);
        (report.executions, report.complete)
    };
    let nothing_shared = || {
        thread::spawn(|| dpor::choose(3));
        thread::spawn(|| {
            let own = AtomicUsize::new(0);
            own.load(SeqCst);
            own.load(SeqCst);
            dpor::choose(2)
        });
        dpor::choose(2);
    };
    for bound in 0..3 {
        assert_eq!(within(bound, nothing_shared), (12, true), "up to {bound}");
    }
    let one_race = || {
        let x = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let theirs = x.clone();
        thread::spawn(move || {
            theirs[0].swap(2, SeqCst);
            theirs[1].load(SeqCst);
        });
        x[0].store(1, SeqCst);
    };
    assert_eq!(within(0, one_race), (1, false));
    for bound in 1..4 {
        assert_eq!(within(bound, one_race), (2, true), "up to {bound}");
    }
}

#[test]
fn a_thread_that_has_just_been_spawned_is_shut_out_too() {
    // The second child is behind its first operation when it is spawned, and cannot have the lock.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        let theirs = lock.clone();
        thread::spawn(move || {
            thread::spawn(move || drop(theirs.lock()));
        });
        drop(lock.try_lock());
    };
    let within = |bound| {
        let mut builder = Builder::new();
        builder.algorithm = Algorithm::Bounded;
        builder.preemption_bound = bound;
        builder.check(body)
    };
    // It has it before, while, or after the other one tries.
    let executions = [0, 1, 2].map(|bound| within(Some(bound)).executions);
    assert_eq!(executions, [1, 2, 3]);
    let report = within(None);
    assert_eq!((report.executions, report.verdict), (3, Verdict::Complete));
    assert_eq!(Builder::new().check(body).executions, 3);
}

#[test]
fn nothing_is_left_out_behind_an_operation_that_fails_at_once() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_failures = 2;
    builder.check_leaks = false;
    let failure = builder
        .explore(|| {
            // A reference without a count: nothing happens while the thread unwinds.
            let x: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
            let thread = dpor::thread::spawn(move || {
                // Only here it shows that this depends on what main does.
                assert_eq!(x.fetch_add(1, SeqCst), 0, "main was first");
            });
            assert_eq!(x.fetch_add(1, SeqCst), 0, "main was second");
            thread.join().unwrap();
        })
        .expect_err("somebody is second");
    let others: Vec<String> = failure.others().iter().map(|f| f.to_string()).collect();
    assert!(failure.to_string().contains("main was first"), "{failure}");
    assert_eq!(others.len(), 1);
    assert!(others[0].contains("main was second"), "{}", others[0]);
}

#[test]
fn a_preemption_is_tried_before_what_others_depend_on_and_nothing_else() {
    use dpor::sync::Arc;
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    let report = builder.check(|| {
        let shared = Arc::new([0; 2].map(AtomicUsize::new));
        let theirs = shared.clone();
        let other = dpor::thread::spawn(move || {
            for _ in 0..10 {
                theirs[1].fetch_add(1, SeqCst);
            }
            theirs[0].load(SeqCst);
        });
        for _ in 0..10 {
            shared[0].fetch_add(1, SeqCst);
        }
        other.join().unwrap();
    });
    // The load comes before one of main's ten steps or behind all of them. None of the other thread's own steps is a
    // place to preempt it.
    assert_eq!((report.executions, report.pruned), (11, 0));
}

#[test]
fn where_exploration_is_switched_off_every_preemption_is_tried() {
    use dpor::sync::Arc;
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    let report = builder.check(|| {
        let shared = Arc::new([0; 2].map(AtomicUsize::new));
        let theirs = shared.clone();
        let other = dpor::thread::spawn(move || {
            // Behind main's first step this is always 1, so nothing is known to depend on that step.
            if theirs[1].load(SeqCst) == 0 {
                theirs[0].fetch_add(1, SeqCst);
            }
        });
        shared[0].fetch_add(1, SeqCst);
        dpor::stop_exploring();
        shared[1].store(1, SeqCst);
        other.join().unwrap();
    });
    assert_eq!(report.executions, 2);
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
    builder.max_permutations = Some((full.executions + full.pruned) as usize * 4 / 5);
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

/// Threads that main joins, each with this body.
fn joined(threads: usize, body: impl Fn(usize) + Send + Sync + 'static) {
    let body = dpor::sync::Arc::new(body);
    let spawn = |n| {
        let body = body.clone();
        dpor::thread::spawn(move || body(n))
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    for thread in all {
        thread.join().unwrap();
    }
}

/// Threads that add to one variable.
fn additions(threads: usize, each: usize) {
    let x = AtomicUsize::new(0);
    joined(threads, move |_| {
        for _ in 0..each {
            x.fetch_add(1, SeqCst);
        }
    });
}

fn lost_update(threads: usize) {
    let x = AtomicUsize::new(0);
    joined(threads, move |_| x.store(x.load(SeqCst) + 1, SeqCst));
}

/// One thread writes what the others read.
fn readers(readers: usize) {
    let x = AtomicUsize::new(0);
    joined(readers + 1, move |n| match n {
        0 => x.store(1, SeqCst),
        _ => {
            x.load(SeqCst);
        }
    });
}

/// The table of `docs/BIG_STATE_SPACES.md`, which `cargo test --test explored table --
/// --nocapture` prints.
#[test]
fn the_table_of_executions_within_a_bound() {
    type Row = (&'static str, fn(), [[usize; 4]; 2]);
    let rows: [Row; 5] = [
        (
            "2 threads, 12 additions each",
            || additions(2, 12),
            [[2, 24, 266, 1476], [1, 13, 145, 871]],
        ),
        (
            "3 threads, 8 additions each",
            || additions(3, 8),
            [[6, 132, 2022, 21132], [1, 17, 201, 1413]],
        ),
        (
            "3 threads, 3 additions each",
            || additions(3, 3),
            [[6, 42, 192, 552], [1, 7, 31, 88]],
        ),
        (
            "lost update, 4 threads",
            || lost_update(4),
            [[24, 168, 432, 576], [1, 7, 30, 81]],
        ),
        (
            "readers(6)",
            || readers(6),
            [[64, 64, 64, 64], [1, 2, 12, 32]],
        ),
    ];
    for (name, body, expected) in rows {
        for (delays, expected) in [false, true].into_iter().zip(expected) {
            let mut row = String::new();
            for (most, expected) in expected.into_iter().enumerate() {
                let mut builder = alone();
                match delays {
                    true => builder.delay_bound = Some(most),
                    false => builder.preemption_bound = Some(most),
                }
                let report = builder.check(body);
                assert_eq!(report.executions, expected as u64, "{name}, {most}");
                row += &format!(" {} ({}) |", report.executions, report.pruned);
            }
            let (name, bound) = match delays {
                true => ("", "delays"),
                false => (name, "preemptions"),
            };
            println!("| {name} | {bound} |{row}");
        }
    }
    for (most, expected) in [(3, 2), (4, 24), (5, 266)] {
        let mut builder = alone();
        builder.switch_bound = Some(most);
        let report = builder.check(|| additions(2, 12));
        assert_eq!(report.executions, expected);
        println!("within {most} switches: {expected} ({})", report.pruned);
    }
}

#[test]
fn threads_that_nobody_lets_out_of_their_loops_go_round_at_no_price() {
    let bounds: [fn(&mut Builder); 3] = [
        |it| it.preemption_bound = Some(0),
        // To the first one, and from that one to the second one.
        |it| it.switch_bound = Some(2),
        |it| it.delay_bound = Some(0),
    ];
    for set in bounds {
        let mut builder = Builder::new();
        set(&mut builder);
        let failure = builder.explore(|| {
            let flag = Arc::new(AtomicUsize::new(0));
            let threads = [(); 2].map(|()| {
                let flag = flag.clone();
                thread::spawn(move || {
                    while flag.load(SeqCst) == 0 {
                        hint::spin_loop();
                    }
                })
            });
            threads.into_iter().for_each(|it| it.join().unwrap());
        });
        let failure = failure.expect_err("nobody sets the flag");
        assert_eq!(failure.kind(), FailureKind::Livelock);
    }
}

/// One thread adds twice, with a yield in between, and main looks once behind a yield.
fn seen_half_way(hint: fn()) -> impl Fn() + Send + Sync + Clone {
    move || {
        let added = Arc::new(AtomicUsize::new(0));
        let theirs = added.clone();
        let adds = thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
            hint();
            theirs.fetch_add(1, SeqCst);
        });
        hint();
        assert_ne!(added.load(SeqCst), 1, "half way");
        adds.join().unwrap();
    }
}

#[test]
fn a_switch_away_from_a_thread_that_has_come_to_a_hint_is_no_preemption() {
    for hint in [thread::yield_now, hint::spin_loop] {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(0);
        let failure = builder.explore(seen_half_way(hint));
        let failure = failure.expect_err("neither switch is a preemption");
        assert!(failure.to_string().contains("half way"), "{failure}");
    }
    // A scheduler that goes on with the next thread where one yields comes there, too.
    let mut builder = Builder::new();
    builder.delay_bound = Some(0);
    let failure = builder.explore(seen_half_way(thread::yield_now));
    assert!(failure.is_err(), "main goes on where the other one yields");
    // Without a hint both are.
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    assert_eq!(builder.check(seen_half_way(|| ())).executions, 2);
    builder.preemption_bound = Some(2);
    assert!(builder.explore(seen_half_way(|| ())).is_err());
}

/// The operations of the programs in [`COSTS`], on this OS thread.
fn operation<T>(operation: impl FnOnce() -> T) -> T {
    let outcome = operation();
    STEPS.set(STEPS.get() + 1);
    outcome
}

std::thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// [`joined`] that counts its operations, too.
fn joined_counting(threads: usize, body: impl Fn(usize) + Send + Sync + 'static) {
    // The references of dpor's own `Arc` have operations, too.
    let body = std::sync::Arc::new(body);
    let spawn = |n| {
        let body = body.clone();
        operation(|| thread::spawn(move || body(n)))
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    for thread in all {
        operation(|| thread.join().unwrap());
    }
}

/// Finds the last element that is not zero, while threads fill the elements one after the other.
fn last_zero(threads: usize) {
    let all: Vec<_> = (0..=threads).map(|_| AtomicUsize::new(0)).collect();
    joined_counting(threads + 1, move |n| match n {
        0 => {
            let mut at = threads;
            while operation(|| all[at].load(SeqCst)) != 0 {
                at -= 1;
            }
        }
        n => {
            let before = operation(|| all[n - 1].load(SeqCst));
            operation(|| all[n].store(before + 1, SeqCst));
        }
    });
}

/// Programs of which some are cheaper within a bound, and some without one.
const COSTS: [(&str, fn()); 4] = [
    ("lastzero(6)", || last_zero(6)),
    ("readers(6)", || {
        let x = AtomicUsize::new(0);
        joined_counting(7, move |n| match n {
            0 => operation(|| x.store(1, SeqCst)),
            _ => drop(operation(|| x.load(SeqCst))),
        });
    }),
    ("2 threads, 7 additions each", || {
        let x = AtomicUsize::new(0);
        joined_counting(2, move |_| {
            for _ in 0..7 {
                operation(|| x.fetch_add(1, SeqCst));
            }
        });
    }),
    ("lost update, 4 threads", || {
        let x = AtomicUsize::new(0);
        joined_counting(4, move |_| {
            let before = operation(|| x.load(SeqCst));
            operation(|| x.store(before + 1, SeqCst));
        });
    }),
];

#[test]
fn a_bound_costs_at_most_twice_the_cheaper_of_both_searches() {
    let mut cheaper_without = 0;
    for (name, body) in COSTS {
        let cost = |set: &dyn Fn(&mut Builder)| {
            let mut builder = Builder::new();
            builder.simplify = 0;
            builder.memory = dpor::Memory::Sc;
            set(&mut builder);
            STEPS.set(0);
            let report = builder.check(body);
            (report, STEPS.get())
        };
        let (all, without) = cost(&|_| ());
        for (most, delays) in (0..8).map(|it| (it / 2, it % 2 == 1)) {
            let bound = |builder: &mut Builder| match delays {
                true => builder.delay_bound = Some(most),
                false => builder.preemption_bound = Some(most),
            };
            let (some, within) = cost(&|builder| {
                builder.algorithm = Algorithm::Bounded;
                bound(builder);
            });
            let (report, both) = cost(&bound);
            let least = within.min(without);
            // The turns are as long in events. Of an execution that is given up, the operations are
            // a larger part of the events: the ends of threads are events, too.
            let longest = report.longest as u64;
            assert!(
                2 * both <= 5 * least + 4 * longest,
                "{name}, {most}: {both} steps, {within} within the bound, {without} without it"
            );
            println!(
                "{name}, {most}: {both} steps, {within} within the bound, {without} without it"
            );
            let counts = |it: &dpor::Report| (it.executions, it.pruned, it.events, it.verdict);
            let is_all = report.complete && !some.complete;
            cheaper_without += u32::from(is_all);
            let expected = if is_all { &all } else { &some };
            if report.complete {
                assert_eq!(report.executions, all.executions, "{name}, {most}");
                let text = report.to_string();
                assert!(
                    text.contains(") was not needed: these are all traces"),
                    "{text}"
                );
            } else {
                assert_eq!(counts(&report), counts(expected), "{name}, {most}");
            }
        }
    }
    assert!(cheaper_without > 4, "{cheaper_without}");
}

/// The search within the bound alone begins 2,566,537 executions.
#[test]
fn a_bound_out_of_habit_costs_what_none_costs() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    let report = builder.check(|| last_zero(10));
    println!("{report}");
    assert_eq!((report.executions, report.pruned), (3328, 0));
    assert_eq!(report.verdict, Verdict::Complete);
    assert!((1..10_000).contains(&report.reruns), "{}", report.reruns);
}

/// Two threads, each of which stores and reads what the other one stores.
fn store_buffering(order: (Ordering, Ordering)) {
    let both = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let (theirs, (store, load)) = (both.clone(), order);
    let other = thread::spawn(move || {
        theirs[0].store(1, store);
        theirs[1].load(load)
    });
    both[1].store(1, store);
    let mine = both[0].load(load);
    assert!(mine == 1 || other.join().unwrap() == 1, "both read 0");
}

/// A static of std's decides what the model does, once an execution of C11 has set it.
#[test]
fn what_is_not_deterministic_under_c11_alone_fails_no_test_within_a_bound() {
    use std::sync::atomic::AtomicBool;

    static SEEN: AtomicBool = AtomicBool::new(false);
    let model = || {
        let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
        if SEEN.load(SeqCst) {
            x.load(Relaxed);
        }
        let both = |one: &AtomicUsize, other: &AtomicUsize| {
            one.store(1, Relaxed);
            let first = other.load(Relaxed);
            one.store(2, Relaxed);
            first + other.load(Relaxed)
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| both(&x, &y));
            if both(&y, &x) + other.join().unwrap() == 0 {
                SEEN.store(true, SeqCst);
            }
        });
    };
    let mut builder = Builder::new();
    builder.preemption_bound = Some(10);
    let report = builder.check(model);
    assert!(SEEN.load(SeqCst) && report.complete, "{report}");
    let is_possible = matches!(report.weak, WeakMemory::Possible { .. });
    assert!(is_possible, "{report}");
    // Without a bound, every execution was asked for.
    SEEN.store(false, SeqCst);
    let failure = Builder::new().explore(model).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::NotDeterministic, "{failure}");
}

/// The search without the bound ends for nothing, so that the one within the bound explores all
/// executions, and a third one looks for weak behaviour.
#[test]
fn what_is_not_deterministic_in_the_look_behind_a_bound_fails_no_test() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    /// One of the runs of the search without the bound.
    const WITHOUT_A_BOUND: usize = 3;

    let explore = |different_from: usize| {
        RUNS.store(0, SeqCst);
        let mut builder = Builder::new();
        builder.preemption_bound = Some(2);
        builder.thorough = dpor::Thorough::Off;
        builder.explore(move || {
            let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let run = RUNS.fetch_add(1, SeqCst);
            if run == WITHOUT_A_BOUND || run >= different_from {
                x.load(Relaxed);
            }
            thread::scope(|scope| {
                scope.spawn(|| {
                    y.store(1, Relaxed);
                    x.store(1, Relaxed);
                    x.store(2, Relaxed);
                });
                y.store(1, Relaxed);
                x.load(Relaxed);
            });
        })
    };
    let report = explore(usize::MAX).unwrap();
    let runs = RUNS.load(SeqCst);
    let promised = runs - report.executions as usize;
    assert_eq!((report.executions, promised), (6, 8), "{report}");
    assert_eq!(report.weak, WeakMemory::Impossible, "{report}");
    for different_from in promised + 1..runs {
        let report = explore(different_from).unwrap();
        assert_eq!((report.executions, report.complete), (6, true), "{report}");
        assert_eq!(report.weak, WeakMemory::Unasked, "{report}");
    }
    for different_from in WITHOUT_A_BOUND + 2..promised {
        let failure = explore(different_from).unwrap_err();
        let kind = failure.kind();
        assert_eq!(kind, FailureKind::NotDeterministic, "{failure}");
    }
}

#[test]
fn a_bound_or_an_order_leaves_weak_memory_in() {
    let mut within_two = Builder::new();
    within_two.preemption_bound = Some(2);
    let mut in_turns = Builder::new();
    in_turns.order = Order::RoundRobin;
    for settings in [within_two, in_turns] {
        let weak = settings.explore(|| store_buffering((Release, Acquire)));
        let failure = weak.expect_err("both may read 0");
        assert!(failure.schedule().starts_with("v2 c11"), "{failure}");
        let strong = settings
            .explore(|| store_buffering((SeqCst, SeqCst)))
            .unwrap();
        assert_eq!(strong.weak, WeakMemory::Impossible, "{strong}");
        // With this the third of the executions is the weak one.
        let passing = settings.explore(|| {
            let (flag, data) = (AtomicUsize::new(0), AtomicUsize::new(0));
            thread::scope(|scope| {
                scope.spawn(|| {
                    data.store(1, Relaxed);
                    flag.store(1, Relaxed);
                });
                _ = (flag.load(Relaxed), data.load(Relaxed));
            });
        });
        let passing = passing.unwrap();
        assert_eq!(passing.executions, 4, "{passing}");
        assert!(matches!(
            passing.weak,
            WeakMemory::Explored { sequential: 3, .. }
        ));
    }
}

#[test]
fn a_model_with_one_trace_runs_once_within_a_bound() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    let report = builder.check(|| {
        RUNS.fetch_add(1, SeqCst);
        thread::spawn(|| ()).join().unwrap();
    });
    assert!(report.complete, "{report}");
    assert_eq!((report.executions, report.reruns), (1, 0));
    assert_eq!(RUNS.load(SeqCst), 1);
}
