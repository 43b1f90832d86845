//! What does a thread wait for when it polls a `Once`, a `Weak`, a channel or somebody's token?

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex, Once, OnceLock, RwLock, RwLockWriteGuard, mpsc};
use dpor::{Builder, FailureKind, Verdict, hint, thread};

use super::{count, fails};

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

/// Nobody remembers so much of a round that it could be told from another one. So it counts as one that changes something, and
/// lets main go first.
#[test]
fn who_reads_more_in_each_round_than_is_remembered_is_not_taken_to_wait() {
    let report = Builder::new().check(|| {
        let flags: Arc<[AtomicUsize; 65]> = Arc::new([const { AtomicUsize::new(0) }; 65]);
        let theirs = flags.clone();
        let other = thread::spawn(move || {
            while theirs.iter().all(|flag| flag.load(SeqCst) == 0) {
                thread::yield_now();
            }
        });
        flags[64].store(1, SeqCst);
        other.join().unwrap();
    });
    assert_eq!((report.executions, report.verdict), (4, Verdict::Fair(2)));
}

/// A thread polls until something has changed, and fails if it has had to wait for that and goes on before main does
/// anything else.
fn goes_on_early<T: Send + Sync + 'static>(
    make: fn() -> T,
    poll: fn(&T) -> bool,
    change: fn(&T),
) -> impl Fn() + Send + Sync {
    move || {
        let shared = Arc::new((make(), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let mut rounds = 1;
            while !poll(&theirs.0) {
                rounds += 1;
                thread::yield_now();
            }
            // Who has looked three times waits.
            assert!(rounds < 4 || theirs.1.load(SeqCst) == 1);
        });
        change(&shared.0);
        shared.1.store(1, SeqCst);
        other.join().expect("no thread panics");
    }
}

#[test]
fn who_tries_a_lock_waits_no_longer_than_until_somebody_has_it_or_has_had_it() {
    let poll = |lock: &Mutex<u32>| !lock.try_lock().is_ok_and(|it| *it == 0);
    let change = |lock: &Mutex<u32>| *lock.lock().unwrap() = 1;
    fails(
        FailureKind::Panic,
        goes_on_early(|| Mutex::new(0), poll, change),
    );
}

#[test]
fn who_tries_to_read_waits_no_longer_than_until_the_writer_only_reads() {
    let poll = |lock: &RwLock<u32>| !lock.try_read().is_ok_and(|it| *it == 0);
    let change = |lock: &RwLock<u32>| {
        let mut write = lock.write().unwrap();
        *write = 1;
        drop(RwLockWriteGuard::downgrade(write));
    };
    fails(
        FailureKind::Panic,
        goes_on_early(|| RwLock::new(0), poll, change),
    );
}

#[test]
fn who_tries_to_receive_waits_no_longer_than_until_the_last_sender_is_gone() {
    fails(FailureKind::Panic, || {
        let done = Arc::new(AtomicUsize::new(0));
        let theirs = done.clone();
        let (sender, receiver) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            let mut rounds = 1;
            while receiver.try_recv() == Err(mpsc::TryRecvError::Empty) {
                rounds += 1;
                thread::yield_now();
            }
            // Who has looked three times waits.
            assert!(rounds < 4 || theirs.load(SeqCst) == 1);
        });
        drop(sender);
        done.store(1, SeqCst);
        other.join().expect("no thread panics");
    });
}
