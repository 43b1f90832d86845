//! What other checkers are known to get wrong, by symptom.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicUsize, Ordering};
use dpor::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, RwLock, mpsc};
use dpor::{Builder, FailureKind, thread};

/// The outcomes of `f` in all executions.
fn outcomes<T: Ord + Send + 'static>(
    f: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeSet<T>, u64) {
    let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let outcome = f();
        all.lock().unwrap().insert(outcome);
    });
    assert!(report.complete);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, report.executions)
}

#[test]
fn a_store_that_depends_on_a_load_comes_before_an_assertion_too() {
    let failure = Builder::new().explore(|| {
        let flag = AtomicUsize::new(0);
        thread::scope(|s| {
            s.spawn(|| {
                if flag.load(SeqCst) == 0 {
                    flag.store(1, SeqCst);
                }
            });
            assert_eq!(flag.load(SeqCst), 0);
        });
    });
    assert_eq!(failure.expect_err("it fails").kind(), FailureKind::Panic);
}

#[test]
fn sequentially_consistent_store_buffering_never_shows_two_zeros() {
    let (seen, executions) = outcomes(|| {
        let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|s| {
            let other = s.spawn(|| {
                x.store(1, SeqCst);
                y.load(SeqCst)
            });
            y.store(1, SeqCst);
            (x.load(SeqCst), other.join().unwrap())
        })
    });
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
    assert_eq!(executions, 3);
}

#[test]
fn a_swap_and_a_store_give_only_the_pairs_that_are_possible() {
    let (seen, _) = outcomes(|| {
        let x = AtomicUsize::new(7);
        thread::scope(|s| {
            s.spawn(|| x.store(1, SeqCst));
            let old = x.swap(0, Ordering::AcqRel);
            (old, x.load(SeqCst))
        })
    });
    // The last load may come before the store.
    assert_eq!(seen, BTreeSet::from([(1, 0), (7, 0), (7, 1)]));
}

#[test]
fn a_limit_that_ends_an_exploration_is_no_pass() {
    let mut builder = Builder::new();
    builder.max_permutations = Some(2);
    let report = builder.check(|| {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| x.fetch_add(1, SeqCst));
            }
        });
    });
    assert!(!report.complete);
    assert!(report.to_string().contains("max_permutations"), "{report}");
}

#[test]
fn unparking_a_thread_that_joins_does_not_end_the_join() {
    let (seen, executions) = outcomes(|| {
        let x = AtomicUsize::new(0);
        let main = thread::current();
        thread::scope(|s| {
            let worker = s.spawn(|| x.store(1, SeqCst));
            let other = s.spawn(move || main.unpark());
            worker.join().unwrap();
            assert_eq!(x.load(SeqCst), 1);
            other.join().unwrap();
        });
        // The token is still there.
        thread::park();
    });
    assert_eq!((seen.len(), executions), (1, 1));
}

#[test]
fn a_park_token_does_not_wake_a_waiter_of_a_condvar() {
    let failure = Builder::new().explore(|| {
        let pair = (Mutex::new(()), Condvar::new());
        let main = thread::current();
        thread::scope(|s| {
            s.spawn(move || main.unpark());
            let guard = pair.0.lock().unwrap();
            drop(pair.1.wait(guard).unwrap());
        });
    });
    assert_eq!(failure.expect_err("it hangs").kind(), FailureKind::Deadlock);
}

#[test]
fn trying_a_lock_is_no_deadlock() {
    let (seen, _) = outcomes(|| {
        let (a, b) = (Mutex::new(()), Mutex::new(()));
        thread::scope(|s| {
            let other = s.spawn(|| {
                let _b = b.lock().unwrap();
                a.try_lock().is_ok()
            });
            let mine = {
                let _a = a.lock().unwrap();
                b.try_lock().is_ok()
            };
            (mine, other.join().unwrap())
        })
    });
    let all = [(false, false), (false, true), (true, false), (true, true)];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn a_writer_never_gets_in_beside_readers() {
    let (_, executions) = outcomes(|| {
        let (lock, inside) = (RwLock::new(()), AtomicUsize::new(0));
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let _guard = lock.read().unwrap();
                    inside.fetch_add(1, SeqCst);
                    inside.fetch_sub(1, SeqCst);
                });
            }
            let _guard = lock.write().unwrap();
            assert_eq!(inside.load(SeqCst), 0);
        });
    });
    assert!(executions > 4);
}

