//! Is every kind of failure found, told in its own words, and reproduced by its schedule?

use std::panic::catch_unwind;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, Failure, FailureKind, Verdict, thread};

fn failure(f: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    Builder::new().explore(f).expect_err("the model fails")
}

fn lost_update() {
    let counter = Arc::new(AtomicUsize::new(0));
    let shared = counter.clone();
    let increment = |x: &AtomicUsize| x.store(x.load(SeqCst) + 1, SeqCst);
    let other = thread::spawn(move || increment(&shared));
    increment(&counter);
    other.join().unwrap();
    assert_eq!(counter.load(SeqCst), 2, "an update was lost");
}

#[test]
fn a_panic_is_told_with_its_text_first_and_its_schedule_replays_to_it() {
    let first = failure(lost_update);
    assert_eq!(first.kind(), FailureKind::Panic);
    let text = first.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("thread 'main' panicked at tests/failures.rs:"),
        "{text}"
    );
    assert_eq!(
        lines[1],
        "assertion `left == right` failed: an update was lost"
    );
    assert!(
        text.contains("counter := 1 (was 1)") || text.contains("x := 1 (was 1)"),
        "{text}"
    );
    assert!(
        text.contains(&format!("DPOR_REPLAY=\"{}\"", first.schedule())),
        "{text}"
    );

    let events = first.events();
    let shown = |what: &str| text.contains(what) || ["start", "end"].contains(&what);
    assert!(events.iter().all(|event| shown(&event.what)));
    let last = events.last().expect("it has events");
    assert_eq!(
        (last.thread.as_str(), last.what.as_str()),
        ("main", "x = 1")
    );
    assert!(last.place.file().ends_with("failures.rs"));

    let mut builder = Builder::new();
    builder.replay = Some(first.schedule().to_owned());
    let again = builder
        .explore(lost_update)
        .expect_err("the schedule fails again");
    assert_eq!(again.schedule(), first.schedule());
    assert_eq!(again.kind(), FailureKind::Panic);
}

#[test]
fn one_event_is_said_in_the_singular() {
    let failure = Builder::new()
        .explore(|| {
            AtomicUsize::new(0).load(SeqCst);
            panic!("soon");
        })
        .expect_err("panics");
    let text = failure.to_string();
    assert!(text.contains("(execution 1, after 1 event)\n"), "{text}");
}

#[test]
fn a_schedule_that_does_not_fit_or_is_malformed_is_refused_with_the_position() {
    let mut builder = Builder::new();
    builder.replay = Some("v1 main*3 main.7".to_owned());
    let stale = builder
        .explore(lost_update)
        .expect_err("there is no seventh thread");
    assert_eq!(stale.kind(), FailureKind::Schedule);
    let text = stale.to_string();
    assert!(
        text.contains("at step 4 it asks for a step of main.7, but only"),
        "{text}"
    );
    builder.replay = Some("v1 rain".to_owned());
    let malformed = builder.explore(lost_update).expect_err("malformed");
    assert!(
        malformed
            .to_string()
            .contains("at byte 3: expected a thread"),
        "{malformed}"
    );
}

#[test]
#[should_panic(expected = "an update was lost")]
fn the_test_harness_sees_the_panic_of_the_test() {
    dpor::model(lost_update);
}

#[test]
#[should_panic(expected = "deadlock: 2 threads wait for ever")]
fn a_deadlock_panics_with_its_verdict() {
    dpor::model(opposite_orders);
}

fn opposite_orders() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let shared = locks.clone();
    let other = thread::spawn(move || {
        let b = shared.1.lock().unwrap();
        let a = shared.0.lock().unwrap();
        drop((b, a));
    });
    let a = locks.0.lock().unwrap();
    let b = locks.1.lock().unwrap();
    drop((a, b));
    other.join().unwrap();
}

