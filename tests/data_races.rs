//! Is a data race reported exactly where there is one?
//!
//! Each row is a small program with the line of the standard that decides it. Numbers refer to C++20,
//! whose memory model Rust uses.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use dpor::sync::mpsc;
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use dpor::{Builder, FailureKind, thread};

/// Plain memory that threads share.
#[derive(Default)]
struct Plain(UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what the tests ask; the model runs one thread at a time.
unsafe impl Sync for Plain {}
// SAFETY: it is a number.
unsafe impl Send for Plain {}

impl Plain {
    #[track_caller]
    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }

    #[track_caller]
    fn set(&self, new: usize) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// The report, if `f` has a data race; any other failure fails the test.
fn race(f: impl Fn() + Send + Sync + 'static) -> Option<String> {
    match Builder::new().explore(f) {
        Ok(report) => {
            assert!(report.complete);
            None
        }
        Err(failure) => {
            assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
            Some(failure.to_string())
        }
    }
}

fn check(name: &str, why: &str, racy: bool, f: impl Fn() + Send + Sync + 'static) {
    let found = race(f);
    assert_eq!(
        found.is_some(),
        racy,
        "{name}: {why}\n{}",
        found.unwrap_or_default()
    );
}

/// `publish` runs after a write in one thread, `ready` before a read in the other, if it says yes.
fn message(
    publish: impl Fn(&AtomicUsize) + Send + Sync + 'static,
    ready: impl Fn(&AtomicUsize) -> bool + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    let (publish, ready) = (Arc::new(publish), Arc::new(ready));
    move || {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
        let (theirs, publish) = (shared.clone(), publish.clone());
        let other = thread::spawn(move || {
            theirs.0.set(1);
            publish(&theirs.1);
        });
        if ready(&shared.1) {
            assert_eq!(shared.0.get(), 1);
        }
        other.join().unwrap();
        assert_eq!(shared.0.get(), 1);
    }
}

#[test]
fn message_passing_with_each_pair_of_orderings() {
    for write in [Relaxed, Release, SeqCst] {
        for read in [Relaxed, Acquire, SeqCst] {
            let racy = write == Relaxed || read == Relaxed;
            check(
                &format!("store {write:?}, load {read:?}"),
                "[atomics.order] 2: only a release operation synchronises with an acquire operation",
                racy,
                message(move |x| x.store(1, write), move |x| x.load(read) == 1),
            );
        }
    }
}

#[test]
fn message_passing_through_read_modify_writes() {
    for (order, racy) in [
        (Relaxed, true),
        (Release, false),
        (AcqRel, false),
        (Acquire, true),
    ] {
        check(
            &format!("fetch_add {order:?}"),
            "[atomics.order] 2: a read-modify-write releases with Release and AcqRel",
            racy,
            message(
                move |x| {
                    x.fetch_add(1, order);
                },
                |x| x.load(Acquire) == 1,
            ),
        );
    }
    for (failure, racy) in [(Relaxed, true), (Acquire, false)] {
        check(
            &format!("a compare_exchange that fails with {failure:?}"),
            "[atomics.types.operations] a failed one is a load with the failure ordering",
            racy,
            message(
                |x| x.store(1, Release),
                move |x| x.compare_exchange(5, 6, AcqRel, failure) == Err(1),
            ),
        );
    }
    for (success, racy) in [(Relaxed, true), (Acquire, false), (Release, true)] {
        check(
            &format!("a compare_exchange that succeeds with {success:?}"),
            "[atomics.types.operations] a successful one has the success ordering",
            racy,
            message(
                |x| x.store(1, Release),
                move |x| x.compare_exchange(1, 2, success, Relaxed).is_ok(),
            ),
        );
    }
    for (order, racy) in [(Relaxed, true), (Acquire, false)] {
        check(
            &format!("a swap with {order:?}"),
            "[atomics.order] 2",
            racy,
            message(|x| x.store(1, Release), move |x| x.swap(7, order) == 1),
        );
    }
}

#[test]
fn fences_on_either_and_both_sides() {
    let rows: [(&str, bool, Ordering, Ordering, Ordering, Ordering); 7] = [
        (
            "release fence, relaxed store; acquire load",
            false,
            Release,
            Relaxed,
            Acquire,
            Relaxed,
        ),
        (
            "release store; relaxed load, acquire fence",
            false,
            Relaxed,
            Release,
            Relaxed,
            Acquire,
        ),
        ("both fences", false, Release, Relaxed, Relaxed, Acquire),
        ("SeqCst fences", false, SeqCst, Relaxed, Relaxed, SeqCst),
        ("AcqRel fences", false, AcqRel, Relaxed, Relaxed, AcqRel),
        (
            "an acquire fence where a release fence is needed",
            true,
            Acquire,
            Relaxed,
            Relaxed,
            Acquire,
        ),
        (
            "a release fence where an acquire fence is needed",
            true,
            Release,
            Relaxed,
            Relaxed,
            Release,
        ),
    ];
    for (name, racy, before, write, read, after) in rows {
        let barrier = |order| {
            if order != Relaxed {
                fence(order);
            }
        };
        check(
            name,
            "[atomics.fences] 2-4",
            racy,
            message(
                move |x| {
                    barrier(before);
                    x.store(1, write);
                },
                move |x| {
                    let ready = x.load(read) == 1;
                    barrier(after);
                    ready
                },
            ),
        );
    }
    check(
        "fences on the wrong sides of the accesses",
        "[atomics.fences] 2: the release fence comes before the store",
        true,
        message(
            |x| {
                x.store(1, Relaxed);
                fence(Release);
            },
            |x| {
                fence(Acquire);
                x.load(Relaxed) == 1
            },
        ),
    );
}

#[test]
fn release_sequences() {
    let third = |by: fn(&AtomicUsize)| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let (a, b) = (shared.clone(), shared.clone());
            let writer = thread::spawn(move || {
                a.0.set(1);
                a.1.store(1, Release);
            });
            let middle = thread::spawn(move || {
                if b.1.load(Relaxed) == 1 {
                    by(&b.1);
                }
            });
            if shared.1.load(Acquire) == 2 {
                assert_eq!(shared.0.get(), 1);
            }
            writer.join().unwrap();
            middle.join().unwrap();
        }
    };
    check(
        "continued by a relaxed read-modify-write of another thread",
        "[intro.races] 5: read-modify-writes belong to the release sequence",
        false,
        third(|x| {
            x.fetch_add(1, Relaxed);
        }),
    );
    check(
        "broken by a relaxed store of another thread",
        "[intro.races] 5: a store does not",
        true,
        third(|x| x.store(2, Relaxed)),
    );
    check(
        "broken by a relaxed store of the same thread",
        "[intro.races] 5, since C++20",
        true,
        message(
            |x| {
                x.store(1, Release);
                x.store(2, Relaxed);
            },
            |x| x.load(Acquire) == 2,
        ),
    );
}

