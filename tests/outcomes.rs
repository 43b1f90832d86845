//! Does every blocking type show exactly the outcomes it can have?

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Notify, Once, OnceLock, RwLock};
use dpor::{Builder, FailureKind, thread};

/// Explores `f`; gives its outcomes, each with the number of executions, and that number in all.
fn outcomes<T: Ord + Debug + Send + 'static>(
    f: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeMap<T, u64>, u64) {
    let seen = StdArc::new(StdMutex::new(BTreeMap::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let outcome = f();
        *all.lock().unwrap().entry(outcome).or_default() += 1;
    });
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    let all = std::mem::take(&mut *seen.lock().unwrap());
    (all, report.executions)
}

/// The outcomes alone.
fn set<T: Ord + Debug + Send + 'static>(f: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    outcomes(f).0.into_keys().collect()
}

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    outcomes(f).1
}

#[test]
fn readers_of_a_rwlock_have_one_execution_and_a_writer_doubles_it() {
    let run = |readers: usize, writers: usize| {
        count(move || {
            let lock = Arc::new(RwLock::new(0));
            let (reading, writing) = (lock.clone(), lock.clone());
            thread::scope(|s| {
                for _ in 0..readers {
                    s.spawn(|| assert!(*reading.read().unwrap() <= writers));
                }
                for _ in 0..writers {
                    s.spawn(|| *writing.write().unwrap() += 1);
                }
            });
            assert_eq!(*lock.read().unwrap(), writers);
        })
    };
    assert_eq!(run(3, 0), 1);
    assert_eq!(run(1, 1), 2);
    assert_eq!(run(2, 1), 4);
    assert_eq!(run(0, 3), 6);
}

#[test]
fn try_read_and_try_write_fail_exactly_where_somebody_is_inside() {
    let seen = set(|| {
        let lock = RwLock::new(());
        thread::scope(|s| {
            let reader = s.spawn(|| lock.try_read().is_ok());
            let writer = s.spawn(|| lock.try_write().is_ok());
            (reader.join().unwrap(), writer.join().unwrap())
        })
    });
    // Both succeed one after the other, or one fails inside the other; never both.
    assert_eq!(seen, [(false, true), (true, false), (true, true)]);
}

#[test]
fn a_downgraded_lock_lets_readers_in_and_no_writer_between() {
    let seen = set(|| {
        let lock = RwLock::new(0);
        thread::scope(|s| {
            let writer = s.spawn(|| *lock.write().unwrap() += 10);
            let mut guard = lock.write().unwrap();
            *guard += 1;
            let mine = *guard;
            let guard = dpor::sync::RwLockWriteGuard::downgrade(guard);
            assert_eq!(*guard, mine);
            let beside = s.spawn(|| lock.try_read().is_ok()).join().unwrap();
            drop(guard);
            writer.join().unwrap();
            (mine, beside)
        })
    });
    assert_eq!(seen, [(1, true), (11, true)]);
}

#[test]
fn notify_one_wakes_either_of_two_waiters() {
    let seen = set(|| {
        let pair = Arc::new((Mutex::new((0, None)), Condvar::new()));
        let waiters: Vec<_> = (0..2)
            .map(|me| {
                let pair = pair.clone();
                thread::spawn(move || {
                    let (lock, condvar) = &*pair;
                    let mut state = lock.lock().unwrap();
                    state.0 += 1;
                    state = condvar.wait(state).unwrap();
                    state.1.get_or_insert(me);
                })
            })
            .collect();
        let (lock, condvar) = &*pair;
        while lock.lock().unwrap().0 < 2 {
            thread::yield_now();
        }
        condvar.notify_one();
        while lock.lock().unwrap().1.is_none() {
            thread::yield_now();
        }
        let first = lock.lock().unwrap().1;
        condvar.notify_one();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        first
    });
    assert_eq!(seen, [Some(0), Some(1)]);
}

#[test]
fn a_flag_under_a_mutex_and_a_condvar_has_two_executions() {
    let traces = count(|| {
        let pair = (Mutex::new(false), Condvar::new());
        thread::scope(|s| {
            s.spawn(|| {
                *pair.0.lock().unwrap() = true;
                pair.1.notify_one();
            });
            let mut flag = pair.0.lock().unwrap();
            while !*flag {
                flag = pair.1.wait(flag).unwrap();
            }
        });
    });
    assert_eq!(traces, 2);
}

