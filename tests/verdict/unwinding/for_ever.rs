//! What becomes of a destructor that waits for ever, and of what destructors do in the end?

use pretty_assertions::assert_eq;

use super::*;

/// Whether somebody is still taken to unwind, which is said of nobody in this model.
fn nobody_unwinds() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let lock = Mutex::new(());
    assert!(!thread::panicking());
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _guard = lock.lock().unwrap();
        panic!("caught")
    }));
    assert!(caught.is_err() && lock.is_poisoned());
}

/// Executions that are tried for the report of a short failure have few events, and a test may set
/// a low limit. The operations of a destructor that has an end come to that end in both.
#[test]
fn a_destructor_with_an_end_comes_to_it_however_short_the_failure_is() {
    use std::sync::atomic::AtomicUsize as Count;

    static BEGUN: Count = Count::new(0);
    static ENDED: Count = Count::new(0);
    for limit in [None, Some(20)] {
        let mut builder = Builder::new();
        builder.max_branches = limit.unwrap_or(builder.max_branches);
        let failure = builder.explore(|| {
            let flag = AtomicBool::new(false);
            let _reads = Finally(|| {
                BEGUN.fetch_add(1, SeqCst);
                for _ in 0..30 {
                    flag.load(SeqCst);
                }
                ENDED.fetch_add(1, SeqCst);
            });
            let lock = Arc::new(Mutex::new(()));
            let theirs = lock.clone();
            thread::spawn(move || std::mem::forget(theirs.lock().unwrap()));
            drop(lock.lock().unwrap());
            thread::park();
        });
        let failure = failure.expect_err("a thread waits for ever");
        assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
        assert_eq!(BEGUN.load(SeqCst), ENDED.load(SeqCst), "{limit:?}");
        assert!(ENDED.load(SeqCst) > 0);
    }
}

#[test]
fn a_destructor_that_waits_for_ever_is_forgotten_with_its_model() {
    let waits = || {
        let flag = AtomicBool::new(false);
        Finally(move || {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        })
    };
    panics(move || {
        let _waits = waits();
        panic!("broken");
    });
    assert!(!thread::panicking());
    assert!(Builder::new().check(nobody_unwinds).complete);
    fails(FailureKind::Deadlock, move || {
        let _threads = [waits(), waits()].map(|waits| {
            thread::spawn(|| {
                let _waits = waits;
                thread::park();
            })
        });
        thread::park();
    });
    assert!(!thread::panicking());
    assert!(Builder::new().check(nobody_unwinds).complete);
}