#[test]
fn locks_threads_and_channels_order() {
    let two = |first: fn(&Plain), second: fn(&Plain)| {
        move || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let other = thread::spawn(move || first(&theirs));
            second(&shared);
            other.join().unwrap();
        }
    };
    check(
        "nothing",
        "[intro.races] 21",
        true,
        two(|x| x.set(1), |x| x.set(2)),
    );
    check(
        "a write and a read",
        "[intro.races] 21",
        true,
        two(
            |x| x.set(1),
            |x| {
                x.get();
            },
        ),
    );
    check(
        "two reads",
        "[intro.races] 21: one of the two modifies",
        false,
        two(
            |x| {
                x.get();
            },
            |x| {
                x.get();
            },
        ),
    );
    check(
        "before the spawn and after the join",
        "[thread.thread.constr], [thread.thread.member]",
        false,
        || {
            let shared = Arc::new(Plain::default());
            shared.set(1);
            let theirs = shared.clone();
            thread::spawn(move || theirs.set(2)).join().unwrap();
            shared.set(3);
        },
    );
    check(
        "after the spawn",
        "only what comes before a spawn is ordered",
        true,
        || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let other = thread::spawn(move || theirs.set(2));
            shared.set(1);
            other.join().unwrap();
        },
    );
    check(
        "a mutex around both",
        "[thread.mutex.requirements]",
        false,
        || {
            let shared = Arc::new((Plain::default(), Mutex::new(())));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                let _guard = theirs.1.lock().unwrap();
                theirs.0.set(1);
            });
            {
                let _guard = shared.1.lock().unwrap();
                shared.0.set(2);
            }
            other.join().unwrap();
        },
    );
    check(
        "a mutex around one",
        "the other access is not in the critical section",
        true,
        || {
            let shared = Arc::new((Plain::default(), Mutex::new(())));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                let _guard = theirs.1.lock().unwrap();
                theirs.0.set(1);
            });
            shared.0.set(2);
            other.join().unwrap();
        },
    );
    let rwlock = |write_in_reader: bool| {
        move || {
            let shared = Arc::new((Plain::default(), RwLock::new(())));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                let _guard = theirs.1.read().unwrap();
                if write_in_reader {
                    theirs.0.set(1);
                } else {
                    theirs.0.get();
                }
            });
            {
                let _guard = shared.1.read().unwrap();
                shared.0.get();
            }
            {
                let _guard = shared.1.write().unwrap();
                shared.0.set(2);
            }
            other.join().unwrap();
        }
    };
    check(
        "readers that read, a writer that writes",
        "[thread.sharedmutex.requirements]",
        false,
        rwlock(false),
    );
    check(
        "a reader that writes",
        "shared locks do not synchronise with each other",
        true,
        rwlock(true),
    );
    check(
        "a condition variable with its mutex",
        "[thread.condition]",
        false,
        || {
            let shared = Arc::new((Plain::default(), Mutex::new(false), Condvar::new()));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.0.set(1);
                *theirs.1.lock().unwrap() = true;
                theirs.2.notify_one();
            });
            let guard = shared
                .2
                .wait_while(shared.1.lock().unwrap(), |ready| !*ready);
            drop(guard);
            assert_eq!(shared.0.get(), 1);
            other.join().unwrap();
        },
    );
    check("a barrier", "[thread.barrier]", false, || {
        let shared = Arc::new((Plain::default(), Barrier::new(2)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.0.set(1);
            theirs.1.wait();
        });
        shared.1.wait();
        assert_eq!(shared.0.get(), 1);
        other.join().unwrap();
    });
    check("call_once", "[thread.once.callonce]", false, || {
        let shared = Arc::new((Plain::default(), Once::new()));
        let theirs = shared.clone();
        let body = |shared: &(Plain, Once)| {
            shared.1.call_once(|| shared.0.set(1));
            assert_eq!(shared.0.get(), 1);
        };
        let other = thread::spawn(move || body(&theirs));
        body(&shared);
        other.join().unwrap();
    });
    check(
        "a message",
        "std::sync::mpsc: a receive sees what came before the send",
        false,
        || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                theirs.set(1);
                sender.send(()).unwrap();
            });
            receiver.recv().unwrap();
            assert_eq!(shared.get(), 1);
        },
    );
    check(
        "after the message was sent",
        "what follows the send is not ordered",
        true,
        || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                sender.send(()).unwrap();
                theirs.set(1);
            });
            receiver.recv().unwrap();
            shared.get();
        },
    );
    check(
        "unpark and park",
        "std::thread::park: unpark synchronises with park",
        false,
        || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let main = thread::current();
            let other = thread::spawn(move || {
                theirs.set(1);
                main.unpark();
            });
            thread::park();
            assert_eq!(shared.get(), 1);
            other.join().unwrap();
        },
    );
    check("is_finished", "std promises nothing for it", true, || {
        let shared = Arc::new(Plain::default());
        let theirs = shared.clone();
        let other = thread::spawn(move || theirs.set(1));
        if other.is_finished() {
            shared.get();
        }
        other.join().unwrap();
    });
}