#[test]
fn a_deadlock_names_what_each_thread_waits_for_and_who_holds_it() {
    let found = failure(opposite_orders);
    assert_eq!(found.kind(), FailureKind::Deadlock);
    let text = found.to_string();
    assert!(text.contains("main       waits to lock shared.1"), "{text}");
    assert!(text.contains("held by main.1 since event"), "{text}");
    assert!(text.contains("main.1     waits to lock locks.0"), "{text}");
    assert!(text.contains("held by main since event"), "{text}");
    let circle =
        "main holds locks.0 and waits for shared.1, main.1 holds shared.1 and waits for locks.0";
    assert!(text.contains(circle), "{text}");
}

#[test]
fn a_thread_that_locks_a_mutex_twice_waits_for_itself() {
    let found = failure(|| {
        let lock = Mutex::new(());
        let _first = lock.lock();
        let _second = lock.lock();
    });
    assert_eq!(found.kind(), FailureKind::Deadlock);
    assert!(found.to_string().contains("held by main"), "{found}");
    let circle = "main holds lock and waits for it itself";
    assert!(found.to_string().contains(circle), "{found}");
}

#[test]
fn what_was_seen_before_it_was_overwritten_is_no_lost_update() {
    let report = |looks_again: bool| {
        let found = failure(move || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let early = x.load(SeqCst);
            other.join().unwrap();
            let late = if looks_again { x.load(SeqCst) } else { early };
            x.store(late + 1, SeqCst);
            assert_eq!(early, 1);
        });
        found.to_string()
    };
    let (lost, seen) = (report(false), report(true));
    assert!(lost.contains("a lost update: main read x"), "{lost}");
    assert!(!seen.contains("lost update"), "{seen}");
    // Who looks again does not act on what it saw before either.
    assert!(!seen.contains("check, then act"), "{seen}");
}

#[test]
fn a_loop_that_looks_until_something_changes_does_not_check_and_act() {
    let found = failure(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        let mut rounds = 0;
        while !flag.load(SeqCst) {
            rounds += 1;
            dpor::hint::spin_loop();
        }
        other.join().unwrap();
        assert!(rounds < 3, "it has not come soon");
    });
    let text = found.to_string();
    assert!(
        text.contains("it fails because main's \"flag = false\""),
        "{text}"
    );
    assert!(!text.contains("check, then act"), "{text}");
}

#[test]
fn a_loop_that_nobody_ends_is_a_livelock() {
    let found = failure(|| {
        let flag = AtomicBool::new(false);
        while !flag.load(SeqCst) {
            thread::yield_now();
        }
    });
    assert_eq!(found.kind(), FailureKind::Livelock);
    assert!(
        found.to_string().contains("spins until flag changes"),
        "{found}"
    );
}

#[test]
fn a_loop_without_a_hint_is_a_livelock_too() {
    for flags in 1..=3 {
        let found = failure(move || {
            let flags: Vec<_> = (0..flags).map(|_| AtomicBool::new(false)).collect();
            while !flags.iter().any(|flag| flag.load(SeqCst)) {}
        });
        assert_eq!(found.kind(), FailureKind::Livelock, "{flags}: {found}");
        let rounds = "nothing has changed for 30000 rounds in a row";
        assert!(found.to_string().contains(rounds), "{flags}: {found}");
    }
    // One that gives up is none.
    let report = Builder::new().check(|| {
        let flag = AtomicBool::new(false);
        assert!((0..20_000).all(|_| !flag.load(SeqCst)));
    });
    assert!(report.complete);
}

#[test]
fn a_lock_that_is_spun_on_by_swapping_in_what_is_there_waits_without_a_hint() {
    let report = Builder::new().check(|| {
        let lock = Arc::new(AtomicBool::new(false));
        let take = |lock: &AtomicBool| {
            while lock.swap(true, SeqCst) {}
            lock.store(false, SeqCst);
        };
        let theirs = lock.clone();
        let other = thread::spawn(move || take(&theirs));
        take(&lock);
        other.join().unwrap();
    });
    assert!(report.complete);
    // Each of two may find it taken up to some thousand times.
    assert!(report.executions < 3000, "{}", report.executions);
}

