//! What do locks, condition variables and barriers do? The same in every schedule.

use std::time::Duration;

use super::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use super::sync::{
    Arc, Barrier, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard,
    RwLockWriteGuard, TryLockError,
};
use super::thread;

/// Owns nothing, so that it may be used inside of models and outside.
static COUNT: Mutex<u32> = Mutex::new(0);
static TABLE: RwLock<[u8; 2]> = RwLock::new([1, 2]);

pub fn a_poisoned_mutex_gives_its_data_all_the_same() -> Vec<String> {
    let mut mutex = Arc::new(Mutex::new(1));
    let theirs = mutex.clone();
    let panicked = thread::spawn(move || {
        let mut guard = theirs.lock().unwrap();
        *guard += 1;
        panic!("while the lock is held");
    });
    assert!(panicked.join().is_err());
    let mut seen = vec![format!("{} {mutex:?}", mutex.is_poisoned())];
    match mutex.try_lock() {
        Err(TryLockError::Poisoned(poisoned)) => {
            seen.push(format!("{poisoned} {}", **poisoned.get_ref()))
        }
        other => panic!("{other:?}"),
    }
    let error = mutex.lock().expect_err("it is poisoned");
    seen.push(format!("{error} {error:?} {}", **error.get_ref()));
    drop(error);
    let unique = Arc::get_mut(&mut mutex).expect("there is no other");
    seen.push(format!(
        "{:?}",
        unique.get_mut().map_err(PoisonError::into_inner)
    ));
    mutex.clear_poison();
    seen.push(format!("{:?} {}", mutex.lock(), mutex.is_poisoned()));
    let inner = Arc::into_inner(mutex)
        .expect("there is no other")
        .into_inner();
    seen.push(format!("{inner:?}"));
    seen
}

pub fn a_mutex_in_a_static_counts_for_all_threads() -> Vec<String> {
    // Outside of a model it keeps what an earlier call has left.
    let before = *COUNT.lock().unwrap();
    thread::scope(|scope| {
        for i in 1..3 {
            scope.spawn(move || *COUNT.lock().unwrap() += i);
        }
    });
    vec![format!("{}", *COUNT.lock().unwrap() - before)]
}

pub fn a_held_lock_says_so() -> Vec<String> {
    let mutex = Mutex::new("data");
    let lock = RwLock::new("data");
    let mut seen = vec![format!("{mutex:?} {lock:?}")];
    let guard: MutexGuard<'_, &str> = mutex.lock().unwrap();
    let writer: RwLockWriteGuard<'_, &str> = lock.write().unwrap();
    seen.push(format!(
        "{mutex:?} {lock:?} {guard:?} {guard} {writer:?} {writer}"
    ));
    seen.push(format!(
        "{:?} {:?}",
        mutex.try_lock().err(),
        lock.try_read().err()
    ));
    drop((guard, writer));
    let reader: RwLockReadGuard<'_, &str> = lock.read().unwrap();
    seen.push(format!(
        "{lock:?} {reader:?} {reader} {:?}",
        lock.try_write().err()
    ));
    seen
}

pub fn readers_share_and_a_writer_does_not() -> Vec<String> {
    let lock = Arc::new(RwLock::new(0));
    let first = lock.read().unwrap();
    let theirs = lock.clone();
    let second = thread::spawn(move || (*theirs.read().unwrap(), theirs.try_write().is_err()));
    let mut seen = vec![format!("{:?}", second.join().unwrap())];
    drop(first);
    *lock.write().unwrap() += 1;
    let mut writer = lock.try_write().unwrap();
    *writer += 1;
    let reader = RwLockWriteGuard::downgrade(writer);
    seen.push(format!(
        "{} {:?}",
        *reader,
        lock.try_read().map(|reader| *reader)
    ));
    drop(reader);
    let mut lock = Arc::into_inner(lock).expect("there is no other");
    *lock.get_mut().unwrap() += 1;
    seen.push(format!(
        "{:?} {:?}",
        TABLE.read().unwrap(),
        lock.into_inner()
    ));
    seen
}

pub fn only_a_writer_poisons_a_rwlock() -> Vec<String> {
    let lock = Arc::new(RwLock::new(5));
    let panic_with = |write: bool| {
        let theirs = lock.clone();
        let panicked = thread::spawn(move || {
            if write {
                let _guard = theirs.write();
                panic!("while the lock is held for writing");
            }
            let _guard = theirs.read();
            panic!("while the lock is held for reading");
        });
        assert!(panicked.join().is_err());
        format!(
            "{} {:?} {:?}",
            lock.is_poisoned(),
            lock.read(),
            lock.try_write()
        )
    };
    let mut seen = vec![panic_with(false), panic_with(true)];
    lock.clear_poison();
    seen.push(format!("{lock:?}"));
    seen
}

