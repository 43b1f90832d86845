//! Who gets into a `RwLock`, and who is kept out?

use dpor::sync::{Arc, RwLock};
use dpor::thread;

use super::{count, set};

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