#[test]
fn too_many_events_name_the_limit_its_value_and_how_to_raise_it() {
    let mut builder = Builder::new();
    builder.max_branches = 50;
    let found = builder
        .explore(|| {
            let x = AtomicUsize::new(0);
            for _ in 0..100 {
                x.fetch_add(1, SeqCst);
            }
        })
        .expect_err("over the limit");
    assert_eq!(found.kind(), FailureKind::Limit);
    let text = found.to_string();
    assert!(text.contains("more than 50, the last at"), "{text}");
    assert!(
        text.contains("`Builder::max_branches` (DPOR_MAX_BRANCHES)"),
        "{text}"
    );
}

#[test]
fn too_many_events_of_a_loop_with_a_hint_are_not_put_down_to_a_missing_one() {
    let advice = |hints: bool| {
        let mut builder = Builder::new();
        builder.max_branches = 200;
        let found = builder.explore(move || {
            let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
            while !stop.load(SeqCst) {
                rounds.fetch_add(1, SeqCst);
                if hints {
                    dpor::hint::spin_loop();
                }
            }
        });
        found.expect_err("it has no end").to_string()
    };
    let missing = "or give a loop that waits here a `dpor::hint::spin_loop()`";
    let counts = "times to the hint at tests/failures.rs:";
    let (with, without) = (advice(true), advice(false));
    assert!(with.contains(counts) && !with.contains(missing), "{with}");
    assert!(
        without.contains(missing) && !without.contains(counts),
        "{without}"
    );
    assert!(
        with.contains("DPOR_MAX_ROUNDS") && with.contains("DPOR_MAX_BRANCHES"),
        "{with}"
    );
}

#[test]
fn an_operation_that_comes_out_differently_when_it_is_repeated_is_told() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let found = failure(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let shared = x.clone();
        x.load(SeqCst);
        // It succeeds the first time, and fails the second.
        let expected = runs.fetch_add(1, SeqCst);
        let _ = x.compare_exchange(expected, 7, SeqCst, SeqCst);
        let other = thread::spawn(move || shared.store(1, SeqCst));
        x.load(SeqCst);
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::NotDeterministic);
    let text = found.to_string();
    assert!(text.contains("now, with another outcome"), "{text}");
}

#[test]
fn an_object_that_is_not_there_any_more_when_it_is_repeated_is_told() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let found = failure(move || {
        // Blocks of different sizes are different blocks.
        let slots: Vec<_> = (0..runs.fetch_add(1, SeqCst) + 2).collect();
        let slots: Arc<[_]> = slots.into_iter().map(AtomicUsize::new).collect();
        slots[0].load(SeqCst);
        let shared = slots.clone();
        let other = thread::spawn(move || shared[1].store(1, SeqCst));
        slots[1].load(SeqCst);
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::NotDeterministic);
    let text = found.to_string();
    assert!(
        text.contains("event 1, by main, was \"load slots[0]\" at tests/failures.rs"),
        "{text}"
    );
    assert!(text.contains("and is \"load slots[0]#2\" at"), "{text}");
}

#[test]
fn a_closure_that_is_not_deterministic_is_told_so() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let found = failure(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let shared = x.clone();
        if runs.fetch_add(1, SeqCst).is_multiple_of(2) {
            x.load(SeqCst);
        } else {
            x.store(2, SeqCst);
        }
        let other = thread::spawn(move || shared.store(1, SeqCst));
        x.load(SeqCst);
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::NotDeterministic);
    let text = found.to_string();
    assert!(text.contains("the test is not deterministic"), "{text}");
    assert!(
        text.contains("was \"load x\" at") && text.contains("is \"store to x\" at"),
        "{text}"
    );
}

/// Not a test of its own: what [`a_report_names_the_file_and_the_command_that_replay_it`] runs.
#[test]
fn child_that_fails() {
    if std::env::var_os("DPOR_TEST_FAILS").is_some() {
        Builder::new().check(lost_update);
    }
}

