//! Is a wrong use of heap memory found, and a right one left in peace?

use std::alloc::{Layout, dealloc};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex};
use dpor::{Algorithm, Builder, Failure, FailureKind, thread};

/// The failure of `f`, which must have one of this kind.
fn fails(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) -> Failure {
    let failure = *Builder::new().explore(f).expect_err("a failure");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure
}

/// The number of executions of `f`, which must have no failure.
fn passes(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().explore(f).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.complete);
    report.executions
}

/// Whether each of these texts is in the report, in this order.
#[track_caller]
fn tells(failure: &Failure, texts: &[&str]) {
    let report = failure.to_string();
    let mut rest = report.as_str();
    for text in texts {
        let at = rest.find(text);
        let at = at.unwrap_or_else(|| panic!("`{text}` is not in, or too early in\n{report}"));
        rest = &rest[at + text.len()..];
    }
}

/// A node of a list, to be freed by hand.
struct Node {
    value: AtomicUsize,
    plain: UnsafeCell<usize>,
}

/// A pointer to a node, for threads.
struct Slot(AtomicPtr<Node>);

impl Slot {
    fn full() -> Slot {
        Slot(AtomicPtr::new(node()))
    }
}

fn node() -> *mut Node {
    // The optimiser leaves out what is allocated and freed without being used in between.
    std::hint::black_box(Box::into_raw(Box::new(Node {
        value: AtomicUsize::new(7),
        plain: UnsafeCell::new(7),
    })))
}

fn free(node: *mut Node) {
    // SAFETY: whether nobody frees it before or uses it later is what these tests are about; the
    // model keeps the memory until the execution ends.
    drop(unsafe { Box::from_raw(node) });
}

fn value(node: *mut Node) -> usize {
    // SAFETY: as in `free`.
    unsafe { &*node }.value.load(Acquire)
}

/// Runs `first` in a new thread and `second` in the main one, and frees what is left.
fn beside(first: fn(&Slot), second: fn(&Slot)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let slot = Arc::new(Slot::full());
        let theirs = slot.clone();
        let other = thread::spawn(move || first(&theirs));
        second(&slot);
        other.join().unwrap();
        let left = slot.0.load(Acquire);
        if !left.is_null() {
            free(left);
        }
    }
}

fn take_and_free(slot: &Slot) {
    let node = slot.0.swap(null_mut(), AcqRel);
    if !node.is_null() {
        free(node);
    }
}

/// Keeps the pointer that the slot had at first, waits for a thread that frees the node, and calls `use_it`.
fn after_the_free(use_it: fn(*mut Node)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let slot = Arc::new(Slot::full());
        let theirs = slot.clone();
        let stale = slot.0.load(Acquire);
        thread::spawn(move || take_and_free(&theirs))
            .join()
            .unwrap();
        use_it(stale);
    }
}

#[test]
fn a_shim_that_is_used_after_its_block_was_freed() {
    let look = |node| {
        value(node);
    };
    let failure = fails(FailureKind::UseAfterFree, after_the_free(look));
    tells(
        &failure,
        &[
            "use after free: main uses what is in a block that has been freed",
            "main       load ",
            "at tests/memory.rs:",
            "main.1     free ",
            "at tests/memory.rs:",
            "the block: 16 bytes, allocated by main at tests/memory.rs:",
        ],
    );
}

#[test]
fn a_cell_that_is_used_after_its_block_was_freed() {
    // SAFETY: as in `free`.
    let write = |node: *mut Node| unsafe { (*node).plain.with_mut(|value| *value = 1) };
    let failure = fails(FailureKind::UseAfterFree, after_the_free(write));
    tells(
        &failure,
        &[
            "use after free: main",
            "write (*node).plain",
            "main.1     free",
        ],
    );
}

#[test]
fn a_use_that_nothing_orders_before_the_free() {
    let look = |slot: &Slot| {
        let node = slot.0.load(Acquire);
        if !node.is_null() {
            value(node);
        }
    };
    let failure = fails(FailureKind::DataRace, beside(take_and_free, look));
    tells(
        &failure,
        &[
            "data race: main.1 frees the block, and nothing orders main's load value before that",
            "main       value = 7 (Acquire) at tests/memory.rs:",
            "main.1     free ",
            " at tests/memory.rs:",
            "the block: 16 bytes, allocated by main at tests/memory.rs:",
        ],
    );
}

