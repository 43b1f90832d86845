//! Is what an execution did to older memory undone without harm to what is there?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync as std_sync;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Condvar, LazyLock, Mutex, OnceLock, RwLock};
use dpor::{Builder, choose, thread};
use pretty_assertions::assert_eq;

use super::count;

/// The model fails, because what a lock holds cannot be put back.
#[track_caller]
fn refused(f: impl Fn() + Send + Sync + 'static) {
    let failure = Builder::new().explore(f);
    let text = failure.expect_err("it cannot be put back").to_string();
    assert!(text.contains("make it inside the closure"), "{text}");
}

#[test]
fn a_lock_that_was_put_into_a_static_at_run_time_is_refused_whoever_has_put_it_there() {
    static STD_CELL: std_sync::OnceLock<RwLock<Vec<u32>>> = std_sync::OnceLock::new();
    static STD_LAZY: std_sync::LazyLock<Mutex<Vec<u32>>> =
        std_sync::LazyLock::new(|| Mutex::new(vec![1]));
    static CELL: OnceLock<Mutex<Box<u32>>> = OnceLock::new();
    static LAZY: LazyLock<Mutex<String>> = LazyLock::new(|| Mutex::new("owned".to_owned()));
    let lock = STD_CELL.get_or_init(|| RwLock::new(vec![1, 2, 3]));
    refused(move || lock.write().unwrap().push(4));
    // Not before the model needs it, and then by the first execution.
    refused(|| STD_LAZY.lock().unwrap().push(2));
    let lock = CELL.get_or_init(|| Mutex::new(Box::new(1)));
    refused(move || **lock.lock().unwrap() += 1);
    let lock: &'static Mutex<String> = &LAZY;
    refused(move || lock.lock().unwrap().push('!'));
    assert_eq!(*STD_CELL.get().unwrap().read().unwrap(), [1, 2, 3]);
    assert_eq!(*STD_LAZY.lock().unwrap(), [1]);
    assert_eq!(**CELL.get().unwrap().lock().unwrap(), 1);
    assert_eq!(*LAZY.lock().unwrap(), "owned");
}

#[test]
fn what_owns_something_that_is_no_memory_is_refused_if_it_was_made_before_the_model() {
    /// A number that must be given back once, as a file descriptor.
    struct Descriptor(#[expect(dead_code, reason = "it stands for what it numbers")] usize);
    impl Drop for Descriptor {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    static CELL: OnceLock<Mutex<Option<Descriptor>>> = OnceLock::new();
    let lock = CELL.get_or_init(|| Mutex::new(Some(Descriptor(3))));
    refused(move || drop(lock.lock().unwrap().take()));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
}

#[test]
fn constants_with_large_numbers_and_addresses_of_the_program_are_put_back() {
    type Data = (
        u64,
        usize,
        &'static str,
        fn() -> String,
        Vec<u8>,
        Option<Box<u8>>,
    );
    static LOCK: Mutex<Data> = Mutex::new((
        0x9e37_79b9_7f4a_7c15,
        100_000,
        "text",
        String::new,
        Vec::new(),
        None,
    ));
    for _ in 0..2 {
        count(|| {
            let mut data = LOCK.lock().unwrap();
            assert!(data.4.is_empty() && data.5.is_none());
            data.4.push(1);
            data.5 = Some(Box::new(1));
        });
    }
}

#[test]
fn a_cell_that_somebody_else_put_into_a_static_keeps_what_it_owns() {
    struct Shared(UnsafeCell<Vec<u32>>);
    // SAFETY: only one thread of this test uses it at a time.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}
    static CELL: std_sync::OnceLock<Shared> = std_sync::OnceLock::new();
    let cell = CELL.get_or_init(|| Shared(UnsafeCell::new(vec![1, 2, 3])));
    for _ in 0..2 {
        count(move || {
            let first = cell.0.with(|list| {
                // SAFETY: nobody else uses it meanwhile.
                unsafe { (&*list)[0] }
            });
            assert_eq!(first, 1);
        });
    }
    // SAFETY: as above.
    assert_eq!(cell.0.with(|list| unsafe { (*list).clone() }), [1, 2, 3]);
}

#[test]
fn a_lock_that_was_tried_outside_of_the_model_is_refused() {
    static MUTEX: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    static WRITTEN: RwLock<Vec<u32>> = RwLock::new(Vec::new());
    static READ: RwLock<(u32, std_sync::Mutex<Vec<u32>>)> =
        RwLock::new((0, std_sync::Mutex::new(Vec::new())));
    MUTEX.try_lock().unwrap().push(1);
    WRITTEN.try_write().unwrap().push(1);
    READ.try_read().unwrap().1.lock().unwrap().push(1);
    refused(|| MUTEX.lock().unwrap().push(2));
    refused(|| WRITTEN.write().unwrap().push(2));
    refused(|| READ.write().unwrap().0 += 1);
    assert_eq!(*MUTEX.lock().unwrap(), [1]);
    assert_eq!(*WRITTEN.read().unwrap(), [1]);
}

#[test]
fn all_is_put_back_if_a_destructor_panics_meanwhile() {
    struct Panics(#[expect(dead_code, reason = "to be dropped")] Vec<u32>);
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("dropped in the end");
        }
    }
    static FIRST: Mutex<u32> = Mutex::new(0);
    static BAD: Mutex<Option<Panics>> = Mutex::new(None);
    static LAST: Mutex<u32> = Mutex::new(0);
    let explored = catch_unwind(|| {
        Builder::new().explore(|| {
            *FIRST.lock().unwrap() += 1;
            *BAD.lock().unwrap() = Some(Panics(vec![1]));
            *LAST.lock().unwrap() += 1;
        })
    });
    let payload = explored.expect_err("nobody else can tell");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"dropped in the end"));
    assert!(BAD.lock().unwrap().is_none());
    assert_eq!((*FIRST.lock().unwrap(), *LAST.lock().unwrap()), (0, 0));
}

