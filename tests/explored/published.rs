//! Do live closures have the numbers of traces that papers, and those who wrote other checkers, publish of these programs?
//!
//! They are explored with sleep sets, too, if that takes little: these find each trace once as well, and know nothing of races.
//! The figures of bugs of public projects, and those of bounded searches, are tested elsewhere.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, Mutex, RwLock};
use dpor::{Algorithm, Builder, FailureKind, hint, thread};

/// The most executions that sleep sets begin, most of them in vain.
const TRIED: usize = 5_000;

/// Explores `body` completely; gives the number of executions.
#[track_caller]
fn count(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let body = std::sync::Arc::new(body);
    let explore = |algorithm, most| {
        let (mut builder, body) = (Builder::new(), body.clone());
        builder.algorithm = algorithm;
        builder.max_permutations = most;
        builder.check(move || body())
    };
    let optimal = explore(Algorithm::Optimal, None);
    assert!(optimal.complete, "{optimal}");
    assert_eq!(optimal.pruned, 0, "{optimal}");
    let without_trees = explore(Algorithm::Parsimonious, None);
    assert!(without_trees.complete, "{without_trees}");
    assert_eq!(without_trees.executions, optimal.executions);
    assert_eq!(without_trees.pruned, 0, "{without_trees}");
    let others = explore(Algorithm::SleepSets, Some(TRIED));
    if others.complete {
        assert_eq!(others.executions, optimal.executions);
    }
    optimal.executions
}

/// What an algorithm says of its wakeup trees: their depth, the branches of the widest one, and
/// those of all at once.
fn trees(
    body: impl Fn() + Send + Sync + 'static,
    algorithm: Algorithm,
) -> Option<(usize, usize, usize)> {
    let mut builder = Builder::new();
    builder.algorithm = algorithm;
    let report = builder.check(body);
    let trees = report.trees?;
    assert!(trees.depth <= report.longest && trees.bytes > 0);
    Some((trees.depth, trees.widest, trees.branches))
}

#[test]
fn wakeup_trees_have_the_size_that_the_report_tells() {
    let lose = || {
        let count = Arc::new(AtomicUsize::new(0));
        let shared = count.clone();
        run(4, move |_| shared.store(shared.load(SeqCst) + 1, SeqCst));
    };
    // As in the core (`rt/engine/tests/trees.rs`), where no executions have spawns and joins.
    assert_eq!(trees(lose, Algorithm::Optimal), Some((18, 12, 19)));
    for algorithm in [Algorithm::Parsimonious, Algorithm::Source] {
        assert_eq!(trees(lose, algorithm), None);
    }
}

/// How many executions of `body` there are, and how many of them end in a deadlock, if some do.
#[track_caller]
fn deadlocks(body: impl Fn() + Send + Sync + 'static) -> (u64, u64) {
    let counts = std::sync::Arc::new([const { AtomicU64::new(0) }; 2]);
    let shared = counts.clone();
    let mut builder = Builder::new();
    builder.max_failures = usize::MAX;
    builder.simplify = 0;
    let explored = builder.explore(move || {
        shared[0].fetch_add(1, SeqCst);
        body();
        shared[1].fetch_add(1, SeqCst);
    });
    let first = explored.expect_err("there is a deadlock");
    for failure in [&*first].into_iter().chain(first.others()) {
        assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
    }
    let [begun, passed] = [0, 1].map(|i| counts[i].load(SeqCst));
    (begun, begun - passed)
}

/// Runs `threads` copies of `body`, which get their number from 0, and joins them.
fn run(threads: usize, body: impl Fn(usize) + Clone + Send + 'static) {
    let spawn = |i| {
        let body = body.clone();
        thread::spawn(move || body(i))
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    for thread in all {
        thread.join().expect("no thread panics");
    }
}

/// So many atomics that hold 0.
fn atomics(n: usize) -> Arc<[AtomicUsize]> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

#[test]
fn readers_have_two_to_the_n_executions() {
    for (n, traces) in [(2, 4), (8, 256), (13, 8192)] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(n + 1, move |i| match i {
                0 => x.store(1, SeqCst),
                _ => {
                    x.load(SeqCst);
                }
            });
        };
        assert_eq!(count(body), traces);
    }
}

#[test]
fn lastzero_has_the_published_number_of_executions() {
    for (n, traces) in [(5, 64), (10, 3328), (15, 147_456)] {
        let body = move || {
            let a: Arc<[AtomicUsize]> = (0..=n).map(|_| AtomicUsize::new(0)).collect();
            run(n + 1, move |i| match i {
                0 => {
                    let mut at = n;
                    while a[at].load(SeqCst) != 0 {
                        at -= 1;
                    }
                }
                i => a[i].store(a[i - 1].load(SeqCst) + 1, SeqCst),
            });
        };
        assert_eq!(count(body), traces);
    }
}

