//! Which failures have their reports kept?

use std::cell::RefCell;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::alloc::Track;
use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use dpor::{Builder, Failure, hint, thread};

thread_local! {
    /// The schedule to be replayed instead of exploring.
    pub static REPLAY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A failure, by the name of its file.
pub type Named = (&'static str, fn() -> Failure);

/// Each of them.
pub const ALL: &[Named] = &[
    ("lost_update", lost_update),
    ("named_objects", named_objects),
    ("panic_of_a_named_thread", panic_of_a_named_thread),
    ("check_then_act", check_then_act),
    ("back_again", back_again),
    ("torn_read", torn_read),
    ("lock_order", lock_order),
    ("lock_held_twice", lock_held_twice),
    ("read_lock_upgraded", read_lock_upgraded),
    ("lost_wake_up", lost_wake_up),
    ("sender_kept", sender_kept),
    ("livelock", livelock),
    ("too_many_events", too_many_events),
    ("too_many_threads", too_many_threads),
    ("published_too_early", published_too_early),
    ("overwritten_too_early", overwritten_too_early),
    ("published_relaxed", published_relaxed),
    ("freed_too_early", freed_too_early),
    ("used_after_free", used_after_free),
    ("freed_twice", freed_twice),
    ("leaked_node", leaked_node),
    ("leaked_value", leaked_value),
    ("not_deterministic", not_deterministic),
    ("stale_schedule", stale_schedule),
    ("malformed_schedule", malformed_schedule),
    ("dropped_behind_its_thread", dropped_behind_its_thread),
];

pub fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.replay = REPLAY.with(|replay| replay.borrow().clone());
    builder
}

pub fn fails(f: impl Fn() + Send + Sync + 'static) -> Failure {
    *builder().explore(f).expect_err("a failure")
}

/// Runs two threads beside the main one, and waits for both.
pub fn both<T: Send + Sync + 'static>(shared: T, first: fn(&T), second: fn(&T)) -> Arc<T> {
    let shared = Arc::new(shared);
    let handles = [first, second].map(|body| {
        let shared = shared.clone();
        thread::spawn(move || body(&shared))
    });
    for handle in handles {
        handle.join().unwrap();
    }
    shared
}

fn lost_update() -> Failure {
    fails(|| {
        let add = |counter: &AtomicUsize| {
            let seen = counter.load(SeqCst);
            counter.store(seen + 1, SeqCst);
        };
        let counter = both(AtomicUsize::new(0), add, add);
        assert_eq!(counter.load(SeqCst), 2, "an update was lost");
    })
}

fn named_objects() -> Failure {
    fails(|| {
        let counters = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        dpor::name(&*counters, "pair");
        dpor::name(&counters.0, "hits");
        let theirs = counters.clone();
        let other = thread::spawn(move || {
            theirs.0.store(1, SeqCst);
            theirs.1.store(1, SeqCst);
        });
        assert!(counters.0.load(SeqCst) <= counters.1.load(SeqCst), "a miss");
        other.join().unwrap();
    })
}

fn panic_of_a_named_thread() -> Failure {
    fails(|| {
        let stopped = Arc::new(AtomicBool::new(false));
        let theirs = stopped.clone();
        let worker = thread::Builder::new().name("worker".to_owned());
        let worker = worker.spawn(move || {
            assert!(!theirs.load(SeqCst), "still wanted");
        });
        stopped.store(true, SeqCst);
        worker.unwrap().join().unwrap();
    })
}

fn check_then_act() -> Failure {
    fails(|| {
        let withdraw = |balance: &AtomicUsize| {
            if balance.load(SeqCst) >= 80 {
                balance.fetch_sub(80, SeqCst);
            }
        };
        let balance = both(AtomicUsize::new(100), withdraw, withdraw);
        assert!(balance.load(SeqCst) <= 100, "more than there was");
    })
}

fn back_again() -> Failure {
    fails(|| {
        // The top of a stack, and what is below each of its entries.
        let stack = (AtomicUsize::new(1), [0, 2, 0].map(AtomicUsize::new));
        let stack = both(
            stack,
            |(top, below)| {
                let seen = top.load(SeqCst);
                let next = below[seen].load(SeqCst);
                let _ = top.compare_exchange(seen, next, SeqCst, SeqCst);
            },
            |(top, below)| {
                // Takes both entries, and puts the first one back.
                top.store(0, SeqCst);
                below[1].store(0, SeqCst);
                top.store(1, SeqCst);
            },
        );
        let left = stack.0.load(SeqCst);
        assert_ne!(left, 2, "the second entry is back");
    })
}

