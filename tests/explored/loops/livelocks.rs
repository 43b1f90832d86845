//! Is a loop that nobody can end reported as a livelock, and one that makes progress not?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, Mutex};
use dpor::{Algorithm, Builder, FailureKind, Verdict, hint, thread};

use super::{COUNTS_SHOW, Locked, look_around};

/// So many changes a thread makes in these tests, with few rounds before each, which are too many if they are added up.
const CHANGES: usize = 600;

/// Looks at what nobody changes more often than is free, and gives up.
fn some_rounds(flag: &AtomicUsize) {
    for _ in 0..5 {
        flag.load(SeqCst);
        thread::yield_now();
    }
}

/// An exploration of `f` has no failure, and knows how many rounds there are before one gives up.
#[track_caller]
fn is_in_no_livelock(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.max_permutations = Some(3);
    let report = builder
        .explore(f)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.verdict, Verdict::Waits(5), "{report}");
}

#[test]
fn a_cycle_of_rounds_that_nobody_ends_is_a_livelock() {
    let failure = Builder::new().explore(|| {
        let flags: Arc<[AtomicUsize; 2]> = Arc::default();
        let shared = flags.clone();
        let other = thread::spawn(move || {
            shared[0].store(1, SeqCst);
            shared[0].store(0, SeqCst);
        });
        look_around(&*flags);
        other.join().unwrap();
    });
    let failure = failure.expect_err("the flag may be reset before it is seen");
    assert_eq!(failure.kind(), FailureKind::Livelock);
    let text = failure.to_string();
    assert!(text.contains("(these 3 rows 1000 times)"), "{text}");
}

/// A ring whose producer goes by what it knows of the consumer, and forgets to look again.
#[test]
fn a_loop_with_a_hint_and_nothing_else_is_a_livelock() {
    let failure = Builder::new().explore(|| {
        let taken = Arc::new(AtomicUsize::new(0));
        let theirs = taken.clone();
        let producer = thread::spawn(move || {
            let known = theirs.load(SeqCst);
            loop {
                if known != 0 {
                    break;
                }
                hint::spin_loop();
            }
        });
        taken.store(1, SeqCst);
        producer.join().unwrap();
    });
    let failure = failure.expect_err("what it knows may be old");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    let text = failure.to_string();
    let told =
        "main.1     spins without a look at what is shared  at tests/explored/loops/livelocks.rs:";
    assert!(text.contains(told), "{text}");
}

/// The looker is let go further alone from where it has waited, to see whether it gives up. It stops looking, which takes
/// more rounds than are free, and that is said; it does not go on like that for ever.
#[test]
fn who_stops_looking_at_a_hint_is_let_go_further_until_then() {
    let explored = |spin_bound| {
        let mut builder = Builder::new();
        builder.spin_bound = spin_bound;
        builder.explore(|| {
            let flag = Arc::new(AtomicUsize::new(0));
            let sets = flag.clone();
            let setter = thread::spawn(move || sets.store(1, SeqCst));
            let mut looks = 0;
            while looks >= 9 || flag.load(SeqCst) == 0 {
                looks += 1;
                hint::spin_loop();
            }
            setter.join().unwrap();
        })
    };
    let report = explored(1).expect("it sees the flag in one of three rounds");
    assert!(!report.complete, "{report}");
    let failure = explored(8).expect_err("it may stop looking before the flag is set");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
}

#[test]
fn a_queue_that_nobody_fills_is_waited_for_in_vain_also_with_a_deadline() {
    let failure = Builder::new().explore(|| {
        let (queue, filled) = (Mutex::new(Vec::<u32>::new()), Condvar::new());
        let mut guard = queue.lock().unwrap();
        while guard.pop().is_none() {
            let waited = filled.wait_timeout(guard, Duration::from_millis(1));
            (guard, _) = waited.unwrap();
        }
    });
    let failure = failure.expect_err("there is nothing to pop");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    let text = failure.to_string();
    for told in [
        "main       waits without a timeout until filled notifies it",
        " another timeout: nothing else can run ",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("spin"), "nobody spins: {text}");
}