#[test]
fn wakeup_stress_has_two_times_n_factorial_executions() {
    for (n, traces) in [(4, 48), (5, 240), (6, 1440)] {
        let body = move || {
            let counters = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let add = |which: usize| {
                let counters = counters.clone();
                thread::spawn(move || {
                    counters[which].fetch_add(1, SeqCst);
                })
            };
            let first = add(0);
            let others: Vec<_> = (0..n).map(|_| add(1)).collect();
            let shared = counters.clone();
            let last = thread::spawn(move || {
                for other in others {
                    other.join().unwrap();
                }
                shared[0].fetch_add(1, SeqCst);
            });
            first.join().unwrap();
            last.join().unwrap();
        };
        assert_eq!(count(body), traces);
    }
}

#[test]
fn filesystem_has_the_published_number_of_executions() {
    for (n, traces) in [(14, 2), (16, 8), (18, 32), (19, 64)] {
        let body = move || {
            let inodes: Arc<Vec<Mutex<usize>>> = Arc::new((0..32).map(|_| Mutex::new(0)).collect());
            let busy: Arc<Vec<Mutex<bool>>> =
                Arc::new((0..26).map(|_| Mutex::new(false)).collect());
            run(n, move |t| {
                let i = t % 32;
                let mut inode = inodes[i].lock().unwrap();
                if *inode == 0 {
                    let mut b = (i * 2) % 26;
                    loop {
                        let mut taken = busy[b].lock().unwrap();
                        if !*taken {
                            *taken = true;
                            *inode = b + 1;
                            break;
                        }
                        drop(taken);
                        b = (b + 1) % 26;
                    }
                }
            });
        };
        assert_eq!(count(body), traces);
    }
}

#[test]
fn indexer_has_the_published_number_of_executions() {
    let body = |threads: usize| {
        let table: Arc<Vec<AtomicUsize>> =
            Arc::new((0..128).map(|_| AtomicUsize::new(0)).collect());
        run(threads, move |t| {
            for m in 0..4 {
                let key = (m + 1) * 11 + t;
                let mut h = (key * 7) % 128;
                while table[h].compare_exchange(0, key, SeqCst, SeqCst).is_err() {
                    h = (h + 1) % 128;
                }
            }
        });
    };
    assert_eq!(count(move || body(12)), 8);
    assert_eq!(count(move || body(15)), 4096);
}

#[test]
fn a_lost_update_of_n_threads_has_n_factorial_squared_executions() {
    for (threads, traces) in [(2, 4), (3, 36), (4, 576)] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(threads, move |_| {
                let seen = x.load(SeqCst);
                x.store(seen + 1, SeqCst);
            });
        };
        assert_eq!(count(body), traces);
    }
}

/// One group of figure 10 of [SS]: what its threads share.
#[derive(Default)]
struct Group {
    x: AtomicUsize,
    y: AtomicUsize,
    z: AtomicUsize,
}

fn spawn_group(group: &Arc<Group>) {
    let (q, r, s) = (group.clone(), group.clone(), group.clone());
    thread::spawn(move || q.y.store(1, SeqCst));
    thread::spawn(move || {
        if r.y.load(SeqCst) == 0 {
            r.z.store(1, SeqCst);
        }
    });
    thread::spawn(move || {
        if s.z.load(SeqCst) == 1 && s.y.load(SeqCst) == 0 {
            s.x.store(1, SeqCst);
        }
    });
}

#[test]
fn figure_10_has_four_executions_more_for_each_group() {
    for n in 1..=9 {
        let body = move || {
            let groups: Vec<_> = (0..n).map(|_| Arc::new(Group::default())).collect();
            spawn_group(&groups[0]);
            thread::spawn(move || {
                for i in 0..n {
                    if groups[i].x.load(SeqCst) == 0 {
                        break;
                    }
                    if let Some(next) = groups.get(i + 1) {
                        spawn_group(next);
                    }
                }
            });
        };
        assert_eq!(count(body), 4 * n as u64 + 1, "{n} groups");
    }
}

#[test]
fn fib_bench_has_the_published_number_of_executions() {
    for (n, traces) in [(1, 11), (2, 140), (3, 1698), (4, 19_605)] {
        let body = move || {
            let both = atomics(2);
            both[0].store(1, SeqCst);
            both[1].store(1, SeqCst);
            let shared = both.clone();
            let add = move |own: usize| {
                for _ in 0..n {
                    let sum = shared[own].load(SeqCst) + shared[1 - own].load(SeqCst);
                    shared[own].store(sum, SeqCst);
                }
            };
            let theirs = add.clone();
            thread::spawn(move || add(0));
            thread::spawn(move || theirs(1));
            both[0].load(SeqCst);
            both[1].load(SeqCst);
        };
        assert_eq!(count(body), traces, "{n} turns");
    }
}

