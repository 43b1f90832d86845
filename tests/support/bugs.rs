//! Which bugs are planted, to see how soon they are found?
//!
//! Each is a real one, reduced to the operations that matter.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Mutex;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::thread;

/// A named program that fails in some executions.
pub type Bug = (&'static str, fn());

/// All of them.
pub const BUGS: [Bug; 9] = [
    ("lost update, 3 threads", || lost_update(3)),
    ("spin rwlock, 1 reader", || spin_rwlock(1)),
    ("spin rwlock, 2 readers", || spin_rwlock(2)),
    ("last message lost", last_message_lost),
    ("pool check-then-act", pool),
    ("oneshot taken twice", oneshot),
    ("philosophers(3) deadlock", || philosophers(3)),
    ("late reset", late_reset),
    ("needle among 4 threads", needle),
];

fn join_all(handles: Vec<thread::JoinHandle<()>>) {
    for handle in handles {
        handle.join().unwrap();
    }
}

/// Every thread adds one with a load and a store.
fn lost_update(threads: usize) {
    let x = Arc::new(AtomicUsize::new(0));
    let add = |x: Arc<AtomicUsize>| move || x.store(x.load(SeqCst) + 1, SeqCst);
    join_all(
        (0..threads)
            .map(|_| thread::spawn(add(x.clone())))
            .collect(),
    );
    assert_eq!(x.load(SeqCst), threads, "an update was lost");
}

/// The writer's unlock wipes out the count of a reader that is about to undo its attempt.
pub fn spin_rwlock(readers: usize) {
    let state = Arc::new(AtomicUsize::new(0));
    let writer = {
        let state = state.clone();
        thread::spawn(move || {
            if state.compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
                state.store(0, SeqCst);
            }
        })
    };
    let reader = |state: Arc<AtomicUsize>| {
        move || {
            if state.fetch_add(2, SeqCst) & 1 == 1 {
                let before = state.fetch_sub(2, SeqCst);
                assert!(before >= 2, "the count of readers underflows");
            }
        }
    };
    let mut all = vec![writer];
    all.extend((0..readers).map(|_| thread::spawn(reader(state.clone()))));
    join_all(all);
}

/// The receiver looks at the queue first and at the senders second.
fn last_message_lost() {
    let queued = Arc::new(AtomicUsize::new(0));
    let senders = Arc::new(AtomicUsize::new(1));
    let (queue, alive) = (queued.clone(), senders.clone());
    let sender = thread::spawn(move || {
        queue.fetch_add(1, SeqCst);
        alive.fetch_sub(1, SeqCst);
    });
    if queued.load(SeqCst) == 0 && senders.load(SeqCst) == 0 {
        panic!("disconnected, though a message is queued");
    }
    sender.join().unwrap();
}

/// Two threads see that nobody has done the work, and both do it.
fn pool() {
    let done = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicUsize::new(0));
    let work = |done: Arc<AtomicBool>, count: Arc<AtomicUsize>| {
        move || {
            if !done.load(SeqCst) {
                assert_eq!(count.fetch_add(1, SeqCst), 0, "finalized twice");
                done.store(true, SeqCst);
            }
        }
    };
    let first = thread::spawn(work(done.clone(), count.clone()));
    let second = thread::spawn(work(done, count));
    join_all(vec![first, second]);
}

/// Sender and receiver both believe that the value is theirs.
fn oneshot() {
    const SENT: usize = 1;
    const CLOSED: usize = 2;
    let state = Arc::new(AtomicUsize::new(0));
    let takers = Arc::new(AtomicUsize::new(0));
    let (their_state, their_takers) = (state.clone(), takers.clone());
    let sender = thread::spawn(move || {
        if their_state.fetch_or(SENT, SeqCst) & CLOSED != 0 {
            assert_eq!(their_takers.fetch_add(1, SeqCst), 0, "taken twice");
        }
    });
    state.fetch_or(CLOSED, SeqCst);
    if state.load(SeqCst) & SENT != 0 {
        assert_eq!(takers.fetch_add(1, SeqCst), 0, "taken twice");
    }
    sender.join().unwrap();
}

/// Every philosopher takes the fork to the right first.
fn philosophers(n: usize) {
    let forks: Arc<Vec<Mutex<()>>> = Arc::new((0..n).map(|_| Mutex::new(())).collect());
    let eat = |i: usize, forks: Arc<Vec<Mutex<()>>>| {
        move || {
            let _right = forks[i].lock().unwrap();
            let _left = forks[(i + 1) % n].lock().unwrap();
        }
    };
    let all = (0..n).map(|i| thread::spawn(eat(i, forks.clone())));
    join_all(all.collect());
}

/// One thread must be held back for the whole length of another one's work.
fn late_reset() {
    let phase = Arc::new(AtomicUsize::new(0));
    let mine = phase.clone();
    let worker = thread::spawn(move || {
        for i in 1..=10 {
            mine.store(i, SeqCst);
        }
    });
    let seen = phase.load(SeqCst);
    if seen == 0 {
        phase.store(0, SeqCst);
        assert_ne!(
            phase.load(SeqCst),
            10,
            "the reset was overtaken by all of the work"
        );
    }
    worker.join().unwrap();
}

/// A hand-over of four steps that must come in one order.
fn needle() {
    let step = Arc::new(AtomicUsize::new(0));
    let walk = |at: usize, step: Arc<AtomicUsize>| {
        move || {
            let _ = step.compare_exchange(at, at + 1, SeqCst, SeqCst);
        }
    };
    let all: Vec<_> = (0..4)
        .rev()
        .map(|at| thread::spawn(walk(at, step.clone())))
        .collect();
    join_all(all);
    assert_ne!(step.load(SeqCst), 4, "all four steps in order");
}
