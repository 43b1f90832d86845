//! When does a thread in a loop wait for a change, and what if it never has to?

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, RwLock, mpsc};
use dpor::{Algorithm, Builder, FailureKind, Verdict, hint, thread};

/// Explores `f` completely with each algorithm that can tell, and without a preemption bound; gives the number of
/// executions, which is the same for all of them.
fn count(f: impl Fn() + Send + Sync + Clone + 'static) -> u64 {
    let executions = |algorithm| {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(f.clone());
        assert!(report.complete, "{algorithm:?}: {report}");
        assert!(
            algorithm != Algorithm::Optimal || report.pruned == 0,
            "{report}"
        );
        report.executions
    };
    let optimal = executions(Algorithm::Optimal);
    for other in [Algorithm::Source, Algorithm::Classic, Algorithm::Bounded] {
        assert_eq!(executions(other), optimal, "{other:?}");
    }
    optimal
}

#[test]
fn a_spinning_thread_waits_for_the_change() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        while flag.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        setter.join().expect("no thread panics");
    };
    // The flag is set before the first, second, third look, or while the thread waits after it.
    assert_eq!(count(body), 4);
}

/// A loop that backs off for longer each time, as those of many crates do.
fn back_off(rounds: &mut u32) {
    for _ in 0..1 << *rounds {
        hint::spin_loop();
    }
    *rounds = (*rounds + 1).min(6);
}

#[test]
fn a_thread_that_backs_off_for_longer_each_time_waits_like_one_that_does_not() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        let mut rounds = 0;
        while flag.load(SeqCst) == 0 {
            back_off(&mut rounds);
        }
        setter.join().expect("no thread panics");
    };
    assert_eq!(count(body), 4);
}

#[test]
fn a_thread_that_takes_and_puts_back_before_it_yields_waits_for_a_change() {
    // A consumer that takes a lock of its own making, finds nothing, gives the lock back, and yields.
    let body = || {
        let (lock, slot) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new((lock, slot));
        let theirs = shared.clone();
        let producer = thread::spawn(move || theirs.1.store(7, SeqCst));
        let found = loop {
            let (lock, slot) = &*shared;
            assert_eq!(lock.swap(1, SeqCst), 0, "there is one consumer");
            let found = slot.load(SeqCst);
            lock.store(0, SeqCst);
            if found != 0 {
                break found;
            }
            thread::yield_now();
        };
        assert_eq!(found, 7);
        producer.join().expect("no thread panics");
    };
    // The value is there for one of the first five looks, or is waited for. Only the second hint shows that there is
    // such a loop, and it is idle twice after an iteration to compare with.
    assert_eq!(count(body), 6);
}

/// Looks at `flags` in turns, with a hint in between, until one of them is set.
fn look_around(flags: &[AtomicUsize]) {
    let mut turns = flags.iter().cycle();
    while turns.next().is_some_and(|flag| flag.load(SeqCst) == 0) {
        hint::spin_loop();
    }
}

/// One thread looks at two flags in turns, and so many others set one each.
fn two_flags(setters: usize) -> impl Fn() + Send + Sync + Clone {
    move || {
        let flags: Arc<[AtomicUsize; 2]> = Arc::default();
        let setter = |at: usize| {
            let flags = flags.clone();
            thread::spawn(move || flags[at].store(1, SeqCst))
        };
        let setters: Vec<_> = (0..setters).map(setter).collect();
        // It has changed nothing before, and knows nothing of the execution before.
        let looks = flags.clone();
        let looker = thread::spawn(move || look_around(&*looks));
        for thread in setters.into_iter().chain([looker]) {
            thread.join().expect("no thread panics");
        }
    }
}

#[test]
fn a_thread_that_looks_at_several_things_in_turns_waits_for_a_change_of_any() {
    // The flag is set before the first, second, third look at it, or waited for.
    assert_eq!(count(two_flags(1)), 4);
    // The loop ends with one of six looks; or it waits, and one flag was set behind the look at it, the other one was
    // and is seen when all is looked at again, or is set behind that and seen in the next turn, or both were set.
    assert_eq!(count(two_flags(2)), 6 + 1 + 2 + 1);
}

