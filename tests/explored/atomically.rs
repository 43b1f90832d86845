//! Is a block one step, and does it depend on its footprint alone?

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize as Free;

use dpor::cell::UnsafeCell;
use dpor::collections::KeyedMap;
use dpor::engine::Access;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use dpor::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use dpor::{
    Algorithm, Builder, Failure, FailureKind, Footprint, Memory, Report, WeakMemory, atomically,
    thread,
};

/// A number in plain memory, which the detector of data races watches.
struct Plain(UnsafeCell<usize>);

// SAFETY: the model runs one thread at a time, and reports accesses that are not ordered.
unsafe impl Sync for Plain {}
// SAFETY: as above.
unsafe impl Send for Plain {}

impl Plain {
    fn new() -> Plain {
        Plain(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: no other thread runs meanwhile.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: no other thread runs meanwhile.
        self.0.with(|number| unsafe { *number })
    }
}

fn explore(f: impl Fn() + Send + Sync + 'static) -> Report {
    let report = Builder::new().explore(f).expect("no failure");
    assert!(report.complete, "{report}");
    report
}

fn executions(f: impl Fn() + Send + Sync + 'static) -> u64 {
    explore(f).executions
}

fn fails(f: impl Fn() + Send + Sync + 'static) -> Failure {
    match Builder::new().explore(f) {
        Ok(report) => panic!("it passes: {report}"),
        Err(failure) => *failure,
    }
}

fn atomics(n: usize) -> Arc<Vec<AtomicUsize>> {
    Arc::new((0..n).map(|_| AtomicUsize::new(0)).collect())
}

/// Runs `body` in this many threads, with their numbers.
fn run(threads: usize, body: impl Fn(usize) + Send + Sync + Clone + 'static) {
    let others: Vec<_> = (0..threads)
        .map(|number| {
            let body = body.clone();
            thread::spawn(move || body(number))
        })
        .collect();
    for other in others {
        other.join().expect("no panic");
    }
}

#[test]
fn blocks_over_other_objects_commute_and_blocks_over_everything_do_not() {
    for (everything, expected) in [(false, [1, 1, 1]), (true, [2, 6, 24])] {
        for (threads, expected) in (2..).zip(expected) {
            let found = executions(move || {
                let all = atomics(2 * threads);
                let theirs = all.clone();
                run(threads, move |i| {
                    let (x, y) = (&theirs[2 * i], &theirs[2 * i + 1]);
                    let footprint = match everything {
                        true => Footprint::everything(),
                        false => Footprint::new().writes(x).writes(y),
                    };
                    atomically(footprint, || {
                        x.fetch_add(1, SeqCst);
                        y.fetch_add(1, SeqCst);
                    });
                });
                assert!(all.iter().all(|it| it.load(SeqCst) == 1));
            });
            assert_eq!(
                found, expected,
                "{threads} threads, everything: {everything}"
            );
        }
    }
}

#[test]
fn no_thread_sees_half_of_a_block() {
    for algorithm in [
        Algorithm::Optimal,
        Algorithm::Source,
        Algorithm::Parsimonious,
        Algorithm::SleepSets,
        Algorithm::Classic,
    ] {
        let mut settings = Builder::new();
        settings.algorithm = algorithm;
        let report = settings.check(|| {
            let all = atomics(2);
            let theirs = all.clone();
            run(3, move |i| {
                let (x, y) = (&theirs[0], &theirs[1]);
                if i < 2 {
                    atomically(Footprint::new().writes(x).writes(y), || {
                        let before = x.load(SeqCst);
                        x.store(before + 1, SeqCst);
                        y.store(before + 1, SeqCst);
                    });
                } else {
                    let found = atomically(Footprint::new().reads(x).reads(y), || {
                        (x.load(SeqCst), y.load(SeqCst))
                    });
                    assert_eq!(found.0, found.1);
                }
            });
            assert_eq!(all[0].load(SeqCst), 2);
        });
        // Every order of the three blocks, in which the two writers differ by their threads.
        assert_eq!(report.executions, 6, "{report}");
        assert!(report.complete);
        assert_eq!(report.weak, WeakMemory::Unasked);
    }
}

#[test]
fn a_block_meets_single_operations_before_it_and_behind_it_and_never_within() {
    static SEEN: std::sync::Mutex<BTreeSet<(usize, usize)>> =
        std::sync::Mutex::new(BTreeSet::new());
    let found = executions(|| {
        let all = atomics(2);
        let theirs = all.clone();
        let other = thread::spawn(move || {
            let (x, y) = (&theirs[0], &theirs[1]);
            atomically(Footprint::new().writes(x).writes(y), || {
                x.store(1, SeqCst);
                y.store(1, SeqCst);
            });
        });
        let seen = (all[0].load(SeqCst), all[1].load(SeqCst));
        other.join().unwrap();
        SEEN.lock().unwrap().insert(seen);
    });
    assert_eq!(found, 3);
    let seen = SEEN.lock().unwrap().clone();
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 1)]));
}

