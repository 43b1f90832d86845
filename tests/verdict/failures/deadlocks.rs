//! Does a deadlock name what each thread waits for, and who holds it?

use dpor::sync::{Arc, Mutex};
use dpor::{FailureKind, thread};

use super::failure;

#[test]
#[should_panic(expected = "deadlock: 2 threads wait for ever")]
fn a_deadlock_panics_with_its_verdict() {
    dpor::model(opposite_orders);
}

fn opposite_orders() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let shared = locks.clone();
    let other = thread::spawn(move || {
        let b = shared.1.lock().unwrap();
        let a = shared.0.lock().unwrap();
        drop((b, a));
    });
    let a = locks.0.lock().unwrap();
    let b = locks.1.lock().unwrap();
    drop((a, b));
    other.join().unwrap();
}

#[test]
fn a_deadlock_names_what_each_thread_waits_for_and_who_holds_it() {
    let found = failure(opposite_orders);
    assert_eq!(found.kind(), FailureKind::Deadlock);
    let text = found.to_string();
    assert!(text.contains("main       waits to lock shared.1"), "{text}");
    assert!(text.contains("held by main.1 since event"), "{text}");
    assert!(text.contains("main.1     waits to lock locks.0"), "{text}");
    assert!(text.contains("held by main since event"), "{text}");
    let circle =
        "main holds locks.0 and waits for shared.1, main.1 holds shared.1 and waits for locks.0";
    assert!(text.contains(circle), "{text}");
}

#[test]
fn a_thread_that_locks_a_mutex_twice_waits_for_itself() {
    let found = failure(|| {
        let lock = Mutex::new(());
        let _first = lock.lock();
        let _second = lock.lock();
    });
    assert_eq!(found.kind(), FailureKind::Deadlock);
    assert!(found.to_string().contains("held by main"), "{found}");
    let circle = "main holds lock and waits for it itself";
    assert!(found.to_string().contains(circle), "{found}");
}