pub fn a_value_is_handed_over_by_a_condvar() -> Vec<String> {
    let shared = Arc::new((Mutex::new(None), Condvar::new()));
    let theirs = shared.clone();
    let giver = thread::spawn(move || {
        *theirs.0.lock().unwrap() = Some(7);
        theirs.1.notify_one();
    });
    let mut slot = shared.0.lock().unwrap();
    while slot.is_none() {
        slot = shared.1.wait(slot).unwrap();
    }
    let mut seen = vec![format!("{:?} {:?}", slot.take(), shared.1)];
    drop(slot);
    giver.join().unwrap();

    let theirs = shared.clone();
    let giver = thread::spawn(move || {
        *theirs.0.lock().unwrap() = Some(8);
        theirs.1.notify_all();
    });
    let guard = shared.0.lock().unwrap();
    let mut slot = shared.1.wait_while(guard, |slot| slot.is_none()).unwrap();
    seen.push(format!("{:?}", slot.take()));
    drop(slot);
    giver.join().unwrap();
    seen
}

pub fn a_timed_wait_ends() -> Vec<String> {
    let (mutex, condvar) = (Mutex::new(0), Condvar::default());
    let short = Duration::from_millis(1);
    let (guard, result) = condvar.wait_timeout(mutex.lock().unwrap(), short).unwrap();
    // Without anybody who notifies, std's wait may only end early for no reason.
    let mut seen = vec![format!("{} {result:?}", *guard)];
    let (guard, result) = condvar.wait_timeout_while(guard, short, |_| true).unwrap();
    seen.push(format!("{} {}", *guard, result.timed_out()));
    let (guard, result) = condvar.wait_timeout_while(guard, short, |_| false).unwrap();
    seen.push(format!("{} {}", *guard, result.timed_out()));
    #[allow(deprecated)]
    let (guard, notified) = condvar.wait_timeout_ms(guard, 1).unwrap();
    seen.push(format!("{} {notified}", *guard));
    seen
}

pub fn a_waiter_sees_that_the_mutex_is_poisoned() -> Vec<String> {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = shared.clone();
    let giver = thread::spawn(move || {
        let mut ready = theirs.0.lock().unwrap();
        *ready = true;
        theirs.1.notify_one();
        panic!("while the lock is held");
    });
    let mut ready = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut poisoned = false;
    while !*ready {
        ready = shared.1.wait(ready).unwrap_or_else(|error| {
            poisoned = true;
            error.into_inner()
        });
    }
    drop(ready);
    assert!(giver.join().is_err());
    // If it came first there was no need to wait.
    vec![format!("{}", shared.0.is_poisoned() || poisoned)]
}

pub fn one_of_a_group_leads() -> Vec<String> {
    let barrier = Arc::new(Barrier::new(2));
    let arrived = Arc::new(AtomicUsize::new(0));
    let go = |barrier: Arc<Barrier>, arrived: Arc<AtomicUsize>| {
        move || {
            arrived.fetch_add(1, SeqCst);
            let first = barrier.wait();
            assert_eq!(arrived.load(SeqCst), 2);
            (first.is_leader(), barrier.wait().is_leader())
        }
    };
    let other = thread::spawn(go(barrier.clone(), arrived.clone()));
    let mine = go(barrier.clone(), arrived)();
    let theirs = other.join().unwrap();
    let alone = Barrier::new(0).wait();
    vec![
        format!("{} {}", mine.0 != theirs.0, mine.1 != theirs.1),
        format!("{barrier:?} {alone:?} {}", alone.is_leader()),
    ]
}

pub fn a_write_lock_that_is_downgraded_while_its_thread_panics_is_not_poisoned() -> Vec<String> {
    /// Downgrades its guard when it is dropped.
    struct Downgrades<'a>(Option<RwLockWriteGuard<'a, u32>>);
    impl Drop for Downgrades<'_> {
        fn drop(&mut self) {
            let guard = self.0.take().expect("nobody else takes it");
            drop(RwLockWriteGuard::downgrade(guard));
        }
    }
    let lock = RwLock::new(1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _downgrades = Downgrades(lock.write().ok());
        panic!("while the lock is held");
    }));
    vec![format!("{} {lock:?}", panicked.is_err())]
}
