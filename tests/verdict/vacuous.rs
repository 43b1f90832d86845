//! Is it said that a test tests nothing, although it passes?
// The feature has other signatures, and `loom_signatures` tests those.

use std::sync::atomic::Ordering::SeqCst;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use dpor::{Algorithm, Builder, Vacuous, thread};

use crate::children::process_of;

fn vacuous(f: fn()) -> Option<Vacuous> {
    Builder::new().explore(f).expect("nothing fails").vacuous
}

/// A value that two threads share, and that each of them uses in its way.
fn shares<T: Send + Sync + 'static>(value: T, one: fn(&T), other: fn(&T)) {
    let value = Arc::new(value);
    let theirs = value.clone();
    let thread = thread::spawn(move || other(&theirs));
    one(&value);
    thread.join().unwrap();
}

fn counts_with_std() {
    let add = |count: &std::sync::atomic::AtomicUsize| _ = count.fetch_add(1, SeqCst);
    shares(std::sync::atomic::AtomicUsize::new(0), add, add);
}

fn reads() {
    let read = |x: &AtomicUsize| _ = x.load(SeqCst);
    shares(AtomicUsize::new(0), read, read);
}

fn uses_two_atomics() {
    shares(
        [const { AtomicUsize::new(0) }; 2],
        |them| them[0].store(1, SeqCst),
        |them| them[1].store(1, SeqCst),
    );
}

fn hands_over_by_spawn_and_join() {
    let x = Arc::new(AtomicUsize::new(0));
    x.store(1, SeqCst);
    let theirs = x.clone();
    thread::spawn(move || {
        let inner = theirs.clone();
        thread::spawn(move || inner.fetch_add(1, SeqCst))
            .join()
            .unwrap();
        theirs.fetch_add(1, SeqCst);
    })
    .join()
    .unwrap();
    assert_eq!(x.load(SeqCst), 3);
}

fn shares_an_arc_only() {
    let x = Arc::new(vec![1]);
    thread::scope(|scope| {
        for _ in 0..2 {
            let theirs = x.clone();
            scope.spawn(move || drop(theirs));
        }
    });
}

#[test]
fn threads_that_never_meet_test_nothing() {
    for f in [
        counts_with_std,
        reads,
        uses_two_atomics,
        hands_over_by_spawn_and_join,
        shares_an_arc_only,
    ] {
        assert_eq!(vacuous(f), Some(Vacuous::NoConflict));
    }
}

fn sends_and_receives() {
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || sender.send(1).unwrap());
    assert_eq!(receiver.recv(), Ok(1));
    other.join().unwrap();
}

fn parks() {
    let main = thread::current();
    let other = thread::spawn(move || main.unpark());
    thread::park();
    other.join().unwrap();
}

fn meets_at_a_barrier() {
    let wait = |barrier: &Barrier| _ = barrier.wait();
    shares(Barrier::new(2), wait, wait);
}

fn locks() {
    let lock = |x: &Mutex<u8>| *x.lock().unwrap() += 1;
    shares(Mutex::new(0), lock, lock);
}

fn reads_under_a_lock_that_is_written() {
    let (read, write) = (
        |x: &RwLock<u8>| drop(x.read()),
        |x: &RwLock<u8>| drop(x.write()),
    );
    shares(RwLock::new(0), read, write);
}

fn initialises() {
    let call = |once: &Once| once.call_once(|| ());
    shares(Once::new(), call, call);
}

fn notifies_under_the_lock() {
    shares(
        (Mutex::new(false), Condvar::new()),
        |(set, condvar)| {
            let mut set = set.lock().unwrap();
            while !*set {
                set = condvar.wait(set).unwrap();
            }
        },
        |(set, condvar)| {
            *set.lock().unwrap() = true;
            condvar.notify_one();
        },
    );
}

fn stores_and_loads() {
    shares(
        AtomicUsize::new(0),
        |x| x.store(1, SeqCst),
        |x| _ = x.load(SeqCst),
    );
}

fn waits_for_the_end() {
    let other = thread::spawn(|| ());
    while !other.is_finished() {
        thread::yield_now();
    }
}

