//! Which bugs are planted, to see how soon they are found?
//!
//! These are made up, each hard for another way to search; those of `tests/real_bugs` join them.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Mutex;
use dpor::sync::atomic::AtomicUsize;
use dpor::thread;

/// A named program that fails in some executions, and how many preemptions that takes.
pub type Bug = (&'static str, fn(), usize);

/// All of them.
pub const BUGS: [Bug; 5] = [
    ("lost update, 3 threads", || lost_update(3), 1),
    ("philosophers(3) deadlock", || philosophers(3), 1),
    ("late reset", late_reset, 1),
    ("needle among 4 threads", needle, 0),
    ("early look, then a crowd", early_look, 1),
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

/// Two looks at the beginning, and many orders of what comes later and does not matter.
fn early_look() {
    let [first, second] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let (one, two) = (first.clone(), second.clone());
    let setter = thread::spawn(move || {
        one.store(1, SeqCst);
        two.store(1, SeqCst);
    });
    let seen = (first.load(SeqCst), second.load(SeqCst));
    let crowd = Arc::new(AtomicUsize::new(0));
    let add = |crowd: Arc<AtomicUsize>| move || crowd.fetch_add(1, SeqCst);
    let all: Vec<_> = (0..5).map(|_| thread::spawn(add(crowd.clone()))).collect();
    for handle in all {
        handle.join().unwrap();
    }
    setter.join().unwrap();
    assert_ne!(seen, (0, 1), "the second was set between the two looks");
}
