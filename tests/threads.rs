//! Do scopes, thread-locals, statics and caught panics behave as in std?

use std::cell::{Cell, RefCell};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering};

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{
    Arc, Barrier, LazyLock, Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock, mpsc,
};
use dpor::{Builder, FailureKind, thread};

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().check(f);
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    report.executions
}

#[test]
fn scoped_threads_borrow_and_are_joined_at_the_end_of_the_scope() {
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        let mut plain = vec![1, 2, 3];
        let sum = thread::scope(|s| {
            let sum = s.spawn(|| plain.iter().sum::<i32>());
            s.spawn(|| x.fetch_add(1, SeqCst));
            s.spawn(|| x.fetch_add(1, SeqCst));
            sum.join().unwrap()
        });
        plain.push(sum);
        assert_eq!((x.load(SeqCst), plain.len()), (2, 4));
    });
    assert_eq!(traces, 2);
}

#[test]
fn a_thread_has_the_stack_that_it_asks_for() {
    fn spawn(bytes: Option<usize>, x: &Arc<AtomicUsize>) -> thread::JoinHandle<usize> {
        let x = x.clone();
        let mut builder = thread::Builder::new();
        if let Some(bytes) = bytes {
            builder = builder.stack_size(bytes);
        }
        let body = move || {
            // More than threads have that ask for nothing.
            let mut room = [0_u8; 300 << 10];
            std::hint::black_box(&mut room);
            x.fetch_add(room.len(), SeqCst)
        };
        builder.spawn(body).expect("there is memory")
    }
    let x = || Arc::new(AtomicUsize::new(0));
    // In each execution anew, and side by side with others.
    let traces = count(move || {
        let x = x();
        let large = [1 << 20, (1 << 20) - 1, 2 << 20].map(|bytes| spawn(Some(bytes), &x));
        let small = thread::Builder::new().stack_size(1).spawn(|| 1).unwrap();
        assert_eq!(small.join().unwrap(), 1);
        for thread in large {
            thread.join().unwrap();
        }
        assert_eq!(x.load(SeqCst), 3 * (300 << 10));
    });
    assert_eq!(traces, 6);
    let failure = Builder::new().explore(move || {
        spawn(None, &x()).join().unwrap();
    });
    let text = failure.expect_err("it overflows").to_string();
    assert!(text.contains("stack overflow: main.1"), "{text}");
    assert!(text.contains("or the thread's own"), "{text}");
}

#[test]
fn scopes_nest_and_their_threads_have_names() {
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        thread::scope(|s| {
            let builder = thread::Builder::new().name("outer".to_owned());
            let outer = builder.spawn_scoped(s, || {
                thread::scope(|s| {
                    s.spawn(|| x.fetch_add(1, SeqCst));
                    x.fetch_add(1, SeqCst);
                });
                thread::current().name().map(str::to_owned)
            });
            assert_eq!(outer.unwrap().join().unwrap().as_deref(), Some("outer"));
        });
    });
    assert_eq!(traces, 2);
}

#[test]
fn the_end_of_a_scope_joins_where_the_scope_is_called() {
    let failure = Builder::new().explore(|| {
        thread::scope(|s| {
            s.spawn(|| ());
        });
        panic!("to see the events");
    });
    let failure = failure.expect_err("it panics");
    let events = failure.events().iter();
    let joins = events.filter(|event| event.what == "join main.1");
    let files: Vec<_> = joins.map(|event| event.place.file()).collect();
    assert_eq!(files, [file!()]);
}

#[test]
fn an_execution_that_ends_in_the_middle_of_a_scope_keeps_what_is_borrowed() {
    for _ in 0..20 {
        let failure = Builder::new().explore(|| {
            let data = [1_u64; 64];
            let lock = Mutex::new(());
            thread::scope(|s| {
                for _ in 0..3 {
                    s.spawn(|| {
                        let guard = lock.lock();
                        thread::park();
                        drop(guard);
                        assert_eq!(data.iter().sum::<u64>(), 64);
                    });
                }
                let _guard = lock.lock();
                panic!("in the middle");
            });
        });
        let failure = failure.expect_err("the closure panics");
        assert_eq!(failure.kind(), FailureKind::Panic);
        assert!(failure.to_string().contains("in the middle"), "{failure}");
    }
    let deadlock = Builder::new().explore(|| {
        let data = [1_u64; 64];
        thread::scope(|s| {
            s.spawn(|| {
                thread::park();
                data.iter().sum::<u64>()
            });
        });
    });
    let deadlock = deadlock.expect_err("nobody unparks");
    assert_eq!(deadlock.kind(), FailureKind::Deadlock);
}