#[test]
fn a_destructor_that_waits_for_ever_is_forgotten_with_its_execution() {
    let report = Builder::new().check(|| {
        let flag = AtomicBool::new(false);
        let _waits = Finally(|| {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        });
        dpor::assume(dpor::any());
        flag.store(true, SeqCst);
        nobody_unwinds();
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
}

#[test]
fn what_destructors_do_to_statics_in_the_end_is_put_back() {
    struct Plain(UnsafeCell<usize>);
    // SAFETY: one thread uses it at a time.
    unsafe impl Sync for Plain {}
    static ATOMIC: AtomicUsize = AtomicUsize::new(0);
    static LOCK: Mutex<usize> = Mutex::new(0);
    static TRIED: Mutex<usize> = Mutex::new(0);
    static RWLOCK: RwLock<usize> = RwLock::new(0);
    static ONCE: Once = Once::new();
    static CELL: OnceLock<Box<usize>> = OnceLock::new();
    static PLAIN: Plain = Plain(UnsafeCell::new(0));
    /// What the statics hold, before each is changed.
    fn change() -> [bool; 7] {
        let mut called = false;
        ONCE.call_once(|| called = true);
        let add = |number: &mut usize| std::mem::replace(number, 1) == 0;
        [
            ATOMIC.fetch_add(1, SeqCst) == 0,
            add(&mut LOCK.lock().unwrap()),
            add(&mut TRIED.try_lock().unwrap()),
            add(&mut RWLOCK.write().unwrap()),
            called,
            CELL.set(Box::new(0)).is_ok(),
            // SAFETY: nobody else has the pointer.
            PLAIN.0.with_mut(|number| add(unsafe { &mut *number })),
        ]
    }
    let explored = Builder::new().check(|| {
        let _changes = Finally(|| {
            change();
        });
        // The first execution is torn down here, where it has met none of the statics.
        dpor::assume(dpor::any());
        assert_eq!(change(), [true; 7]);
    });
    assert_eq!((explored.executions, explored.pruned), (1, 1));
    fails(FailureKind::Deadlock, || {
        let _changes = Finally(|| {
            change();
        });
        thread::park();
    });
    let explored = Builder::new().check(|| assert_eq!(change(), [true; 7]));
    assert_eq!(explored.executions, 1);
}

/// A destructor that waits for ever at each of these does not keep the test from its end.
#[test]
fn a_destructor_waits_for_ever_at_no_shim() {
    let waits: [fn(); 6] = [
        thread::park,
        || thread::park_timeout(Duration::from_secs(1)),
        || {
            let _ = mpsc::sync_channel(0).0.send(0);
        },
        || {
            let _ = mpsc::channel::<()>().1.recv();
        },
        || {
            let _ = mpsc::channel::<()>().1.recv_timeout(Duration::from_secs(1));
        },
        || {
            Barrier::new(2).wait();
        },
    ];
    for wait in waits {
        panics(move || {
            let flag = AtomicBool::new(false);
            let _waits = Finally(|| {
                while !flag.load(SeqCst) {
                    wait();
                }
            });
            panic!("broken");
        });
    }
}

#[test]
fn a_destructor_that_waits_once_in_the_end_comes_to_its_own_end() {
    static DROPPED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = Builder::new().check(|| {
        let _waits = Finally(|| {
            thread::yield_now();
            DROPPED.fetch_add(1, Relaxed);
        });
        dpor::assume(dpor::any());
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
    assert_eq!(DROPPED.load(Relaxed), 2);
}

/// Does this for ever when it is dropped.
fn for_ever(mut does: impl FnMut()) -> Finally<impl FnMut()> {
    Finally(move || {
        loop {
            does();
        }
    })
}

/// What drains a queue that is never empty does no event any more where its execution is over.
#[test]
fn a_destructor_that_never_comes_to_an_end_does_not_hide_the_panic() {
    static ANY: AtomicUsize = AtomicUsize::new(0);
    dpor::thread_local!(static MINE: UnsafeCell<usize> = UnsafeCell::new(0));
    let rounds: [fn(); 7] = [
        // As if it had a value to pop each time.
        || {
            if ANY.load(SeqCst) == 0 {
                ANY.store(0, SeqCst);
            }
        },
        || {
            ANY.fetch_add(1, SeqCst);
        },
        || drop(Mutex::new(0).lock()),
        || UnsafeCell::new(0).with(|_| ()),
        || MINE.with(|mine| mine.with(|_| ())),
        || drop(thread::spawn(|| ())),
        || {
            let _ = mpsc::channel::<usize>().0.send(1);
        },
    ];
    for round in rounds {
        panics(move || {
            let _drains = for_ever(round);
            panic!("broken");
        });
        assert!(!thread::panicking());
    }
    assert!(Builder::new().check(nobody_unwinds).complete);
}

/// Drains for ever when it is dropped.
struct Drains(AtomicUsize);

impl Drop for Drains {
    fn drop(&mut self) {
        while self.0.load(SeqCst) == 1 {
            self.0.store(1, SeqCst);
        }
    }
}

impl Drains {
    fn new() -> Drains {
        Drains(AtomicUsize::new(1))
    }
}

#[test]
fn destructors_that_never_come_to_an_end_do_not_hide_a_failure_wherever_they_run() {
    dpor::thread_local!(static VARIABLE: Drains = Drains::new());
    // On the stack of another thread, which waits where main fails, or which the execution keeps waiting.
    panics(|| {
        let drains = Drains::new();
        drop(thread::spawn(move || {
            thread::park();
            drop(drains);
        }));
        thread::yield_now();
        panic!("broken");
    });
    fails(FailureKind::Deadlock, || {
        let threads = [(); 2].map(|()| {
            thread::spawn(|| {
                let _drains = Drains::new();
                thread::park();
            })
        });
        let _drains = Drains::new();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    // In a variable of a thread.
    fails(FailureKind::Deadlock, || {
        VARIABLE.with(|_| ());
        thread::park();
    });
    // In what a thread would have begun with.
    panics(|| {
        let drains = Drains::new();
        drop(thread::spawn(move || drop(drains)));
        panic!("broken");
    });
    // In a task.
    fails(FailureKind::Deadlock, || {
        dpor::future::block_on(async {
            let _drains = Drains::new();
            std::future::pending::<()>().await;
        });
    });
    assert!(Builder::new().check(nobody_unwinds).complete);
}

#[test]
fn a_destructor_that_never_comes_to_an_end_is_forgotten_with_its_execution() {
    let report = Builder::new().check(|| {
        let full = std::cell::Cell::new(true);
        let x = AtomicUsize::new(0);
        let _drains = Finally(|| {
            while full.get() {
                x.store(1, SeqCst);
            }
        });
        dpor::assume(dpor::any());
        full.set(false);
    });
    assert_eq!((report.executions, report.pruned), (1, 1));
}
