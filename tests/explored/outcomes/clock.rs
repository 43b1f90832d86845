//! Which times does a thread find, and does a loop with a deadline end?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, mpsc};
use dpor::time::{Duration, Instant};
use dpor::{AssumptionKind, Builder, Memory, hint, thread};

use super::{count, set};

const SHORT: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn both_sides_of_a_deadline_are_explored() {
    let by_sum = set(|| {
        let deadline = Instant::now() + SHORT;
        Instant::now() >= deadline
    });
    let by_difference = set(|| {
        let start = Instant::now();
        start.elapsed() < SHORT
    });
    assert_eq!(
        (by_sum, by_difference),
        (vec![false, true], vec![false, true])
    );
    assert_eq!(
        count(|| {
            let _ = Instant::now();
        }),
        1
    );
    assert_eq!(
        count(|| {
            let _ = Instant::now().elapsed();
        }),
        2
    );
}

#[test]
fn time_never_goes_back() {
    let seen = set(|| {
        let start = Instant::now();
        let passed = [start.elapsed() > SHORT, start.elapsed() > SHORT];
        assert!(start <= Instant::now());
        passed
    });
    assert_eq!(seen, [[false, false], [false, true], [true, true]]);
}

#[test]
fn a_time_between_two_deadlines_is_explored() {
    let seen = set(|| {
        let start = Instant::now();
        let (first, second) = (start + SHORT, start + LONG);
        let now = Instant::now();
        (now > first, now > second)
    });
    assert_eq!(seen, [(false, false), (true, false), (true, true)]);
    // An instant far ahead stands for "never".
    let never = set(|| {
        let never = Instant::now() + Duration::from_secs(30 * 365 * 24 * 60 * 60);
        Instant::now() > never
    });
    assert_eq!(never, [false]);
}

#[test]
fn a_thread_that_has_learnt_of_a_time_finds_no_earlier_one() {
    for memory in [Memory::Sc, Memory::C11] {
        let mut builder = Builder::new();
        builder.memory = memory;
        let report = builder.explore(|| {
            let last = Mutex::new(Instant::now());
            thread::scope(|s| {
                s.spawn(|| {
                    let mut last = last.lock().unwrap();
                    *last = Instant::now();
                });
                let last = *last.lock().unwrap();
                assert!(Instant::now() >= last);
            });
            assert!(Instant::now() >= *last.lock().unwrap());
        });
        assert!(report.expect("time goes forward").complete);
    }
}

#[test]
fn reads_that_nothing_orders_find_any_times() {
    let seen = set(|| {
        let other = thread::spawn(Instant::now);
        let mine = Instant::now();
        mine.cmp(&other.join().unwrap())
    });
    assert_eq!(seen.len(), 3);
}

#[test]
fn what_a_relaxed_flag_tells_of_the_time_holds() {
    let report = Builder::new().explore(|| {
        let (start, is_late) = (Instant::now(), AtomicBool::new(false));
        thread::scope(|s| {
            s.spawn(|| {
                if start.elapsed() > SHORT {
                    is_late.store(true, SeqCst);
                }
            });
            if is_late.load(SeqCst) {
                assert!(start.elapsed() > SHORT);
            }
        });
    });
    assert!(report.expect("the flag is set late").complete);
}

#[test]
fn a_wait_that_has_timed_out_has_taken_its_time() {
    type Waits = fn(&Arc<(Mutex<()>, Condvar)>) -> bool;
    let waits: [Waits; 4] = [
        |pair| {
            let guard = pair.0.lock().unwrap();
            pair.1.wait_timeout(guard, LONG).unwrap().1.timed_out()
        },
        |_| {
            thread::park_timeout(LONG);
            true
        },
        |_| {
            let (_sender, receiver) = mpsc::channel::<()>();
            receiver.recv_timeout(LONG).is_err()
        },
        |_| {
            thread::sleep(LONG);
            true
        },
    ];
    for wait in waits {
        let report = Builder::new().explore(move || {
            let pair = Arc::new((Mutex::new(()), Condvar::new()));
            let start = Instant::now();
            let other = pair.clone();
            let notifier = thread::spawn(move || other.1.notify_one());
            if wait(&pair) {
                assert!(start.elapsed() > LONG);
            }
            notifier.join().unwrap();
        });
        assert!(report.expect("time passes").complete);
    }
}

