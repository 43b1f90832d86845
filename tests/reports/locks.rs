//! Which mistakes are made over several critical sections?

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicBool;
use dpor::sync::atomic::Ordering::{Acquire, Release};
use dpor::sync::{Mutex, RwLock};
use dpor::{Failure, hint};

use super::failures::{Named, both, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("lost_update_behind_a_lock", lost_update_behind_a_lock),
    ("lost_update_of_a_reader", lost_update_of_a_reader),
    ("permit_stolen", permit_stolen),
    ("list_taken_twice", list_taken_twice),
    ("lost_update_of_a_cell", lost_update_of_a_cell),
];

fn lost_update_behind_a_lock() -> Failure {
    fails(|| {
        let add = |counter: &Mutex<usize>| {
            let seen = *counter.lock().unwrap();
            *counter.lock().unwrap() = seen + 1;
        };
        let counter = both(Mutex::new(0), add, add);
        assert_eq!(*counter.lock().unwrap(), 2, "an update was lost");
    })
}

fn permit_stolen() -> Failure {
    fails(|| {
        let take = |permits: &Mutex<usize>| {
            let there = *permits.lock().unwrap() > 0;
            if there {
                let mut permits = permits.lock().unwrap();
                *permits = permits.checked_sub(1).expect("a permit");
            }
        };
        both(Mutex::new(1), take, take);
    })
}

fn lost_update_of_a_reader() -> Failure {
    fails(|| {
        let add = |total: &RwLock<i32>| {
            let seen = *total.read().unwrap();
            *total.write().unwrap() = seen + 5;
        };
        let total = both(RwLock::new(-5), add, add);
        assert_eq!(*total.read().unwrap(), 5, "an update was lost");
    })
}

/// A lock of the program's own, around a cell.
struct Spin {
    taken: AtomicBool,
    value: UnsafeCell<usize>,
}

// SAFETY: a thread uses the cell only while it has set `taken`.
unsafe impl Sync for Spin {}
// SAFETY: a number may be used by any thread.
unsafe impl Send for Spin {}

impl Spin {
    fn locked<R>(&self, f: impl FnOnce(&UnsafeCell<usize>) -> R) -> R {
        while self.taken.swap(true, Acquire) {
            hint::spin_loop();
        }
        let result = f(&self.value);
        self.taken.store(false, Release);
        result
    }

    fn get(&self) -> usize {
        // SAFETY: the lock is held.
        self.locked(|value| value.with(|value| unsafe { *value }))
    }

    fn set(&self, new: usize) {
        // SAFETY: the lock is held.
        self.locked(|value| value.with_mut(|value| unsafe { *value = new }));
    }
}

fn lost_update_of_a_cell() -> Failure {
    fails(|| {
        let spin = Spin {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(0),
        };
        let add = |spin: &Spin| spin.set(spin.get() + 1);
        let spin = both(spin, add, add);
        assert_eq!(spin.get(), 2, "an update was lost");
    })
}

fn list_taken_twice() -> Failure {
    fails(|| {
        let take = |list: &Mutex<Vec<u8>>| {
            let empty = list.lock().unwrap().is_empty();
            if !empty {
                list.lock().unwrap().pop().expect("an item");
            }
        };
        both(Mutex::new(vec![7]), take, take);
    })
}

/// A thread that looks at a count, then adds to it behind the lock, and must not have been
/// overtaken.
fn adds_behind_the_lock() -> Failure {
    fails(|| {
        let add = |counter: &Mutex<usize>| {
            let seen = *counter.lock().unwrap();
            let mut counter = counter.lock().unwrap();
            *counter += 1;
            assert_eq!(*counter, seen + 1, "overtaken");
        };
        both(Mutex::new(0), add, add);
    })
}

/// A list that is shown by a function of the test's. `print` is called with the list.
fn list_shown(print: fn(&Vec<u8>) -> String) -> String {
    let failure = fails(move || {
        let list = Mutex::new(vec![7]);
        dpor::show(&list, print);
        list.lock().unwrap().push(8);
        let lock = RwLock::new(vec![1]);
        dpor::show(&lock, print);
        lock.write().unwrap().clear();
        assert!(lock.read().unwrap().len() > 3, "to see the report");
    });
    failure.to_string()
}

#[test]
fn data_behind_locks_is_shown_as_the_test_prints_it() {
    let text = list_shown(|list| format!("{list:?}"));
    for row in [
        "lock list ([7])",
        "unlock list ([7] -> [7, 8])",
        "write-lock lock ([1])",
        "write-unlock lock ([1] -> [])",
        "read-lock lock ([])",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
    // A line break would break the table, and what the printer does is no part of the execution.
    let text = list_shown(|list| {
        let other = Mutex::new(list.len());
        format!("{}\nitems", other.lock().unwrap())
    });
    assert!(text.contains("unlock list (1 items -> 2 items)"), "{text}");
    assert!(!text.contains("other"), "{text}");
}

#[test]
fn an_update_is_lost_only_if_it_does_not_depend_on_what_the_section_found() {
    let text = adds_behind_the_lock().to_string();
    assert!(text.contains("check, then act: "), "{text}");
    assert!(!text.contains("a lost update"), "{text}");
    let text = lost_update_behind_a_lock().to_string();
    assert!(text.contains("a lost update: "), "{text}");
}