#[test]
fn outside_of_a_model_scopes_and_locals_are_real_ones() {
    let total = AtomicUsize::new(0);
    thread::scope(|s| {
        for i in 0..4 {
            let total = &total;
            s.spawn(move || total.fetch_add(i, SeqCst));
        }
    });
    assert_eq!(total.load(SeqCst), 6);
    let caught = std::panic::catch_unwind(|| {
        thread::scope(|s| {
            s.spawn(|| panic!("not joined"));
        });
    });
    let text = caught.expect_err("the scope tells");
    let text = text.downcast_ref::<&str>().expect("a text");
    assert_eq!(*text, "a scoped thread panicked");
    dpor::thread_local! { static LOCAL: Cell<u32> = const { Cell::new(1) }; }
    LOCAL.set(2);
    let other = thread::spawn(|| LOCAL.get()).join().unwrap();
    assert_eq!((LOCAL.get(), other), (2, 1));
}

#[test]
fn thread_locals_belong_to_modelled_threads_and_begin_anew_in_each_execution() {
    dpor::thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
        static LIST: RefCell<Vec<usize>> = RefCell::new(vec![7]);
    }
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        let body = |n: usize| {
            assert_eq!(COUNT.replace(n), 0);
            x.fetch_add(1, SeqCst);
            LIST.with_borrow_mut(|list| list.push(n));
            assert_eq!(COUNT.get(), n);
            assert_eq!(LIST.take(), [7, n]);
        };
        thread::scope(|s| {
            s.spawn(|| body(1));
            s.spawn(|| body(2));
        });
        body(3);
    });
    assert_eq!(traces, 2);
}

#[test]
fn destructors_of_thread_locals_run_at_the_threads_end_the_latest_first() {
    static ORDER: StdMutex<Vec<&str>> = StdMutex::new(Vec::new());
    struct Tell(&'static str);
    impl Drop for Tell {
        fn drop(&mut self) {
            let again = FIRST.try_with(|tell| tell.0).is_ok();
            ORDER.lock().unwrap().push(self.0);
            assert_eq!(again, self.0 == "second", "a dropped variable is gone");
        }
    }
    dpor::thread_local! {
        static FIRST: Tell = const { Tell("first") };
        static SECOND: Tell = const { Tell("second") };
    }
    let traces = count(|| {
        ORDER.lock().unwrap().clear();
        let other = thread::spawn(|| {
            FIRST.with(|_| ());
            SECOND.with(|_| ());
        });
        other.join().unwrap();
        assert_eq!(*ORDER.lock().unwrap(), ["second", "first"]);
    });
    assert_eq!(traces, 1);
}

#[test]
fn a_caught_panic_is_what_join_returns_and_poisons_locks() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let lock = Arc::new((Mutex::new(0), RwLock::new(0)));
        let theirs = lock.clone();
        let other = thread::spawn(move || {
            let _a = theirs.0.lock();
            let _b = theirs.1.write();
            panic!("on purpose");
        });
        let poisoned_before = lock.0.lock().is_err();
        let payload = other.join().expect_err("it panicked");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(lock.0.is_poisoned() && lock.1.is_poisoned());
        assert!(lock.0.lock().is_err());
        lock.0.clear_poison();
        assert!(lock.0.lock().is_ok());
        // Both orders of the two lockings are explored.
        let _ = poisoned_before;
    });
    assert_eq!(report.executions, 2);
    // Without it the same is a failure.
    let failure = Builder::new().explore(|| {
        let other = thread::spawn(|| panic!("on purpose"));
        assert!(other.join().is_err());
    });
    assert_eq!(failure.expect_err("fails").kind(), FailureKind::Panic);
}