#[test]
fn there_may_be_more_than_five_threads() {
    let (seen, executions) = outcomes(|| {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            for _ in 0..12 {
                s.spawn(|| assert_eq!(x.load(SeqCst), 0));
            }
        });
    });
    assert_eq!((seen.len(), executions), (1, 1));
}

#[test]
fn a_later_waiter_is_woken_by_one_notification_too() {
    let (seen, _) = outcomes(|| {
        let (turn, condvar) = (Mutex::new(0), Condvar::new());
        let woken = AtomicUsize::new(0);
        let wait = |me: usize| {
            // The order of the two waits is fixed: the second comes after the first has unlocked.
            let mut guard = turn.lock().unwrap();
            while *guard != me {
                drop(guard);
                thread::yield_now();
                guard = turn.lock().unwrap();
            }
            *guard = me + 1;
            drop(condvar.wait(guard).unwrap());
            let _ = woken.compare_exchange(0, me + 1, SeqCst, SeqCst);
        };
        thread::scope(|s| {
            s.spawn(|| wait(0));
            s.spawn(|| wait(1));
            loop {
                let guard = turn.lock().unwrap();
                if *guard == 2 {
                    break;
                }
                drop(guard);
                thread::yield_now();
            }
            condvar.notify_one();
            while woken.load(SeqCst) == 0 {
                thread::yield_now();
            }
            condvar.notify_one();
        });
        woken.load(SeqCst)
    });
    assert_eq!(seen, BTreeSet::from([1, 2]));
}

#[test]
fn a_timed_wait_for_a_condition_sees_it_come_true_or_the_time_pass() {
    let (seen, _) = outcomes(|| {
        let (ready, condvar) = (Mutex::new(false), Condvar::new());
        thread::scope(|s| {
            s.spawn(|| {
                *ready.lock().unwrap() = true;
                condvar.notify_one();
            });
            let guard = ready.lock().unwrap();
            let long = std::time::Duration::from_secs(3600);
            let waited = condvar.wait_timeout_while(guard, long, |ready| !*ready);
            let (guard, result) = waited.unwrap();
            (*guard, result.timed_out())
        })
    });
    // What came true is never told as a time-out.
    assert_eq!(seen, BTreeSet::from([(false, true), (true, false)]));
}

#[test]
fn a_wait_for_a_condition_ends_when_it_holds() {
    let (seen, _) = outcomes(|| {
        let (count, condvar) = (Mutex::new(0), Condvar::new());
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    *count.lock().unwrap() += 1;
                    condvar.notify_all();
                });
            }
            *condvar
                .wait_while(count.lock().unwrap(), |count| *count < 2)
                .unwrap()
        })
    });
    assert_eq!(seen, BTreeSet::from([2]));
}

#[test]
fn a_thread_has_finished_or_not_when_somebody_looks() {
    let (seen, executions) = outcomes(|| {
        let worker = thread::spawn(|| ());
        let finished = worker.is_finished();
        worker.join().unwrap();
        finished
    });
    assert_eq!(seen, BTreeSet::from([false, true]));
    assert_eq!(executions, 2);
}

