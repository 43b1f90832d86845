//! Is it reported if the same schedule does not lead to the same execution?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicUsize, fence};
use dpor::sync::{Arc, Mutex};
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::failure;

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
fn an_operation_that_was_planned_and_is_another_one_is_told() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let found = failure(move || {
        let cells: Arc<[AtomicUsize; 2]> = Arc::default();
        let theirs = cells.clone();
        // As the order in a `HashMap`.
        let first = runs.fetch_add(1, SeqCst) % 2;
        let other = thread::spawn(move || {
            theirs[first].fetch_add(1, SeqCst);
            theirs[1 - first].fetch_add(1, SeqCst);
        });
        cells[1].fetch_add(1, SeqCst);
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::NotDeterministic);
    let text = found.to_string();
    let sentence = text.lines().next().expect("a sentence");
    let start = "event 3, by main.1, is \"add on ";
    assert!(sentence.contains(start), "{sentence}");
    let end = " now, and was another operation before, or one that came out otherwise";
    assert!(sentence.ends_with(end), "{sentence}");
}

#[test]
fn an_operation_on_another_object_is_told_as_such() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let found = failure(move || {
        let cells: Arc<[AtomicUsize; 2]> = Arc::default();
        let theirs = cells.clone();
        cells[runs.fetch_add(1, SeqCst).min(1)].load(SeqCst);
        let other = thread::spawn(move || theirs[0].store(1, SeqCst));
        cells[0].load(SeqCst);
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::NotDeterministic);
    let text = found.to_string();
    let sentence = text.lines().next().expect("a sentence");
    assert!(sentence.contains("was \"load cells[0]\""), "{sentence}");
    assert!(sentence.contains(" and is \"load cells[1]\""), "{sentence}");
    assert!(!sentence.contains("with another outcome"), "{sentence}");
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
        text.contains(
            "event 1, by main, was \"load slots[0]\" at tests/verdict/failures/determinism.rs"
        ),
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
fn a_panic_where_an_earlier_execution_went_on_is_not_put_down_to_its_schedule() {
    // From the second execution on it fails each time in this process, but not in the one that replays it.
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let (lines, json) = told(move || {
        let shared = Arc::default();
        two_orders(&shared);
        let mine = shared.clone();
        assert!(runs.fetch_add(1, SeqCst) == 0, "not the first time");
        let other = thread::spawn(move || mine.store(1, SeqCst));
        shared.store(2, SeqCst);
        other.join().unwrap();
    });
    let expected =
        "an earlier execution had the same events and went on here, and so may the replay below";
    assert!(lines.contains(expected), "{lines}");
    assert!(lines.contains("that keeps its value"), "{lines}");
    assert_eq!(
        (&json["again"], &json["pair"]),
        (&"had_passed".into(), &().into())
    );

    // Behind events that both have, and in another thread.
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (lines, _) = told(move || {
        let runs = runs.clone();
        let x = Arc::new(AtomicUsize::new(0));
        let mine = x.clone();
        let other = thread::spawn(move || {
            mine.load(SeqCst);
            assert!(runs.fetch_add(1, SeqCst) == 0, "not the first time");
        });
        other.join().unwrap();
        two_orders(&x);
    });
    assert!(lines.contains(expected), "{lines}");

    // There is no earlier execution than the first.
    let found = failure(|| panic!("at once"));
    let json: serde_json::Value = serde_json::from_str(&found.json()).expect("JSON");
    assert!(json["again"].is_null());

    // A thread that has made no event there begins when it comes to its turn, which the schedule decides.
    let stored = std::sync::atomic::AtomicBool::new(false);
    let stored = Arc::new(stored);
    let (_, json) = told(move || {
        stored.store(false, SeqCst);
        let (x, seen) = (Arc::new(AtomicUsize::new(0)), stored.clone());
        let mine = x.clone();
        let other = thread::spawn(move || {
            assert!(seen.load(SeqCst), "too early");
            mine.load(SeqCst);
        });
        x.store(1, SeqCst);
        stored.store(true, SeqCst);
        other.join().unwrap();
    });
    assert!(json["again"].is_null());

    // What comes behind the events that are new may hang on these.
    let (lines, json) = told(|| assert_eq!(two_orders(&Arc::default()), 0, "too late"));
    assert!(lines.contains("it fails because"), "{lines}");
    assert!(json["again"].is_null());
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
        "the test fails too, but main's \"theirs := 1 (was 1)\" (event 7) comes out otherwise";
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
        dpor::alloc::may_leak(&kept[0]);
        x.store(kept.as_ptr().addr(), SeqCst);
        KEPT.lock().unwrap().push(kept);
        assert_eq!(seen, 0);
    });
    assert!(lines.contains("it fails because"), "{lines}");
    assert!(json["again"].is_null(), "{lines}");
}

#[test]
fn a_panic_where_an_execution_of_the_search_for_a_simpler_one_went_on_before_ends_the_search() {
    for once in 10..40 {
        let runs = std::sync::atomic::AtomicUsize::new(0);
        let found = failure(move || {
            let run = runs.fetch_add(1, SeqCst);
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || [0, 1, 2, 7].map(|i| theirs.store(i, SeqCst)));
            for _ in 0..3 {
                x.load(SeqCst);
                assert!(run != once, "once");
            }
            assert!(x.load(SeqCst) != 1, "late");
            other.join().unwrap();
        });
        assert_eq!(found.kind(), FailureKind::Panic);
    }
}

/// Two threads add to one number, and fence before it where a counter that is not seen says so, as
/// collectors of epochs do.
fn fences_now_and_then() {
    static PINS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let pin = |x: &AtomicUsize| {
        if PINS.fetch_add(1, SeqCst).is_multiple_of(3) {
            fence(SeqCst);
        }
        x.fetch_add(1, SeqCst);
        if PINS.fetch_add(1, SeqCst).is_multiple_of(3) {
            fence(SeqCst);
        }
    };
    let x = Arc::new(AtomicUsize::new(0));
    let theirs = x.clone();
    let other = thread::spawn(move || pin(&theirs));
    pin(&x);
    other.join().unwrap();
}

#[test]
fn a_fence_by_state_that_is_not_seen_is_none_of_the_steps() {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Parsimonious,
        Algorithm::Source,
        Algorithm::SleepSets,
        Algorithm::Naive,
    ] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(fences_now_and_then);
        // The only order that makes no trace is that of the other thread's end and main's addition.
        let expected = match algorithm {
            Algorithm::Naive => 3,
            _ => 2,
        };
        assert_eq!(report.executions, expected, "{algorithm:?}");
        assert!(report.complete, "{algorithm:?}");
    }
}

#[test]
fn threads_do_not_switch_between_a_fence_and_what_comes_next_to_it() {
    /// Whether a thread is between its store and the end of what it does with its fence.
    static WITHIN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let report = Builder::new().check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let pin = |x: &AtomicUsize| {
            x.store(1, SeqCst);
            assert!(!WITHIN.swap(true, SeqCst));
            fence(SeqCst);
            WITHIN.store(false, SeqCst);
            x.load(SeqCst);
        };
        let other = thread::spawn(move || pin(&theirs));
        pin(&x);
        other.join().unwrap();
    });
    assert!(report.complete);
    // The fence is no event, and none of those that `max_branches` counts.
    let mut builder = Builder::new();
    builder.max_branches = 2;
    let report = builder.check(|| {
        let x = AtomicUsize::new(0);
        x.store(1, SeqCst);
        for _ in 0..10 {
            fence(SeqCst);
        }
        x.load(SeqCst);
        fence(SeqCst);
    });
    assert_eq!(report.events, 2);
}
