//! Is a lock held that nobody in the execution has locked?

use dpor::sync::{Mutex, RwLock};
use dpor::{Builder, FailureKind};

/// What a report says of who holds such a lock.
const BEFORE: &str =
    "held by a guard from before the model, or one that was forgotten before the lock was moved";

#[test]
fn a_lock_moved_behind_a_forgotten_guard_is_still_held() {
    let report = Builder::new().check(|| {
        let lock = Mutex::new(1);
        std::mem::forget(lock.lock());
        let moved = lock;
        assert!(moved.try_lock().is_err());
        assert_eq!(moved.into_inner().unwrap(), 1);

        let read = RwLock::new(());
        std::mem::forget(read.read());
        let moved = read;
        assert!(moved.try_write().is_err());
        assert!(moved.try_read().is_ok());
        assert!(moved.try_write().is_err());

        let written = RwLock::new(());
        std::mem::forget(written.write());
        let moved = written;
        assert!(moved.try_read().is_err());
    });
    assert!(report.complete);
}

#[test]
fn a_static_lock_that_is_held_outside_of_the_model_is_held_in_it() {
    static LOCK: Mutex<u8> = Mutex::new(0);
    static SHARED: RwLock<u8> = RwLock::new(0);
    let (lock, shared) = (LOCK.lock().unwrap(), SHARED.read().unwrap());
    let report = Builder::new().check(|| {
        assert!(LOCK.try_lock().is_err());
        assert!(SHARED.try_write().is_err());
        assert_eq!(*SHARED.read().unwrap(), 0);
    });
    assert!(report.complete);
    let waits = |body: fn()| {
        let failure = Builder::new().explore(body).expect_err("it waits for ever");
        assert_eq!(failure.kind(), FailureKind::Deadlock);
        let text = failure.to_string();
        assert!(text.contains(BEFORE), "{text}");
        for data in [failure.json(), failure.dot(), failure.html()] {
            assert!(!data.is_empty());
        }
    };
    waits(|| drop(LOCK.lock()));
    waits(|| drop(SHARED.write()));
    drop((lock, shared));
    let report = Builder::new().check(|| {
        *LOCK.lock().unwrap() += 1;
        *SHARED.write().unwrap() += 1;
    });
    assert!(report.complete);
    assert_eq!((*LOCK.lock().unwrap(), *SHARED.read().unwrap()), (0, 0));
}