/// Not a test of its own: what [`a_schedule_is_for_one_of_a_test_s_models`] runs.
#[test]
fn child_whose_third_model_fails() {
    if std::env::var_os("DPOR_TEST_FAILS").is_none() {
        return;
    }
    for adds in [true, true, false, true] {
        let report = Builder::new().check(move || {
            if !adds {
                return lost_update();
            }
            let counter = Arc::new(AtomicUsize::new(0));
            let shared = counter.clone();
            let other = thread::spawn(move || shared.fetch_add(1, SeqCst));
            counter.fetch_add(1, SeqCst);
            other.join().unwrap();
        });
        assert_eq!(report.executions, 2, "{report}");
    }
}

/// What a test of this program that fails says with this in `DPOR_REPLAY`.
fn run(child: &str, replay: &str) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--nocapture"]);
    command.env("DPOR_TEST_FAILS", "1");
    command.env("CARGO_PKG_NAME", env!("CARGO_PKG_NAME"));
    command.env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
    command.env("DPOR_REPORT_DIR", env!("CARGO_TARGET_TMPDIR"));
    if !replay.is_empty() {
        command.env("DPOR_REPLAY", replay);
    }
    String::from_utf8(command.output().unwrap().stderr).unwrap()
}

/// What stands behind a label of the report, which is once at the beginning of a line.
fn labelled(text: &str, label: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let [only] = lines.collect::<Vec<_>>()[..] else {
        panic!("not one `{label}` in: {text}")
    };
    only.to_owned()
}

#[test]
fn a_schedule_is_for_one_of_a_test_s_models() {
    let child = "child_whose_third_model_fails";
    let text = run(child, "");
    let schedule = labelled(&text, "schedule   ");
    assert!(schedule.starts_with("v1 "), "{text}");
    let replay = labelled(&text, "replay     ");
    let meant = format!("model 3: {schedule}");
    assert!(
        replay.starts_with(&format!("DPOR_REPLAY=\"{meant}\" ")),
        "{text}"
    );
    let json = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{child}.json"));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(json["command"], replay.as_str());
    assert_eq!(json["schedule"], schedule.as_str());
    let kept = labelled(&text, "kept       in ");
    let (path, _) = kept.split_once(" (DPOR_REPLAY=").expect("how to replay it");
    for replay in [meant.clone(), format!("@{path}")] {
        let again = run(child, &replay);
        // The other models are explored.
        assert!(again.contains("(execution 1, after"), "{again}");
        assert!(!again.contains("has followed the schedule"), "{again}");
        assert_eq!(labelled(&again, "schedule   "), schedule);
    }
    // What is given to a model by the program is for that one.
    let mut builder = Builder::new();
    builder.replay = Some("model 3: v1 main".to_owned());
    let report = builder.check(|| {
        dpor::choose(2);
    });
    assert_eq!(report.verdict, Verdict::Replayed);
    let malformed = run(child, "model 1: v1 rain");
    assert!(
        malformed.contains("at byte 12: expected a thread"),
        "{malformed}"
    );
}

#[test]
fn a_report_names_the_file_and_the_command_that_replay_it() {
    let run = |replay: &str| run("child_that_fails", replay);
    let text = run("");
    let kept = labelled(&text, "kept       in ");
    let (path, replay) = kept.split_once(" (DPOR_REPLAY=").expect("how to replay it");
    assert_eq!(replay, format!("@{path})"));
    // So it is with the command, which names the program and the whole name of the test.
    let replay = labelled(&text, "replay     ");
    let (schedule, command) = replay.split_once("\" ").expect("a schedule in quotes");
    let schedule = schedule.strip_prefix("DPOR_REPLAY=\"").expect("a schedule");
    assert_eq!(schedule, labelled(&text, "schedule   "));
    let own = " -- --exact child_that_fails";
    assert!(command.contains("cargo test --test failures"), "{command}");
    assert!(command.ends_with(own), "{command}");
    let again = run(&format!("@{path}"));
    assert_eq!(
        labelled(&again, "schedule   "),
        labelled(&text, "schedule   ")
    );
}

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

