//! Is a loop that nobody ends a livelock, with a hint and without one?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicBool;
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::failure;

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
fn a_loop_that_waits_for_the_end_of_a_thread_is_told_so() {
    let found = failure(|| {
        let go = Arc::new(AtomicBool::new(false));
        let theirs = go.clone();
        let other = thread::spawn(move || {
            while !theirs.load(SeqCst) {
                thread::yield_now();
            }
        });
        while !other.is_finished() {
            thread::yield_now();
        }
        go.store(true, SeqCst);
    });
    assert_eq!(found.kind(), FailureKind::Livelock);
    let text = found.to_string();
    assert!(
        text.contains("main       spins until main.1 ends "),
        "{text}"
    );
    // Either may end this loop.
    let found = failure(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = stop.clone();
        let other = thread::spawn(move || {
            while !theirs.load(SeqCst) {
                thread::yield_now();
            }
        });
        while !stop.load(SeqCst) && !other.is_finished() {
            thread::yield_now();
        }
    });
    let text = found.to_string();
    assert!(
        text.contains("spins until stop changes or main.1 ends "),
        "{text}"
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
fn threads_that_spin_for_ever_are_deterministic_whoever_goes_first() {
    let spinners = || {
        let flags = Arc::new([false, false].map(AtomicBool::new));
        let theirs = flags.clone();
        let other = thread::spawn(move || {
            while !theirs[0].load(SeqCst) {
                thread::yield_now();
            }
        });
        while !flags[1].load(SeqCst) {
            thread::yield_now();
        }
        other.join().unwrap();
    };
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Bounded,
        Algorithm::Random,
        Algorithm::Pct,
        Algorithm::Pos,
    ] {
        let mut builder = Builder::new();
        (builder.algorithm, builder.seed) = (algorithm, Some(1));
        let found = builder.explore(spinners).expect_err("a livelock");
        assert_eq!(found.kind(), FailureKind::Livelock);
        let text = found.to_string();
        assert!(!text.contains("does not decide alone"), "{text}");
    }
}

#[test]
fn a_livelock_names_the_pair_that_it_hangs_on() {
    let found = failure(|| {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (asked, answered) = &*theirs;
            // A request that comes later gets no answer.
            if asked.load(SeqCst) {
                answered.store(true, SeqCst);
            }
        });
        let (asked, answered) = &*shared;
        asked.store(true, SeqCst);
        while !answered.load(SeqCst) {
            thread::yield_now();
        }
        other.join().unwrap();
    });
    assert_eq!(found.kind(), FailureKind::Livelock);
    let text = found.to_string();
    let told = "fails because main.1's \"asked = false\" (event ";
    assert!(text.contains(told), "{text}");
    assert!(
        text.contains("comes before main's \"asked := true (was false)\" (event "),
        "{text}"
    );
}

#[test]
fn a_livelock_of_loops_that_look_at_much_is_told_in_few_rows() {
    let found = failure(|| {
        let flags = Arc::new([(); 5].map(|()| AtomicBool::new(false)));
        let others = [(); 3].map(|()| {
            let flags = flags.clone();
            thread::spawn(move || {
                while !flags.iter().any(|flag| flag.load(SeqCst)) {
                    thread::yield_now();
                }
            })
        });
        for other in others {
            other.join().unwrap();
        }
    });
    assert_eq!(found.kind(), FailureKind::Livelock);
    let text = found.to_string();
    let rows = text.lines().skip_while(|line| !line.contains(" # "));
    let rows: Vec<&str> = rows.take_while(|line| !line.is_empty()).collect();
    assert!(rows.len() < 45, "{} rows: {text}", rows.len());
    let last = rows.last().expect("rows");
    assert!(
        last.ends_with(" more rows like these, in which nothing changes)"),
        "{text}"
    );
}
