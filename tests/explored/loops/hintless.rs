//! When does a loop without a hint wait, and is it explored in full if it gives up by itself?

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, Verdict, any, outcomes, thread};

use super::count;

/// Looks at most so many times whether the flag is set; gives how often in vain.
fn look(flag: &AtomicBool, times: usize) -> usize {
    (0..times).take_while(|_| !flag.load(SeqCst)).count()
}

/// One thread sets each flag, and one looks at it so often.
fn looks(times: &[usize]) -> impl Fn() -> Vec<usize> + Send + Sync + Clone + use<> {
    let times = times.to_vec();
    move || {
        let shared: Vec<_> = times.iter().map(|_| Arc::default()).collect();
        let mut setters = Vec::new();
        let mut lookers = Vec::new();
        for (&times, flag) in times.iter().zip(shared) {
            let theirs: Arc<AtomicBool> = Arc::clone(&flag);
            setters.push(thread::spawn(move || flag.store(true, SeqCst)));
            lookers.push(thread::spawn(move || look(&theirs, times)));
        }
        for setter in setters {
            setter.join().expect("no thread panics");
        }
        let found = lookers.into_iter().map(thread::JoinHandle::join);
        found.map(|it| it.expect("no thread panics")).collect()
    }
}

const FOREVER: usize = usize::MAX;

#[test]
fn a_loop_without_a_hint_waits_after_few_rounds() {
    let run = |times: &[usize]| {
        let looks = looks(times);
        count(move || drop(looks()))
    };
    // Seen after no round up to ten, or waited for.
    let one = run(&[FOREVER]);
    assert_eq!(one, 12);
    assert_eq!(run(&[FOREVER; 2]), one * one);
}

#[test]
fn a_loop_without_a_hint_that_gives_up_is_explored_in_full() {
    for times in [5, 10, 11, 12, 50, 900] {
        let expected: BTreeMap<_, _> = (0..=times).map(|seen| (vec![seen], 1)).collect();
        assert_eq!(outcomes(looks(&[times])), expected, "{times}");
    }
}