#[test]
fn a_block_that_two_threads_free() {
    let free_it = |slot: &Slot| {
        let node = slot.0.load(Acquire);
        if !node.is_null() {
            free(node);
            slot.0.store(null_mut(), Release);
        }
    };
    let failure = fails(FailureKind::WrongFree, beside(free_it, free_it));
    tells(
        &failure,
        &[
            "double free: ",
            "free again   at tests/memory.rs:",
            "free         at tests/memory.rs:",
        ],
    );
    assert_eq!(passes(beside(take_and_free, take_and_free)), 2);
}

#[test]
fn a_block_that_is_freed_with_another_layout_or_from_its_middle() {
    let wrong = |size: usize, align: usize, offset: usize| {
        fails(FailureKind::WrongFree, move || {
            let node = node().cast::<u8>();
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: it is not: that is what is to be found before it does any harm.
            unsafe { dealloc(node.add(offset), layout) };
            thread::yield_now();
        })
    };
    tells(
        &wrong(24, 8, 0),
        &["free with a wrong layout: main frees 16 bytes aligned to 8 as 24 bytes aligned to 8"],
    );
    tells(
        &wrong(16, 4, 0),
        &["free with a wrong layout: main frees 16 bytes aligned to 8 as 16 bytes aligned to 4"],
    );
    tells(
        &wrong(8, 8, 8),
        &["free of no block: main frees an address 8 bytes inside a block of 16 bytes"],
    );
}

#[test]
fn a_free_that_must_not_be_is_found_even_if_nothing_follows_it() {
    let twice = || {
        let node = node();
        free(node);
        free(node);
    };
    fails(FailureKind::WrongFree, twice);
    let twice_and_panic = || {
        let node = node();
        free(node);
        free(node);
        panic!("what it led to");
    };
    fails(FailureKind::WrongFree, twice_and_panic);
}

#[test]
fn a_block_that_one_path_forgets() {
    let lose = |slot: &Slot| {
        let node = slot.0.swap(null_mut(), AcqRel);
        if !node.is_null() && value(node) == 8 {
            return;
        }
        if !node.is_null() {
            free(node);
        }
    };
    let change = |slot: &Slot| {
        let node = slot.0.swap(null_mut(), AcqRel);
        if !node.is_null() {
            // SAFETY: it has been taken out, so it is ours.
            unsafe { &*node }.value.store(8, Release);
            slot.0.store(node, Release);
        }
    };
    let failure = fails(FailureKind::Leak, beside(change, lose));
    tells(
        &failure,
        &[
            "leak: a block of the model is still allocated when every thread has finished",
            "the block: 16 bytes, allocated by main at tests/memory.rs:",
            "value in it",
            "`dpor::alloc::may_leak(&value)`",
        ],
    );
    assert!(passes(beside(change, take_and_free)) > 1);
}

#[test]
fn a_block_without_objects_is_the_models_if_a_pointer_to_it_was_published() {
    let publish = |keep: bool| {
        move || {
            let slot = AtomicPtr::new(null_mut());
            slot.store(Box::into_raw(Box::new(5_u64)), Release);
            let taken = slot.swap(null_mut(), Acquire);
            if !keep {
                // SAFETY: it comes from the box above and has been taken out.
                drop(unsafe { Box::from_raw(taken) });
            }
        }
    };
    let failure = fails(FailureKind::Leak, publish(true));
    tells(
        &failure,
        &["the block: 8 bytes, allocated by main at tests/memory.rs:"],
    );
    assert_eq!(passes(publish(false)), 1);
}

#[test]
fn what_a_failed_compare_exchange_has_offered_is_the_models_too() {
    let first_one_wins = |frees: bool| {
        move || {
            let slot = Arc::new(AtomicPtr::new(null_mut()));
            let offer = move |slot: &AtomicPtr<u64>| {
                let mine = Box::into_raw(Box::new(5));
                let lost = slot.compare_exchange(null_mut(), mine, AcqRel, Acquire);
                if lost.is_err() && frees {
                    // SAFETY: nobody else has seen it.
                    drop(unsafe { Box::from_raw(mine) });
                }
            };
            let theirs = slot.clone();
            let other = thread::spawn(move || offer(&theirs));
            offer(&slot);
            other.join().unwrap();
            // SAFETY: one of the two has put it there, and all that used it is over.
            drop(unsafe { Box::from_raw(slot.swap(null_mut(), Acquire)) });
        }
    };
    let failure = fails(FailureKind::Leak, first_one_wins(false));
    tells(&failure, &["the block: 8 bytes, allocated by main"]);
    assert_eq!(passes(first_one_wins(true)), 2);
}

