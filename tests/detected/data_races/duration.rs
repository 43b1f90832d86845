//! How long does an access last, and does the report say so?

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::thread::{self, Thread};

use super::{Plain, check, race};

/// A cell with a thread that waits.
struct Waiter(UnsafeCell<Option<Thread>>);

// SAFETY: whether accesses are ordered is what is asked.
unsafe impl Sync for Waiter {}
// SAFETY: as above.
unsafe impl Send for Waiter {}

/// Main accesses a cell, and tells so by `told`; another thread writes the cell then.
fn told_by(use_it: fn(&Plain, told: &dyn Fn())) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            if theirs.1.load(Acquire) == 1 {
                theirs.0.set(1);
            }
        });
        use_it(&shared.0, &|| shared.1.store(1, Release));
        other.join().unwrap();
    }
}

#[test]
fn an_access_lasts_until_its_closure_returns_or_makes_its_last_operation() {
    for (what, races, use_it) in [
        (
            "a write inside of another thread's `with_mut`",
            true,
            (|plain, told| plain.0.with_mut(|_| told())) as fn(&Plain, &dyn Fn()),
        ),
        (
            "a write inside of a `with_mut` that has written before it told",
            true,
            |plain, told| {
                plain.0.with_mut(|value| {
                    // SAFETY: no other thread has been told.
                    unsafe { *value = 2 };
                    told();
                });
            },
        ),
        (
            "a write inside of another thread's `with`, which has more to do",
            true,
            |plain, told| {
                plain.0.with(|_| {
                    told();
                    AtomicUsize::new(0).load(Relaxed);
                });
            },
        ),
        (
            "a write behind the last that another thread's `with` does",
            false,
            |plain, told| plain.0.with(|_| told()),
        ),
        (
            "a write that a `with` tells of to which a `with` comes once more",
            true,
            |plain, told| {
                plain.0.with(|_| told());
                plain.get();
            },
        ),
    ] {
        check(what, "[intro.races] 21", races, told_by(use_it));
    }
    // As in flashmap 0.2.0: the cell has the thread that is to be woken, which overwrites it then.
    check(
        "an unpark inside of a `with`",
        "[intro.races] 10",
        false,
        || {
            let waiter = Arc::new(Waiter(UnsafeCell::new(Some(thread::current()))));
            let theirs = waiter.clone();
            let other = thread::spawn(move || {
                // SAFETY: it is overwritten by the thread that is woken.
                let wake =
                    |waiter: *const Option<Thread>| unsafe { &*waiter }.as_ref().unwrap().unpark();
                theirs.0.with(wake);
            });
            thread::park();
            // SAFETY: the other thread has looked.
            waiter.0.with_mut(|waiter| unsafe { *waiter = None });
            other.join().unwrap();
        },
    );
    check(
        "a pointer that is gone before",
        "[intro.races] 21",
        false,
        || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                if theirs.1.load(Acquire) == 1 {
                    theirs.0.set(1);
                }
            });
            drop(shared.0.0.read());
            shared.1.store(1, Release);
            other.join().unwrap();
        },
    );
    // A guard has its pointer as a field, and gives the lock up before its fields are dropped.
    let guarded = |use_it: fn(&dpor::cell::MutPtr<usize>, bool)| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                if theirs.1.load(Acquire) == 1 {
                    theirs.0.set(1);
                }
            });
            let pointer = shared.0.0.write();
            use_it(&pointer, false);
            shared.1.store(1, Release);
            use_it(&pointer, true);
            drop(pointer);
            other.join().unwrap();
        }
    };
    check(
        "a pointer that is dropped behind",
        "[intro.races] 21",
        false,
        guarded(|pointer, behind| {
            if !behind {
                // SAFETY: the detector sees what is done with it.
                unsafe { *pointer.deref() = 2 };
            }
        }),
    );
    check(
        "a pointer that is used behind",
        "[intro.races] 21",
        true,
        guarded(|pointer, behind| {
            if behind {
                // SAFETY: as above.
                unsafe { *pointer.deref() = 2 };
            }
        }),
    );
    // What the thread does apart from the pointer counts, though the pointer ends last and ended before.
    let apart = |writes: bool, use_it: fn(&Plain)| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                if theirs.1.load(Acquire) == 1 {
                    theirs.0.set(1);
                }
            });
            let pointers = match writes {
                true => (Some(shared.0.0.write()), None),
                false => (None, Some(shared.0.0.read())),
            };
            shared.1.store(1, Release);
            use_it(&shared.0);
            drop(pointers);
            other.join().unwrap();
        }
    };
    let read = |plain: &Plain| assert!(plain.get() < 2);
    let write = |plain: &Plain| plain.set(1);
    for (behind, pointer, use_it) in [
        ("a read behind a pointer to write", true, read as fn(&Plain)),
        ("a write behind a pointer to write", true, write),
        ("a read behind a pointer to read", false, read),
        ("a write behind a pointer to read", false, write),
    ] {
        check(behind, "[intro.races] 21", true, apart(pointer, use_it));
    }
}