#[test]
fn ping_pong_has_the_known_number_of_executions() {
    // Two notifications that find nobody commute; were they dependent, it would be 3, 20, 148, 1104.
    for (rounds, traces) in [(1, 2), (2, 10), (3, 58), (4, 338)] {
        let counted = count(move || {
            let pair = (Mutex::new(0), Condvar::new());
            let play = |me: usize| {
                for _ in 0..rounds {
                    let mut turn = pair.0.lock().unwrap();
                    while *turn % 2 != me {
                        turn = pair.1.wait(turn).unwrap();
                    }
                    *turn += 1;
                    drop(turn);
                    pair.1.notify_one();
                }
            };
            thread::scope(|s| {
                s.spawn(|| play(0));
                s.spawn(|| play(1));
            });
        });
        assert_eq!(counted, traces, "{rounds} rounds");
    }
}

#[test]
fn a_lost_notification_is_a_deadlock() {
    let failure = Builder::new().explore(|| {
        let pair = (Mutex::new(false), Condvar::new());
        thread::scope(|s| {
            s.spawn(|| {
                // The flag is set without the mutex being held at the notification's check.
                *pair.0.lock().unwrap() = true;
                pair.1.notify_one();
            });
            let seen = *pair.0.lock().unwrap();
            if !seen {
                let guard = pair.0.lock().unwrap();
                drop(pair.1.wait(guard).unwrap());
            }
        });
    });
    let failure = failure.expect_err("the notification can come before the wait");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
}

#[test]
fn a_timed_wait_is_notified_or_times_out() {
    let seen = set(|| {
        let pair = (Mutex::new(()), Condvar::new());
        thread::scope(|s| {
            s.spawn(|| pair.1.notify_all());
            let guard = pair.0.lock().unwrap();
            let (_, result) = pair.1.wait_timeout(guard, Duration::from_secs(1)).unwrap();
            result.timed_out()
        })
    });
    assert_eq!(seen, [false, true]);
}

#[test]
fn a_loop_around_a_timed_wait_comes_to_an_end() {
    let (seen, executions) = outcomes(|| {
        let pair = (Mutex::new(false), Condvar::new());
        let stop = AtomicBool::new(false);
        thread::scope(|s| {
            // Nobody notifies: only the time-out lets the loop look again.
            s.spawn(|| stop.store(true, SeqCst));
            let mut guard = pair.0.lock().unwrap();
            let mut rounds = 0;
            while !stop.load(SeqCst) {
                let wait = pair.1.wait_timeout(guard, Duration::from_millis(1));
                guard = wait.unwrap().0;
                rounds += 1;
            }
            rounds
        })
    });
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(executions, 4);
}

#[test]
fn a_wait_that_has_timed_out_often_enough_ends_when_it_is_notified_itself() {
    // Main waits for the ticker, and then tells it to stop; so while the ticker waits, another one may have been notified, and
    // gone on.
    let (seen, executions) = outcomes(|| {
        let (lock, changed) = (Mutex::new((false, false)), Condvar::new());
        let later = AtomicUsize::new(0);
        thread::scope(|s| {
            let ticker = s.spawn(|| {
                let mut timeouts = 0;
                let mut guard = lock.lock().unwrap();
                while !guard.1 {
                    guard.0 = true;
                    changed.notify_all();
                    let (again, wait) = changed
                        .wait_timeout(guard, Duration::from_millis(1))
                        .unwrap();
                    timeouts += usize::from(wait.timed_out());
                    guard = again;
                }
                drop(guard);
                (timeouts, later.load(SeqCst))
            });
            let mut guard = changed
                .wait_while(lock.lock().unwrap(), |ticked| !ticked.0)
                .unwrap();
            guard.1 = true;
            changed.notify_all();
            drop(guard);
            later.store(1, SeqCst);
            later.store(2, SeqCst);
            ticker.join().unwrap()
        })
    });
    // As many timeouts as there may be, and behind each of them the ticker sees all there is to see.
    let all = (0..=2).flat_map(|timeouts| (0..=2).map(move |later| (timeouts, later)));
    assert!(seen.keys().copied().eq(all), "{seen:?}");
    assert_eq!(executions, 30);
}