#[test]
fn a_thread_that_tries_a_few_times_before_it_yields_waits_for_a_change() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        let try_it = || {
            (0..3).any(|tries| {
                let is_set = flag.load(SeqCst) == 1;
                if !is_set && tries < 2 {
                    hint::spin_loop();
                }
                is_set
            })
        };
        while !try_it() {
            thread::yield_now();
        }
        setter.join().expect("no thread panics");
    };
    // Three tries with three looks each, or while the thread waits.
    assert_eq!(count(body), 3 * 3 + 1);
}

#[test]
fn a_cycle_of_rounds_in_which_something_is_changed_is_none() {
    // It counts its rounds, so it is on its way to the end.
    let body = || {
        let (flags, rounds): (Arc<[AtomicUsize; 2]>, _) = (Arc::default(), AtomicUsize::new(0));
        let shared = flags.clone();
        let setter = thread::spawn(move || shared[1].store(1, SeqCst));
        while flags[rounds.load(SeqCst) % 2].load(SeqCst) == 0 && rounds.fetch_add(1, SeqCst) < 9 {
            hint::spin_loop();
        }
        setter.join().expect("no thread panics");
    };
    // It looks five times at the flag that is set: before each of these, or never.
    assert_eq!(count(body), 5 + 1);
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
    assert!(text.contains("(these 3 rows 100 times)"), "{text}");
}

/// A counter that main raises for as long as nobody has stopped it.
fn raised_until_stopped(last: usize) -> impl Fn() + Send + Sync + Clone {
    move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let stopper = thread::spawn(move || theirs.0.store(1, SeqCst));
        let (stopped, raised) = &*shared;
        while stopped.load(SeqCst) == 0 {
            assert!(raised.fetch_add(1, SeqCst) < last, "too often");
            thread::yield_now();
        }
        stopper.join().expect("no thread panics");
    }
}

#[test]
fn a_loop_that_gets_on_in_each_round_has_as_many_rounds_as_the_bound_says() {
    let mut builder = Builder::new();
    builder.max_branches = 1000;
    let failure = builder.explore(raised_until_stopped(usize::MAX));
    let failure = failure.expect_err("it has no last round");
    assert_eq!(failure.kind(), FailureKind::Limit);
    let text = failure.to_string();
    assert!(
        text.contains("`Builder::max_rounds` (DPOR_MAX_ROUNDS=3, say)"),
        "{text}"
    );

    for rounds in 1..=4 {
        for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Naive] {
            let mut builder = Builder::new();
            builder.algorithm = algorithm;
            builder.max_rounds = Some(rounds);
            let report = builder.check(raised_until_stopped(usize::MAX));
            let told = format!("{algorithm:?}: {report}");
            if algorithm == Algorithm::Optimal {
                // It is stopped before its first round, behind one of so many, or not in time.
                let both = (report.executions, report.pruned);
                assert_eq!(both, (rounds as u64 + 1, 1), "{told}");
            }
            assert_eq!(report.verdict, Verdict::Rounds(rounds), "{told}");
            assert_eq!(report.within_rounds, Some(rounds), "{told}");
            assert!(!report.complete, "{told}");
            let said = format!("bounded by max_rounds = {rounds} (DPOR_MAX_ROUNDS): ");
            assert!(told.contains(&said), "{told}");
        }
    }
}

#[test]
fn what_fails_within_the_rounds_is_found_and_what_needs_more_is_not() {
    let explore = |rounds| {
        let mut builder = Builder::new();
        builder.max_rounds = Some(rounds);
        builder.explore(raised_until_stopped(3))
    };
    // The assertion fails in the fourth round, which begins behind the third hint.
    assert_eq!(explore(2).expect("it is left out").within_rounds, Some(2));
    let failure = explore(3).expect_err("three rounds are free");
    assert_eq!(failure.kind(), FailureKind::Panic);
    let schedule = failure.schedule().to_owned();
    let again = dpor_replays(&schedule, raised_until_stopped(3));
    assert!(again.contains("too often"), "{again}");
}

/// What comes of this schedule without a bound on the rounds.
fn dpor_replays(schedule: &str, f: impl Fn() + Send + Sync + 'static) -> String {
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    builder.explore(f).expect_err("it fails again").to_string()
}