/// The execution that is found first reads other values than the one that is shown.
fn torn_read() -> Failure {
    struct SeqLock {
        version: AtomicUsize,
        halves: [AtomicUsize; 2],
    }
    impl SeqLock {
        fn write(&self, value: usize) {
            loop {
                let version = self.version.load(Acquire);
                let next = version + 1;
                if version.is_multiple_of(2)
                    && (self.version)
                        .compare_exchange(version, next, AcqRel, Relaxed)
                        .is_ok()
                {
                    break;
                }
                hint::spin_loop();
            }
            self.halves[0].store(value, Release);
            // One line too early.
            self.version.fetch_add(1, Release);
            self.halves[1].store(value, Release);
        }

        fn read(&self) -> [usize; 2] {
            loop {
                let version = self.version.load(Acquire);
                let read = [0, 1].map(|half: usize| self.halves[half].load(Acquire));
                if version.is_multiple_of(2) && self.version.load(Acquire) == version {
                    return read;
                }
                hint::spin_loop();
            }
        }
    }
    fails(|| {
        let lock = Arc::new(SeqLock {
            version: AtomicUsize::new(0),
            halves: [AtomicUsize::new(0), AtomicUsize::new(0)],
        });
        let writers = [1, 2].map(|value| {
            let lock = lock.clone();
            thread::spawn(move || lock.write(value))
        });
        let [first, second] = lock.read();
        assert_eq!(first, second, "half of a write");
        for writer in writers {
            writer.join().unwrap();
        }
    })
}

fn lock_order() -> Failure {
    fails(|| {
        both(
            (Mutex::new(1), Mutex::new(2)),
            |(left, right)| {
                let left = left.lock().unwrap();
                let right = right.lock().unwrap();
                assert_eq!(*left + *right, 3);
            },
            |(left, right)| {
                let right = right.lock().unwrap();
                let left = left.lock().unwrap();
                assert_eq!(*left + *right, 3);
            },
        );
    })
}

fn lock_held_twice() -> Failure {
    fails(|| {
        let lock = Mutex::new(0);
        let first = lock.lock().unwrap();
        let second = lock.lock().unwrap();
        drop((first, second));
    })
}

fn read_lock_upgraded() -> Failure {
    fails(|| {
        let upgrade = |lock: &RwLock<u32>| {
            let seen = lock.read().unwrap();
            *lock.write().unwrap() = *seen + 1;
        };
        both(RwLock::new(0), upgrade, upgrade);
    })
}

fn lost_wake_up() -> Failure {
    fails(|| {
        both(
            (AtomicBool::new(false), Mutex::new(()), Condvar::new()),
            |(ready, lock, changed)| {
                let mut guard = lock.lock().unwrap();
                while !ready.load(SeqCst) {
                    guard = changed.wait(guard).unwrap();
                }
            },
            |(ready, _, changed)| {
                ready.store(true, SeqCst);
                changed.notify_one();
            },
        );
    })
}

fn sender_kept() -> Failure {
    fails(|| {
        let (sender, receiver) = mpsc::channel();
        let theirs = sender.clone();
        let worker = thread::spawn(move || theirs.send(1).unwrap());
        assert_eq!(receiver.iter().sum::<i32>(), 1);
        worker.join().unwrap();
        drop(sender);
    })
}

fn livelock() -> Failure {
    fails(|| {
        let turn = |mine: usize| {
            move |turn: &AtomicUsize| {
                while turn.load(SeqCst) != mine {
                    hint::spin_loop();
                }
            }
        };
        let shared = Arc::new(AtomicUsize::new(0));
        let handles = [1, 2].map(|mine| {
            let (shared, wait) = (shared.clone(), turn(mine));
            thread::spawn(move || wait(&shared))
        });
        for handle in handles {
            handle.join().unwrap();
        }
    })
}

fn too_many_events() -> Failure {
    let mut builder = builder();
    builder.max_branches = 100;
    let failure = builder.explore(|| {
        let x = AtomicUsize::new(0);
        loop {
            x.fetch_add(1, SeqCst);
        }
    });
    *failure.expect_err("a failure")
}

fn too_many_threads() -> Failure {
    let mut builder = builder();
    builder.max_threads = 2;
    let failure = builder.explore(|| {
        both((), |()| (), |()| ());
    });
    *failure.expect_err("a failure")
}

/// Plain memory that threads share.
struct Plain(UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what is to be found.
unsafe impl Sync for Plain {}

impl Plain {
    #[track_caller]
    fn set(&self, value: usize) {
        // SAFETY: as above.
        self.0.with_mut(|it| unsafe { *it = value });
    }

    #[track_caller]
    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|it| unsafe { *it })
    }
}

fn published_too_early() -> Failure {
    fails(|| {
        both(
            (Plain(UnsafeCell::new(0)), AtomicBool::new(false)),
            |(data, ready)| {
                ready.store(true, Release);
                data.set(7);
            },
            |(data, ready)| {
                if ready.load(Acquire) {
                    assert_eq!(data.get(), 7);
                }
            },
        );
    })
}