/// Peterson's lock of two threads, with a wait that is a block. Each thread announces itself before
/// it leaves the turn to the other one, unless it is `hasty`.
fn peterson(hasty: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((atomics(3), Plain::new()));
        let theirs = shared.clone();
        run(2, move |me| {
            let (flags, turn) = (&theirs.0[..2], &theirs.0[2]);
            let other = 1 - me;
            if hasty {
                turn.store(other, SeqCst);
                flags[me].store(1, SeqCst);
            } else {
                flags[me].store(1, SeqCst);
                turn.store(other, SeqCst);
            }
            let flag = &flags[other];
            let footprint = Footprint::new().reads(flag).reads(turn);
            let may_enter = || flag.load(SeqCst) == 0 || turn.load(SeqCst) == me;
            atomically(footprint.when(may_enter), || {});
            theirs.1.add();
            flags[me].store(0, SeqCst);
        });
        assert_eq!(shared.1.get(), 2);
    }
}

#[test]
fn a_lock_of_peterson_waits_for_a_condition_over_two_variables() {
    // A look in vain is a step; one that follows at once is free, or none is.
    assert_eq!(executions(peterson(false)), 40);
    let mut settings = Builder::new();
    settings.spin_bound = 0;
    assert_eq!(settings.check(peterson(false)).executions, 24);
    let failure = fails(peterson(true));
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
}

#[test]
fn a_condition_that_never_holds_is_a_thread_that_waits_for_ever() {
    let failure = fails(|| {
        let x = AtomicUsize::new(0);
        atomically(
            Footprint::new().reads(&x).when(|| x.load(SeqCst) == 1),
            || {},
        );
    });
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
}

#[test]
fn a_block_begins_when_its_condition_holds_and_is_one_step_with_it() {
    let found = executions(|| {
        let all = atomics(2);
        let theirs = all.clone();
        run(3, move |i| {
            let (tokens, taken) = (&theirs[0], &theirs[1]);
            if i == 0 {
                tokens.store(2, SeqCst);
                return;
            }
            let footprint = Footprint::new().writes(tokens).writes(taken);
            let is_there = || tokens.load(SeqCst) > 0;
            atomically(footprint.when(is_there), || {
                let left = tokens.load(SeqCst);
                assert!(left > 0);
                tokens.store(left - 1, SeqCst);
                taken.store(taken.load(SeqCst) + 1, SeqCst);
            });
        });
        assert_eq!((all[0].load(SeqCst), all[1].load(SeqCst)), (0, 2));
    });
    assert!(found >= 2, "{found}");
}

#[test]
fn a_choice_before_the_block_is_explored_and_one_within_is_refused() {
    static SEEN: std::sync::Mutex<BTreeSet<usize>> = std::sync::Mutex::new(BTreeSet::new());
    let found = executions(|| {
        let x = AtomicUsize::new(0);
        let drawn = dpor::choose(3);
        atomically(Footprint::new().writes(&x), || x.store(drawn, SeqCst));
        SEEN.lock().unwrap().insert(x.load(SeqCst));
    });
    assert_eq!(found, 3);
    assert_eq!(SEEN.lock().unwrap().len(), 3);
    let message = refused(|| {
        dpor::choose(3);
    });
    assert!(message.contains("a choice at "), "{message}");
    assert!(message.contains("Choose before the block"), "{message}");
}

