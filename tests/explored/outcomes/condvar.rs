//! Whom does a notification wake, and when does a timed wait end?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex};
use dpor::{Builder, FailureKind, thread};

use super::{count, outcomes, set};

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