#[test]
fn exchanges_that_wait_for_each_other_have_the_published_number_of_executions() {
    for (n, traces) in [(2, 2), (3, 5), (4, 14), (5, 43), (6, 144)] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(n, move |i| {
                let _ = x.compare_exchange(i, i + 1, SeqCst, SeqCst);
            });
        };
        assert_eq!(count(body), traces, "{n} threads");
    }
}

#[test]
fn race_param_has_the_published_number_of_executions() {
    for (n, traces) in [(1, 4), (2, 34), (3, 328), (4, 3334)] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(2, move |i| {
                for _ in 0..n {
                    x.store(i, SeqCst);
                    x.load(SeqCst);
                }
            });
        };
        assert_eq!(count(body), traces, "{n} turns");
    }
}

#[test]
fn a_buffer_behind_a_mutex_has_an_execution_for_each_order_of_its_locks() {
    // Of 2n locks n are the producer's.
    for (n, traces) in [(1, 2), (2, 6), (3, 20), (4, 70), (5, 252), (6, 924)] {
        let body = move || {
            let buffer = Arc::new(Mutex::new(Vec::new()));
            run(2, move |i| {
                for item in 0..n {
                    let mut buffer = buffer.lock().unwrap();
                    match i {
                        0 => buffer.push(item),
                        _ => drop(buffer.pop()),
                    }
                }
            });
        };
        assert_eq!(count(body), traces, "{n} items");
    }
}

/// Philosophers who take the fork to the right first, but for the last one if that one `is_left_handed`.
fn philosophers(n: usize, is_left_handed: bool) {
    let forks: Arc<[Mutex<()>]> = (0..n).map(|_| Mutex::new(())).collect();
    run(n, move |i| {
        let (right, left) = (&forks[i], &forks[(i + 1) % n]);
        let (first, second) = match is_left_handed && i == n - 1 {
            true => (left, right),
            false => (right, left),
        };
        let _first = first.lock().unwrap();
        let _second = second.lock().unwrap();
    });
}

#[test]
fn philosophers_have_the_published_number_of_executions() {
    for (n, traces) in [(2, 2), (3, 6), (4, 14)] {
        assert_eq!(count(move || philosophers(n, true)), traces, "{n}");
        // The one more is the deadlock.
        let all = deadlocks(move || philosophers(n, false));
        assert_eq!(all, (traces + 1, 1), "{n}");
    }
}

#[test]
fn a_ticket_lock_has_an_execution_for_each_order_of_its_tickets() {
    for (n, traces) in [(2, 2), (3, 6), (4, 24)] {
        for spins in [false, true] {
            let body = move || {
                let (next, grant) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let lock = Arc::new((next, grant));
                run(n, move |_| {
                    let ticket = lock.0.fetch_add(1, SeqCst);
                    while spins && lock.1.load(SeqCst) != ticket {
                        hint::spin_loop();
                    }
                    // A wait that is one event: who looks too early looks again in another execution.
                    dpor::assume(spins || lock.1.load(SeqCst) == ticket);
                    lock.1.store(ticket + 1, SeqCst);
                });
            };
            let mut builder = Builder::new();
            builder.await_loops = Some(true);
            let report = builder.check(body);
            assert!(report.complete, "{report}");
            assert_eq!(report.executions, traces, "{n} threads");
            // Of two threads, one may look too early.
            assert_eq!(report.pruned == 0, spins, "{n} threads: {report}");
        }
    }
}