/// What a thread finds that polls a flag until its time is over, and the number of executions.
fn polls(hints: bool) -> (Vec<String>, u64) {
    let report = Builder::new().explore(move || {
        let (flag, start) = (AtomicBool::new(false), Instant::now());
        let in_time = thread::scope(|s| {
            s.spawn(|| flag.store(true, SeqCst));
            loop {
                if flag.load(SeqCst) {
                    break true;
                }
                if start.elapsed() > SHORT {
                    break false;
                }
                if hints {
                    hint::spin_loop();
                }
            }
        });
        dpor::outcome(in_time);
    });
    let report = report.expect("the loop ends");
    assert!(report.complete, "{report}");
    (report.outcomes.into_keys().collect(), report.executions)
}

#[test]
fn a_loop_with_a_deadline_finds_the_flag_or_gives_up() {
    assert_eq!(polls(true).0, ["false", "true"]);
    // The loop looks at the flag three times, and finds it or gives up each time, or waits for it.
    assert_eq!(polls(true).1, 7);
    assert_eq!(polls(false).0, ["false", "true"]);
}

#[test]
fn a_loop_that_nothing_else_ends_ends_by_its_deadline() {
    let waits = || {
        let flag = AtomicBool::new(false);
        let start = Instant::now();
        while !flag.load(SeqCst) && start.elapsed() < LONG {
            thread::yield_now();
        }
    };
    // It looks at the clock three times, and then waits until nothing else can run.
    assert_eq!(count(waits), 4);
    // Five attempts, each with a deadline of its own.
    let retries = || {
        let flag = AtomicBool::new(false);
        for _ in 0..5 {
            let deadline = Instant::now() + SHORT;
            while !flag.load(SeqCst) && Instant::now() < deadline {
                thread::yield_now();
            }
        }
    };
    let report = Builder::new().explore(retries).expect("it gives up");
    assert!(report.complete && report.assumptions.is_empty(), "{report}");
}

#[test]
fn a_loop_that_only_looks_at_the_clock_ends() {
    let waits = || {
        let start = Instant::now();
        while start.elapsed() < LONG {
            hint::spin_loop();
        }
    };
    assert_eq!(count(waits), 4);
    let sleeps = || {
        let start = Instant::now();
        while start.elapsed() < LONG {
            thread::sleep(SHORT);
        }
    };
    assert_eq!(count(sleeps), 4);
}

#[test]
fn a_loop_without_a_hint_that_looks_at_the_clock_is_an_assumption() {
    let work = |builder: Builder| {
        let report = builder.explore(|| {
            let (done, start) = (AtomicUsize::new(0), Instant::now());
            while start.elapsed() < LONG {
                done.fetch_add(1, SeqCst);
            }
        });
        report.expect("the loop ends")
    };
    let report = work(Builder::new());
    assert_eq!(report.executions, 21);
    let kinds: Vec<_> = report.assumptions.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [AssumptionKind::ClockStandsStill]);
    let line = "not explored: more reads in a row of a clock that stands still (1 place)";
    assert!(report.to_string().contains(line), "{report}");
    let mut builder = Builder::new();
    builder.timeout_bound = 30;
    assert_eq!(work(builder).executions, 31);
}

#[test]
fn a_loop_that_does_not_ask_what_time_it_is_waits_for_its_flag() {
    let report = Builder::new().explore(|| {
        let flag = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| flag.store(true, SeqCst));
            while !flag.load(SeqCst) {
                let _log = Instant::now();
                hint::spin_loop();
            }
        });
    });
    let report = report.expect("the flag is set");
    assert!(report.complete && report.assumptions.is_empty(), "{report}");
}

#[test]
fn a_deadline_that_is_over_too_early_is_found_and_replayed() {
    // The value that arrives with the deadline is lost.
    let model = || {
        let slot = Arc::new(Mutex::new(None));
        let other = slot.clone();
        let sender = thread::spawn(move || *other.lock().unwrap() = Some(7));
        let start = Instant::now();
        let received = loop {
            if let Some(value) = slot.lock().unwrap().take() {
                break Some(value);
            }
            if start.elapsed() > SHORT {
                break None;
            }
            thread::yield_now();
        };
        sender.join().unwrap();
        assert!(received.is_some() || slot.lock().unwrap().is_none());
    };
    let failure = Builder::new().explore(model).expect_err("a lost value");
    let text = failure.to_string();
    assert!(
        text.contains("read the clock: a long time has passed"),
        "{text}"
    );
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(model).expect_err("the same failure");
    assert_eq!(again.schedule(), failure.schedule());
}

#[test]
fn outside_of_a_model_the_clock_is_stds() {
    let (before, now) = (std::time::Instant::now(), Instant::now());
    assert!(now.elapsed() <= before.elapsed());
    assert_eq!(now.checked_add(SHORT).map(|it| it - now), Some(SHORT));
    assert_eq!(now - (now + SHORT), Duration::ZERO);
}