/// The message of the failure if a block over everything does this.
fn refused(what: impl Fn() + Send + Sync + 'static) -> String {
    let failure = fails(move || atomically(Footprint::everything(), &what));
    assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
    assert!(
        failure.to_string().contains("tests/explored/atomically.rs"),
        "{failure}"
    );
    failure.to_string()
}

#[test]
fn what_is_no_part_of_a_step_is_refused_by_name() {
    type Act = fn();
    let all: [(&str, Act); 15] = [
        ("a spawn", || drop(thread::spawn(|| {}))),
        ("a spin hint", || dpor::hint::spin_loop()),
        ("a spin hint", || thread::yield_now()),
        ("a fence", || dpor::sync::atomic::fence(SeqCst)),
        ("a park", || thread::park()),
        ("an unpark", || thread::current().unpark()),
        ("another block", || atomically(Footprint::new(), || {})),
        ("a notification", || Condvar::new().notify_all()),
        ("a send", || {
            let _ = mpsc::channel().0.send(1);
        }),
        ("`assume(false)`", || dpor::assume(false)),
        ("`stop`", || dpor::stop()),
        ("a clone of a reference", || drop(Arc::new(1).clone())),
        ("a read of the clock", || {
            let _ = dpor::time::Instant::now();
        }),
        ("would have to wait", || {
            let lock = Mutex::new(1);
            let _one = lock.lock();
            let _two = lock.lock();
        }),
        ("does not leave as it found it", || {
            let lock = Mutex::new(1);
            std::mem::forget(lock.lock());
        }),
    ];
    for (name, act) in all {
        let message = refused(act);
        assert!(message.contains(name), "{name}: {message}");
    }
}

#[test]
fn an_access_outside_of_the_footprint_fails_with_both_places() {
    let failure = fails(|| {
        let all = atomics(2);
        atomically(Footprint::new().reads(&all[0]), || {
            all[0].load(SeqCst);
            all[1].load(SeqCst);
        });
    });
    assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
    let places = failure.to_string();
    let sentence = places
        .lines()
        .find(|line| line.contains("outside of the footprint"));
    let sentence = sentence.unwrap_or_else(|| panic!("{failure}"));
    let places = sentence.matches("tests/explored/atomically.rs").count();
    assert_eq!(places, 2, "{failure}");
    assert!(
        failure.to_string().contains("a load (of an AtomicUsize)"),
        "{failure}"
    );
    assert!(
        failure.to_string().contains("outside of the footprint"),
        "{failure}"
    );
    let failure = fails(|| {
        let all = atomics(1);
        atomically(Footprint::new().reads(&all[0]), || {
            all[0].store(1, SeqCst);
        });
    });
    assert!(
        failure.to_string().contains("a store (of an AtomicUsize)"),
        "{failure}"
    );
    assert!(failure.to_string().contains("only reads"), "{failure}");
}

#[test]
fn locks_collections_cells_and_announced_objects_are_usable_in_a_block() {
    let found = executions(|| {
        let lock = Mutex::new(0);
        let shared = RwLock::new(0);
        let map = KeyedMap::new();
        let cell = Plain::new();
        let counts = [Free::new(0), Free::new(0)];
        let enter = || {
            let all = Footprint::new().writes(&lock).writes(&shared);
            atomically(all.writes(&map).accesses(&counts), || {
                *lock.lock().unwrap() += 1;
                let before = *shared.read().unwrap();
                *shared.write().unwrap() = before + 1;
                map.insert(map.len(), "value");
                dpor::access(&counts, Access::Write);
                counts[0].fetch_add(1, Relaxed);
                cell.add();
            });
        };
        thread::scope(|s| {
            s.spawn(enter);
            enter();
        });
        thread::scope(|s| {
            s.spawn(|| *lock.lock().unwrap() += 1);
        });
        assert_eq!(*lock.lock().unwrap(), 3);
        assert_eq!(*shared.read().unwrap(), 2);
        assert_eq!((map.len(), cell.get()), (2, 2));
    });
    assert_eq!(found, 2);
}