#[test]
fn a_ring_whose_threads_wait_has_an_execution_for_each_sequence_of_looks() {
    // No paper has these counts. They depend on the number of idle rounds that are free, one or
    // none. If only the first look in vain counts, there are 10 executions of two items and seven
    // times as many with each further item, which a count of all interleavings by another program
    // confirms. If no look in vain counts, each further item has three executions for each one
    // before.
    let looks = |free| {
        move |builder: &mut Builder| {
            builder.spin_bound = free;
            builder.await_loops = Some(false);
        }
    };
    let first_looks = |_: &mut Builder| {};
    let step = |builder: &mut Builder| builder.await_loops = Some(true);
    type Sets<'a> = &'a dyn Fn(&mut Builder);
    let sets: [(Sets<'_>, &[u64]); 4] = [
        (&looks(1), &[4, 37, 620]),
        (&looks(0), &[3, 22, 279]),
        (&first_looks, &[2, 10, 70, 490, 3_430]),
        (&step, &[1, 3, 9, 27, 81, 243]),
    ];
    for (set, all) in sets {
        for (items, &traces) in (1..).zip(all) {
            let body = move || {
                let (ring, indices) = (atomics(2), atomics(2));
                run(2, move |i| {
                    let [head, tail] = &*indices else { return };
                    for item in 0..items {
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
            };
            let body = std::sync::Arc::new(body);
            for algorithm in [Algorithm::Optimal, Algorithm::SleepSets] {
                let mut builder = Builder::new();
                builder.algorithm = algorithm;
                set(&mut builder);
                if builder.await_loops.is_none() && algorithm != Algorithm::Optimal {
                    continue;
                }
                let body = body.clone();
                let report = builder.check(move || body());
                assert!(report.complete, "{report}");
                assert_eq!(report.executions, traces, "{items} items, {algorithm:?}");
                if algorithm == Algorithm::Optimal {
                    assert_eq!(report.pruned, 0, "{items} items: {report}");
                }
            }
        }
    }
}

#[test]
fn an_exchange_and_a_store_of_the_same_value_have_the_known_number_of_executions() {
    for (threads, traces) in [(2, 6), (3, 66)] {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(threads, move |_| {
                let _ = x.compare_exchange(0, 1, SeqCst, SeqCst);
                x.store(1, SeqCst);
            });
        };
        assert_eq!(count(body), traces, "{threads} threads");
    }
}

/// Runs a thread for each of these lists of accesses: to which atomic, and what is stored there, if it is a store.
fn accesses(all: &'static [&'static [(usize, Option<usize>)]]) {
    let shared = atomics(2);
    run(all.len(), move |i| {
        for &(x, stores) in all[i] {
            match stores {
                Some(value) => shared[x].store(value, SeqCst),
                None => drop(shared[x].load(SeqCst)),
            }
        }
    });
}

#[test]
fn litmus_tests_have_the_known_numbers_of_executions() {
    const X: usize = 0;
    const Y: usize = 1;
    let count = |all: &'static [&'static [_]]| count(move || accesses(all));
    // Store buffering, message passing, load buffering, two writes each, and independent reads of independent writes.
    assert_eq!(
        count(&[&[(X, Some(1)), (Y, None)], &[(Y, Some(1)), (X, None)]]),
        3
    );
    assert_eq!(
        count(&[&[(X, Some(1)), (Y, Some(1))], &[(Y, None), (X, None)]]),
        3
    );
    assert_eq!(
        count(&[&[(X, None), (Y, Some(1))], &[(Y, None), (X, Some(1))]]),
        3
    );
    assert_eq!(
        count(&[&[(X, Some(1)), (Y, Some(2))], &[(Y, Some(1)), (X, Some(2))]]),
        3
    );
    assert_eq!(
        count(&[
            &[(X, Some(1))],
            &[(Y, Some(1))],
            &[(X, None), (Y, None)],
            &[(Y, None), (X, None)],
        ]),
        15
    );
}

#[test]
fn locks_have_the_known_numbers_of_executions() {
    // Two mutexes in opposite order.
    let body = || {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        run(2, move |i| {
            let _first = locks[i].lock().unwrap();
            let _second = locks[1 - i].lock().unwrap();
        });
    };
    assert_eq!(deadlocks(body), (3, 1));
    // One that is never unlocked.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        run(3, move |_| std::mem::forget(lock.lock().unwrap()));
    };
    assert_eq!(deadlocks(body), (3, 3));
    // One that is tried.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        run(2, move |i| match i {
            0 => drop(lock.lock().unwrap()),
            _ => drop(lock.try_lock()),
        });
    };
    assert_eq!(count(body), 3);
    // One that is tried and never unlocked: who takes it decides.
    let body = || {
        let lock = Arc::new(Mutex::new(()));
        run(3, move |_| std::mem::forget(lock.try_lock()));
    };
    assert_eq!(count(body), 3);
    // A writer and a reader, and readers only.
    for (writers, readers, traces) in [(1, 1, 2), (0, 3, 1)] {
        let body = move || {
            let lock = Arc::new(RwLock::new(()));
            run(writers + readers, move |i| match i < writers {
                true => drop(lock.write().unwrap()),
                false => drop(lock.read().unwrap()),
            });
        };
        assert_eq!(count(body), traces);
    }
    // Who waits unless it was told, both under the lock.
    let body = || {
        let told = Arc::new((Mutex::new(false), Condvar::new()));
        run(2, move |i| {
            let (flag, change) = &*told;
            let mut flag = flag.lock().unwrap();
            match i {
                0 if *flag => {}
                0 => drop(change.wait(flag).unwrap()),
                _ => {
                    *flag = true;
                    change.notify_one();
                }
            }
        });
    };
    assert_eq!(count(body), 2);
}

#[test]
fn a_thread_whose_first_step_is_a_load_may_come_late() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let shared = x.clone();
        let other = thread::spawn(move || {
            if shared.load(SeqCst) == 0 {
                shared.store(1, SeqCst);
            }
        });
        x.load(SeqCst);
        other.join().expect("no thread panics");
    };
    assert_eq!(count(body), 2);
}