#[test]
fn a_bound_on_rounds_that_leaves_nothing_out_is_not_told() {
    let mut builder = Builder::new();
    builder.max_rounds = Some(1);
    let report = builder.check(two_flags(2));
    assert_eq!(
        (report.verdict, report.within_rounds),
        (Verdict::Complete, None)
    );
    builder.max_rounds = Some(0);
    let refused = catch_unwind(AssertUnwindSafe(|| builder.check(|| ())));
    let refused = refused.expect_err("no loop has no round");
    let text = refused.downcast_ref::<String>().expect("a text");
    assert!(text.contains("max_rounds = 0 (DPOR_MAX_ROUNDS)"), "{text}");
}

#[test]
fn a_bound_on_rounds_goes_with_one_on_preemptions() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(0);
    builder.max_rounds = Some(2);
    let report = builder.check(raised_until_stopped(usize::MAX));
    let text = report.to_string();
    assert_eq!(report.within_rounds, Some(2), "{text}");
    assert!(
        text.starts_with("bounded by preemption_bound = 0 (DPOR_MAX_PREEMPTIONS), and by max_rounds = 2 (DPOR_MAX_ROUNDS): "),
        "{text}"
    );
}

/// Fails if it is dropped before the counter has been stopped, as no execution of [`loops_before_a_destructor`] does.
struct Watcher(Arc<(AtomicUsize, AtomicUsize)>);

impl Drop for Watcher {
    fn drop(&mut self) {
        assert_eq!(self.0.0.load(SeqCst), 1, "dropped too early");
    }
}

fn loops_before_a_destructor() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = shared.clone();
    let loops = thread::spawn(move || {
        let watcher = Watcher(theirs);
        let (stopped, raised) = &*watcher.0;
        while stopped.load(SeqCst) == 0 {
            raised.fetch_add(1, SeqCst);
            thread::yield_now();
        }
    });
    // It has the lock of nobody, and may have to wait for the other one's rounds.
    if shared.1.load(SeqCst) < 3 {
        shared.0.store(1, SeqCst);
        loops.join().expect("no thread panics");
    } else {
        shared.0.store(1, SeqCst);
    }
}

#[test]
fn a_thread_that_has_made_its_rounds_still_comes_to_its_end() {
    // To be unwound in the middle of its loop would be a panic in a destructor, and the end of the process.
    let mut builder = Builder::new();
    builder.max_rounds = Some(2);
    let report = builder.check(loops_before_a_destructor);
    assert_eq!(report.verdict, Verdict::Rounds(2));
    assert!(report.pruned > 0, "{report}");
}

/// Main puts something into this, and a thread takes it out as soon as it finds it there.
fn polled<T: Send + Sync + 'static>(
    empty: fn() -> T,
    put: fn(&T),
    take: fn(&T) -> Option<u32>,
) -> impl Fn() + Send + Sync + Clone {
    move || {
        let shared = Arc::new(empty());
        let theirs = shared.clone();
        let poller = thread::spawn(move || {
            loop {
                if let Some(found) = take(&theirs) {
                    return found;
                }
                hint::spin_loop();
            }
        });
        put(&shared);
        assert_eq!(poller.join().expect("no thread panics"), 7);
    }
}

#[test]
fn a_thread_that_finds_nothing_to_take_has_only_looked() {
    let queue = polled(
        || Mutex::new(VecDeque::new()),
        |queue| queue.lock().unwrap().push_back(7),
        |queue| queue.lock().unwrap().pop_front(),
    );
    let stack = polled(
        || Mutex::new(vec![]),
        |stack| stack.lock().unwrap().push(7),
        |stack| stack.lock().unwrap().pop(),
    );
    let slot = polled(
        || RwLock::new(None),
        |slot| *slot.write().unwrap() = Some(7),
        |slot| slot.write().unwrap().take(),
    );
    // It is put there before the first, second, third, fourth look, or while the thread waits. Before its first hint nobody
    // asks whether the data has changed that a thread has had for itself.
    assert_eq!((count(queue), count(stack), count(slot)), (5, 5, 5));
    let flag = polled(
        || Mutex::new(Cell::new(false)),
        |flag| flag.lock().unwrap().set(true),
        |flag| flag.lock().unwrap().get().then_some(7),
    );
    assert_eq!(count(flag), 4);
}

