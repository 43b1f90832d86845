//! Do orders of search change what comes early, and nothing else?

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::orders::ORDERS;
use crate::support::bugs::BUGS;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Condvar, Mutex as Lock, RwLock, mpsc};
use dpor::{Algorithm, Builder, FailureKind, Limit, Order, Report, Verdict, thread};

fn builder(order: Order) -> Builder {
    let mut builder = Builder::new();
    builder.order = order;
    // The closures count what the first pass sees.
    builder.thorough = dpor::Thorough::Off;
    builder
}

/// What came of the executions of a program, with how often.
type Seen = BTreeMap<String, u32>;

/// What `program` comes to in this order, and after how many executions.
fn seen(order: Order, program: fn() -> String) -> (Seen, u64) {
    let seen = Arc::new(Mutex::new(Seen::new()));
    let mine = seen.clone();
    let report = builder(order).check(move || {
        let outcome = program();
        *mine.lock().unwrap().entry(outcome).or_default() += 1;
    });
    assert_eq!(report.verdict, Verdict::Complete, "{report}");
    assert_eq!(report.pruned, 0, "{report}");
    assert_eq!(report.estimate, Some(report.executions as f64), "{report}");
    let seen = seen.lock().unwrap().clone();
    (seen, report.executions)
}

/// Two senders, a receiver that looks, and one that waits.
fn queue() -> String {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    let one = thread::spawn(move || sender.send(1).unwrap());
    let two = thread::spawn(move || other.send(2).unwrap());
    let found = (
        receiver.try_recv().ok(),
        receiver.recv().ok(),
        receiver.try_recv().ok(),
    );
    one.join().unwrap();
    two.join().unwrap();
    format!("{found:?}")
}

/// Two threads wait for their turn, and log whether they had to.
fn turns() -> String {
    let turn = Arc::new((Lock::new(0), Condvar::new()));
    let log = Arc::new(Lock::new(Vec::new()));
    let wait = |me: usize| {
        let (turn, log) = (turn.clone(), log.clone());
        move || {
            let mut now = turn.0.lock().unwrap();
            let mut rounds = 0;
            while *now == 0 {
                now = turn.1.wait(now).unwrap();
                rounds += 1;
            }
            log.lock().unwrap().push((me, rounds));
        }
    };
    let threads = [0, 1].map(|me| thread::spawn(wait(me)));
    *turn.0.lock().unwrap() += 1;
    turn.1.notify_all();
    for thread in threads {
        thread.join().unwrap();
    }
    format!("{:?}", log.lock().unwrap())
}

/// Readers and a writer of a lock, and of what is beside it.
fn readers() -> String {
    let lock = Arc::new(RwLock::new(0));
    let beside = Arc::new(AtomicUsize::new(0));
    let read = || {
        let (lock, beside) = (lock.clone(), beside.clone());
        move || (*lock.read().unwrap(), beside.fetch_add(1, SeqCst))
    };
    let threads = [thread::spawn(read()), thread::spawn(read())];
    *lock.write().unwrap() += 1;
    let here = beside.swap(7, SeqCst);
    let found = threads.map(|thread| thread.join().unwrap());
    format!("{found:?} {here}")
}

/// A thread that parks for a while if it is told to, unparked by two others, and what it sees then.
fn parking() -> String {
    let told = dpor::choose(2);
    let x = Arc::new(AtomicUsize::new(0));
    let mine = x.clone();
    let parked = thread::spawn(move || {
        if told == 1 {
            thread::park_timeout(Duration::from_secs(1));
        }
        mine.load(SeqCst)
    });
    let (other, theirs) = (parked.thread().clone(), x.clone());
    let one = thread::spawn(move || {
        theirs.fetch_add(1, SeqCst);
        other.unpark();
    });
    x.fetch_add(2, SeqCst);
    parked.thread().unpark();
    one.join().unwrap();
    format!("{told} {}", parked.join().unwrap())
}