/// Two words that are written by each of two threads and read in between; `told` is what a panic says of them.
fn torn(told: fn(usize, usize) -> String) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let writers = [1, 2].map(|value| {
            let words = words.clone();
            thread::spawn(move || words.each_ref().map(|word| word.store(value, SeqCst)))
        });
        let [first, second] = words.each_ref().map(|word| word.load(SeqCst));
        if first > second {
            panic!("{}", told(first, second));
        }
        for writer in writers {
            writer.join().unwrap();
        }
    }
}

#[test]
fn a_simpler_execution_that_fails_with_other_values_is_shown_and_raised() {
    let words = |first, second| format!("{first} is not {second}");
    let model = || Builder::new();
    let mut as_found = model();
    as_found.simplify = 0;
    let found = as_found.explore(torn(words)).expect_err("it fails");
    let shown = model().explore(torn(words)).expect_err("it fails");
    let first = |failure: &Failure| failure.to_string().lines().nth(1).unwrap().to_owned();
    assert_ne!(first(&found), first(&shown));
    assert!(shown.events().len() < found.events().len());
    let raised = catch_unwind(|| model().check(torn(words))).expect_err("it fails");
    assert_eq!(raised.downcast_ref::<String>(), Some(&first(&shown)));
}

#[test]
fn a_simpler_execution_that_fails_with_other_words_is_another_failure() {
    let words = |first: usize, second| format!("{} and {}", "x".repeat(first), "y".repeat(second));
    let mut as_found = Builder::new();
    as_found.simplify = 0;
    let found = as_found.explore(torn(words)).expect_err("it fails");
    let shown = failure(torn(words));
    let first = |failure: &Failure| failure.to_string().lines().nth(1).unwrap().to_owned();
    assert_eq!(first(&found), first(&shown));
}

#[test]
fn a_failure_that_needs_many_switches_is_shown_without_those_that_it_does_not_need() {
    // A deque from which its owner takes the last item without a compare-exchange: that takes three
    // preemptions, of the owner and of one thief. The other thief has no part in it.
    let steal = || {
        let deque = Arc::new((AtomicIsize::new(0), AtomicIsize::new(2)));
        let thieves = [(); 2].map(|()| {
            let deque = deque.clone();
            thread::spawn(move || {
                let (top, bottom) = &*deque;
                let at = top.load(SeqCst);
                let any = at < bottom.load(SeqCst);
                any && top.compare_exchange(at, at + 1, SeqCst, SeqCst).is_ok()
            })
        });
        let pop = || {
            let (top, bottom) = &*deque;
            let at = bottom.load(SeqCst) - 1;
            bottom.store(at, SeqCst);
            let first = top.load(SeqCst);
            if first == at {
                top.store(at + 1, SeqCst);
            }
            if first >= at {
                bottom.store(at + 1, SeqCst);
            }
            first <= at
        };
        let popped = [pop(), pop()];
        let stolen = thieves.map(|thief| thief.join().unwrap());
        let taken = popped.into_iter().chain(stolen).filter(|&taken| taken);
        assert!(taken.count() <= 2, "an item was taken twice");
    };
    let mut as_found = Builder::new();
    as_found.simplify = 0;
    let found = as_found.explore(steal).expect_err("it fails");
    let shown = failure(steal);
    let turns = |failure: &Failure| failure.schedule().split(' ').skip(1).count();
    assert_eq!(turns(&shown), 6, "{}", shown.schedule());
    assert!(turns(&found) > 6, "{}", found.schedule());
}

#[test]
fn a_panic_while_other_threads_hold_locks_unwinds_every_stack() {
    static DROPS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    struct Payload(Arc<Mutex<u32>>);
    impl Drop for Payload {
        fn drop(&mut self) {
            // Takes a lock that another thread of the torn-down execution holds.
            *self.0.lock().unwrap_or_else(|e| e.into_inner()) += 1;
            DROPS.fetch_add(1, SeqCst);
        }
    }
    let mut builder = Builder::new();
    builder.simplify = 0;
    let found = builder.explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let payload = Payload(lock.clone());
        let held = lock.lock().unwrap();
        let other = thread::spawn(move || {
            let _payload = payload;
            panic!("in the middle");
        });
        drop(other.join());
        drop(held);
    });
    let found = found.expect_err("the panic");
    assert_eq!(found.kind(), FailureKind::Panic);
    assert!(found.to_string().contains("in the middle"));
    assert_eq!(DROPS.load(SeqCst), 1);
}