#[test]
fn spurious_wakeups_are_explored_on_request() {
    let run = |wakeups| {
        let mut builder = Builder::new();
        builder.spurious_wakeups = wakeups;
        builder.explore(|| {
            let pair = (Mutex::new(false), Condvar::new());
            thread::scope(|s| {
                s.spawn(|| {
                    *pair.0.lock().unwrap() = true;
                    pair.1.notify_one();
                });
                let mut flag = pair.0.lock().unwrap();
                if !*flag {
                    flag = pair.1.wait(flag).unwrap();
                }
                assert!(*flag, "woke up too early");
            });
        })
    };
    assert!(run(0).expect("an `if` is enough").complete);
    let failure = run(1).expect_err("an `if` is not enough");
    assert!(failure.to_string().contains("woke up too early"));
}

#[test]
fn a_timed_wait_may_end_for_no_reason_before_its_time_on_request() {
    let run = |wakeups| {
        let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
        let noted = seen.clone();
        let mut builder = Builder::new();
        builder.spurious_wakeups = wakeups;
        let report = builder.check(move || {
            let pair = (Mutex::new(false), Condvar::new());
            thread::scope(|s| {
                s.spawn(|| {
                    *pair.0.lock().unwrap() = true;
                    pair.1.notify_one();
                });
                let flag = pair.0.lock().unwrap();
                if !*flag {
                    let (flag, result) =
                        pair.1.wait_timeout(flag, Duration::from_millis(1)).unwrap();
                    noted.lock().unwrap().insert((*flag, result.timed_out()));
                }
            });
        });
        (seen.lock().unwrap().clone(), report.executions)
    };
    let usual = BTreeSet::from([(true, false), (false, true), (true, true)]);
    let (seen, executions) = run(0);
    assert_eq!(seen, usual);
    let (seen, more) = run(1);
    assert_eq!(seen, &usual | &BTreeSet::from([(false, false)]));
    // A wait that ends without a notification does so before the store or after it, and both times for two reasons.
    assert_eq!((executions, more), (4, 6));
    let text = waking_up(1, || {
        let (lock, condvar) = (Mutex::new(()), Condvar::new());
        let waited = condvar.wait_timeout(lock.lock().unwrap(), Duration::from_millis(1));
        assert!(waited.unwrap().1.timed_out(), "woke up too early");
    });
    let text = text.expect_err("the time is not over").to_string();
    assert!(text.contains("woke up too early"), "{text}");
    assert!(
        text.contains("its time is not over: it woke up for no reason"),
        "{text}"
    );
}

/// Explores `f` with so many waits of each thread that may end for no reason.
fn waking_up(wakeups: u32, f: fn()) -> Result<(u64, u64), Box<dpor::Failure>> {
    let mut builder = Builder::new();
    builder.spurious_wakeups = wakeups;
    let report = builder.explore(f)?;
    assert!(report.complete);
    Ok((report.executions, report.pruned))
}

/// Checks a wait that may end for no reason: `once` waits for a thread's store, and `until` it sees it.
fn may_end_for_no_reason(once: fn(), until: fn()) {
    assert_eq!(waking_up(0, once).expect("once is enough"), (1, 0));
    let failure = waking_up(1, once).expect_err("once is not enough");
    let text = failure.to_string();
    assert!(text.contains("woke up too early"), "{text}");
    assert!(text.contains(" ends for no reason"), "{text}");
    assert_eq!(waking_up(0, until).expect("a loop is enough"), (2, 0));
    // The store comes first; or the wait ends as it should, whether it has to wait for that or not; or for no
    // reason, and the store comes before the next look or after it.
    assert_eq!(waking_up(1, until).expect("a loop is enough"), (5, 0));
}