#[test]
fn an_initialisation_is_seen_before_and_after_it_happens() {
    let (seen, _) = outcomes(|| {
        let (once, lazy) = (Once::new(), LazyLock::new(|| 5));
        thread::scope(|s| {
            s.spawn(|| once.call_once(|| ()));
            s.spawn(|| *lazy);
            (once.is_completed(), LazyLock::get(&lazy).copied())
        })
    });
    let all = [
        (false, None),
        (false, Some(5)),
        (true, None),
        (true, Some(5)),
    ];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn an_iterator_over_what_is_there_sees_any_first_part_of_it() {
    let (seen, _) = outcomes(|| {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|s| {
            s.spawn(move || {
                for message in 1..3 {
                    sender.send(message).unwrap();
                }
            });
            let early: Vec<_> = receiver.try_iter().collect();
            let late: Vec<_> = receiver.iter().collect();
            (early, late)
        })
    });
    let all = [
        (vec![], vec![1, 2]),
        (vec![1], vec![2]),
        (vec![1, 2], vec![]),
    ];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn three_threads_at_a_barrier_for_two_leave_one_behind() {
    let mut builder = Builder::new();
    builder.max_failures = 10;
    let failure = builder.explore(|| {
        let barrier = Barrier::new(2);
        thread::scope(|s| {
            s.spawn(|| barrier.wait());
            s.spawn(|| barrier.wait());
            barrier.wait();
        });
    });
    let failure = failure.expect_err("one waits for ever");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
    // Any of the three may be the one; the main thread then waits at the barrier or for another.
    assert_eq!(1 + failure.others().len(), 3, "{failure}");
}

#[test]
fn a_lock_is_seen_before_and_after_it_is_poisoned() {
    let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(move || {
        let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
        thread::scope(|s| {
            let other = s.spawn(|| {
                let _guards = (mutex.lock(), lock.write());
                panic!("while the locks are held");
            });
            let outcome = (mutex.is_poisoned(), lock.is_poisoned());
            all.lock().unwrap().insert(outcome);
            assert!(other.join().is_err());
        });
    });
    assert!(report.complete);
    // The locks are given up one after the other, in the order of the tuple's fields.
    let all = [(false, false), (false, true), (true, false), (true, true)];
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from(all));
    assert_eq!(report.executions, 4);
}

#[test]
fn a_lock_is_seen_before_and_after_it_is_poisoned_where_the_test_catches_the_panic() {
    for silent in [false, true] {
        let panics_with = move |lock: &Mutex<()>| {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _guard = lock.lock();
                if silent {
                    resume_unwind(Box::new("no hook is called"));
                }
                panic!("while the lock is held");
            }));
            assert!(caught.is_err());
        };
        let (seen, executions) = outcomes(move || {
            let lock = Arc::new(Mutex::new(()));
            let theirs = lock.clone();
            let other = thread::spawn(move || panics_with(&theirs));
            let early = lock.is_poisoned();
            other.join().unwrap();
            (early, lock.is_poisoned())
        });
        assert_eq!(seen, BTreeSet::from([(false, true), (true, true)]));
        assert_eq!(executions, 2);
        let (seen, _) = outcomes(move || {
            let lock = Arc::new(Mutex::new(()));
            let theirs = lock.clone();
            let other = thread::spawn(move || theirs.clear_poison());
            panics_with(&lock);
            other.join().unwrap();
            lock.is_poisoned()
        });
        assert_eq!(seen, BTreeSet::from([false, true]));
    }
}

#[test]
fn who_unwinds_without_a_hook_is_known_while_others_run() {
    /// Does something, and something else that may come later than what another thread does.
    struct Late(Arc<AtomicUsize>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            self.0.fetch_add(1, SeqCst);
        }
    }
    let (seen, executions) = outcomes(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let late = Late(counter.clone());
        let other = thread::spawn(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _late = late;
                resume_unwind(Box::new(()));
            }));
            assert!(caught.is_err());
        });
        // The one that unwinds is not this one.
        let mine = Mutex::new(());
        drop(mine.lock());
        counter.fetch_add(1, SeqCst);
        drop(mine.lock());
        let panics = thread::panicking();
        other.join().unwrap();
        (mine.is_poisoned(), panics)
    });
    assert_eq!(executions, 3);
    assert_eq!(seen, BTreeSet::from([(false, false)]));
}