#[test]
fn references_in_a_circle_are_leaked() {
    struct Circle(Mutex<Option<Arc<Circle>>>);
    let failure = fails(FailureKind::Leak, || {
        let circle = Arc::new(Circle(Mutex::new(None)));
        *circle.0.lock().unwrap() = Some(circle.clone());
    });
    tells(&failure, &["leak: a block", "arc circle"]);
}

#[test]
fn what_is_lost_before_it_was_used_is_leaked() {
    fn boxed() -> *mut u32 {
        Box::into_raw(Box::new(5))
    }
    for lose in [
        || assert!(!AtomicPtr::new(boxed()).swap(null_mut(), SeqCst).is_null()),
        || assert!(!AtomicPtr::new(boxed()).load(SeqCst).is_null()),
        || std::mem::forget(Arc::new(5)),
        || {
            assert!(
                !AtomicPtr::new(Arc::into_raw(Arc::new(5)).cast_mut())
                    .swap(null_mut(), SeqCst)
                    .is_null()
            )
        },
    ] {
        let failure = fails(FailureKind::Leak, lose);
        tells(
            &failure,
            &["leak: a block", "(execution 1,", "allocated by main"],
        );
    }
    passes(|| {
        let first = AtomicPtr::new(boxed());
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(first.swap(null_mut(), SeqCst)) });
        // SAFETY: the pointer is that of an `Arc` that was forgotten.
        drop(unsafe { Arc::from_raw(Arc::into_raw(Arc::new(5))) });
    });
}

#[test]
fn what_may_leak_is_not_told() {
    let leak = |forgive: bool| {
        move || {
            let counter: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
            if forgive {
                dpor::alloc::may_leak(counter);
            }
            counter.store(1, Relaxed);
        }
    };
    fails(FailureKind::Leak, leak(false));
    assert_eq!(passes(leak(true)), 1);
    let mut builder = Builder::new();
    builder.check_leaks = false;
    assert!(builder.explore(leak(false)).is_ok());
}

#[test]
fn what_the_test_keeps_for_itself_and_what_statics_lead_to_is_no_leak() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let executions = passes(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        log.lock().unwrap().push(format!("saw {}", x.load(SeqCst)));
        other.join().unwrap();
    });
    assert_eq!(seen.lock().unwrap().len() as u64, executions);

    // What hangs from a static is reachable until the process ends.
    static HEAD: AtomicPtr<Node> = AtomicPtr::new(null_mut());
    let executions = passes(|| {
        HEAD.store(node(), Release);
        assert_eq!(value(HEAD.load(Acquire)), 7);
    });
    assert_eq!(executions, 1);
}

#[test]
fn a_variable_of_a_thread_that_has_ended() {
    /// A pointer for another thread.
    struct Sent(*const AtomicUsize);
    // SAFETY: it is a number as far as this test is concerned.
    unsafe impl Send for Sent {}
    let failure = fails(FailureKind::UseAfterFree, || {
        let other = thread::spawn(|| {
            let local = AtomicUsize::new(3);
            local.store(4, SeqCst);
            Sent(&raw const local)
        });
        let Sent(dangling) = other.join().unwrap();
        // SAFETY: it is not; the stack is there as long as the model, so nothing is read that is not.
        unsafe { &*dangling }.load(SeqCst);
    });
    tells(
        &failure,
        &["main uses a variable on the stack of main.1, which has ended"],
    );
}

#[test]
fn a_block_that_grows_is_another_one() {
    let grow = |reserve: usize| {
        move || {
            let mut list = Vec::with_capacity(reserve);
            list.push(AtomicUsize::new(1));
            let first: *const AtomicUsize = &raw const list[0];
            list.push(AtomicUsize::new(2));
            // SAFETY: only where the list has not moved; the model keeps the memory either way.
            assert_eq!(unsafe { &*first }.load(SeqCst), 1);
        }
    };
    fails(FailureKind::UseAfterFree, grow(1));
    assert_eq!(passes(grow(2)), 1);
}

