//! Is the execution that is shown simpler than the one that was found, and does it fail in the same way?

use std::panic::catch_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicIsize, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, Failure, thread};

use super::failure;

/// Two words that are written by each of two threads and read in between; `told` is what a panic says of them.
fn torn(told: fn(usize, usize) -> String) -> impl Fn() + Send + Sync + 'static {
    move || {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let writers = [1, 2].map(|value| {
            let words = words.clone();
            thread::spawn(move || words.each_ref().map(|word| word.store(value, SeqCst)))
        });
        let [first, second] = words.each_ref().map(|word| word.load(SeqCst));
        if first > second {
            panic!("{}", told(first, second));
        }
        for writer in writers {
            writer.join().unwrap();
        }
    }
}

#[test]
fn a_simpler_execution_that_fails_with_other_values_is_shown_and_raised() {
    let words = |first, second| format!("{first} is not {second}");
    let model = || Builder::new();
    let mut as_found = model();
    as_found.simplify = 0;
    let found = as_found.explore(torn(words)).expect_err("it fails");
    let shown = model().explore(torn(words)).expect_err("it fails");
    let first = |failure: &Failure| failure.to_string().lines().nth(1).unwrap().to_owned();
    assert_ne!(first(&found), first(&shown));
    assert!(shown.events().len() < found.events().len());
    let raised = catch_unwind(|| model().check(torn(words))).expect_err("it fails");
    assert_eq!(raised.downcast_ref::<String>(), Some(&first(&shown)));
}

#[test]
fn a_simpler_execution_that_fails_with_other_words_is_another_failure() {
    let words = |first: usize, second| format!("{} and {}", "x".repeat(first), "y".repeat(second));
    let mut as_found = Builder::new();
    as_found.simplify = 0;
    let found = as_found.explore(torn(words)).expect_err("it fails");
    let shown = failure(torn(words));
    let first = |failure: &Failure| failure.to_string().lines().nth(1).unwrap().to_owned();
    assert_eq!(first(&found), first(&shown));
}

#[test]
fn a_failure_that_needs_many_switches_is_shown_without_those_that_it_does_not_need() {
    // A deque from which its owner takes the last item without a compare-exchange: that takes three
    // preemptions, of the owner and of one thief. The other thief has no part in it.
    let steal = || {
        let deque = Arc::new((AtomicIsize::new(0), AtomicIsize::new(2)));
        let thieves = [(); 2].map(|()| {
            let deque = deque.clone();
            thread::spawn(move || {
                let (top, bottom) = &*deque;
                let at = top.load(SeqCst);
                let any = at < bottom.load(SeqCst);
                any && top.compare_exchange(at, at + 1, SeqCst, SeqCst).is_ok()
            })
        });
        let pop = || {
            let (top, bottom) = &*deque;
            let at = bottom.load(SeqCst) - 1;
            bottom.store(at, SeqCst);
            let first = top.load(SeqCst);
            if first == at {
                top.store(at + 1, SeqCst);
            }
            if first >= at {
                bottom.store(at + 1, SeqCst);
            }
            first <= at
        };
        let popped = [pop(), pop()];
        let stolen = thieves.map(|thief| thief.join().unwrap());
        let taken = popped.into_iter().chain(stolen).filter(|&taken| taken);
        assert!(taken.count() <= 2, "an item was taken twice");
    };
    let mut as_found = Builder::new();
    as_found.simplify = 0;
    let found = as_found.explore(steal).expect_err("it fails");
    let shown = failure(steal);
    let turns = |failure: &Failure| failure.schedule().split(' ').skip(1).count();
    assert_eq!(turns(&shown), 6, "{}", shown.schedule());
    assert!(turns(&found) > 6, "{}", found.schedule());
}

/// Each of the stores is seen in an execution that fails, and those who come first in the search have all of them.
#[test]
fn of_several_executions_that_fail_the_simplest_is_shown() {
    let late = || {
        let stored = Arc::new(AtomicUsize::new(0));
        let theirs = stored.clone();
        let other = thread::spawn(move || (1..=3).for_each(|it| theirs.store(it, SeqCst)));
        assert_eq!(stored.load(SeqCst), 0, "it looks too late");
        other.join().unwrap();
    };
    assert_eq!(failure(late).schedule(), "v2 main*2 main.1 main");
}

#[test]
fn with_nothing_simplified_the_closure_runs_once_for_each_execution() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    fn panics() {
        panic!("at once");
    }
    fn deadlocks() {
        let lock = Mutex::new(());
        let _held = lock.lock();
        drop(lock.lock());
    }
    /// What another thread may have freed, or be writing.
    struct Borrowed(*mut UnsafeCell<usize>);
    // SAFETY: whether it may be used is what is to be found; the model keeps the memory.
    unsafe impl Send for Borrowed {}
    impl Borrowed {
        fn write(&self) {
            // SAFETY: as above.
            unsafe { (*self.0).with_mut(|value| *value = 1) }
        }
    }
    fn races() {
        let cell = Box::leak(Box::new(UnsafeCell::new(0)));
        let theirs = Borrowed(cell);
        let thread = thread::spawn(move || theirs.write());
        Borrowed(cell).write();
        thread.join().unwrap();
    }
    fn uses_freed_memory() {
        let mut cell = Box::new(UnsafeCell::new(0));
        let borrowed = Borrowed(&raw mut *cell);
        thread::spawn(move || drop(cell)).join().unwrap();
        borrowed.write();
    }
    for f in [panics, deadlocks, races, uses_freed_memory] as [fn(); 4] {
        let runs = |simplify| {
            RUNS.store(0, SeqCst);
            let mut builder = Builder::new();
            builder.simplify = simplify;
            builder.check_leaks = false;
            let explored = builder.explore(move || {
                RUNS.fetch_add(1, SeqCst);
                f();
            });
            let failure = explored.expect_err("it fails");
            let text = failure.to_string();
            assert!(text.contains("(execution 1,"), "{text}");
            (RUNS.load(SeqCst), text)
        };
        let (times, text) = runs(0);
        assert_eq!(times, 1, "{text}");
        assert!(runs(200).0 > 1, "{text}");
    }
}

/// The events of an execution in which [`fails_early`] does not fail.
const ROUNDS: u64 = 60_000;

/// Fails behind a few events, or makes many more.
fn fails_early(events: &'static AtomicU64) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            assert_eq!(theirs[0].load(SeqCst), 0, "it was set");
            for _ in 0..ROUNDS {
                events.fetch_add(1, SeqCst);
                theirs[1].fetch_add(1, SeqCst);
            }
        });
        shared[0].store(1, SeqCst);
        other.join().unwrap();
    }
}

#[test]
fn no_execution_is_tried_that_is_much_longer_than_the_one_that_failed() {
    static EVENTS: AtomicU64 = AtomicU64::new(0);
    let failure = failure(fails_early(&EVENTS));
    assert!(failure.to_string().contains("it was set"), "{failure}");
    // Of the two executions that are cut off, one tells whether the test passes with a pair of
    // operations in the other order: that takes the whole budget. A thread that is cut off makes
    // some 10,000 operations more.
    let events = EVENTS.load(SeqCst);
    assert!(events <= 250 * 200 + 2 * 10_100, "{events} events besides");
}