#[test]
fn a_park_may_end_for_no_reason_on_request() {
    fn told_to(wait: fn(&AtomicBool)) {
        let ready = Arc::new(AtomicBool::new(false));
        let (set, main) = (ready.clone(), thread::current());
        let thread = thread::spawn(move || {
            set.store(true, SeqCst);
            main.unpark();
        });
        wait(&ready);
        thread.join().unwrap();
    }
    let once = || {
        told_to(|ready| {
            thread::park();
            assert!(ready.load(SeqCst), "woke up too early");
        });
    };
    let until = || {
        told_to(|ready| {
            while !ready.load(SeqCst) {
                thread::park();
            }
        });
    };
    may_end_for_no_reason(once, until);
}

#[test]
fn a_notify_may_end_for_no_reason_on_request() {
    fn told_to(wait: fn(&AtomicBool, &Notify)) {
        let (ready, notify) = (AtomicBool::new(false), Notify::new());
        thread::scope(|s| {
            s.spawn(|| {
                ready.store(true, SeqCst);
                notify.notify();
            });
            wait(&ready, &notify);
        });
    }
    let once = || {
        told_to(|ready, notify| {
            notify.wait();
            assert!(ready.load(SeqCst), "woke up too early");
        });
    };
    let until = || {
        told_to(|ready, notify| {
            while !ready.load(SeqCst) {
                notify.wait();
            }
        });
    };
    may_end_for_no_reason(once, until);
}

#[test]
fn wakeups_for_no_reason_do_not_hide_those_that_are_lost() {
    let waits = || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let other = pair.clone();
        let thread = thread::spawn(move || other.1.notify_one());
        drop(pair.1.wait(pair.0.lock().unwrap()).unwrap());
        thread.join().unwrap();
    };
    let parks = || {
        let main = thread::current();
        let taken = thread::spawn(move || main.unpark());
        thread::park();
        taken.join().unwrap();
        thread::park();
    };
    let polls = || {
        let woken = Arc::new(AtomicBool::new(false));
        let other = woken.clone();
        let thread = thread::spawn(move || other.store(true, SeqCst));
        // Nobody has its waker.
        let ready = std::future::poll_fn(move |_| match woken.load(SeqCst) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        });
        dpor::future::block_on(ready);
        thread.join().unwrap();
    };
    for f in [waits, parks, polls] {
        for wakeups in [0, 1, 2] {
            let failure = waking_up(wakeups, f).expect_err("it waits for ever");
            assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
        }
    }
}

#[test]
fn a_barrier_has_every_thread_as_leader_and_nobody_passes_alone() {
    let (seen, executions) = outcomes(|| {
        let barrier = Barrier::new(3);
        let before = AtomicUsize::new(0);
        thread::scope(|s| {
            let all: Vec<_> = (0..3)
                .map(|_| {
                    s.spawn(|| {
                        before.fetch_add(1, SeqCst);
                        let leader = barrier.wait().is_leader();
                        assert_eq!(before.load(SeqCst), 3);
                        leader
                    })
                })
                .collect();
            let leaders: Vec<bool> = all.into_iter().map(|h| h.join().unwrap()).collect();
            leaders.iter().position(|&leader| leader)
        })
    });
    assert_eq!(
        seen.into_keys().collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    // Six orders of the additions, each with three leaders.
    assert_eq!(executions, 18);
}

#[test]
fn once_runs_one_of_the_closures() {
    let (seen, executions) = outcomes(|| {
        let once = Once::new();
        let who = AtomicUsize::new(9);
        thread::scope(|s| {
            s.spawn(|| once.call_once(|| who.store(1, SeqCst)));
            once.call_once(|| who.store(0, SeqCst));
            assert!(once.is_completed());
        });
        who.load(SeqCst)
    });
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(executions, 2);
}

#[test]
fn a_once_lock_is_empty_or_has_one_of_the_values() {
    let seen = set(|| {
        let cell = OnceLock::new();
        thread::scope(|s| {
            s.spawn(|| cell.set(1).is_ok());
            s.spawn(|| *cell.get_or_init(|| 2));
            cell.get().copied()
        })
    });
    assert_eq!(seen, [None, Some(1), Some(2)]);
}

#[test]
fn a_once_lock_waits_for_its_value() {
    let traces = count(|| {
        let cell = OnceLock::new();
        thread::scope(|s| {
            s.spawn(|| cell.set(7).unwrap());
            assert_eq!(*cell.wait(), 7);
        });
    });
    assert_eq!(traces, 1);
}

#[test]
fn try_recv_sees_both_empty_and_full_and_disconnected() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || sender.send(5).unwrap());
        let first = receiver.try_recv();
        other.join().unwrap();
        let second = receiver.try_recv();
        let name = |r: Result<i32, TryRecvError>| match r {
            Ok(n) => n.to_string(),
            Err(TryRecvError::Empty) => "empty".to_owned(),
            Err(TryRecvError::Disconnected) => "disconnected".to_owned(),
        };
        (name(first), name(second))
    });
    let seen: Vec<(&str, &str)> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(seen, [("5", "disconnected"), ("empty", "5")]);
}