#[test]
fn a_thread_local_that_is_used_when_a_static_is_put_back_begins_anew_in_the_next_execution() {
    dpor::thread_local! {
        static VISITS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
        static OWNS: std::cell::RefCell<Vec<Counted>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    struct Visits;
    impl Drop for Visits {
        fn drop(&mut self) {
            VISITS.set(VISITS.get() + 1);
            OWNS.with_borrow_mut(|list| list.push(Counted));
        }
    }
    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    static KEPT: Mutex<Option<Visits>> = Mutex::new(None);
    let executions = count(|| {
        assert_eq!(VISITS.get(), 0);
        let other = thread::spawn(|| *KEPT.lock().unwrap() = Some(Visits));
        drop(KEPT.lock().unwrap());
        other.join().unwrap();
    });
    assert_eq!((executions, DROPPED.load(Ordering::Relaxed)), (2, 2));
}

#[test]
fn a_lock_says_that_it_is_held_after_a_wait_outside_of_the_model() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    static SET: Condvar = Condvar::new();
    let guard = LOCK.lock().unwrap();
    let other = std::thread::spawn(|| {
        *LOCK.lock().unwrap() = 1;
        SET.notify_all();
    });
    let guard = SET.wait_while(guard, |value| *value == 0).unwrap();
    other.join().unwrap();
    let explored = catch_unwind(AssertUnwindSafe(|| {
        count(|| assert!(LOCK.try_lock().is_err()));
    }));
    drop(guard);
    assert!(explored.is_ok(), "somebody held it");
}

/// What adds one to a static when it is dropped, as a pool that counts those that are live.
struct Counts(&'static Counted);

/// Where it is counted.
struct Counted {
    atomic: AtomicUsize,
    locked: Mutex<usize>,
    cell: UnsafeCell<usize>,
}

// SAFETY: one thread uses the cell.
unsafe impl Sync for Counted {}

impl Counted {
    const fn new() -> Counted {
        Counted {
            atomic: AtomicUsize::new(0),
            locked: Mutex::new(0),
            cell: UnsafeCell::new(0),
        }
    }

    /// What it has counted before this one.
    fn add(&self) -> [usize; 3] {
        let locked = {
            let mut locked = self.locked.lock().unwrap();
            *locked += 1;
            *locked - 1
        };
        // SAFETY: one thread uses the cell.
        let in_cell = self.cell.with_mut(|cell| unsafe {
            *cell += 1;
            *cell - 1
        });
        [self.atomic.fetch_add(1, SeqCst), locked, in_cell]
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[test]
fn what_a_destructor_changes_that_the_execution_has_changed_is_put_back_too() {
    static COUNTED: Counted = Counted::new();
    static IN_LOCK: Mutex<Option<Counts>> = Mutex::new(None);
    static IN_CELL: OnceLock<Counts> = OnceLock::new();
    static IN_LAZY: LazyLock<Counts> = LazyLock::new(|| Counts(&COUNTED));
    let in_lock = || *IN_LOCK.lock().unwrap() = Some(Counts(&COUNTED));
    let in_cell = || drop(IN_CELL.set(Counts(&COUNTED)));
    let in_lazy = || _ = LazyLock::force(&IN_LAZY);
    for (fills, before) in [
        (in_lock as fn(), true),
        (in_lock, false),
        (in_cell, true),
        (in_cell, false),
        (in_lazy, true),
        (in_lazy, false),
    ] {
        let report = Builder::new().check(move || {
            choose(4);
            if before {
                assert_eq!(COUNTED.add(), [0; 3]);
            }
            fills();
            if !before {
                assert_eq!(COUNTED.add(), [0; 3]);
            }
        });
        assert_eq!(report.executions, 4);
        assert_eq!(COUNTED.add(), [0; 3]);
        // Outside of a model it is as any other static.
        *COUNTED.locked.lock().unwrap() = 0;
        COUNTED.atomic.store(0, SeqCst);
        // SAFETY: one thread uses the cell.
        COUNTED.cell.with_mut(|cell| unsafe { *cell = 0 });
    }
}

/// There is nothing in it that could be told to lead somewhere, but who has put it on the heap has it dropped there.
#[test]
fn a_lock_on_the_heap_that_was_made_before_the_model_is_refused_also_if_it_holds_nothing_yet() {
    let lock = std_sync::Arc::new(Mutex::new(Vec::new()));
    let same = lock.clone();
    refused(move || same.lock().unwrap().push(1));
    assert_eq!(lock.lock().unwrap().len(), 0);
}