#[test]
fn a_block_waits_for_a_lock_by_its_condition() {
    let found = executions(|| {
        let lock = Mutex::new(0);
        let count = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| {
                let mut data = lock.lock().unwrap();
                *data += count.load(SeqCst);
            });
            let footprint = Footprint::new().writes(&lock).writes(&count);
            atomically(footprint.when(|| lock.try_lock().is_ok()), || {
                *lock.lock().unwrap() += 1;
                count.store(1, SeqCst);
            });
        });
    });
    assert!(found >= 2, "{found}");
}

#[test]
fn blocks_order_plain_memory_if_they_conflict() {
    let cells = |share: bool| {
        move || {
            let all = atomics(3);
            let cell = Arc::new(Plain::new());
            run(2, move |i| {
                let own = if share { &all[2] } else { &all[i] };
                atomically(Footprint::new().writes(own), || {
                    cell.add();
                });
            });
        }
    };
    assert_eq!(executions(cells(true)), 2);
    let failure = fails(cells(false));
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
    // An access behind the block is not in it.
    let failure = fails(|| {
        let all = atomics(1);
        let cell = Arc::new(Plain::new());
        run(2, move |_| {
            atomically(Footprint::new().writes(&all[0]), || {});
            cell.add();
        });
    });
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
}

#[test]
fn an_operation_in_a_block_publishes_what_its_ordering_says() {
    let publish = |order| {
        move || {
            let shared = Arc::new((atomics(1), Plain::new()));
            run(2, move |i| {
                let flag = &shared.0[0];
                if i == 0 {
                    atomically(Footprint::new().writes(flag), || {
                        shared.1.add();
                        flag.store(1, order);
                    });
                } else if flag.load(Acquire) == 1 {
                    assert_eq!(shared.1.get(), 1);
                }
            });
        }
    };
    assert_eq!(executions(publish(Release)), 2);
    assert_eq!(fails(publish(Relaxed)).kind(), FailureKind::DataRace);
}

#[test]
fn a_panic_in_a_block_is_reported_as_always() {
    let failure = fails(|| {
        let all = atomics(1);
        let theirs = all.clone();
        let lock = Mutex::new(());
        let other = thread::spawn(move || theirs[0].store(1, SeqCst));
        atomically(Footprint::new().reads(&all[0]).writes(&lock), || {
            let _guard = lock.lock().unwrap();
            assert_eq!(all[0].load(SeqCst), 0, "the planted fault");
        });
        other.join().unwrap();
    });
    assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
    assert!(
        failure.to_string().contains("the planted fault"),
        "{failure}"
    );
    let schedule = failure.schedule().to_owned();
    let again = std::panic::catch_unwind(move || {
        dpor::replay(&schedule, || {
            let all = atomics(1);
            let theirs = all.clone();
            let lock = Mutex::new(());
            let other = thread::spawn(move || theirs[0].store(1, SeqCst));
            atomically(Footprint::new().reads(&all[0]).writes(&lock), || {
                let _guard = lock.lock().unwrap();
                assert_eq!(all[0].load(SeqCst), 0, "the planted fault");
            });
            other.join().unwrap();
        });
    });
    assert!(again.is_err());
}

#[test]
fn a_report_shows_a_block_as_one_row_with_what_it_touched() {
    let failure = fails(|| {
        let all = atomics(2);
        dpor::name(&all[0], "from");
        dpor::name(&all[1], "to");
        atomically(Footprint::new().reads(&all[0]).writes(&all[1]), || {
            let found = all[0].load(SeqCst);
            all[1].store(found + 1, SeqCst);
        });
        assert_eq!(all[1].load(SeqCst), 0);
    });
    let report = failure.to_string();
    let row = report.lines().find(|line| line.contains("atomically: "));
    let row = row.unwrap_or_else(|| panic!("{report}"));
    assert!(row.contains("from = 0, to := 1 (was 0)"), "{report}");
    let words = "atomically: from = 0, to := 1 (was 0)";
    assert!(failure.json().contains(words) && failure.dot().contains("atomically"));
    assert!(failure.html().contains("to := 1 (was 0)"));
    assert_eq!(failure.events()[0].what, words);
}

#[test]
fn c11_has_no_blocks() {
    let mut settings = Builder::new();
    settings.memory = Memory::C11;
    let failure = settings.explore(|| atomically(Footprint::new(), || {}));
    let failure = failure.expect_err("C11 has none");
    assert!(failure.to_string().contains("under C11"), "{failure}");
}