#[test]
fn who_takes_and_puts_back_for_ever_is_in_a_livelock_and_who_stops_is_not() {
    let looks = |times: usize| {
        Builder::new().explore(move || {
            let lock = Locked::new();
            for _ in 0..times {
                if lock.with(|number| *number > 0) {
                    break;
                }
                thread::yield_now();
            }
        })
    };
    assert_eq!(looks(500).expect("it ends").complete, !COUNTS_SHOW);
    let failure = looks(usize::MAX).expect_err("nobody sets the number");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    // A change of another object is progress, so the rounds before the change are not those of the
    // livelock.
    for change in [false, true] {
        let failure = Builder::new().explore(move || {
            let (lock, changes) = (Locked::new(), AtomicUsize::new(0));
            let look = |_| {
                lock.with(|number| assert_eq!(*number, 0));
                thread::yield_now();
            };
            (0..950).for_each(look);
            changes.fetch_add(change as usize, SeqCst);
            (0..950).for_each(look);
            changes.fetch_add(change as usize, SeqCst);
            loop {
                thread::park_timeout(Duration::from_millis(1));
            }
        });
        let failure = failure.expect_err("it never ends");
        assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
        let parks = failure.events().iter();
        let parks = parks.filter(|event| event.what.starts_with("park_timeout"));
        assert_eq!(parks.count() > 1_000, change, "{failure}");
    }
}

/// The loops make more rounds than a livelock has: without a hint, with one, and beside another
/// thread.
#[test]
fn a_long_loop_that_ends_by_itself_is_in_no_livelock() {
    let passes = |executions: u64, f: fn()| {
        let report = Builder::new().explore(f);
        let report = report.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(report.executions, executions, "{report}");
    };
    passes(1, || {
        let x = AtomicUsize::new(0);
        for _ in 0..40_000 {
            x.load(SeqCst);
        }
    });
    passes(1, || {
        let x = AtomicUsize::new(0);
        for _ in 0..3_000 {
            x.load(SeqCst);
            hint::spin_loop();
        }
    });
    // The main thread waits for the end of the loop, which comes where nothing else can run.
    passes(2, || {
        let flag = Arc::new(AtomicUsize::new(0));
        let sets = flag.clone();
        let counts = thread::spawn(move || {
            let x = AtomicUsize::new(0);
            for _ in 0..40_000 {
                x.load(SeqCst);
            }
            sets.store(1, SeqCst);
        });
        while flag.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        counts.join().unwrap();
    });
}

/// A failure behind a long loop is found. The report of a loop that ends after more events than are
/// allowed names the limit.
#[test]
fn a_long_loop_ends_in_what_comes_behind_it_or_at_the_limit_of_events() {
    let found = |rounds: usize, max_branches| {
        let mut builder = Builder::new();
        builder.max_branches = max_branches;
        let failure = builder.explore(move || {
            let x = AtomicUsize::new(0);
            for _ in 0..rounds {
                x.load(SeqCst);
            }
            panic!("behind the loop");
        });
        failure.expect_err("it panics, or goes on for too long")
    };
    assert_eq!(found(40_000, 100_000).kind(), FailureKind::Panic);
    let failure = found(150_000, 100_000);
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    let text = failure.to_string();
    assert!(
        text.contains("if it ends by itself, raise\n  `Builder::max_branches` (DPOR_MAX_BRANCHES)"),
        "{text}"
    );
    assert_eq!(found(150_000, 200_000).kind(), FailureKind::Panic);
}

#[test]
fn a_livelock_comes_again_from_its_schedule_whatever_was_let_go_before() {
    // Both give up their first loops, and then it depends on who goes on first.
    let staged = || {
        let shared = Arc::new([0; 3].map(AtomicUsize::new));
        let tries = |flag: &AtomicUsize| {
            for _ in 0..5 {
                if flag.load(SeqCst) != 0 {
                    break;
                }
                thread::yield_now();
            }
        };
        let [ours, theirs] = [shared.clone(), shared];
        let waits = thread::spawn(move || {
            tries(&ours[0]);
            if ours[1].load(SeqCst) == 0 {
                while ours[2].load(SeqCst) == 0 {
                    thread::yield_now();
                }
            }
        });
        let tells = thread::spawn(move || {
            tries(&theirs[0]);
            theirs[1].store(1, SeqCst);
        });
        waits.join().expect("no thread panics");
        tells.join().expect("no thread panics");
    };
    for algorithm in [Algorithm::Optimal, Algorithm::Random] {
        let mut builder = Builder::new();
        (builder.algorithm, builder.seed) = (algorithm, Some(1));
        let failure = builder.explore(staged).expect_err("it may spin");
        assert_eq!(failure.kind(), FailureKind::Livelock);
        let text = failure.to_string();
        if algorithm == Algorithm::Optimal {
            assert!(text.contains("(execution 2, "), "{text}");
        }
        assert!(!text.contains("does not decide alone"), "{text}");
        builder.replay = Some(failure.schedule().to_owned());
        let again = builder.explore(staged).expect_err("it spins again");
        assert_eq!(again.kind(), FailureKind::Livelock, "{again}");
    }
}