/// What main sees in three looks at what another thread changes five times under a lock, with a hint after each.
fn seen<T: Send + 'static>(
    zero: impl Fn() -> T + Send + Sync + 'static,
    add: fn(MutexGuard<'_, T>),
    get: fn(&T) -> u32,
) -> BTreeSet<[u32; 3]> {
    let seen = dpor::outcomes(move || {
        let shared = Arc::new(Mutex::new(zero()));
        let theirs = shared.clone();
        let adder = thread::spawn(move || {
            for _ in 0..5 {
                add(theirs.lock().unwrap());
                thread::yield_now();
            }
        });
        let seen = [(); 3].map(|()| get(&shared.lock().unwrap()));
        adder.join().expect("no thread panics");
        seen
    });
    seen.into_keys().collect()
}

#[test]
fn what_a_thread_changes_in_a_critical_section_is_a_change_wherever_it_is() {
    let all: BTreeSet<[u32; 3]> = (0..216u32)
        .map(|n| [n / 36, n / 6 % 6, n % 6])
        .filter(|seen| seen.is_sorted())
        .collect();
    assert_eq!(all.len(), 56);
    assert_eq!(seen(|| 0, |mut n| *n += 1, |n| *n), all);
    assert_eq!(
        seen(|| Cell::new(0), |n| n.set(n.get() + 1), Cell::get),
        all
    );
    assert_eq!(seen(|| vec![0], |mut n| n[0] += 1, |n| n[0]), all);
    let boxes = || Box::new((Box::new(0), "apart"));
    assert_eq!(seen(boxes, |mut n| *n.0 += 1, |n| *n.0), all);
    // More than is looked at.
    let large = || (vec![0; 100_000], 0);
    assert_eq!(seen(large, |mut n| n.0[9] += 1, |n| n.0[9]), all);
    let many = || (0..100).map(|_| Box::new(0)).collect::<Vec<_>>();
    assert_eq!(seen(many, |mut n| *n[99] += 1, |n| *n[99]), all);
}

#[test]
fn what_a_thread_changes_on_the_stack_of_another_one_is_a_change() {
    let seen = dpor::outcomes(|| {
        let mut count = 0;
        let lock = Mutex::new(&mut count);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    **lock.lock().unwrap() += 1;
                    thread::yield_now();
                }
            });
            **lock.lock().unwrap()
        })
    });
    assert_eq!(seen.into_keys().collect::<Vec<u32>>(), [0, 1, 2, 3, 4, 5]);
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
fn that_a_spinning_thread_goes_on_is_not_said_to_be_why_it_fails() {
    let failure = Builder::new().explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let counts = thread::spawn(move || (1..4).for_each(|n| theirs.store(n, SeqCst)));
        while x.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        assert!(x.load(SeqCst) < 2, "too late");
        counts.join().unwrap();
    });
    let text = failure.expect_err("two of them are too many").to_string();
    // Where it goes on earlier and looks as late, it fails as well.
    assert!(!text.contains("it fails because"), "{text}");
    let spins = "main's \"spin until x changes\" (event 9) fails: one with the second before the first passes";
    assert!(text.contains(spins), "{text}");
}

/// How many executions there are of a thread that polls and one that does something meanwhile.
fn polled_beside<T: Send + Sync + 'static>(
    make: fn() -> T,
    poll: fn(&T) -> bool,
    act: fn(&T),
) -> u64 {
    count(move || {
        let shared = Arc::new(make());
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            while !poll(&theirs) {
                thread::yield_now();
            }
        });
        act(&shared);
        other.join().unwrap();
    })
}