#[test]
fn the_last_sender_that_goes_lets_the_receiver_go() {
    let traces = count(|| {
        let (sender, receiver) = mpsc::channel::<()>();
        let another = sender.clone();
        thread::spawn(move || drop(sender));
        thread::spawn(move || drop(another));
        assert!(receiver.recv().is_err());
    });
    assert_eq!(traces, 1);
}

#[test]
fn messages_of_two_senders_come_in_any_order_and_each_senders_in_its_own() {
    let (seen, executions) = outcomes(|| {
        let (sender, receiver) = mpsc::channel();
        let other = sender.clone();
        thread::spawn(move || {
            other.send(10).unwrap();
            other.send(11).unwrap();
        });
        thread::spawn(move || sender.send(20).unwrap());
        receiver.iter().collect::<Vec<i32>>()
    });
    let seen: Vec<Vec<i32>> = seen.into_keys().collect();
    assert_eq!(seen, [[10, 11, 20], [10, 20, 11], [20, 10, 11]]);
    assert_eq!(executions, 3);
}

#[test]
fn a_bounded_channel_is_full_or_has_room() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        let other = thread::spawn(move || (receiver.recv().unwrap(), receiver));
        let result = match sender.try_send(2) {
            Ok(()) => "sent",
            Err(TrySendError::Full(2)) => "full",
            Err(_) => "other",
        };
        assert_eq!(other.join().unwrap().0, 1);
        result
    });
    assert_eq!(seen, ["full", "sent"]);
}

#[test]
fn a_bounded_send_waits_for_room_and_a_pipeline_has_one_execution() {
    let traces = count(|| {
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::spawn(move || (0..4).for_each(|i| sender.send(i).unwrap()));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    });
    assert_eq!(traces, 1);
}

#[test]
fn a_rendezvous_hands_over_or_finds_nobody() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let other = thread::spawn(move || receiver.recv_timeout(Duration::from_secs(1)));
        let sent = sender.try_send(3).is_ok();
        let received = other.join().unwrap();
        (sent, received.unwrap_or(0))
    });
    assert_eq!(seen, [(false, 0), (true, 3)]);
    let traces = count(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let passed = Arc::new(AtomicBool::new(false));
        let theirs = passed.clone();
        let other = thread::spawn(move || {
            theirs.store(true, SeqCst);
            receiver.recv().unwrap()
        });
        sender.send(3).unwrap();
        assert!(passed.load(SeqCst), "the receiver has come");
        assert_eq!(other.join().unwrap(), 3);
    });
    assert_eq!(traces, 1);
}

#[test]
fn a_send_to_a_receiver_that_is_gone_gives_the_message_back() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let other = thread::spawn(move || drop(receiver));
        let back = sender.send(String::from("back")).map_err(|error| error.0);
        other.join().unwrap();
        back
    });
    assert_eq!(seen, [Err(String::from("back"))]);
}

#[test]
fn recv_timeout_sees_a_message_or_the_time() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(1));
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(_) => "message",
            Err(RecvTimeoutError::Timeout) => "time",
            Err(RecvTimeoutError::Disconnected) => "disconnected",
        }
    });
    assert_eq!(seen, ["message", "time"]);
}

#[test]
fn a_parked_thread_takes_its_token_or_the_time_is_over() {
    let seen = set(|| {
        let main = thread::current();
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || {
            theirs.store(true, SeqCst);
            main.unpark();
        });
        thread::park_timeout(Duration::from_secs(1));
        let seen = flag.load(SeqCst);
        other.join().unwrap();
        seen
    });
    assert_eq!(seen, [false, true]);
}