#[test]
fn outside_of_a_model_blocks_exclude_each_other() {
    static SUM: AtomicUsize = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..100 {
                    atomically(Footprint::new().writes(&SUM), || {
                        let before = SUM.load(Relaxed);
                        std::thread::yield_now();
                        SUM.store(before + 1, Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(SUM.load(Relaxed), 400);
    let nested = || atomically(Footprint::new(), || atomically(Footprint::new(), || {}));
    assert!(std::panic::catch_unwind(nested).is_err());
    // The failure has freed the lock.
    atomically(Footprint::new(), || {});
}

#[test]
fn workers_share_an_exploration_with_blocks() {
    let body = || {
        let all = atomics(3);
        run(3, move |i| {
            let (x, y) = (&all[i], &all[(i + 1) % 3]);
            let footprint = match i {
                0 => Footprint::everything(),
                _ => Footprint::new().reads(x).writes(y),
            };
            atomically(footprint, || y.store(x.load(SeqCst) + 1, SeqCst));
            all[2].fetch_add(1, SeqCst);
            atomically(Footprint::new().writes(x), || x.store(i, SeqCst));
        });
    };
    let alone = executions(body);
    let mut settings = Builder::new();
    settings.workers = Some(3);
    let shared = settings.check(body);
    assert_eq!(shared.executions, alone);
    assert!(shared.complete);
}

/// The executions under sequential consistency, where a loop that waits is one step.
fn awaited(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let mut settings = Builder::new();
    settings.memory = Memory::Sc;
    settings.await_loops = Some(true);
    settings.check(f).executions
}

/// The examples of the Tiny Model Checker, in their usual shapes (`docs/ALGORITHMS.md`).
#[test]
fn the_examples_of_the_tiny_model_checker_have_few_executions() {
    for (tasks, plain, blocks) in [(2, 4, 2), (4, 576, 24)] {
        let counter = move |footprint: Option<bool>| {
            move || {
                let count = atomics(1);
                let theirs = count.clone();
                run(tasks, move |_| {
                    let count = &theirs[0];
                    let add = || count.store(count.load(SeqCst) + 1, SeqCst);
                    match footprint {
                        None => add(),
                        Some(true) => atomically(Footprint::new().writes(count), add),
                        Some(false) => atomically(Footprint::everything(), add),
                    }
                });
                assert!(footprint.is_none() || count[0].load(SeqCst) == tasks);
            }
        };
        assert_eq!(awaited(counter(None)), plain, "{tasks} tasks");
        assert_eq!(awaited(counter(Some(true))), blocks, "{tasks} tasks");
        assert_eq!(awaited(counter(Some(false))), blocks, "{tasks} tasks");
    }
    // A ring of two slots, and four items.
    let ring = awaited(|| {
        let shared = Arc::new((atomics(2), atomics(2)));
        run(2, move |i| {
            let (ring, head, tail) = (&shared.0, &shared.1[0], &shared.1[1]);
            for item in 0..4 {
                if i == 0 {
                    while item - head.load(SeqCst) == 2 {
                        thread::yield_now();
                    }
                    ring[item % 2].store(item, SeqCst);
                    tail.store(item + 1, SeqCst);
                } else {
                    while tail.load(SeqCst) == item {
                        thread::yield_now();
                    }
                    assert_eq!(ring[item % 2].load(SeqCst), item);
                    head.store(item + 1, SeqCst);
                }
            }
        });
    });
    assert_eq!(ring, 27);
    // The message goes through all tasks.
    let passed = awaited(|| {
        let shared = Arc::new((atomics(4), atomics(4)));
        run(4, move |i| {
            let (data, flags) = (&shared.0, &shared.1);
            let mut message = 1;
            if i > 0 {
                while flags[i - 1].load(SeqCst) == 0 {
                    thread::yield_now();
                }
                message = data[i - 1].load(SeqCst) + 1;
            }
            data[i].store(message, SeqCst);
            flags[i].store(1, SeqCst);
            assert_eq!(message, i + 1);
        });
    });
    assert_eq!(passed, 1);
}