#[test]
fn every_order_comes_to_the_same_outcomes_as_often_as_depth_first() {
    for (name, program) in [
        ("queue", queue as fn() -> String),
        ("turns", turns),
        ("readers", readers),
        ("parking", parking),
    ] {
        let (expected, executions) = seen(Order::DepthFirst, program);
        assert!(executions > 4, "{name} has {executions} executions");
        for order in ORDERS {
            let found = seen(order, program);
            assert_eq!(found, (expected.clone(), executions), "{name}, {order:?}");
        }
    }
}

#[test]
fn a_race_at_the_beginning_is_reversed_early_although_much_comes_after_it() {
    let (_, bug, _) = BUGS
        .into_iter()
        .find(|(name, ..)| name.starts_with("early"))
        .unwrap();
    let within = |order, executions| {
        let mut builder = builder(order);
        builder.max_permutations = Some(executions);
        builder.explore(bug).is_err()
    };
    // Five threads that add have 120 orders, which come first here.
    assert!(!within(Order::DepthFirst, 120));
    assert!(within(Order::DepthFirst, 121));
    for order in &ORDERS[1..] {
        assert!(within(*order, 10), "{order:?}");
    }
}

/// The failures of a bug, by kind and first line.
fn failures(order: Order, bug: fn()) -> BTreeMap<String, u32> {
    let mut builder = builder(order);
    builder.max_failures = usize::MAX;
    builder.simplify = 0;
    let mut found = BTreeMap::new();
    if let Err(first) = builder.explore(bug) {
        for failure in [&*first].into_iter().chain(first.others()) {
            *found.entry(format!("{:?}", failure.kind())).or_default() += 1;
        }
    }
    found
}

#[test]
fn a_choice_among_thousands_has_an_execution_for_each_in_every_order() {
    for order in ORDERS {
        let report = builder(order).check(|| assert!(dpor::choose(3_000) < 3_000));
        assert_eq!(report.executions, 3_000, "{order:?}");
    }
}

#[test]
fn the_failures_of_a_bug_are_the_same_in_every_order() {
    for (name, bug, _) in BUGS {
        let expected = failures(Order::DepthFirst, bug);
        assert!(!expected.is_empty(), "{name} fails");
        for order in ORDERS {
            assert_eq!(failures(order, bug), expected, "{name}, {order:?}");
        }
    }
}