/// The lines of the report of a race with an access of main's that lasts.
fn lasting(use_it: fn(&Plain, &AtomicUsize, &mut dyn FnMut())) -> Vec<String> {
    let text = race(move || {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            if theirs.1.load(Acquire) == 1 {
                theirs.0.set(1);
            }
        });
        let mut other = Some(other);
        let mut join = || other.take().map_or((), |other| other.join().unwrap());
        use_it(&shared.0, &shared.1, &mut join);
        join();
    });
    text.expect("a race").lines().map(str::to_owned).collect()
}

#[test]
fn a_report_says_up_to_when_an_access_has_lasted_and_its_table_has_where() {
    let lines = lasting(|plain, told, _| plain.0.with_mut(|_| told.store(1, Release)));
    let text = lines.join("\n");
    assert!(
        lines[1].ends_with(", after its event 2 until after its event 3"),
        "{text}"
    );
    let row = |what: &str| {
        let row = |line: &String| line.trim_start().starts_with("-") && line.contains(what);
        lines.iter().position(row)
    };
    let event = |number: &str| {
        let mut lines = lines.iter();
        lines.position(|line| line.trim_start().replacen('*', " ", 1).starts_with(number))
    };
    let in_order = [
        event("2  spawn"),
        row("write plain.0 begins"),
        event("3  told := 1"),
        row("(write plain.0 ends)"),
        row("write plain.0  "),
    ];
    assert!(in_order.iter().all(Option::is_some), "{text}");
    assert!(in_order.is_sorted(), "{text}");

    let lines = lasting(|plain, told, join| {
        plain.0.with(|_| {
            told.store(1, Release);
            join();
        });
    });
    let text = lines.join("\n");
    assert!(
        lines[1].ends_with(", after its event 2, and goes on"),
        "{text}"
    );
    assert!(text.contains("read plain.0 begins"), "{text}");
    assert!(!text.contains("ends)"), "{text}");
}

#[test]
fn an_access_counts_though_an_older_pointer_to_its_cell_is_dropped_behind_it() {
    // Whether the pointer writes, and whether the access behind the last thing that is told does.
    for (old, new) in [(true, true), (true, false), (false, true), (false, false)] {
        check(
            &format!("a pointer that writes: {old}, an access that does: {new}"),
            "[intro.races] 21",
            true,
            move || {
                let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
                let theirs = shared.clone();
                let other = thread::spawn(move || {
                    if theirs.1.load(Acquire) == 1 {
                        theirs.0.set(1);
                    }
                });
                let cell = &shared.0.0;
                let pointers = (old.then(|| cell.write()), (!old).then(|| cell.read()));
                shared.1.load(Acquire);
                shared.1.store(1, Release);
                match new {
                    // SAFETY: whether the access is ordered is what is asked.
                    true => cell.with_mut(|value| unsafe { *value = 2 }),
                    false => cell.with(|_| ()),
                }
                drop(pointers);
                other.join().unwrap();
            },
        );
    }
}

#[test]
fn accesses_that_overlap_race_only_if_one_of_them_writes() {
    check("two readers at once", "[intro.races] 21", false, || {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let look = |it: &(Plain, AtomicUsize)| {
            it.0.0.with(|value| {
                it.1.fetch_add(1, Relaxed);
                // SAFETY: nobody writes to it.
                unsafe { *value }
            });
        };
        let other = thread::spawn(move || look(&theirs));
        look(&shared);
        other.join().unwrap();
    });
}

/// Where a cell is.
#[derive(Clone, Copy)]
struct Cell(*mut UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what is asked.
unsafe impl Send for Cell {}

impl Cell {
    fn get(self) -> *mut UnsafeCell<usize> {
        self.0
    }
}

#[test]
fn an_access_may_last_until_behind_the_last_event_of_its_thread() {
    check(
        "a free behind who has joined who writes",
        "[thread.thread.member] 4, [intro.races] 21",
        true,
        || {
            static BEAT: AtomicUsize = AtomicUsize::new(0);
            let cell = Cell(Box::into_raw(Box::new(UnsafeCell::new(7))));
            // SAFETY: only who is to free it does.
            let free = move || drop(unsafe { Box::from_raw(cell.get()) });
            let flag = Arc::new(AtomicUsize::new(0));
            let theirs = flag.clone();
            let one = thread::spawn(move || {
                // SAFETY: it is freed behind this thread.
                unsafe { &*cell.get() }.with_mut(|value| {
                    BEAT.store(1, Relaxed);
                    // SAFETY: as above.
                    unsafe { *value = 1 };
                });
            });
            let other = thread::spawn(move || {
                one.join().unwrap();
                theirs.store(1, Relaxed);
            });
            let done = flag.load(Relaxed) == 1;
            if done {
                free();
            }
            other.join().unwrap();
            if !done {
                free();
            }
        },
    );
}
