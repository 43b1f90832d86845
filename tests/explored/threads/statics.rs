//! Does every execution find statics as they were at the start?

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool as StdAtomicBool, AtomicUsize as StdAtomicUsize, Ordering};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{LazyLock, Mutex, Once, OnceLock, RwLock};
use dpor::{Builder, thread};

use super::count;

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
fn a_cell_in_a_static_that_was_filled_outside_of_a_model_keeps_what_it_owns() {
    struct Filled(UnsafeCell<Option<Owned>>);
    // SAFETY: only one thread of this test uses it at a time.
    unsafe impl Sync for Filled {}
    struct Owned;
    impl Drop for Owned {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    static CELL: Filled = Filled(UnsafeCell::new(None));
    // SAFETY: nobody else uses it meanwhile.
    let is_full = || CELL.0.with(|value| unsafe { (*value).is_some() });
    // SAFETY: as above.
    CELL.0.with_mut(|value| unsafe { *value = Some(Owned) });
    for _ in 0..2 {
        count(move || assert!(is_full()));
    }
    assert!(is_full());
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
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

/// What it finds there before it waits is what the other exploration has left in the middle of an execution.
#[test]
fn an_exploration_that_is_under_way_waits_for_its_turn_when_it_meets_its_first_static() {
    static COUNT: AtomicUsize = AtomicUsize::new(3);
    static BUSY: StdAtomicBool = StdAtomicBool::new(false);
    let own_steps = || {
        let own = AtomicUsize::new(0);
        let add = || own.fetch_add(1, SeqCst);
        thread::scope(|s| {
            s.spawn(add);
            add();
        });
    };
    let use_static = || {
        assert_eq!(COUNT.fetch_add(1, SeqCst), 3);
        BUSY.store(true, Ordering::Relaxed);
        a_moment();
        assert_eq!(COUNT.load(SeqCst), 4);
    };
    for _ in 0..20 {
        BUSY.store(false, Ordering::Relaxed);
        std::thread::scope(|s| {
            s.spawn(|| count(use_static));
            let traces = count(move || {
                own_steps();
                while !BUSY.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                use_static();
            });
            assert_eq!(traces, 2);
        });
    }
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

/// Lets other OS threads go on. Where the machine has much to do, each of these takes milliseconds,
/// and a thread that waits for an exploration has patience for a second.
fn a_moment() {
    for _ in 0..10 {
        std::thread::yield_now();
    }
}

/// A test that calls no model may use a static that another test's models use, at the same time.
#[test]
fn a_static_is_used_outside_when_the_exploration_that_uses_it_is_over() {
    static COUNT: Mutex<u32> = Mutex::new(0);
    static ALSO: AtomicUsize = AtomicUsize::new(0);
    static HAS_BEGUN: StdAtomicBool = StdAtomicBool::new(false);
    let outside = std::thread::spawn(|| {
        while !HAS_BEGUN.load(SeqCst) {
            std::thread::yield_now();
        }
        ALSO.fetch_add(1, SeqCst);
        *COUNT.lock().unwrap() += 1;
    });
    dpor::model(|| {
        let other = thread::spawn(|| {
            *COUNT.lock().unwrap() = 7;
            ALSO.store(7, SeqCst);
        });
        drop(COUNT.lock().unwrap());
        HAS_BEGUN.store(true, SeqCst);
        a_moment();
        other.join().unwrap();
    });
    outside.join().unwrap();
    assert_eq!((*COUNT.lock().unwrap(), ALSO.load(SeqCst)), (1, 1));
}

#[test]
fn a_static_lock_that_is_held_outside_is_waited_for() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    let held = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = LOCK.lock().unwrap();
            held.wait();
            // The model begins meanwhile, or later.
            a_moment();
            *guard = 1;
        });
        held.wait();
        dpor::model(|| assert_eq!(*LOCK.lock().unwrap(), 1));
    });
}

/// Nothing here is what std's prelude calls it, and no name leads to std.
#[no_implicit_prelude]
#[deny(unsafe_code)]
#[allow(dead_code, unused_macros, non_snake_case)]
mod bare {
    mod core {}
    mod std {}
    mod dpor {}
    mod lazy_static {}
    enum Option {}
    enum Lazy {}
    enum LazyLock {}
    trait Fn {}
    trait Sync {}
    fn Some() {}
    fn None() {}
    macro_rules! lazy_static {
        ($($any:tt)*) => {
            compile_error!()
        };
    }

    ::dpor::lazy_static! {
        /// With its own attributes and a visibility.
        #[allow(unused)]
        pub(super) static ref FIRST: u8 = 1;
        pub(in super::bare) static ref SECOND: [u8; 2] = if true { return [2, 3] } else { [0, 0] };
        #[cfg(any())]
        static ref LEFT_OUT: NoSuchType = no_such_value;
        static ref FINAL: &'static u8 = &4;
    }

    ::dpor::lazy_static! {}

    pub(super) fn all() -> [u8; 4] {
        let [second, third] = *SECOND;
        [*FIRST, second, third, **FINAL]
    }
}

#[test]
fn lazy_statics_are_declared_where_every_name_means_something_else() {
    let traces = count(|| assert_eq!(bare::all(), [1, 2, 3, 4]));
    assert_eq!(traces, 1);
}
