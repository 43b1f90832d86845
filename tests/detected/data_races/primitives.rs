//! Do threads, locks, channels and `Arc` order what std promises, and nothing else?

use std::sync::atomic::Ordering::Relaxed;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, Weak, mpsc};
use dpor::thread;

use super::{Plain, check};

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
    check(
        "two groups at one barrier",
        "[thread.barrier.class]: who waits comes after those who arrive in the same phase",
        true,
        || {
            let shared = Arc::new((Plain::default(), Barrier::new(2), AtomicUsize::new(0)));
            let first_group = [true, false].map(|writes| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if writes {
                        shared.0.set(1);
                    }
                    shared.1.wait();
                    shared.2.fetch_add(1, Relaxed);
                })
            });
            let behind_it = |shared: &(Plain, Barrier, AtomicUsize)| {
                while shared.2.load(Relaxed) < 2 {
                    thread::yield_now();
                }
                shared.1.wait();
            };
            let theirs = shared.clone();
            let other = thread::spawn(move || behind_it(&theirs));
            behind_it(&shared);
            shared.0.get();
            for thread in first_group.into_iter().chain([other]) {
                thread.join().unwrap();
            }
        },
    );
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
        "a message that nobody receives",
        "std::sync::mpsc: who drops the receiver drops what is queued, like one who receives it",
        false,
        || {
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let _ = sender.send(Arc::new(Plain::default()));
            });
            drop(receiver);
        },
    );
    check(
        "messages behind one that was received",
        "std::sync::mpsc: who drops the receiver drops what is queued, like one who receives it",
        false,
        || {
            let (sender, receiver) = mpsc::sync_channel(2);
            thread::spawn(move || {
                for _ in 0..2 {
                    let _ = sender.send(Arc::new(Plain::default()));
                }
            });
            let _ = receiver.recv();
            drop(receiver);
        },
    );
    check(
        "after a message that nobody receives was sent",
        "what follows the send is not ordered",
        true,
        || {
            let shared = Arc::new(Plain::default());
            let theirs = shared.clone();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let _ = sender.send(());
                theirs.set(1);
            });
            drop(receiver);
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
    let refused = program(|shared| {
        let _weak = Arc::downgrade(shared);
        Arc::strong_count(shared) == 1 && Arc::get_mut(shared).is_none()
    });
    let why = "a `get_mut` that a weak reference prevents does not look at the others";
    check("get_mut beside a weak reference", why, true, refused);
}

#[test]
fn who_upgrades_a_reference_of_a_cyclic_arc_comes_after_what_was_done_to_make_it() {
    let why = "std stores the first reference with Release, and an upgrade acquires it";
    check("new_cyclic", why, false, || {
        let plain = Arc::new(Plain::default());
        let theirs = plain.clone();
        let mut other = None;
        let whole = Arc::new_cyclic(|weak: &Weak<usize>| {
            let weak = weak.clone();
            other = Some(thread::spawn(move || {
                if weak.upgrade().is_some() {
                    assert_eq!(theirs.get(), 1);
                }
            }));
            plain.set(1);
            1
        });
        other.unwrap().join().unwrap();
        assert_eq!(*whole, 1);
    });
}

#[test]
fn who_gets_what_an_arc_holds_comes_behind_a_weak_reference_that_is_gone() {
    check(
        "get_mut behind the drop of the last weak reference",
        "[intro.races] 21",
        false,
        || {
            let cell = Arc::new(Plain::default());
            let its = cell.clone();
            let mut mine = Arc::new(0);
            let weak = Arc::downgrade(&mine);
            let other = thread::spawn(move || {
                its.set(1);
                drop(weak);
            });
            if Arc::get_mut(&mut mine).is_some() {
                cell.get();
            }
            other.join().unwrap();
        },
    );
}