#[test]
fn values_that_are_made_on_first_use_have_their_own_names() {
    static FIRST: LazyLock<usize> = LazyLock::new(|| *SECOND + 1);
    static SECOND: LazyLock<usize> = LazyLock::new(|| FIRST.count_ones() as usize);
    let failure = Builder::new().explore(|| {
        let _ = *FIRST;
    });
    let text = failure.expect_err("each needs the other").to_string();
    assert!(text.contains("waits to initialise FIRST"), "{text}");
    assert!(text.contains("initialise SECOND"), "{text}");
}

#[test]
fn a_failure_after_a_panic_that_was_not_the_end_tells_of_it() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        let meeting = Arc::new(Barrier::new(2));
        let theirs = meeting.clone();
        let worker = thread::Builder::new().name("worker".to_owned());
        let worker = worker.spawn(move || {
            let none: Vec<u8> = Vec::new();
            assert!(!none.is_empty(), "nothing to do\nat all");
            theirs.wait();
        });
        let _ = std::panic::catch_unwind(|| panic!("by the test itself"));
        meeting.wait();
        let _ = worker.unwrap().join();
    });
    let failure = failure.expect_err("nobody comes to the meeting");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
    let text = failure.to_string();
    let line = text.lines().find(|line| line.contains("worker panicked"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.starts_with("  before that worker panicked at tests/threads.rs:")
            && line.ends_with(": nothing to do"),
        "{line}"
    );
    assert!(text.contains(": by the test itself"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&failure.json()).expect("JSON");
    let earlier = json["outcome"]["earlier_panics"]
        .as_array()
        .expect("a list");
    assert_eq!(earlier.len(), 2, "{text}");
    assert_eq!(earlier[1]["message"], "nothing to do\nat all");
    let thread = earlier[1]["thread"].as_u64().expect("a thread") as usize;
    assert_eq!(json["threads"][thread]["name"], "worker");
    assert!(failure.html().contains("nothing to do"));
    // In the graph it stands behind the last event of the worker before it, or comes first of it.
    let dot = failure.dot();
    let column = dot
        .split("subgraph")
        .find(|column| column.contains("label=\"worker\""));
    let column = column.unwrap_or_else(|| panic!("{dot}"));
    assert!(
        column.contains("p1 [label=\"panics: nothing to do\\n"),
        "{dot}"
    );
    assert!(column.contains("\n    p1 -> e"), "{dot}");
    assert!(!column.contains(" p0 "), "that is main's: {dot}");
    // Its own panic is none that was caught, and the executions before are of no interest.
    let failure = builder.explore(|| {
        let worker = thread::spawn(|| panic!("of the worker"));
        worker.join().expect("a result");
    });
    let text = failure.expect_err("it panics").to_string();
    assert_eq!(text.matches("before that").count(), 1, "{text}");
    assert!(text.contains("before that main.1 panicked at"), "{text}");
    // It poisons the lock before its panic is caught.
    let failure = builder.explore(|| {
        let lock = Arc::new(Mutex::new(()));
        let theirs = lock.clone();
        let worker = thread::spawn(move || {
            let _held = theirs.lock();
            panic!("under the lock");
        });
        drop(lock.lock().unwrap());
        assert!(worker.join().is_err());
    });
    let text = failure.expect_err("the lock is poisoned").to_string();
    assert!(text.contains(": under the lock"), "{text}");
}

#[test]
fn a_scope_tells_of_a_caught_panic_that_nobody_asked_for() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let failure = builder.explore(|| {
        thread::scope(|s| {
            s.spawn(|| panic!("on purpose"));
        });
    });
    let failure = failure.expect_err("the scope panics");
    assert!(
        failure.to_string().contains("a scoped thread panicked"),
        "{failure}"
    );
}