/// The place of the loop is the same for each of them, and the one that never gives up is met first or last.
#[test]
fn one_loop_that_gives_up_is_explored_in_full_beside_one_that_does_not() {
    for times in [[FOREVER, 20], [20, FOREVER]] {
        let looks = looks(&times);
        let of = times.iter().position(|it| *it == 20).expect("one is");
        let found = outcomes(move || looks()[of]);
        assert_eq!(
            found.into_keys().collect::<Vec<_>>(),
            (0..=20).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_thread_that_waits_and_then_only_tries_at_the_same_place_is_explored_in_full() {
    let found = outcomes(|| {
        let flags: Arc<[AtomicBool; 2]> = Arc::default();
        let theirs = flags.clone();
        let setter = thread::spawn(move || theirs.iter().for_each(|it| it.store(true, SeqCst)));
        look(&flags[0], FOREVER);
        let tried = look(&flags[1], 20);
        setter.join().expect("no thread panics");
        tried
    });
    assert_eq!(
        found.into_keys().collect::<Vec<_>>(),
        (0..=20).collect::<Vec<_>>()
    );
}

/// More loops than anybody looks after, of which the last one gives up.
#[test]
fn a_loop_that_is_one_of_very_many_is_explored_in_full() {
    let found = outcomes(|| {
        let flags: Arc<[AtomicBool; 40]> = Arc::new([const { AtomicBool::new(false) }; 40]);
        let theirs = flags.clone();
        let which = AtomicUsize::new(0);
        while which.load(SeqCst) < 39 && any::<bool>() {
            which.fetch_add(1, SeqCst);
        }
        let which = which.into_inner();
        let setter = thread::spawn(move || theirs[which].store(true, SeqCst));
        let tried = look(&flags[which], if which < 39 { FOREVER } else { 20 });
        setter.join().expect("no thread panics");
        (which, tried)
    });
    let last = found.into_keys().filter(|(which, _)| *which == 39);
    assert_eq!(
        last.map(|(_, tried)| tried).collect::<Vec<_>>(),
        (0..=20).collect::<Vec<_>>()
    );
}

#[test]
fn what_fails_behind_a_loop_without_a_hint_fails_again_from_its_schedule() {
    let test = || {
        let shared: Arc<(AtomicBool, AtomicUsize)> = Arc::default();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(1, SeqCst);
            theirs.0.store(true, SeqCst);
            theirs.1.store(2, SeqCst);
        });
        // It has to have waited.
        let looks = look(&shared.0, FOREVER);
        assert!(
            looks < 11 || shared.1.load(SeqCst) == 2,
            "it is not yet done"
        );
        other.join().expect("no thread panics");
    };
    let failure = Builder::new()
        .explore(test)
        .expect_err("it may look too early");
    assert!(failure.schedule().starts_with("v2 soon main"), "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(test).expect_err("it fails again");
    assert_eq!(again.schedule(), failure.schedule());
    assert!(again.to_string().contains("it is not yet done"), "{again}");
}

#[test]
fn a_loop_without_a_hint_that_nobody_ends_is_a_livelock_and_comes_again() {
    let test = || {
        look(&AtomicBool::new(false), FOREVER);
    };
    let failure = Builder::new()
        .explore(test)
        .expect_err("nobody sets the flag");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(test).expect_err("nobody sets the flag");
    assert_eq!(again.kind(), FailureKind::Livelock, "{again}");
    assert!(
        Builder::new()
            .explore(|| assert_eq!(look(&AtomicBool::new(false), 29_000), 29_000))
            .is_ok()
    );
}

/// Nobody looks at what a sampler leaves out.
#[test]
fn a_sampler_lets_a_loop_without_a_hint_go_on() {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Pct;
    builder.iterations = 50;
    // One seed in 150 draws no such execution.
    builder.seed = Some(1);
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = most.clone();
    let looks = looks(&[200]);
    let report = builder.check(move || _ = seen.fetch_max(looks()[0], SeqCst));
    assert!(matches!(report.verdict, Verdict::Sampled { .. }));
    assert!(most.load(SeqCst) > 20, "{most:?}");
}

/// The first execution waits after 1,000 rounds, and fails.
#[test]
fn what_fails_at_once_is_shown_with_few_rounds_and_fails_again_from_that() {
    let test = || {
        let shared: Arc<(AtomicBool, AtomicUsize)> = Arc::default();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(1, SeqCst);
            theirs.0.store(true, SeqCst);
        });
        let looks = look(&shared.0, FOREVER);
        assert!(looks < 11 || shared.1.load(SeqCst) == 2, "it is one");
        other.join().expect("no thread panics");
    };
    let failure = Builder::new().explore(test).expect_err("it is never two");
    assert_eq!(failure.schedule(), "v2 soon main*13 main.1*2 main*3");
    assert_eq!(failure.events().len(), 18, "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(test).expect_err("it fails again");
    assert_eq!(again.schedule(), failure.schedule());
    assert_eq!(again.events().len(), 18, "{again}");
    assert!(again.to_string().contains("it is one"), "{again}");
    // Who wants what was found gets that.
    let mut as_found = Builder::new();
    as_found.simplify = 0;
    let found = as_found.explore(test).expect_err("it is never two");
    assert_eq!(found.schedule(), "v2 main*1003 main.1*3 main*3");
}

/// It looks 20 times in a row although something else can run, as nothing does that waits after ten rounds.
#[test]
fn what_fails_only_after_many_rounds_is_shown_with_them() {
    let test = || {
        let shared: Arc<[AtomicBool; 3]> = Arc::default();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs[1].store(true, SeqCst);
            look(&theirs[0], 20);
            theirs[2].load(SeqCst)
        });
        look(&shared[1], FOREVER);
        shared[2].store(true, SeqCst);
        let was_there = other.join().expect("no thread panics");
        assert!(was_there, "it has looked too short a time");
    };
    let failure = Builder::new().explore(test).expect_err("nobody is earlier");
    let schedule = failure.schedule();
    assert_eq!(schedule, "v2 main*2 main.1*23 main*3", "{failure}");
    // And so it comes again, where such loops wait as late.
    let says = |words: &str| failure.to_string().contains(words);
    assert!(!says("the schedule does not decide alone"), "{failure}");
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    let again = builder.explore(test).expect_err("it fails again");
    assert_eq!(again.schedule(), schedule);
}