#[test]
fn plain_accesses_to_an_atomic_must_be_ordered_with_its_operations() {
    let unsync = |order| {
        move || {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.0.store(1, Relaxed);
                theirs.1.store(1, order);
            });
            if shared.1.load(Acquire) == 1 {
                // SAFETY: that nobody writes it now is what is checked.
                assert_eq!(unsafe { shared.0.unsync_load() }, 1);
            }
            other.join().unwrap();
        }
    };
    assert_eq!(passes(unsync(Release)), 2);
    let failure = fails(FailureKind::DataRace, unsync(Relaxed));
    tells(
        &failure,
        &[
            "data race",
            "theirs.0 := 1",
            "(Relaxed)",
            "with at least Release and Acquire",
        ],
    );
    // The other way round: the plain access is first.
    let failure = fails(FailureKind::DataRace, || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        // SAFETY: that nobody writes it now is what is checked.
        unsafe { x.unsync_load() };
        other.join().unwrap();
    });
    tells(&failure, &["data race: main and main.1"]);
}

#[test]
fn executions_that_are_given_up_leave_no_memory_behind() {
    let run = |executions: usize| {
        let mut builder = Builder::new();
        builder.max_permutations = Some(executions);
        builder.explore(|| {
            let list: Arc<Mutex<Vec<Box<usize>>>> = Arc::new(Mutex::new(Vec::new()));
            let digits = || (0..4).fold(0, |number, _| 10 * number + dpor::choose(10));
            let number = digits();
            let theirs = list.clone();
            let other = thread::spawn(move || theirs.lock().unwrap().push(Box::new(number)));
            dpor::assume(number == 0);
            other.join().unwrap();
        })
    };
    // What is made once in a process is made by now.
    assert!(run(100).is_ok());
    let before = in_use();
    let report = run(10_000).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.pruned >= 9_000, "{report}");
    let grown = in_use() - before;
    assert!(grown < 1 << 20, "{grown} bytes");
}

/// How many bytes of the heap are in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> isize {
    // SAFETY: the function has no preconditions.
    unsafe { libc::mallinfo2() }.uordblks as isize
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn in_use() -> isize {
    0
}

/// An address for another thread.
struct At(*const AtomicUsize);

// SAFETY: what is at the address is an atomic. Whether it still is, is what the tests are about.
unsafe impl Send for At {}

impl At {
    fn get(&self) -> &AtomicUsize {
        // SAFETY: none. The model ends before memory is used that is no more.
        unsafe { &*self.0 }
    }

    /// Says that it is over, and then says it again.
    fn announce(&self) {
        self.get().store(1, Release);
        self.get().store(2, Release);
    }

    /// Looks twice. Where a stack goes on to be used, what is stored to a variable that is no more may be where a function
    /// returns to.
    fn look(&self) {
        self.get().load(Acquire);
        self.get().load(Acquire);
    }
}

#[test]
fn what_is_freed_must_not_be_about_to_be_used() {
    // The first store is ordered before the free. The second comes too late in each execution with a free, and its
    // thread had come to it before that.
    let failure = fails(FailureKind::UseAfterFree, || {
        let latch = Box::new(AtomicUsize::new(0));
        let at = At(&raw const *latch);
        thread::spawn(move || at.announce());
        match latch.load(Acquire) {
            1 => drop(latch),
            _ => dpor::alloc::may_leak(Box::leak(latch)),
        }
    });
    tells(
        &failure,
        &["use after free: main.1 uses", "store to", "main       free"],
    );
}

#[test]
fn a_thread_must_not_end_while_another_is_about_to_use_its_stack() {
    let failure = fails(FailureKind::UseAfterFree, || {
        let waits = thread::spawn(|| {
            let latch = AtomicUsize::new(0);
            let at = At(&raw const latch);
            thread::spawn(move || at.announce());
            while latch.load(Acquire) == 0 {
                thread::yield_now();
            }
        });
        waits.join().unwrap();
    });
    tells(
        &failure,
        &["use after the end of a thread: main.1.1 uses", "store to"],
    );
    passes(|| {
        let waits = thread::spawn(|| {
            let latch = AtomicUsize::new(0);
            let at = At(&raw const latch);
            thread::spawn(move || at.announce());
            while latch.load(Acquire) != 2 {
                thread::yield_now();
            }
        });
        waits.join().unwrap();
    });
}