#[test]
fn a_poisoned_once_can_be_forced() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let once = Arc::new(Once::new());
        let theirs = once.clone();
        let other = thread::spawn(move || theirs.call_once(|| panic!("on purpose")));
        assert!(other.join().is_err());
        let theirs = once.clone();
        let refused = thread::spawn(move || theirs.call_once(|| ()));
        assert!(refused.join().is_err(), "it is poisoned");
        once.call_once_force(|state| assert!(state.is_poisoned()));
        assert!(once.is_completed());
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn statics_of_every_type_begin_anew_in_each_execution_twice_in_one_process() {
    static FLAG: AtomicBool = AtomicBool::new(false);
    static LIST: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    static TABLE: RwLock<Option<String>> = RwLock::new(None);
    static ONCE: Once = Once::new();
    static CELL: OnceLock<String> = OnceLock::new();
    static LAZY: LazyLock<Mutex<Vec<usize>>> = LazyLock::new(|| {
        MADE.fetch_add(1, Ordering::Relaxed);
        Mutex::new(vec![1])
    });
    static MADE: StdAtomicUsize = StdAtomicUsize::new(0);
    for _ in 0..2 {
        MADE.store(0, Ordering::Relaxed);
        let traces = count(|| {
            assert!(!FLAG.load(SeqCst));
            assert!(LIST.lock().unwrap().is_empty());
            assert!(TABLE.read().unwrap().is_none());
            assert!(!ONCE.is_completed());
            assert!(CELL.get().is_none());
            let body = |n: usize| {
                LIST.lock().unwrap().push(n);
            };
            thread::scope(|s| {
                s.spawn(|| body(1));
                s.spawn(|| body(2));
            });
            FLAG.store(true, SeqCst);
            *TABLE.write().unwrap() = Some(String::from("full"));
            ONCE.call_once(|| ());
            CELL.set(String::from("set")).unwrap();
            LAZY.lock().unwrap().push(2);
            assert_eq!(LAZY.lock().unwrap().len(), 2);
            assert_eq!(LIST.lock().unwrap().len(), 2);
        });
        assert_eq!(traces, 2);
        assert_eq!(MADE.load(Ordering::Relaxed), 2, "once in each execution");
    }
}

#[test]
fn two_racing_users_of_a_lazy_static_see_one_value() {
    static LAZY: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(5));
    let traces = count(|| {
        thread::scope(|s| {
            s.spawn(|| LAZY.load(SeqCst));
            s.spawn(|| LAZY.load(SeqCst));
        });
    });
    // Who makes the value.
    assert_eq!(traces, 2);
}

#[test]
fn messages_that_nobody_takes_are_dropped_with_their_channel() {
    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    struct Message;
    impl Drop for Message {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    DROPPED.store(0, Ordering::Relaxed);
    let executions = count(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || drop(receiver));
        let _ = sender.send(Message);
        other.join().unwrap();
    });
    assert_eq!(executions, 2);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
}

#[test]
fn a_lock_in_a_static_that_was_filled_outside_of_a_model_is_refused_not_corrupted() {
    static CELL: OnceLock<Mutex<Vec<usize>>> = OnceLock::new();
    CELL.get_or_init(|| Mutex::new(vec![1]));
    let failure = Builder::new().explore(|| {
        if let Some(list) = CELL.get() {
            list.lock().unwrap().push(2);
        }
    });
    let text = failure.expect_err("it cannot be put back").to_string();
    assert!(text.contains("make it inside the closure"), "{text}");
}

#[test]
fn explorations_in_parallel_that_share_statics_take_turns() {
    static COUNT: AtomicUsize = AtomicUsize::new(3);
    static LIST: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..20 {
                    let traces = count(|| {
                        assert!(LIST.lock().unwrap().is_empty());
                        let add = || {
                            let seen = COUNT.load(SeqCst);
                            LIST.lock().unwrap().push(seen);
                            COUNT.store(seen + 1, SeqCst);
                        };
                        thread::scope(|s| {
                            s.spawn(add);
                            add();
                        });
                        assert_eq!(LIST.lock().unwrap().len(), 2);
                        assert!((4..=5).contains(&COUNT.load(SeqCst)));
                    });
                    assert_eq!(traces, 6);
                }
            });
        }
    });
}

/// Panics, and catches it.
fn caught(body: impl FnOnce()) {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    assert!(result.is_err());
}

#[test]
fn a_thread_that_has_caught_its_own_panic_is_explored_as_before() {
    for catch_panics in [false, true] {
        let mut builder = Builder::new();
        builder.catch_panics = catch_panics;
        let report = builder.check(|| {
            caught(|| panic!("caught"));
            assert!(!thread::panicking());
            let x = AtomicUsize::new(0);
            thread::scope(|s| {
                s.spawn(|| x.fetch_add(1, SeqCst));
                x.fetch_add(1, SeqCst);
            });
        });
        assert_eq!(report.executions, 2);
    }
}

