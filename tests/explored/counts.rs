//! Do live closures have the numbers of executions that their programs have?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};

/// Explores `f` completely; gives the number of executions.
fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().check(f);
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    report.executions
}

/// Runs `threads` copies of `body`, which get their number from 0, and joins them.
fn run(threads: usize, body: impl Fn(usize) + Clone + Send + 'static) {
    let handles: Vec<_> = (0..threads)
        .map(|i| {
            let body = body.clone();
            thread::spawn(move || body(i))
        })
        .collect();
    for handle in handles {
        handle.join().expect("no thread panics");
    }
}

#[test]
fn threads_that_do_nothing_have_one_execution() {
    for threads in 1..=10 {
        assert_eq!(count(move || run(threads, |_| ())), 1);
    }
}

#[test]
fn threads_that_lock_have_one_execution_per_order() {
    for (threads, orders) in [(1, 1), (2, 2), (3, 6), (4, 24)] {
        let body = move || {
            let total = Arc::new(Mutex::new(0));
            let shared = total.clone();
            run(threads, move |_| *shared.lock().unwrap() += 1);
            assert_eq!(*total.lock().unwrap(), threads);
        };
        assert_eq!(count(body), orders);
    }
}

#[test]
fn readers_of_one_atomic_have_one_execution() {
    for threads in 1..=8 {
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(threads, move |_| assert_eq!(x.load(SeqCst), 0));
        };
        assert_eq!(count(body), 1);
    }
}

#[test]
fn statics_start_from_their_initial_value_in_every_execution() {
    struct Counter(AtomicUsize);
    impl Counter {
        const fn new() -> Counter {
            Counter(AtomicUsize::new(40))
        }
    }
    static COUNTER: Counter = Counter::new();
    static TOTAL: Mutex<u32> = Mutex::new(0);
    for _ in 0..2 {
        let body = || {
            run(2, |_| {
                COUNTER.0.fetch_add(1, SeqCst);
                *TOTAL.lock().unwrap() += 1;
            });
            assert_eq!(COUNTER.0.load(SeqCst), 42);
            assert_eq!(*TOTAL.lock().unwrap(), 2);
        };
        assert_eq!(count(body), 4);
    }
}

#[test]
fn a_boxed_slice_first_touched_by_racing_threads_has_stable_names() {
    for _ in 0..2 {
        let body = || {
            let slots: Arc<Box<[AtomicUsize]>> =
                Arc::new((0..2).map(|_| AtomicUsize::new(0)).collect());
            run(2, move |i| {
                slots[i].store(1, SeqCst);
                slots[1 - i].load(SeqCst);
            });
        };
        assert_eq!(count(body), 3);
    }
}

#[test]
fn threads_that_spawn_in_either_order_keep_their_names() {
    // Were the inner threads named in the order of their spawns, a sleeping one would be taken for the
    // other as soon as the order changes.
    let body = || {
        let x = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let outer: Vec<_> = (1..=2)
            .map(|i| {
                let x = x.clone();
                thread::spawn(move || {
                    x.1.store(i, SeqCst);
                    let y = x.clone();
                    let inner = thread::spawn(move || y.0.store(i, SeqCst));
                    inner.join().unwrap();
                })
            })
            .collect();
        for thread in outer {
            thread.join().unwrap();
        }
    };
    // Two orders of each pair of stores.
    assert_eq!(count(body), 4);
}

/// So many steps on what nobody else has.
fn on_its_own(steps: usize) {
    let own = AtomicUsize::new(0);
    for step in 0..steps / 2 {
        own.store(step, SeqCst);
        assert_eq!(own.load(SeqCst), step);
    }
}

#[test]
fn what_threads_do_on_their_own_makes_no_difference_however_long_it_takes() {
    for steps in [0, 100, 6_000] {
        // Both have done much when the first thing turns out to be shared, and much is to come.
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(2, move |i| {
                on_its_own(steps);
                if i == 0 {
                    x.load(SeqCst);
                } else {
                    x.store(1, SeqCst);
                }
                on_its_own(steps);
            });
        };
        assert_eq!(count(body), 2, "{steps}");
        // The third of three additions is behind all that the others do on their own.
        let body = move || {
            let x = Arc::new(AtomicUsize::new(0));
            run(2, move |i| {
                x.fetch_add(1, SeqCst);
                on_its_own(steps);
                if i == 1 {
                    x.fetch_add(1, SeqCst);
                }
            });
        };
        assert_eq!(count(body), 3, "{steps}");
    }
}

#[test]
fn every_algorithm_finds_the_same_traces_of_a_live_closure() {
    use dpor::Algorithm::*;
    for algorithm in [Optimal, Source, Classic, SleepSets] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let x = Arc::new(AtomicUsize::new(0));
            run(2, move |_| {
                let seen = x.load(SeqCst);
                x.store(seen + 1, SeqCst);
            });
        });
        assert_eq!(report.executions, 4, "{algorithm:?}");
        assert!(report.complete);
    }
}

#[test]
fn objects_on_the_stacks_of_two_threads_are_two() {
    // The second thread begins when the first has ended. It does not get that stack before the next execution.
    let body = || {
        for _ in 0..2 {
            let local = || {
                let x = AtomicUsize::new(0);
                x.store(1, SeqCst);
                x.load(SeqCst)
            };
            assert_eq!(thread::spawn(local).join().unwrap(), 1);
        }
    };
    assert_eq!(count(body), 1);
    let body = || {
        run(3, |_| {
            let x = AtomicUsize::new(0);
            x.store(0, SeqCst);
        });
    };
    assert_eq!(count(body), 1);
}

#[test]
fn what_was_written_through_a_pointer_decides_how_an_operation_comes_out() {
    // If the exchange did not find the value, it would only read, and commute with the load.
    let body = || {
        let x = AtomicUsize::new(0);
        x.load(SeqCst);
        // SAFETY: nobody else knows of the atomic yet.
        unsafe { *x.as_ptr() = 5 };
        thread::scope(|scope| {
            scope.spawn(|| x.compare_exchange(5, 6, SeqCst, SeqCst));
            x.load(SeqCst);
        });
    };
    assert_eq!(count(body), 2);
}

/// Its block has the size and alignment of the one that `generator` allocates once for each OS thread.
#[repr(align(128))]
struct Wide(AtomicUsize);

#[test]
fn what_the_first_execution_of_an_os_thread_allocates_is_none_of_the_programs_blocks() {
    let explored = std::thread::spawn(|| {
        count(|| {
            let wide = Arc::new(Wide(AtomicUsize::new(0)));
            let shared = wide.clone();
            let other = thread::spawn(move || shared.0.fetch_or(1, SeqCst));
            wide.0.load(SeqCst);
            other.join().expect("no thread panics");
        })
    });
    assert_eq!(explored.join().expect("it is deterministic"), 2);
}