/// A failure in the middle of an execution: the second half is not to be begun after a first half
/// that failed.
fn checked_in_the_middle() {
    let x = Arc::new(AtomicUsize::new(0));
    let add = |x: Arc<AtomicUsize>| {
        move || {
            for _ in 0..2 {
                let seen = x.load(SeqCst);
                x.store(seen + 1, SeqCst);
                assert!(x.load(SeqCst) > seen, "went back");
            }
        }
    };
    let threads = [(); 2].map(|()| thread::spawn(add(x.clone())));
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn an_execution_that_fails_before_the_end_of_its_branch_ends_nothing_else() {
    for order in ORDERS {
        let found = failures(order, checked_in_the_middle);
        assert_eq!(
            found,
            BTreeMap::from([("Panic".to_owned(), 1)]),
            "{order:?}"
        );
    }
}

#[test]
fn a_test_that_is_not_deterministic_is_told_in_every_order() {
    for order in ORDERS {
        let runs = AtomicU64::new(0);
        let found = builder(order).explore(move || {
            let first = runs.fetch_add(1, SeqCst) == 0;
            let [x, y] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let other = if first { x.clone() } else { y };
            let thread = thread::spawn(move || other.load(SeqCst));
            x.store(1, SeqCst);
            thread.join().unwrap();
        });
        let failure = found.expect_err("the second execution differs");
        assert_eq!(failure.kind(), FailureKind::NotDeterministic, "{order:?}");
    }
}

#[test]
fn executions_are_booked_at_the_same_places_in_every_order() {
    let places = ORDERS.map(|order| {
        let report = builder(order).check(|| {
            let [x, y] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let (mine, other) = (x.clone(), y.clone());
            let thread = thread::spawn(move || {
                mine.store(1, SeqCst);
                for _ in 0..4 {
                    other.fetch_add(1, SeqCst);
                }
            });
            x.load(SeqCst);
            for _ in 0..4 {
                y.fetch_add(1, SeqCst);
            }
            thread.join().unwrap();
        });
        let places = report.hotspots.into_iter();
        places.map(|it| (it.place(), it.executions))
    });
    let [depth_first, others @ ..] = places.map(Iterator::collect::<Vec<_>>);
    let booked: Vec<u64> = depth_first.iter().map(|place| place.1).collect();
    assert_eq!(booked, [69, 69, 1], "all of 140 but the first");
    for other in others {
        assert_eq!(other, depth_first);
    }
}

#[test]
fn a_part_that_is_not_explored_is_not_explored_in_any_order() {
    for order in ORDERS {
        let report = builder(order).check(|| {
            let x = Arc::new(AtomicUsize::new(0));
            dpor::stop_exploring();
            let add = |x: Arc<AtomicUsize>| move || x.fetch_add(1, SeqCst);
            let threads = [(); 3].map(|()| thread::spawn(add(x.clone())));
            for thread in threads {
                thread.join().unwrap();
            }
            dpor::explore();
            let threads = [(); 3].map(|()| thread::spawn(add(x.clone())));
            for thread in threads {
                thread.join().unwrap();
            }
        });
        assert_eq!(
            (report.executions, report.verdict),
            (6, Verdict::Marked),
            "{order:?}"
        );
    }
}

#[test]
fn what_is_planned_counts_as_memory() {
    for order in &ORDERS[1..] {
        let mut builder = builder(*order);
        builder.max_memory = Some(1000);
        builder.algorithm = Algorithm::Optimal;
        let report = builder.check(|| drop(queue()));
        assert_eq!(
            report.verdict,
            Verdict::Stopped(Limit::Memory(1000)),
            "{order:?}: {report}"
        );
        assert!(report.executions < 20, "{report}");
    }
}

#[test]
#[should_panic(expected = "the order `stride` (DPOR_ORDER) is one of the algorithm `optimal`")]
fn an_order_of_an_algorithm_that_has_none_is_refused() {
    let mut builder = builder(Order::Stride);
    builder.algorithm = Algorithm::Source;
    builder.check(|| {});
}

#[test]
#[should_panic(
    expected = "has no meaning with preemption_bound = 1 (DPOR_MAX_PREEMPTIONS); unset one of the two"
)]
fn an_order_within_a_bound_on_preemptions_is_refused() {
    let mut builder = builder(Order::ConflictFirst);
    builder.preemption_bound = Some(1);
    builder.check(|| {});
}

/// A place for a checkpoint that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("dpor-{}-orders-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Explores [`readers`] for 7 executions, from where the checkpoint is.
fn part(file: &Scratch, order: Order, seen: &Arc<Mutex<Seen>>) -> Report {
    let mut builder = builder(order);
    builder.checkpoint_file = Some(file.0.clone());
    builder.max_permutations = Some(7);
    let seen = seen.clone();
    builder.check(move || *seen.lock().unwrap().entry(readers()).or_default() += 1)
}

#[test]
fn an_exploration_in_parts_is_the_same_as_one_in_a_piece_in_every_order() {
    let (whole, executions) = seen(Order::DepthFirst, readers);
    for order in ORDERS {
        let file = Scratch::new("parts");
        let seen = Arc::new(Mutex::new(Seen::new()));
        let mut parts = 1;
        let last = loop {
            let report = part(&file, order, &seen);
            if report.complete {
                break report;
            }
            assert_eq!(report.verdict, Verdict::Stopped(Limit::Permutations(7)));
            parts += 1;
        };
        assert_eq!(*seen.lock().unwrap(), whole, "{order:?}");
        assert_eq!(last.executions, executions, "{order:?}");
        assert_eq!(last.estimate, Some(executions as f64), "{order:?}");
        assert_eq!(parts, executions.div_ceil(7), "{order:?}");
    }
}

#[test]
#[should_panic(expected = "was written with the setting order stride, and not order bit_reversal")]
fn a_checkpoint_of_another_order_is_refused() {
    let file = Scratch::new("other");
    let seen = Arc::new(Mutex::new(Seen::new()));
    for order in [Order::Stride, Order::BitReversal] {
        part(&file, order, &seen);
    }
}