#[test]
fn a_thread_that_has_caught_its_own_panic_ends_with_its_execution() {
    let went_on = std::sync::Arc::new(StdAtomicUsize::new(0));
    let after = went_on.clone();
    let result = Builder::new().explore(move || {
        caught(|| panic!("caught"));
        thread::park();
        after.fetch_add(1, SeqCst);
    });
    assert_eq!(result.unwrap_err().kind(), FailureKind::Deadlock);
    assert_eq!(went_on.load(SeqCst), 0);
}

#[test]
fn a_panic_that_is_caught_poisons_the_lock_that_is_held() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let lock = Mutex::new(0);
        thread::scope(|s| {
            s.spawn(|| {
                caught(|| {
                    let _guard = lock.lock();
                    panic!("caught");
                });
                assert!(lock.is_poisoned());
            });
            drop(lock.lock());
        });
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn what_destructors_do_before_the_test_catches_a_panic_is_explored() {
    let report = Builder::new().check(|| {
        let lock = Arc::new(Mutex::new(0));
        let theirs = lock.clone();
        let other = thread::spawn(move || *lock_of(&theirs) += 1);
        caught(|| {
            let _guard = lock_of(&lock);
            panic!("caught");
        });
        *lock_of(&lock) += 1;
        other.join().unwrap();
        assert_eq!(*lock_of(&lock), 2);
    });
    // The other thread comes before, between or after the two.
    assert_eq!(report.executions, 3);
}

/// The guard, poisoned or not.
fn lock_of(lock: &Mutex<usize>) -> MutexGuard<'_, usize> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_lock_in_a_static_is_not_poisoned_when_an_execution_begins() {
    static LOCK: Mutex<u8> = Mutex::new(0);
    let mut builder = Builder::new();
    builder.catch_panics = true;
    for _ in 0..2 {
        let report = builder.check(|| {
            assert!(!LOCK.is_poisoned());
            let other = thread::spawn(|| {
                let _guard = LOCK.lock();
                panic!("while the lock is held");
            });
            let before = LOCK.lock().is_err();
            assert!(other.join().is_err());
            assert!(LOCK.lock().is_err());
            LOCK.clear_poison();
            assert_eq!(*LOCK.lock().unwrap(), 0, "{before}");
        });
        assert_eq!(report.executions, 2);
        assert!(!LOCK.is_poisoned());
    }
}

#[test]
fn a_result_that_nobody_waits_for_is_dropped_by_the_thread_or_with_its_handle() {
    struct Loud(Arc<AtomicUsize>);
    impl Drop for Loud {
        fn drop(&mut self) {
            let child = thread::current().name() == Some("child");
            self.0.fetch_add(if child { 1 } else { 2 }, SeqCst);
        }
    }
    let seen = std::sync::Arc::new(StdMutex::new(std::collections::BTreeSet::new()));
    let all = seen.clone();
    let traces = count(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let child = thread::Builder::new().name("child".to_owned());
        let handle = child.spawn(move || Loud(theirs)).unwrap();
        drop(handle);
        let outcome = (x.load(SeqCst), x.load(SeqCst));
        all.lock().unwrap().insert(outcome);
    });
    let all = [(0, 0), (0, 1), (1, 1), (2, 2)];
    assert_eq!(*seen.lock().unwrap(), all.into());
    assert_eq!(traces, 4);
}

#[test]
fn a_loop_without_a_hint_waits_for_what_it_has_seen_and_not_for_what_is_there_when_it_comes_back() {
    // Who runs while the main thread is about to look has nothing to do with how often it has looked in vain.
    let mut builder = Builder::new();
    builder.max_permutations = Some(4000);
    let report = builder.check(|| {
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let threads = [0; 2].map(|_| {
            let counts = counts.clone();
            thread::spawn(move || {
                counts.0.fetch_add(1, SeqCst);
                counts.1.fetch_add(1, SeqCst);
            })
        });
        for _ in 0..2 {
            while counts.1.load(SeqCst) == 0 {
                counts.0.load(SeqCst);
            }
            counts.1.fetch_sub(1, SeqCst);
            counts.0.fetch_sub(1, SeqCst);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(report.executions, 4000);
}