#[test]
fn a_use_of_a_stack_must_be_ordered_before_the_end_of_its_thread() {
    // Who waits may wake up and return between the unlock and the notification.
    struct Latch {
        is_set: Mutex<bool>,
        told: Condvar,
    }
    struct To(*const Latch);
    // SAFETY: it is only used where that is tested.
    unsafe impl Send for To {}
    impl To {
        fn set(&self, held: bool) {
            // SAFETY: as above.
            let latch = unsafe { &*self.0 };
            let mut is_set = latch.is_set.lock().unwrap();
            *is_set = true;
            if held {
                latch.told.notify_one();
            }
            drop(is_set);
            if !held {
                latch.told.notify_one();
            }
        }
    }
    let body = |held| {
        move || {
            let waits = thread::spawn(move || {
                let latch = Latch {
                    is_set: Mutex::new(false),
                    told: Condvar::new(),
                };
                let to = To(&raw const latch);
                let sets = thread::spawn(move || to.set(held));
                let mut is_set = latch.is_set.lock().unwrap();
                while !*is_set {
                    is_set = latch.told.wait(is_set).unwrap();
                }
                drop(is_set);
                sets
            });
            waits.join().unwrap().join().unwrap();
        }
    };
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let failure = *builder.explore(body(false)).expect_err("a failure");
        let found = [FailureKind::DataRace, FailureKind::UseAfterFree];
        assert!(found.contains(&failure.kind()), "{failure}");
    }
    let failure = fails(FailureKind::DataRace, body(false));
    tells(
        &failure,
        &[
            "data race: main.1 ends with the variable on its stack, and nothing orders main.1.1's notify_one",
            "  main.1     end",
        ],
    );
    let mut again = Builder::new();
    again.replay = Some(failure.schedule().to_owned());
    assert_eq!(
        again.explore(body(false)).expect_err("a failure").kind(),
        FailureKind::DataRace
    );
    // Under the lock the notification comes before who waits can go on.
    passes(body(true));
}

#[test]
fn a_stack_is_gone_when_the_code_of_its_thread_has_returned() {
    // The first use comes after that, when another thread could have got the stack.
    let uses = |of_main: bool| {
        move || {
            let spawns = || {
                let value = AtomicUsize::new(0);
                let at = At(&raw const value);
                thread::spawn(move || at.look())
            };
            match of_main {
                true => drop(spawns()),
                false => thread::spawn(spawns).join().unwrap().join().unwrap(),
            }
        }
    };
    let failure = fails(FailureKind::UseAfterFree, uses(false));
    tells(
        &failure,
        &["main.1.1 uses a variable on the stack of main.1, which has ended"],
    );
    let cell = || {
        let value = UnsafeCell::new(0);
        let at = Cell(&raw const value);
        thread::spawn(move || at.read())
    };
    let failure = fails(FailureKind::UseAfterFree, move || {
        thread::spawn(cell).join().unwrap().join().unwrap();
    });
    tells(
        &failure,
        &["main.1.1 uses a variable on the stack of main.1, which has ended"],
    );
    let failure = fails(FailureKind::UseAfterFree, || {
        let value = AtomicUsize::new(0);
        let at = At(&raw const value);
        thread::spawn(move || at.look());
    });
    tells(
        &failure,
        &["main.1 uses a variable on the stack of main, which has ended"],
    );
}

/// A cell that a thread knows the address of.
struct Cell(*const UnsafeCell<usize>);

// SAFETY: it is only used where that is tested.
unsafe impl Send for Cell {}

impl Cell {
    fn read(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.0).with(|it| *it) }
    }
}

#[test]
fn what_is_borrowed_from_a_stack_is_in_order() {
    // Scopes and joins order what others have done before the end, and so does a counter of std's that nobody sees.
    passes(|| {
        let lends = || {
            let (count, cell) = (AtomicUsize::new(0), Mutex::new(0));
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        count.fetch_add(1, Relaxed);
                        *cell.lock().unwrap() += 1;
                    });
                }
            });
            count.load(Relaxed)
        };
        let other = thread::spawn(lends);
        assert_eq!(lends() + other.join().unwrap(), 4);
    });
    let body = || {
        let waits = thread::spawn(|| {
            let (value, own) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let at = At(&raw const value);
            let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let is_done = done.clone();
            let adds = thread::spawn(move || {
                at.get().fetch_add(1, Relaxed);
                is_done.store(true, std::sync::atomic::Ordering::Release);
            });
            own.load(Relaxed);
            match done.load(std::sync::atomic::Ordering::Acquire) {
                true => Some(adds),
                false => adds.join().map(|()| None).unwrap(),
            }
        });
        if let Some(adds) = waits.join().unwrap() {
            adds.join().unwrap();
        }
    };
    // No event tells of the two orders, so they are not explored but by who tries all.
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Naive;
    builder.explore(body).unwrap_or_else(|f| panic!("{f}"));
}