#[test]
fn failing_models_in_parallel_threads_report_their_own_failures() {
    let rounds = 200;
    std::thread::scope(|scope| {
        for text in ["left", "right"] {
            scope.spawn(move || {
                for _ in 0..rounds {
                    let found = failure(move || {
                        let x = Arc::new(AtomicUsize::new(0));
                        let shared = x.clone();
                        let other = thread::spawn(move || shared.store(1, SeqCst));
                        assert_eq!(x.load(SeqCst), 0, "{text}");
                        other.join().unwrap();
                    });
                    assert!(found.to_string().contains(text), "{found}");
                }
            });
        }
    });
    // The hook that was there before still sees panics outside of models.
    let caught = std::panic::catch_unwind(|| panic!("outside"));
    assert!(caught.is_err());
}

#[test]
fn outside_of_a_model_the_shims_are_those_of_std() {
    let total = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let handles: Vec<_> = (0..4)
        .map(|_| {
            let total = total.clone();
            thread::spawn(move || {
                for _ in 0..100 {
                    *total.0.lock().unwrap() += 1;
                    total.1.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    assert_eq!(*total.0.lock().unwrap(), 400);
    assert_eq!(total.1.load(SeqCst), 400);
    let panicked = thread::spawn(|| panic!("seen by join")).join();
    assert!(panicked.is_err());
}

#[test]
fn a_stack_that_ends_in_the_middle_of_an_access_is_told_with_the_setting() {
    fn descend(x: &AtomicUsize, depth: usize) -> usize {
        if x.load(SeqCst) == usize::MAX {
            return 0;
        }
        descend(x, depth + 1) + std::hint::black_box([depth; 4])[depth % 4]
    }
    for _ in 0..2 {
        let found = failure(|| {
            let x = AtomicUsize::new(0);
            descend(&x, 0);
        });
        assert_eq!(found.kind(), FailureKind::StackOverflow);
        assert!(found.to_string().contains("DPOR_STACK_SIZE"), "{found}");
    }
}

#[test]
fn a_tracked_value_that_is_not_dropped_on_one_path_is_a_leak() {
    use dpor::alloc::Track;
    let run = |leaks: bool| {
        Builder::new().explore(move || {
            let slot = Arc::new(AtomicUsize::new(0));
            let theirs = slot.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let value = Track::new(String::from("kept"));
            if leaks && slot.load(SeqCst) == 1 {
                std::mem::forget(value);
            }
            other.join().unwrap();
        })
    };
    assert!(run(false).expect("nothing leaks").complete);
    let found = run(true).expect_err("one path leaks");
    assert_eq!(found.kind(), FailureKind::Leak);
    assert!(
        found.to_string().contains("  made at tests/failures.rs:"),
        "{found}"
    );
}

/// The lines of a failure between its verdict and its table, and its JSON. What came of running it again is on its page, too.
fn told(f: impl Fn() + Send + Sync + 'static) -> (String, serde_json::Value) {
    let failure = failure(f);
    let text = failure.to_string();
    let (_, below) = text.split_once("(execution ").expect("a verdict");
    let (lines, _) = below.split_once("\n\n").expect("a table");
    let page = failure.html();
    for again in ["passes", "ends otherwise", "fails too"] {
        let said = format!("run again from the same one, the test {again}");
        assert_eq!(page.contains(&said), lines.contains(&said), "{lines}");
    }
    let json = serde_json::from_str(&failure.json()).expect("JSON");
    (lines.to_owned(), json)
}

/// Two threads that depend on each other, in two executions.
fn two_orders(shared: &Arc<AtomicUsize>) -> usize {
    let theirs = shared.clone();
    let other = thread::spawn(move || theirs.store(1, SeqCst));
    let seen = shared.load(SeqCst);
    other.join().unwrap();
    seen
}

#[test]
fn a_failure_that_does_not_come_again_from_its_schedule_is_not_put_down_to_it() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let (lines, json) = told(move || {
        two_orders(&Arc::default());
        assert!(runs.fetch_add(1, SeqCst) != 1, "the second time");
    });
    let expected = "the schedule does not decide alone: run again from the same one, the test passes, and so may";
    assert!(lines.contains(expected), "{lines}");
    assert!(lines.contains("that keeps its value"), "{lines}");
    assert!(!lines.contains("it fails because"), "{lines}");
    assert_eq!(
        (&json["again"], &json["pair"]),
        (&"passes".into(), &().into())
    );
    assert_eq!(json["simplified"], false);

    let runs = std::sync::atomic::AtomicUsize::new(0);
    let (lines, json) = told(move || {
        let seen = two_orders(&Arc::default());
        match runs.fetch_add(1, SeqCst) {
            0 => {}
            1 => panic!("a wild guess"),
            _ if seen == 1 => drop(Mutex::new(()).lock().map(|_held| thread::park())),
            _ => {}
        }
    });
    let expected = "the test ends otherwise (deadlock), and so may the replay below";
    assert!(lines.contains(expected), "{lines}");
    assert_eq!(
        (&json["again"], &json["pair"]),
        (&"ends_otherwise".into(), &().into())
    );
}

#[test]
fn a_failure_is_put_down_to_a_pair_only_if_it_passes_the_other_way_round_each_time() {
    let mut put_down = 0;
    for passes in 2..40 {
        let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = runs.clone();
        let (lines, _) = told(move || {
            let in_time = counted.fetch_add(1, SeqCst) < passes;
            let seen = two_orders(&Arc::default());
            assert!(seen == 0 && in_time, "it is late");
        });
        if lines.contains("it fails because") {
            put_down += 1;
            assert!(runs.load(SeqCst) <= passes, "{lines}");
        }
    }
    assert!(put_down > 0);
}

#[test]
fn a_value_that_differs_although_the_schedule_is_the_same_is_told_unless_it_is_an_address() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let (lines, json) = told(move || {
        let run = runs.fetch_add(1, SeqCst);
        let x = Arc::new(AtomicUsize::new(0));
        two_orders(&x);
        x.store(run, SeqCst);
        assert!(run < 1, "not the first time");
    });
    let expected =
        "the test fails too, but main's \"theirs := 1 (was 1)\" (event 8) comes out otherwise";
    assert!(lines.contains(expected), "{lines}");
    assert_eq!(
        (&json["again"], &json["pair"]),
        (&"differs".into(), &().into())
    );

    static KEPT: std::sync::Mutex<Vec<Box<[usize]>>> = std::sync::Mutex::new(Vec::new());
    let (lines, json) = told(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let seen = two_orders(&x);
        // What is kept is not freed, so another execution has another address.
        let kept = vec![1].into_boxed_slice();
        x.store(kept.as_ptr().addr(), SeqCst);
        KEPT.lock().unwrap().push(kept);
        assert_eq!(seen, 0);
    });
    assert!(lines.contains("it fails because"), "{lines}");
    assert!(json["again"].is_null(), "{lines}");
}

#[test]
fn columns_are_in_line_however_many_events_there_are() {
    let failure = Builder::new().explore(|| {
        let x = AtomicUsize::new(0);
        for n in 0..10_020 {
            x.store(n, SeqCst);
        }
        panic!("at last");
    });
    let text = failure.expect_err("it panics").to_string();
    let rows = text.lines().skip_while(|line| !line.ends_with(" where"));
    let places = rows.filter_map(|line| line.find("tests/failures.rs:"));
    let table: Vec<usize> = places.collect();
    assert!(
        table.len() > 2 && text.contains("\n   9999  ") && text.contains("\n  10020  "),
        "{text}"
    );
    assert!(table.iter().all(|at| *at == table[0]), "{table:?}: {text}");
}