/// Two threads that add under a lock made of an atomic.
fn spinlock(lock: Ordering, unlock: Ordering) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((Plain::default(), AtomicBool::new(false)));
        let add = move |shared: &(Plain, AtomicBool)| {
            while shared.1.swap(true, lock) {
                thread::yield_now();
            }
            shared.0.set(shared.0.get() + 1);
            shared.1.store(false, unlock);
        };
        let theirs = shared.clone();
        let other = thread::spawn(move || add(&theirs));
        add(&shared);
        other.join().unwrap();
        assert_eq!(shared.0.get(), 2);
    }
}

#[test]
fn spinlocks() {
    check(
        "Acquire and Release",
        "[atomics.order] 2",
        false,
        spinlock(Acquire, Release),
    );
    check(
        "SeqCst",
        "[atomics.order] 2",
        false,
        spinlock(SeqCst, SeqCst),
    );
    check(
        "a relaxed unlock",
        "[atomics.order] 2",
        true,
        spinlock(Acquire, Relaxed),
    );
    check(
        "a relaxed lock",
        "[atomics.order] 2",
        true,
        spinlock(Relaxed, Release),
    );
}

#[test]
fn reference_counting_by_hand() {
    let counted = |drop: Ordering, last: Ordering| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(2)));
            let release = move |shared: &(Plain, AtomicUsize)| {
                shared.0.get();
                if shared.1.fetch_sub(1, drop) == 1 {
                    if last != Relaxed {
                        fence(last);
                    }
                    // The payload is destroyed.
                    shared.0.set(9);
                }
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || release(&theirs));
            release(&shared);
            other.join().unwrap();
        }
    };
    check(
        "Release, and an Acquire fence for the last",
        "[atomics.fences] 4",
        false,
        counted(Release, Acquire),
    );
    check(
        "AcqRel",
        "[atomics.order] 2",
        false,
        counted(AcqRel, Relaxed),
    );
    check(
        "a relaxed decrement",
        "[atomics.order] 2",
        true,
        counted(Relaxed, Acquire),
    );
    check(
        "without the fence",
        "[atomics.order] 2: the last decrement does not acquire",
        true,
        counted(Release, Relaxed),
    );
}