fn overwritten_too_early() -> Failure {
    fails(|| {
        both(
            (Plain(UnsafeCell::new(0)), AtomicUsize::new(0)),
            |(slot, written)| {
                for item in 1..=2 {
                    slot.set(item);
                    written.store(item, Release);
                }
            },
            |(slot, written)| {
                let seen = written.load(Acquire);
                if seen > 0 {
                    assert!(slot.get() >= seen);
                }
            },
        );
    })
}

fn published_relaxed() -> Failure {
    fails(|| {
        both(
            (Plain(UnsafeCell::new(0)), AtomicBool::new(false)),
            |(data, ready)| {
                data.set(7);
                ready.store(true, Relaxed);
            },
            |(data, ready)| {
                if ready.load(Acquire) {
                    assert_eq!(data.get(), 7);
                }
            },
        );
    })
}

/// A node that is freed by hand.
pub struct Node {
    value: AtomicUsize,
}

pub fn node() -> *mut Node {
    let value = AtomicUsize::new(7);
    std::hint::black_box(Box::into_raw(Box::new(Node { value })))
}

pub fn free(node: *mut Node) {
    // SAFETY: whether it may be freed is what is to be found; the model keeps the memory.
    drop(unsafe { Box::from_raw(node) });
    // A call that is the last thing a function does may take its frame, and its place with it.
    std::hint::black_box(());
}

pub fn look(node: *mut Node) -> usize {
    // SAFETY: as above.
    unsafe { &*node }.value.load(Acquire)
}

fn freed_too_early() -> Failure {
    fails(|| {
        both(
            AtomicPtr::new(node()),
            |head| {
                let node = head.load(Acquire);
                if !node.is_null() {
                    look(node);
                }
            },
            |head| free(head.swap(null_mut(), AcqRel)),
        );
    })
}

fn used_after_free() -> Failure {
    fails(|| {
        let head = AtomicPtr::new(node());
        let stale = head.load(Acquire);
        let head = both(head, |head| free(head.swap(null_mut(), AcqRel)), |_| ());
        assert!(head.load(Acquire).is_null());
        look(stale);
    })
}

fn freed_twice() -> Failure {
    fails(|| {
        let take = |head: &AtomicPtr<Node>| {
            let node = head.load(Acquire);
            if !node.is_null() {
                head.store(null_mut(), Release);
                free(node);
            }
        };
        both(AtomicPtr::new(node()), take, take);
    })
}

fn leaked_node() -> Failure {
    fails(|| {
        let push = |head: &AtomicPtr<Node>| {
            let new = node();
            // It forgets to free the new node if somebody was faster.
            let _ = head.compare_exchange(null_mut(), new, AcqRel, Acquire);
            look(new);
        };
        let head = both(AtomicPtr::new(null_mut()), push, push);
        free(head.load(Acquire));
    })
}

fn leaked_value() -> Failure {
    fails(|| {
        let taken = both(
            (AtomicBool::new(false), Mutex::new(Some(Track::new(5)))),
            |(closed, slot)| {
                if !closed.load(SeqCst) {
                    std::mem::forget(slot.lock().unwrap().take());
                }
            },
            |(closed, _)| closed.store(true, SeqCst),
        );
        drop(taken);
    })
}

fn not_deterministic() -> Failure {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    fails(move || {
        let x = Arc::new(AtomicUsize::new(0));
        match calls.fetch_add(1, SeqCst) % 2 {
            0 => drop(x.load(SeqCst)),
            _ => x.store(2, SeqCst),
        }
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        x.load(SeqCst);
        other.join().unwrap();
    })
}

fn replayed(schedule: &str) -> Failure {
    let mut builder = builder();
    builder.replay = Some(schedule.to_owned());
    let failure = builder.explore(|| {
        let counter = AtomicUsize::new(0);
        counter.store(1, SeqCst);
    });
    *failure.expect_err("a failure")
}

fn stale_schedule() -> Failure {
    replayed("v2 main main.1 main")
}

fn malformed_schedule() -> Failure {
    replayed("v2 main*two")
}

/// The destructor of a thread-local variable stores, once the code of its thread has returned.
fn dropped_behind_its_thread() -> Failure {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    struct Registered;
    impl Drop for Registered {
        fn drop(&mut self) {
            ENDED.store(1, SeqCst);
        }
    }
    dpor::thread_local!(static HERE: Registered = Registered);
    fails(|| {
        let other = thread::spawn(|| {
            HERE.with(|_| ());
            ENDED.load(SeqCst);
        });
        assert_eq!(ENDED.load(SeqCst), 0, "the other thread has ended");
        other.join().unwrap();
    })
}