#[test]
fn a_look_before_the_loop_does_not_hide_it() {
    // At the same object, so that the log has it already.
    let looks_first = || {
        let flag: Arc<AtomicBool> = Arc::default();
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        if !flag.load(SeqCst) {
            look(&flag, FOREVER);
        }
        other.join().unwrap();
    };
    assert_eq!(count(looks_first), 17);
    // A lock that is looked at until it is free, and only then tried again.
    let test_and_test_and_set = || {
        let lock: Arc<AtomicBool> = Arc::default();
        let take = |lock: &AtomicBool| {
            while lock.swap(true, SeqCst) {
                while lock.load(SeqCst) {}
            }
            lock.store(false, SeqCst);
        };
        let theirs = lock.clone();
        let other = thread::spawn(move || take(&theirs));
        take(&lock);
        other.join().unwrap();
    };
    assert_eq!(count(test_and_test_and_set), 34);
    // At another one, which takes some rounds more, and not all that a loop may have.
    let two = || {
        let shared: Arc<(AtomicBool, AtomicBool)> = Arc::default();
        let look = |shared: Arc<(AtomicBool, AtomicBool)>| {
            shared.1.load(SeqCst);
            look(&shared.0, FOREVER);
        };
        let (one, other) = (shared.clone(), shared.clone());
        let threads = [one, other].map(|shared| thread::spawn(move || look(shared)));
        shared.0.store(true, SeqCst);
        for thread in threads {
            thread.join().unwrap();
        }
    };
    assert_eq!(count(two), 256);
}

#[test]
fn a_long_round_is_recognised_whatever_was_read_before() {
    for reads in [2, 5, 20, 60] {
        let executions = count(move || {
            let shared: Arc<(AtomicBool, AtomicUsize)> = Arc::default();
            let theirs = shared.clone();
            let other = thread::spawn(move || theirs.0.store(true, SeqCst));
            shared.1.load(SeqCst);
            while !shared.0.load(SeqCst) {
                for _ in 1..reads {
                    shared.1.load(SeqCst);
                }
            }
            other.join().unwrap();
        });
        // As many more as it takes until a read of the loop is the one that is remembered, and no thousand.
        let rounds = 4..60;
        assert!(rounds.contains(&executions), "{reads}: {executions}");
    }
}

/// Of the loops that become known in one execution, only the second one gives up.
#[test]
fn a_loop_that_becomes_known_behind_another_one_in_the_same_execution_is_explored_in_full() {
    let report = Builder::new().check(|| {
        let shared: Arc<[AtomicBool; 2]> = Arc::default();
        let [first, second, third] = [0; 3].map(|_| shared.clone());
        let waits = thread::spawn(move || while !first[0].load(SeqCst) {});
        let gives_up = thread::spawn(move || {
            for _ in 0..40 {
                if second[1].load(SeqCst) {
                    break;
                }
            }
        });
        let sets = thread::spawn(move || {
            third[1].store(true, SeqCst);
            third[0].store(true, SeqCst);
        });
        for thread in [waits, gives_up, sets] {
            thread.join().expect("no thread panics");
        }
    });
    assert!(report.complete, "{report}");
    // If the second one were taken to wait as well, there would be fewer than two hundred.
    assert!(report.executions > 1000, "{report}");
}

/// It gets the `Arc` back that somebody else has, too, and tries again.
#[test]
fn a_loop_that_tries_to_take_the_value_out_of_an_arc_waits() {
    let executions = count(|| {
        let mut shared = Arc::new(7);
        let theirs = shared.clone();
        let other = thread::spawn(move || drop(theirs));
        let value = loop {
            match Arc::try_unwrap(shared) {
                Ok(value) => break value,
                Err(again) => shared = again,
            }
        };
        assert_eq!(value, 7);
        other.join().expect("no thread panics");
    });
    // As many as for a flag.
    assert_eq!(executions, 12);
    let failure = Builder::new().explore(|| {
        let mut shared = Arc::new(7);
        let other = shared.clone();
        while let Err(again) = Arc::try_unwrap(shared) {
            shared = again;
        }
        drop(other);
    });
    let failure = failure.expect_err("nobody drops the other one");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
}