#[test]
fn double_checked_initialisation() {
    let init = |check: Ordering, publish: Ordering| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicBool::new(false), Mutex::new(())));
            let get = move |shared: &(Plain, AtomicBool, Mutex<()>)| {
                if !shared.1.load(check) {
                    let _guard = shared.2.lock().unwrap();
                    if !shared.1.load(Relaxed) {
                        shared.0.set(7);
                        shared.1.store(true, publish);
                    }
                }
                assert_eq!(shared.0.get(), 7);
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || get(&theirs));
            get(&shared);
            other.join().unwrap();
        }
    };
    check(
        "Acquire and Release",
        "[atomics.order] 2",
        false,
        init(Acquire, Release),
    );
    check(
        "a relaxed check",
        "[atomics.order] 2",
        true,
        init(Relaxed, Release),
    );
    check(
        "a relaxed publication",
        "[atomics.order] 2",
        true,
        init(Acquire, Relaxed),
    );
}

#[test]
fn an_access_lasts_until_its_closure_returns() {
    check(
        "a write inside of another thread's `with`",
        "[intro.races] 21",
        true,
        || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                if theirs.1.load(Acquire) == 1 {
                    theirs.0.set(1);
                }
            });
            shared.0.0.with(|_| shared.1.store(1, Release));
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

#[test]
fn a_report_names_both_accesses_and_the_orderings_that_are_too_weak() {
    let text = race(message(|x| x.store(1, Relaxed), |x| x.load(Acquire) == 1));
    let text = text.expect("a race");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("data race: main.1 and main access"),
        "{text}"
    );
    assert!(
        lines[1].contains("main.1     write  at tests/data_races.rs:"),
        "{text}"
    );
    assert!(
        lines[2].contains("main       read   at tests/data_races.rs:"),
        "{text}"
    );
    assert!(lines[3].contains("is Relaxed, and main's load"), "{text}");
    assert!(
        lines[3].contains("with at least Release and Acquire the two are ordered here"),
        "{text}"
    );
    // The schedule leads there again.
    let schedule = lines
        .iter()
        .find_map(|line| line.strip_prefix("schedule   "));
    let mut builder = Builder::new();
    builder.replay = schedule.map(str::to_owned);
    let again = builder.explore(message(|x| x.store(1, Relaxed), |x| x.load(Acquire) == 1));
    assert_eq!(again.expect_err("again").kind(), FailureKind::DataRace);
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
    let lines = lasting(|plain, told, _| plain.0.with(|_| told.store(1, Release)));
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
        row("read plain.0 begins"),
        event("3  told := 1"),
        row("(read plain.0 ends)"),
        row("write"),
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
fn a_compare_exchange_that_fails_is_told_by_the_ordering_that_it_fails_with() {
    let fails = |x: &AtomicUsize| x.compare_exchange(0, 2, AcqRel, Relaxed) == Err(1);
    let text = race(message(|x| x.store(1, Release), fails)).expect("a race");
    let line = text.lines().nth(3).expect("four lines");
    assert!(
        line.contains(" is Relaxed where it fails: with at least"),
        "{text}"
    );
    assert!(
        line.contains(" is Release, and main's compare-exchange"),
        "{text}"
    );
}