#[test]
fn who_reads_much_in_each_round_is_in_a_livelock_before_there_are_too_many_events() {
    for objects in [3, 4, 10, 30] {
        let spins = move || {
            let all: Vec<AtomicUsize> = (0..objects).map(AtomicUsize::new).collect();
            while all.iter().map(|it| it.load(SeqCst)).max() < Some(100) {}
        };
        let failure = Builder::new()
            .explore(spins)
            .expect_err("it spins for ever");
        assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    }
}

/// It was let go at the hint before it came to the loop without one.
#[test]
fn who_spins_for_ever_behind_a_loop_with_a_hint_is_in_a_livelock_before_there_are_too_many_events()
{
    for times in [2, 3, 10] {
        let spins = move || {
            let flag = AtomicUsize::new(0);
            for _ in 0..times {
                if flag.load(SeqCst) != 0 {
                    return;
                }
                hint::spin_loop();
            }
            while flag.load(SeqCst) == 0 {}
        };
        let failure = Builder::new()
            .explore(spins)
            .expect_err("it spins for ever");
        assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
        assert!(failure.to_string().contains("30000 rounds"), "{failure}");
    }
}

#[test]
fn who_looks_some_hundred_times_and_gives_up_is_in_no_livelock() {
    let all = [99, 110, 128, 256, 900];
    for times in all.into_iter().filter(|&times| COUNTS_SHOW || times < 130) {
        let report = Builder::new().check(move || {
            let flag = AtomicUsize::new(0);
            for _ in 0..times {
                if flag.load(SeqCst) == 1 {
                    break;
                }
                hint::spin_loop();
            }
        });
        assert_eq!(report.verdict, Verdict::Waits(times));
    }
}

#[test]
fn who_waits_without_a_hint_keeps_nobody_with_one_from_being_in_a_livelock() {
    fn mixed() {
        let (one, other) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::spawn(move || {
            while one.load(SeqCst) != 1 {
                hint::spin_loop();
            }
        });
        thread::spawn(move || while other.load(SeqCst) != 1 {});
    }
    let failure = Builder::new().explore(mixed).expect_err("nobody ends it");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    let mut builder = Builder::new();
    builder.detached_may_block = true;
    assert!(builder.check(mixed).complete);
}

#[test]
fn a_change_that_is_seen_ends_the_rounds_in_which_nothing_has_changed() {
    // They come to 1,200, of which the second half is behind the change.
    let report = Builder::new().check(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let tries = |nothing: &AtomicUsize| {
            for _ in 0..600 {
                nothing.load(SeqCst);
                thread::yield_now();
            }
        };
        let other = thread::spawn(move || {
            while theirs.0.load(SeqCst) == 0 {
                thread::yield_now();
            }
            tries(&theirs.1);
        });
        tries(&shared.1);
        shared.0.store(1, SeqCst);
        other.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Waits(600));
}

#[test]
fn who_changes_what_a_lock_holds_after_each_few_rounds_is_in_no_livelock() {
    is_in_no_livelock(|| {
        let shared = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
        for _ in 0..CHANGES {
            some_rounds(&shared.0);
            *shared.1.lock().unwrap() += 1;
        }
    });
}

#[test]
fn who_is_unparked_after_each_few_rounds_is_in_no_livelock() {
    is_in_no_livelock(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let me = thread::current();
        let other = thread::spawn(move || {
            for _ in 0..CHANGES {
                thread::park();
                me.unpark();
            }
        });
        for _ in 0..CHANGES {
            some_rounds(&flag);
            other.thread().unpark();
            thread::park();
        }
        other.join().expect("no thread panics");
    });
}

#[test]
fn two_threads_of_which_one_gets_on_are_in_no_livelock_however_often_the_other_looks_in_vain() {
    is_in_no_livelock(|| {
        let shared: Arc<[AtomicUsize; 3]> = Arc::default();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            for _ in 0..CHANGES {
                some_rounds(&theirs[1]);
                theirs[2].fetch_add(1, SeqCst);
            }
            theirs[0].store(1, SeqCst);
        });
        while shared[0].load(SeqCst) == 0 {
            thread::yield_now();
        }
        other.join().expect("no thread panics");
    });
}
