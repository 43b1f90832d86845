//! Which mistakes are made over several critical sections?

use dpor::Failure;
use dpor::sync::{Mutex, RwLock};

use super::failures::{Named, both, fails};

/// Each of them.
pub const ALL: &[Named] = &[
    ("lost_update_behind_a_lock", lost_update_behind_a_lock),
    ("lost_update_of_a_reader", lost_update_of_a_reader),
    ("permit_stolen", permit_stolen),
    ("list_taken_twice", list_taken_twice),
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