#[test]
fn memory_that_is_used_again_is_not_confused_with_what_was_there() {
    check(
        "boxes and stack slots that follow each other",
        "an object's lifetime ends",
        false,
        || {
            for round in 0..3 {
                let shared = Box::new(Plain::default());
                let local = Plain::default();
                thread::scope(|s| {
                    s.spawn(|| shared.set(round));
                    s.spawn(|| local.set(round));
                });
                assert_eq!(shared.get() + local.get(), 2 * round);
            }
        },
    );
}

#[test]
fn cells_on_a_stack_that_is_used_again_are_others() {
    let local = || {
        let cell = Plain::default();
        cell.set(1);
        assert_eq!(cell.get(), 1);
    };
    check("locals", "each thread has its own cell", false, move || {
        let threads = [thread::spawn(local), thread::spawn(local)];
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn being_alone_is_known_from_get_mut_and_not_from_a_count() {
    let program = |alone: fn(&mut Arc<Plain>) -> bool| {
        move || {
            let mut shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.set(1);
                drop(theirs);
            });
            if alone(&mut shared) {
                assert_eq!(shared.get(), 1);
            }
            other.join().unwrap();
        }
    };
    let counted = program(|shared| Arc::strong_count(shared) == 1);
    let why = "std promises no synchronisation of `strong_count`, which is a relaxed load";
    check("strong_count", why, true, counted);
    let got = program(|shared| Arc::get_mut(shared).is_some());
    let why = "`get_mut` acquires what the last drop released";
    check("get_mut", why, false, got);
}

/// A node that one thread makes and another one finds.
struct Node {
    value: UnsafeCell<usize>,
    mark: AtomicUsize,
}

/// One thread publishes a node with this ordering; another one, that sees it with this, does this to it.
fn published(
    write: Ordering,
    read: Ordering,
    look: impl Fn(&Node) + Copy + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let head = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let theirs = head.clone();
        let other = thread::spawn(move || {
            let node = Box::new(Node {
                value: UnsafeCell::new(7),
                mark: AtomicUsize::new(0),
            });
            theirs.store(Box::into_raw(node), write);
        });
        let found: *mut Node = head.load(read);
        // SAFETY: nobody frees the node before both threads are at their ends.
        if let Some(node) = unsafe { found.as_ref() } {
            look(node);
        }
        other.join().unwrap();
        // SAFETY: the other thread has ended, and this one does not look any more.
        drop(unsafe { Box::from_raw(head.load(Relaxed)) });
    }
}

#[test]
fn what_is_in_a_new_block_may_be_used_by_who_has_learnt_of_it() {
    // SAFETY: whether the access is ordered is what is to be found.
    let value = |node: &Node| assert_eq!(node.value.with(|it| unsafe { *it }), 7);
    let mark = |node: &Node| assert_eq!(node.mark.load(Acquire), 0);
    let again = |node: &Node| {
        node.mark.store(1, Relaxed);
    };
    for (write, read, racy) in [
        (Release, Acquire, false),
        (SeqCst, SeqCst, false),
        (Relaxed, Acquire, true),
        (Release, Relaxed, true),
        (Relaxed, Relaxed, true),
    ] {
        let why = match racy {
            false => "the pointer is published",
            true => "the node is made without anybody being told",
        };
        check("a cell in a node", why, racy, published(write, read, value));
        check(
            "an atomic in a node",
            why,
            racy,
            published(write, read, mark),
        );
        check(
            "a store to a node",
            why,
            racy,
            published(write, read, again),
        );
    }
}

#[test]
fn a_report_says_what_was_made_where_and_what_would_have_told_of_it() {
    // SAFETY: as above.
    let value = |node: &Node| assert_eq!(node.value.with(|it| unsafe { *it }), 7);
    let text = race(published(Relaxed, Acquire, value)).expect("a race");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("data race: main uses "), "{text}");
    assert!(
        first.contains("nothing orders that behind the making of it by main.1"),
        "{text}"
    );
    // A build without symbols has the line of the event before.
    let made = text.lines().nth(1).unwrap_or_default();
    assert!(made.starts_with("  main.1     allocate "), "{text}");
    assert!(made.contains("tests/data_races.rs:"), "{text}");
    assert!(text.contains("is Relaxed, and main's load"), "{text}");
    // That both have used it is no answer to how the one should have learnt of it.
    let text = race(|| {
        let head = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let theirs = head.clone();
        let other = thread::spawn(move || {
            let mark = Box::new(AtomicUsize::new(0));
            mark.fetch_add(1, Relaxed);
            theirs.store(Box::into_raw(mark), Relaxed);
        });
        let found: *mut AtomicUsize = head.load(Acquire);
        // SAFETY: it is not freed before both threads are at their ends.
        if let Some(mark) = unsafe { found.as_ref() } {
            mark.fetch_add(1, Relaxed);
        }
        other.join().unwrap();
        // SAFETY: the other thread has ended, and this one does not look any more.
        drop(unsafe { Box::from_raw(head.load(Relaxed)) });
    });
    let text = text.expect("a race");
    assert!(
        text.contains("is Relaxed, and main's load theirs"),
        "{text}"
    );
}