fn awaits_a_task() {
    let task = dpor::future::spawn(async { 1 });
    assert_eq!(dpor::future::block_on(task), 1);
}

struct Watched(UnsafeCell<u8>);

// SAFETY: the threads only read.
unsafe impl Sync for Watched {}

/// The race detector checks that the threads only read.
fn reads_a_cell() {
    // SAFETY: the threads only read.
    let read = |cell: &Watched| _ = cell.0.with(|it| unsafe { *it });
    shares(Watched(UnsafeCell::new(1)), read, read);
}

fn has_one_thread() {
    let x = AtomicUsize::new(0);
    x.store(dpor::choose(1), SeqCst);
}

#[test]
fn threads_that_meet_test_their_order_even_if_there_is_but_one() {
    for f in [
        sends_and_receives,
        parks,
        meets_at_a_barrier,
        locks,
        reads_under_a_lock_that_is_written,
        initialises,
        notifies_under_the_lock,
        stores_and_loads,
        waits_for_the_end,
        awaits_a_task,
        reads_a_cell,
        has_one_thread,
    ] {
        assert_eq!(vacuous(f), None);
    }
}

#[test]
fn an_exploration_without_an_operation_or_an_execution_is_told_apart() {
    assert_eq!(vacuous(|| ()), Some(Vacuous::NoOperation));
    assert_eq!(vacuous(|| dpor::assume(false)), Some(Vacuous::NoExecution));
    let told = "no two operations of different threads conflict";
    assert_eq!(Vacuous::NoConflict.to_string(), told);
}

#[test]
fn nothing_is_claimed_of_a_part_of_the_executions() {
    let mut builder = Builder::new();
    builder.max_permutations = Some(1);
    let chooses = || {
        if dpor::choose(2) == 1 {
            locks();
        } else {
            reads();
        }
    };
    assert_eq!(builder.check(chooses).vacuous, None);
    let mut builder = Builder::new();
    (builder.algorithm, builder.iterations) = (Algorithm::Random, 1);
    assert_eq!(builder.check(reads).vacuous, None);
    let mut builder = Builder::new();
    builder.replay = Some("v2 main".to_owned());
    assert_eq!(builder.check(reads).vacuous, None);
}

/// Not tests of their own: what the tests below run.
#[test]
fn child_that_never_meets() {
    if std::env::var_os("DPOR_TEST_VACUOUS").is_some() {
        Builder::new().check(reads);
        Builder::new().check(uses_two_atomics);
    }
}

#[test]
fn child_that_does_nothing() {
    if std::env::var_os("DPOR_TEST_VACUOUS").is_some() {
        for _ in 0..2 {
            Builder::new().check(|| ());
        }
        Builder::new().check(|| ());
    }
}

#[test]
fn a_test_that_tests_nothing_says_so_once_past_the_capture() {
    let said = |shown: bool| {
        let mut child = process_of("vacuous::child_that_never_meets");
        child.arg("vacuous::child_that_does_nothing");
        if shown {
            child.arg("--nocapture");
        }
        let child = child
            .env_remove("RUST_TEST_NOCAPTURE")
            .env("DPOR_TEST_VACUOUS", "1")
            .output()
            .unwrap();
        assert!(child.status.success());
        String::from_utf8(child.stderr).unwrap()
    };
    let conflict = "dpor: the model at tests/verdict/vacuous.rs:";
    let conflict_ends = " ran 2 threads, and no two of their operations conflict, so there is one execution and no order \
                         to test: are the imports of all that they share swapped?";
    let nothing = " did nothing that can be seen: is the crate built with `--cfg dpor`, and are its imports swapped?";
    let text = said(false);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.lines().all(|line| line.starts_with(conflict)),
        "{text}"
    );
    for end in [conflict_ends, nothing] {
        assert_eq!(text.matches(end).count(), 1, "{text}");
    }
    let text = said(true);
    for end in [conflict_ends, nothing] {
        assert_eq!(text.matches(end).count(), 2, "{text}");
    }
}
