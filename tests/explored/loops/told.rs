//! Is a loop that waits without a hint told with what it does in vain, whatever that is?

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Mutex, Once, OnceLock, RwLock, mpsc};
use dpor::{Builder, FailureKind, hint, thread};

/// Where in this file there is this text first that is no string.
fn line_of(text: &str) -> usize {
    let mut lines = include_str!("told.rs").lines();
    let is_it = |line: &str| line.contains(text) && !line.contains('"');
    lines.position(is_it).expect("a line") + 1
}

/// What a report says, behind what it says first, of a test that fails by this.
fn told(kind: FailureKind, test: impl Fn() + Send + Sync + 'static) -> String {
    let failure = Builder::new().explore(test).expect_err("it never ends");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure.to_string()
}

fn is_told_to_spin(looks: &str, as_this: &str, test: impl Fn() + Send + Sync + 'static) {
    let text = told(FailureKind::Livelock, test);
    let said = format!(
        "\n  the loop at tests/explored/loops/told.rs:{} has no hint, and comes back to this: {as_this}.\n  With \
         `dpor::hint::spin_loop()` or `dpor::thread::yield_now()` in it, ",
        line_of(looks)
    );
    assert!(text.contains(&said), "{said}\n{text}");
}

#[test]
fn a_loop_that_tries_in_vain_for_ever_is_told_with_what_it_tries() {
    is_told_to_spin("flag.load(Acquire) {}", "flag = false", || {
        let flag = AtomicBool::new(false);
        while !flag.load(Acquire) {}
    });
    is_told_to_spin(
        "flag.compare_exchange(",
        "flag cas failed: true, not false",
        || {
            let flag = AtomicBool::new(true);
            while flag.compare_exchange(false, true, SeqCst, SeqCst).is_err() {}
        },
    );
    is_told_to_spin("lock.try_lock().is_err()", "try_lock lock: held", || {
        let lock = Mutex::new(());
        let held = lock.lock();
        while lock.try_lock().is_err() {}
        drop(held);
    });
    is_told_to_spin("= lock.try_read()", "try_read lock: held", || {
        let lock = RwLock::new(());
        let held = lock.write();
        loop {
            if let Ok(guard) = lock.try_read() {
                break drop(guard);
            }
        }
        drop(held);
    });
    is_told_to_spin("= lock.try_write()", "try_write lock: held", || {
        let lock = RwLock::new(());
        let held = lock.read();
        while let Err(_would_block) = lock.try_write() {}
        drop(held);
    });
    is_told_to_spin("rx.try_recv()", "try_recv from rx: empty", || {
        let (tx, rx) = mpsc::channel::<()>();
        while rx.try_recv().is_err() {}
        drop(tx);
    });
    is_told_to_spin("once.is_completed()", "once: not done", || {
        let once = Once::new();
        while !once.is_completed() {}
    });
    is_told_to_spin("cell.get()", "cell: not done", || {
        let cell = OnceLock::<()>::new();
        while cell.get().is_none() {}
    });
    is_told_to_spin(
        "other.is_finished()",
        "is_finished of main.1: false",
        || {
            let (tx, rx) = mpsc::channel::<()>();
            let other = thread::spawn(move || rx.recv());
            while !other.is_finished() {}
            drop(tx);
        },
    );
    is_told_to_spin("Arc::strong_count(", "count of arc value: 2", || {
        let value = Arc::new(());
        let other = value.clone();
        while Arc::strong_count(&value) > 1 {}
        drop(other);
    });
}

/// What it comes back to is not the last thing that it does at that place.
#[test]
fn a_loop_that_takes_a_lock_in_vain_is_told_with_that_and_not_with_the_unlock() {
    is_told_to_spin("= queue.try_lock()", "try_lock queue", || {
        let queue = Mutex::new(0);
        loop {
            if let Ok(guard) = queue.try_lock()
                && *guard > 0
            {
                break;
            }
        }
    });
}

/// Each loop once, however many threads are in it.
#[test]
fn a_loop_that_several_threads_are_in_is_told_once() {
    let text = told(FailureKind::Livelock, || {
        let flag = Arc::new(AtomicBool::new(false));
        let threads = [0; 3].map(|_| {
            let flag = flag.clone();
            thread::spawn(move || while !flag.load(SeqCst) {})
        });
        for it in threads {
            it.join().unwrap();
        }
    });
    assert_eq!(text.matches(" has no hint").count(), 1, "{text}");
}

#[test]
fn a_loop_with_a_hint_is_not_told_to_have_none() {
    let text = told(FailureKind::Livelock, || {
        let lock = Mutex::new(());
        let held = lock.lock();
        while lock.try_lock().is_err() {
            hint::spin_loop();
        }
        drop(held);
    });
    assert!(!text.contains(" has no hint"), "{text}");
}

/// What is not noticed without a hint goes round until there are too many events.
fn is_told_to_go_round(looks: &str, rounds: &str, test: impl Fn() + Send + Sync + 'static) {
    let text = told(FailureKind::Limit, test);
    let said = format!(
        "\n  the loop at tests/explored/loops/told.rs:{} has no hint, and main has gone round {rounds}.\n  If it waits there, put \
         `dpor::hint::spin_loop()` or `dpor::thread::yield_now()` into it; ",
        line_of(looks)
    );
    assert!(text.contains(&said), "{said}\n{text}");
}

#[test]
fn a_loop_that_looks_behind_a_lock_is_told_with_its_rounds() {
    let rounds = "50000 times, always with this: lock flag, unlock flag";
    is_told_to_go_round("*flag.lock()", rounds, || {
        let flag = Mutex::new(false);
        while !*flag.lock().unwrap() {}
    });
    let rounds = "50000 times, always with this: read-lock flag, read-unlock flag";
    is_told_to_go_round("*flag.read()", rounds, || {
        let flag = RwLock::new(false);
        while !*flag.read().unwrap() {}
    });
    // It may have changed the queue.
    let rounds = "50000 times, always with this: lock queue, unlock queue";
    is_told_to_go_round("queue.lock().unwrap().pop_front()", rounds, || {
        let queue = Mutex::new(VecDeque::<u8>::new());
        while queue.lock().unwrap().pop_front().is_none() {}
    });
}

/// An earlier loop has had one.
#[test]
fn a_loop_behind_one_with_a_hint_is_told_with_its_rounds() {
    let rounds = "49998 times, always with this: lock flag, unlock flag";
    is_told_to_go_round("*flag.lock().unwrap() == 0", rounds, || {
        let other = AtomicUsize::new(0);
        while other.load(SeqCst) < 1 {
            other.fetch_add(1, SeqCst);
            hint::spin_loop();
        }
        let flag = Mutex::new(0);
        while *flag.lock().unwrap() == 0 {}
    });
}

#[test]
fn a_loop_that_finds_something_else_in_each_round_is_not_told_to_wait() {
    let text = told(FailureKind::Limit, || {
        let counter = AtomicUsize::new(0);
        while counter.fetch_add(1, SeqCst) < usize::MAX {}
    });
    assert!(!text.contains(" has no hint"), "{text}");
    assert!(
        text.contains("A loop that changes something in every round"),
        "{text}"
    );
}
