//! Do algorithms that draw executions by chance find bugs, and the same ones again?

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use crate::support::bugs::BUGS;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, Verdict, thread};

const SAMPLING: [Algorithm; 3] = [Algorithm::Random, Algorithm::Pct, Algorithm::Pos];

fn builder(algorithm: Algorithm, seed: u64) -> Builder {
    let mut builder = Builder::new();
    builder.algorithm = algorithm;
    builder.seed = Some(seed);
    builder
}

/// What two racing threads saw, in each execution.
fn seen(algorithm: Algorithm, seed: u64, iterations: u64) -> Vec<(usize, usize)> {
    let record = Arc::new(Mutex::new(Vec::new()));
    let mine = record.clone();
    let mut builder = builder(algorithm, seed);
    builder.iterations = iterations;
    let report = builder.check(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let handle =
            thread::spawn(move || (0..3).fold(0, |sum, _| 10 * sum + other.fetch_add(1, SeqCst)));
        let here = (0..3).fold(0, |sum, _| 10 * sum + x.fetch_add(1, SeqCst));
        let there = handle.join().unwrap();
        mine.lock().unwrap().push((here, there));
    });
    assert_eq!(report.executions, iterations);
    assert_eq!(report.verdict, Verdict::Sampled { seed });
    assert!(!report.complete, "a sample is not everything");
    assert_eq!(
        report.estimate, None,
        "a sample tells nothing of how many there are"
    );
    record.lock().unwrap().clone()
}

#[test]
fn a_seed_draws_the_same_executions_again_and_another_one_draws_others() {
    for algorithm in SAMPLING {
        assert_eq!(seen(algorithm, 5, 50), seen(algorithm, 5, 50));
        assert_ne!(seen(algorithm, 5, 50), seen(algorithm, 6, 50));
    }
}

/// The order of all steps of 200 executions and what came of them, as one number.
fn drawn(algorithm: Algorithm, seed: u64) -> u64 {
    let hash = Arc::new(AtomicU64::new(0xcbf2_9ce4_8422_2325));
    let mine = hash.clone();
    let mut builder = builder(algorithm, seed);
    builder.iterations = 200;
    builder.check(move || {
        let hash = mine.clone();
        let note = move |thread: usize, value: usize| {
            let mixed = hash.load(SeqCst) ^ (10 * thread + value) as u64;
            hash.store(mixed.wrapping_mul(0x0100_0000_01b3), SeqCst);
        };
        let x = Arc::new(AtomicUsize::new(0));
        let sum = Arc::new(dpor::sync::Mutex::new(0));
        let work = move |thread| {
            for _ in 0..4 {
                note(thread, x.fetch_add(1, SeqCst));
            }
            if thread == 1 {
                dpor::stop_exploring();
                note(thread, x.load(SeqCst));
                note(thread, dpor::choose(3));
                dpor::explore();
            }
            let mut sum = sum.lock().unwrap();
            *sum += 1 + dpor::choose(2);
            note(thread, *sum);
            note(thread, x.swap(0, SeqCst));
            drop(sum);
            if thread == 2 {
                while x.load(SeqCst) > 2 {
                    note(thread, 9);
                    dpor::hint::spin_loop();
                }
            }
            note(thread, x.load(SeqCst));
        };
        let threads: Vec<_> = (1..4)
            .map(|thread| {
                thread::spawn({
                    let work = work.clone();
                    move || work(thread)
                })
            })
            .collect();
        work(0);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    hash.load(SeqCst)
}

#[test]
fn what_a_seed_draws_stays_the_same_in_later_versions() {
    let before = [
        13_874_051_016_526_179_691,
        3_316_415_149_193_348_059,
        13_872_404_426_770_370_578,
    ];
    assert_eq!(SAMPLING.map(|algorithm| drawn(algorithm, 5)), before);
}

#[test]
fn a_longer_sample_begins_with_the_shorter_one() {
    for algorithm in SAMPLING {
        assert_eq!(seen(algorithm, 5, 80)[..30], seen(algorithm, 5, 30));
    }
}

#[test]
fn an_execution_does_not_depend_on_how_much_chance_the_ones_before_have_used() {
    for algorithm in [Algorithm::Random, Algorithm::Pos] {
        let drawn = |extra: usize| {
            let record = Arc::new(Mutex::new(Vec::new()));
            let mine = record.clone();
            let mut builder = builder(algorithm, 3);
            builder.iterations = 20;
            builder.check(move || {
                let number = dpor::choose(1000);
                let mut record = mine.lock().unwrap();
                record.push(number);
                if record.len() == 1 {
                    drop(record);
                    for _ in 0..extra {
                        dpor::choose(7);
                    }
                }
            });
            record.lock().unwrap().clone()
        };
        assert_eq!(drawn(0), drawn(5), "{algorithm:?}");
    }
}

#[test]
fn every_order_of_three_and_three_is_drawn_by_a_walk_and_by_pos() {
    for algorithm in [Algorithm::Random, Algorithm::Pos] {
        let mut orders = seen(algorithm, 1, 600);
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 20, "{algorithm:?}");
    }
    // Depth 3 is two changes of priorities, and 14 of the orders need no more than two.
    let mut orders = seen(Algorithm::Pct, 1, 600);
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 14);
}