#[test]
fn what_was_handed_over_by_a_primitive_that_is_not_swapped_is_told_so() {
    const HINT: &str = "  nothing that dpor sees has brought it to main.2: swap the import";
    let text = race(|| {
        let slot = std::sync::Arc::new(std::sync::Mutex::new(None));
        let theirs = slot.clone();
        let one = thread::spawn(move || {
            *theirs.lock().unwrap() = Some(Box::new(AtomicUsize::new(1)));
        });
        let other = thread::spawn(move || {
            if let Some(number) = &*slot.lock().unwrap() {
                number.load(Relaxed);
            }
        });
        one.join().unwrap();
        other.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(text.contains(HINT), "{text}");
    // A third thread hands it on, which is seen, but too weak.
    let text = race(|| {
        let [first, second] = [0; 2].map(|_| Arc::new(AtomicPtr::new(std::ptr::null_mut())));
        let (here, there) = (first.clone(), second.clone());
        let one = thread::spawn(move || {
            let number = Box::leak(Box::new(AtomicUsize::new(1)));
            here.store(number, Relaxed);
        });
        let other = thread::spawn(move || {
            let number: *mut AtomicUsize = there.load(Relaxed);
            // SAFETY: it is leaked.
            if let Some(number) = unsafe { number.as_ref() } {
                number.load(Relaxed);
            }
        });
        second.store(first.load(Relaxed), Relaxed);
        one.join().unwrap();
        other.join().unwrap();
        let number = first.load(Relaxed);
        // SAFETY: both threads have ended.
        drop(unsafe { Box::from_raw(number) });
    });
    let text = text.expect("a race");
    assert!(!text.contains("nothing that dpor sees"), "{text}");
}

#[test]
fn a_reference_that_comes_too_late_is_not_called_publication() {
    for (leave, come) in [
        ("fetch_sub", Relaxed),
        ("fetch_sub", Acquire),
        ("swap", Relaxed),
    ] {
        let text = race(move || {
            let shared = Arc::new((AtomicUsize::new(1), Plain::default()));
            let theirs = shared.clone();
            let last = thread::spawn(move || {
                let references = &theirs.0;
                let left = match leave {
                    "swap" => references.swap(0, Release),
                    _ => references.fetch_sub(1, Release),
                };
                if left == 1 {
                    fence(Acquire);
                    theirs.1.set(7);
                }
            });
            // One step too many: what was looked at may have gone when the reference is taken.
            if shared.0.load(Relaxed) > 0 {
                shared.0.fetch_add(1, come);
                shared.1.get();
            }
            last.join().unwrap();
        });
        let text = text.expect("a race");
        assert!(!text.contains("published before"), "{leave}: {text}");
    }
}

#[test]
fn the_ordering_that_is_named_is_the_one_that_was_forgotten() {
    // A count by hand whose last owner does not acquire. That the others' additions are relaxed is right.
    let text = race(|| {
        let count = Arc::new((AtomicUsize::new(1), Plain::default()));
        let leave = |count: &(AtomicUsize, Plain)| {
            if count.0.fetch_sub(1, Release) == 1 {
                count.1.set(7);
            }
        };
        let theirs = count.clone();
        count.0.fetch_add(1, Relaxed);
        let other = thread::spawn(move || {
            theirs.0.fetch_add(1, Relaxed);
            leave(&theirs);
            leave(&theirs);
        });
        count.1.get();
        leave(&count);
        other.join().unwrap();
    });
    let text = text.expect("a race");
    let link = text.lines().find(|line| line.contains("with at least"));
    let link = link.expect("a link");
    assert!(
        link.contains("with at least AcqRel the two are ordered"),
        "{link}"
    );
    assert!(
        link.contains("'s sub on count.0 at ") && !link.contains("'s add"),
        "{text}"
    );
    assert!(link.contains("is Release, and main"), "{text}");
}