#[test]
fn who_polls_an_initialisation_does_not_see_who_is_at_it() {
    // It is done before the first look, the second, the third, or the thread waits for it.
    assert_eq!(
        polled_beside(Once::new, Once::is_completed, |once| once.call_once(|| ())),
        4
    );
    let is_set = |lock: &OnceLock<u8>| lock.get().is_some();
    assert_eq!(
        polled_beside(OnceLock::new, is_set, |lock| lock.set(1).unwrap()),
        4
    );
    // One that fails before is nothing to it either.
    let fails_once = |lock: &OnceLock<u8>| {
        let fails = || lock.get_or_init(|| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        lock.set(1).unwrap();
    };
    let executions = polled_beside(OnceLock::new, is_set, fails_once);
    assert!(executions >= 4, "{executions}");
}

#[test]
fn who_upgrades_again_and_again_waits_until_there_is_nothing_left() {
    for clones in [false, true] {
        let executions = count(move || {
            let value = Arc::new(());
            let weak = Arc::downgrade(&value);
            let other = thread::spawn(move || {
                while let Some(value) = weak.upgrade() {
                    drop(value);
                    hint::spin_loop();
                }
            });
            // How many references there are it does not see.
            if clones {
                drop(value.clone());
            }
            drop(value);
            other.join().unwrap();
        });
        assert_eq!(executions, if clones { 10 } else { 4 });
    }
}

#[test]
fn whether_a_timed_wait_goes_on_hangs_on_what_the_thread_has_seen() {
    // Between two waits there is something that has nothing to do with the channel, and commutes with its use.
    for waits in 1..=6 {
        let executions = count(move || {
            let (tell, told) = mpsc::channel::<()>();
            let rounds = Arc::new(AtomicUsize::new(0));
            let theirs = rounds.clone();
            let other = thread::spawn(move || {
                for _ in 0..waits {
                    let _ = told.recv_timeout(Duration::from_millis(1));
                    theirs.fetch_add(1, SeqCst);
                }
            });
            rounds.load(SeqCst);
            drop(tell);
            other.join().unwrap();
        });
        assert_eq!(executions, if waits == 1 { 3 } else { 6 });
    }
}

#[test]
fn who_unparks_in_each_round_does_it_again_when_the_token_was_taken() {
    for (parks, executions) in [(1, 16), (2, 22), (3, 24), (4, 24), (9, 24)] {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
        let noted = seen.clone();
        let counted = count(move || {
            let done = Arc::new(AtomicUsize::new(0));
            let theirs = done.clone();
            let parked = thread::spawn(move || {
                for _ in 0..parks {
                    thread::park();
                }
                theirs.store(1, SeqCst);
            });
            let theirs = done.clone();
            let unparks = thread::spawn(move || {
                while theirs.load(SeqCst) == 0 {
                    parked.thread().unpark();
                    thread::yield_now();
                }
            });
            noted.lock().unwrap().insert(done.load(SeqCst));
            unparks.join().unwrap();
        });
        assert_eq!(*seen.lock().unwrap(), BTreeSet::from([0, 1]), "{parks}");
        assert_eq!(counted, executions, "{parks}");
    }
}

/// A number behind a lock of the test's own.
struct Locked {
    taken: AtomicBool,
    number: UnsafeCell<usize>,
}

// SAFETY: the number is only used by who has the lock.
unsafe impl Sync for Locked {}

impl Locked {
    fn new() -> Locked {
        Locked {
            taken: AtomicBool::new(false),
            number: UnsafeCell::new(0),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut usize) -> R) -> R {
        while self.taken.swap(true, SeqCst) {
            thread::yield_now();
        }
        // SAFETY: the lock is taken.
        let result = self.number.with_mut(|number| f(unsafe { &mut *number }));
        self.taken.store(false, SeqCst);
        result
    }
}

#[test]
fn who_changes_what_is_behind_a_lock_of_its_own_in_each_round_goes_on() {
    for rounds in [1, 9, 30] {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
        let noted = seen.clone();
        let counted = count(move || {
            let shared = Arc::new((Locked::new(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let counts = thread::spawn(move || {
                while theirs.0.with(|number| {
                    *number += 1;
                    *number < rounds
                }) {
                    thread::yield_now();
                }
                theirs.1.store(1, SeqCst);
            });
            noted.lock().unwrap().insert(shared.1.load(SeqCst));
            counts.join().unwrap();
        });
        assert_eq!(*seen.lock().unwrap(), BTreeSet::from([0, 1]), "{rounds}");
        assert_eq!(counted, 2, "{rounds}");
    }
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
    assert!(looks(500).expect("it ends").complete);
    let failure = looks(usize::MAX).expect_err("nobody sets the number");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    // What it leaves behind somewhere else is progress, up to the next round or to where it waits otherwise.
    for change in [false, true] {
        let may_fail = Builder::new().explore(move || {
            let (lock, changes) = (Locked::new(), AtomicUsize::new(0));
            let look = |_| {
                lock.with(|number| assert_eq!(*number, 0));
                thread::yield_now();
            };
            (0..950).for_each(look);
            changes.fetch_add(change as usize, SeqCst);
            (0..950).for_each(look);
            changes.fetch_add(change as usize, SeqCst);
            (0..90).for_each(|_| thread::park_timeout(Duration::from_millis(1)));
        });
        let livelock = may_fail.err().map(|failure| failure.kind());
        assert_eq!(livelock, (!change).then_some(FailureKind::Livelock));
    }
}

#[test]
fn a_wait_that_was_let_go_is_not_shut_out_by_what_comes_later() {
    // Where both spin they are let go together, and one of them writes what is there already before the other goes on.
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let shared = Arc::new([0; 3].map(AtomicUsize::new));
            let theirs = shared.clone();
            let told = thread::spawn(move || {
                let [x, y, _] = &*theirs;
                loop {
                    y.store(2, SeqCst);
                    if x.load(SeqCst) != 0 {
                        break;
                    }
                    thread::yield_now();
                }
            });
            let theirs = shared.clone();
            let tells = thread::spawn(move || {
                let [x, y, z] = &*theirs;
                y.swap(0, SeqCst);
                z.store(1, SeqCst);
                while y.load(SeqCst) != 2 {
                    thread::yield_now();
                }
                x.store(1, SeqCst);
            });
            shared[2].load(SeqCst);
            for other in [told, tells] {
                other.join().expect("no thread panics");
            }
        });
        assert!(report.complete);
        assert_eq!(report.executions, 308, "{algorithm:?}");
    }
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

/// A spin lock, taken and given back by two threads, that is tried so many times before a thread counts itself among the slow.
fn tried_first(
    times: usize,
    slow: &'static std::sync::atomic::AtomicBool,
) -> impl Fn() + Send + Sync {
    move || {
        let lock = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let take = move |(taken, contended): &(AtomicBool, AtomicUsize)| {
            for _ in 0..times {
                if !taken.swap(true, SeqCst) {
                    return taken.store(false, SeqCst);
                }
                hint::spin_loop();
            }
            slow.store(true, SeqCst);
            contended.fetch_add(1, SeqCst);
            while taken.swap(true, SeqCst) {
                thread::yield_now();
            }
            taken.store(false, SeqCst);
        };
        let theirs = lock.clone();
        let other = thread::spawn(move || take(&theirs));
        take(&lock);
        other.join().expect("no thread panics");
    }
}

#[test]
fn a_loop_that_gives_up_after_more_rounds_than_are_free_is_told_and_can_be_explored() {
    static SLOW: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let explored = |times, bound| {
        SLOW.store(false, SeqCst);
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        let report = builder.check(tried_first(times, &SLOW));
        (report.verdict, report.complete)
    };
    for times in [3, 10, 100] {
        let bounded = (Verdict::Waits(times), false);
        assert_eq!(explored(times, 1), bounded);
        assert_eq!(explored(times, times as u32 - 2), bounded, "{times}");
        if times < 100 {
            assert_eq!(explored(times, times as u32 - 1), (Verdict::Complete, true));
            assert!(SLOW.load(SeqCst), "{times}");
        }
    }
    // So few are free.
    assert_eq!(explored(2, 1), (Verdict::Complete, true));
    // Nobody has so much patience.
    assert_eq!(explored(1000, 1), (Verdict::Complete, true));
}

#[test]
fn what_goes_further_and_fails_has_left_its_loop() {
    let report = Builder::new().check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let waits = thread::spawn(move || {
            for _ in 0..20 {
                if theirs.load(SeqCst) {
                    return;
                }
                hint::spin_loop();
            }
            panic!("it takes too long");
        });
        flag.store(true, SeqCst);
        waits.join().expect("it is let go on in time");
    });
    assert_eq!(report.verdict, Verdict::Waits(20));
}

#[test]
fn who_goes_further_without_end_waits_again_so_that_all_come_to_their_ends() {
    use std::sync::atomic::AtomicUsize as Plain;
    static ENDS: Plain = Plain::new(0);
    static LOOKS: Plain = Plain::new(0);
    let report = Builder::new().check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let sets = thread::spawn(move || theirs.store(true, SeqCst));
        while !flag.load(SeqCst) {
            LOOKS.fetch_add(1, SeqCst);
            hint::spin_loop();
        }
        ENDS.fetch_add(1, SeqCst);
        sets.join().expect("no thread panics");
    });
    assert_eq!((report.executions, report.complete), (4, true));
    // One execution more, which is none of the exploration.
    assert_eq!(ENDS.load(SeqCst), 5);
    assert!(LOOKS.load(SeqCst) < 200, "{LOOKS:?}");
}