#[test]
fn every_value_of_a_choice_is_drawn() {
    for algorithm in SAMPLING {
        let record = Arc::new(Mutex::new([0u32; 4]));
        let mine = record.clone();
        let mut builder = builder(algorithm, 1);
        builder.iterations = 200;
        builder.check(move || mine.lock().unwrap()[dpor::choose(4)] += 1);
        let counts = *record.lock().unwrap();
        assert!(counts.iter().all(|&n| n > 20), "{algorithm:?}: {counts:?}");
    }
}

#[test]
fn a_failure_tells_its_seed_and_its_schedule_replays_it() {
    for algorithm in SAMPLING {
        let builder = builder(algorithm, 11);
        let failure = builder.explore(BUGS[0].1).expect_err("found");
        assert_eq!(failure.kind(), FailureKind::Panic);
        let text = failure.to_string();
        assert!(text.contains("DPOR_SEED=11"), "{text}");
        let mut replay = Builder::new();
        replay.replay = Some(failure.schedule().to_owned());
        let again = replay.explore(BUGS[0].1).expect_err("found again");
        assert_eq!(again.kind(), FailureKind::Panic);
    }
}

#[test]
fn a_thread_that_has_done_everything_may_still_be_seen_not_to_have_finished() {
    for algorithm in SAMPLING {
        let seen = Arc::new(Mutex::new([0; 3]));
        let mine = seen.clone();
        builder(algorithm, 5).check(move || {
            let done = Arc::new(AtomicUsize::new(0));
            let theirs = done.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let case = match (done.load(SeqCst), other.is_finished()) {
                (0, false) => 0,
                (1, false) => 1,
                (1, true) => 2,
                // It has done so in between.
                _ => return,
            };
            mine.lock().unwrap()[case] += 1;
        });
        let seen = *seen.lock().unwrap();
        assert!(
            seen.iter().all(|&times| times > 0),
            "{algorithm:?}: {seen:?}"
        );
    }
}

#[test]
fn a_panic_behind_which_somebody_asks_whether_a_thread_has_finished_comes_again() {
    struct Sets(Arc<AtomicBool>);
    impl Drop for Sets {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    for algorithm in SAMPLING {
        for seed in 0..20 {
            let failure = builder(algorithm, seed).explore(|| {
                let done = Sets(Arc::default());
                let panics = thread::spawn(move || {
                    let _done = done;
                    panic!("it always fails");
                });
                let other = thread::spawn(|| {});
                other.is_finished();
                drop(panics);
            });
            let text = failure.expect_err("it always fails").to_string();
            assert!(!text.contains("does not decide alone"), "{seed}\n{text}");
        }
    }
}
