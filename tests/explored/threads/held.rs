//! Is a lock held that nobody in the execution has locked?

use std::fmt;

use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dpor::sync::{Arc, Mutex, RwLock};
use dpor::{Builder, FailureKind, thread};

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

/// Looks into its atomic when it is printed, as something does that prints its state.
struct Looks(AtomicUsize);

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.load(SeqCst))
    }
}

#[test]
fn a_lock_that_is_printed_is_held_by_nobody() {
    let report = Builder::new().check(|| {
        let mutex = Arc::new(Mutex::new(Looks(AtomicUsize::new(7))));
        let lock = Arc::new(RwLock::new(Looks(AtomicUsize::new(7))));
        let (theirs, written) = (mutex.clone(), lock.clone());
        let other = thread::spawn(move || {
            theirs.lock().unwrap().0.store(8, SeqCst);
            written.write().unwrap().0.store(8, SeqCst);
        });
        let text = format!("{mutex:?} {lock:?}");
        let shown = |name: &str, data: &str| {
            text.contains(&format!("{name} {{ data: {data}, poisoned: false, .. }}"))
        };
        for (name, locked) in [("Mutex", "\"<locked>\""), ("RwLock", "<locked>")] {
            let is_shown = ["7", "8", locked].map(|data| shown(name, data));
            assert_eq!(is_shown.into_iter().filter(|&is| is).count(), 1, "{text}");
        }
        other.join().unwrap();
        let after = format!("{mutex:?} {lock:?}");
        assert_eq!(after.matches("data: 8").count(), 2, "{after}");
    });
    assert!(report.complete);
}

#[test]
fn what_would_have_to_wait_to_be_printed_is_locked() {
    /// Locks a mutex to be printed.
    struct Locks(Arc<Mutex<u32>>);
    impl fmt::Debug for Locks {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.lock().unwrap().fmt(f)
        }
    }
    Builder::new().check(|| {
        let number = Arc::new(Mutex::new(5));
        let outer = Mutex::new(Locks(number.clone()));
        assert_eq!(
            format!("{outer:?}"),
            "Mutex { data: 5, poisoned: false, .. }"
        );
        let guard = number.lock().unwrap();
        assert_eq!(format!("{outer:?}"), "Mutex { data: <locked>");
        drop(guard);
        assert_eq!(
            format!("{outer:?}"),
            "Mutex { data: 5, poisoned: false, .. }"
        );
    });
}
