//! What does the crate of somebody who uses loom find under loom's name?
//!
//! Needs the feature `loom`. The tests are written as for loom, whose name the crate has here; that the signatures
//! are all there is in `tests/surface/main.rs`.

#![cfg(feature = "loom")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use dpor as loom;
use dpor::{Failure, FailureKind};
use loom::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// The failure of a model, of this kind.
fn fails(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    match Builder::new().explore(f) {
        Ok(report) => panic!("nothing was found: {report}"),
        Err(failure) => {
            assert_eq!(failure.kind(), kind, "{failure}");
            failure
        }
    }
}

/// The number of executions of a model that has no failure.
fn passes(f: impl Fn() + Send + Sync + 'static) -> u64 {
    Builder::new().explore(f).unwrap().executions
}

#[test]
fn a_check_is_the_last_expression_of_a_test() {
    fn test() {
        Builder::new().check(|| {
            let number = Arc::new(AtomicUsize::new(0));
            let theirs = number.clone();
            let other = thread::spawn(move || theirs.fetch_add(1, Ordering::Relaxed));
            number.fetch_add(1, Ordering::Relaxed);
            other.join().unwrap();
            assert_eq!(number.load(Ordering::Relaxed), 2);
        })
    }
    test();
}

/// Plain memory that is shared.
struct Shared {
    number: UnsafeCell<u32>,
    ready: AtomicBool,
}

// SAFETY: the tests find out whether it is.
unsafe impl Sync for Shared {}

/// A thread writes, says so, and stops writing: before it says so, or `late`. Another one reads where it has heard
/// of it, or `at_once`.
fn hand_over(at_once: bool, late: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared {
            number: UnsafeCell::new(0),
            ready: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let mut number = Some(theirs.number.get_mut());
            // SAFETY: nobody reads before the flag is set, unless that is what is to be found.
            unsafe { *number.as_ref().unwrap().deref() = 5 };
            number = number.filter(|_| late);
            theirs.ready.store(true, Ordering::Release);
            // Here others have their turn.
            theirs.ready.load(Ordering::Relaxed);
            drop(number);
        });
        if at_once || shared.ready.load(Ordering::Acquire) {
            let number = shared.number.get();
            // SAFETY: as above.
            let (one, other) = unsafe { (*number.deref(), number.with(|number| *number)) };
            assert_eq!(one, other);
        }
        other.join().unwrap();
    }
}

#[test]
fn what_get_and_get_mut_give_is_watched() {
    assert_eq!(passes(hand_over(false, false)), 2);
    let failure = fails(FailureKind::DataRace, hand_over(true, false));
    let text = failure.to_string();
    // The places are the caller's.
    for what in [" read ", " write "] {
        let mut sides = text.lines().filter(|line| line.contains(what));
        let told = sides.any(|side| side.contains("  at tests/surface/loom_signatures.rs:"));
        assert!(told, "{what}: {text}");
    }
}

#[test]
fn what_get_and_get_mut_give_is_an_access_for_as_long_as_it_lives() {
    fails(FailureKind::DataRace, hand_over(false, true));
}

#[test]
fn a_thread_of_a_model_need_not_be_send() {
    let executions = passes(|| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let number = Rc::new(AtomicUsize::new(0));
        let add = |who| {
            let (seen, number) = (seen.clone(), number.clone());
            move || {
                let old = number.fetch_add(1, Ordering::Relaxed);
                seen.borrow_mut().push((who, old));
                seen
            }
        };
        let others = [thread::spawn(add(1)), thread::spawn(add(2))];
        for other in others {
            assert!(Rc::ptr_eq(&other.join().unwrap(), &seen));
        }
        let mut order: Vec<_> = seen.borrow().iter().map(|&(_, old)| old).collect();
        order.sort_unstable();
        assert_eq!(order, [0, 1]);
    });
    assert_eq!(executions, 2);
}

#[test]
fn a_thread_that_is_not_send_is_unwound_with_its_execution() {
    let failure = fails(FailureKind::Deadlock, || {
        let lock = Rc::new(Mutex::new(0));
        let held = lock.lock().unwrap();
        let theirs = lock.clone();
        thread::spawn(move || *theirs.lock().unwrap())
            .join()
            .unwrap();
        drop(held);
    });
    assert!(
        failure.to_string().contains("waits to lock lock"),
        "{failure}"
    );
}

#[test]
fn a_spawn_outside_of_a_model_says_what_is_wrong() {
    let spawned = catch_unwind(|| thread::spawn(|| 1).join().unwrap());
    let payload = spawned.expect_err("there is no thread for it");
    let text = payload.downcast::<&str>().expect("a text");
    assert!(
        text.starts_with("`thread::spawn` was called outside of a model"),
        "{text}"
    );
}

#[test]
fn what_asks_for_send_spawns_real_threads_outside_of_a_model() {
    let built = thread::Builder::new().spawn(|| 1);
    assert_eq!(built.unwrap().join().unwrap(), 1);
    let scoped = thread::scope(|scope| scope.spawn(|| 2).join().unwrap());
    assert_eq!(scoped, 2);
    assert_eq!(loom::future::spawn(async { 3 }).join().unwrap(), 3);
}

#[test]
fn a_handle_is_send_if_its_result_is() {
    trait Otherwise {
        const SEND: bool = false;
    }
    impl<T> Otherwise for T {}
    struct Is<T>(std::marker::PhantomData<T>);
    impl<T: Send> Is<T> {
        const SEND: bool = true;
    }
    let sent = Is::<thread::JoinHandle<u8>>::SEND;
    let kept = <Is<thread::JoinHandle<Rc<u8>>>>::SEND;
    assert_eq!((sent, kept), (true, false));
}

#[test]
fn an_arc_that_is_not_dropped_is_a_leak_even_if_nobody_has_used_it() {
    let failure = fails(FailureKind::Leak, || std::mem::forget(Arc::new(1_u64)));
    let text = failure.to_string();
    assert!(text.contains("leak: a block of the model"), "{text}");
    assert!(
        text.contains("allocated by main at tests/surface/loom_signatures.rs:"),
        "{text}"
    );
    // Which would not make it none.
    assert!(!text.contains("check_leaks"), "{text}");
    assert!(text.contains("may_leak"), "{text}");
    let may_leak = || {
        let value = Arc::new(1_u64);
        loom::alloc::may_leak(&*value);
        std::mem::forget(value);
    };
    assert_eq!(passes(may_leak), 1);
}

#[test]
fn an_arc_whose_last_reference_is_forgotten_in_one_order_is_a_leak() {
    let failure = fails(FailureKind::Leak, || {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, Ordering::Relaxed));
        if flag.load(Ordering::Relaxed) {
            std::mem::forget(flag.clone());
        }
        other.join().unwrap();
    });
    assert!(failure.to_string().contains("arc flag"), "{failure}");
}

/// Leaves a plain block behind that an atomic is in.
fn leak_a_box() {
    let number: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    number.store(1, Ordering::Relaxed);
}

#[test]
fn a_plain_block_is_a_leak_only_where_that_is_asked_for() {
    // What the environment says comes first.
    assert!(!Builder::new().check_leaks);
    assert_eq!(passes(leak_a_box), 1);
    let mut builder = Builder::new();
    builder.check_leaks = true;
    let failure = builder.explore(leak_a_box).expect_err("a block is left");
    assert_eq!(failure.kind(), FailureKind::Leak);
    assert!(failure.to_string().contains("check_leaks"), "{failure}");
}

#[test]
fn blocks_that_were_allocated_by_hand_are_a_leak() {
    type Allocate = unsafe fn(Layout) -> *mut u8;
    let layout = Layout::new::<[u64; 3]>();
    let allocations: [Allocate; 2] = [alloc, alloc_zeroed];
    for allocate in allocations {
        // SAFETY: the layout has a size.
        fails(FailureKind::Leak, move || _ = unsafe { allocate(layout) });
        // SAFETY: as above, and the block is freed with its layout.
        passes(move || unsafe { dealloc(allocate(layout), layout) });
    }
    fails(FailureKind::Leak, move || {
        // SAFETY: the layout has a size, and the block has this layout.
        _ = unsafe { realloc(alloc(layout), layout, 48) };
    });
}

#[test]
fn tracked_values_and_wakers_are_a_leak() {
    use std::task::Poll;

    fails(FailureKind::Leak, || {
        std::mem::forget(loom::alloc::Track::new(1));
    });
    fails(FailureKind::Leak, || {
        loom::future::block_on(std::future::poll_fn(|context| {
            std::mem::forget(context.waker().clone());
            Poll::Ready(())
        }));
    });
}

#[test]
fn what_a_static_holds_is_no_leak() {
    loom::lazy_static! {
        static ref HELD: Mutex<Vec<Arc<usize>>> = Mutex::new(Vec::new());
    }
    assert_eq!(passes(|| HELD.lock().unwrap().push(Arc::new(1))), 1);
}

#[test]
fn a_static_holds_what_is_not_sync_inside_of_a_model() {
    loom::lazy_static! {
        static ref HELD: UnsafeCell<u32> = UnsafeCell::new(1);
    }
    // SAFETY: the model finds out whether nobody else is at it.
    let add = || HELD.with_mut(|n| unsafe { *n += 1 });
    let executions = passes(move || {
        thread::spawn(add).join().unwrap();
        add();
        // SAFETY: as above.
        assert_eq!(HELD.with(|n| unsafe { *n }), 3);
    });
    assert_eq!(executions, 1);
    fails(FailureKind::DataRace, move || {
        let other = thread::spawn(add);
        add();
        other.join().unwrap();
    });
    let outside = catch_unwind(|| HELD.with(|_| ())).unwrap_err();
    let said = outside.downcast_ref::<&str>().unwrap();
    assert!(said.contains("outside of a model"), "{said}");
}

#[test]
fn a_static_is_gone_for_threads_that_outlive_the_first_one() {
    loom::lazy_static! {
        static ref HELD: usize = 1;
    }
    let failure = fails(FailureKind::Panic, || {
        let go = Arc::new(AtomicBool::new(false));
        let theirs = go.clone();
        thread::spawn(move || {
            if theirs.load(Ordering::Relaxed) {
                assert_eq!(*HELD, 1);
            }
        });
        go.store(true, Ordering::Relaxed);
    });
    let text = failure.to_string();
    assert!(
        text.contains("after the model's closure has returned"),
        "{text}"
    );
    // Both orders are explored where one is fine, whichever comes first.
    fails(FailureKind::Panic, || {
        let (sender, receiver) = loom::sync::mpsc::channel();
        thread::spawn(move || {
            sender.send(()).unwrap();
            assert_eq!(*HELD, 1);
        });
        receiver.recv().unwrap();
    });
    passes(|| {
        let other = thread::spawn(|| *HELD);
        assert_eq!(*HELD + other.join().unwrap(), 2);
    });
}

#[test]
fn the_first_thread_has_no_name() {
    passes(|| {
        assert_eq!(thread::current().name(), None);
        let first = thread::current();
        let builder = thread::Builder::new().name("second".to_owned());
        let other = builder.spawn(move || {
            assert_eq!(first.name(), None);
            assert_eq!(thread::current().name(), Some("second"));
        });
        other.unwrap().join().unwrap();
    });
}

/// How a model of at most so many events ends.
fn up_to(events: usize, f: impl Fn() + Send + Sync + 'static) -> Option<String> {
    let mut builder = Builder::new();
    builder.max_branches = events;
    let failure = builder.explore(f).err()?;
    assert_eq!(failure.kind(), FailureKind::Limit, "{failure}");
    Some(failure.to_string())
}

#[test]
fn hints_count_as_events() {
    let yields = || (0..3).for_each(|_| thread::yield_now());
    let told = up_to(2, yields).expect("three are too many");
    assert!(told.contains("more than 2 (3 of them hints"), "{told}");
    assert_eq!(up_to(3, yields), None);
    // What waits in a loop comes to its hint as often as it is let go.
    let spins = || {
        let ready = Arc::new(AtomicBool::new(false));
        let theirs = ready.clone();
        let setter = thread::spawn(move || theirs.store(true, Ordering::Release));
        while !ready.load(Ordering::Acquire) {
            loom::hint::spin_loop();
        }
        setter.join().unwrap();
    };
    assert_eq!(up_to(20, spins), None);
    // A step behind the hints is one too many, too.
    let then_adds = || {
        let number = AtomicUsize::new(0);
        (0..2).for_each(|_| thread::yield_now());
        number.fetch_add(1, Ordering::Relaxed);
        number.fetch_add(1, Ordering::Relaxed);
    };
    assert!(up_to(3, then_adds).is_some());
    assert_eq!(up_to(4, then_adds), None);
    // A loop that changes something has a limit, with a step in each round or without.
    let no_end = up_to(50, || {
        let number = AtomicUsize::new(0);
        loop {
            number.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    });
    assert!(no_end.is_some_and(|told| told.contains("(25 of them hints")));
}

#[test]
fn the_schedule_of_too_many_hints_leads_there_again() {
    fn model() {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = number.clone();
        let other = thread::spawn(move || theirs.store(1, Ordering::Relaxed));
        if number.load(Ordering::Relaxed) == 1 {
            (0..40).for_each(|_| thread::yield_now());
        }
        other.join().unwrap();
    }
    let mut builder = Builder::new();
    builder.max_branches = 30;
    let failure = builder.explore(model).unwrap_err();
    assert!(failure.to_string().contains("of them hints"), "{failure}");
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(model).unwrap_err();
    assert_eq!(again.kind(), FailureKind::Limit, "{again}");
    assert_eq!(again.schedule(), failure.schedule());
}

/// How often a task may be polled that waits for one notification.
fn polls(spurious_wakeups: u32) -> BTreeSet<u32> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let theirs = seen.clone();
    let mut builder = Builder::new();
    builder.spurious_wakeups = spurious_wakeups;
    builder.thorough = dpor::Thorough::Off;
    builder.check(move || {
        let gate = Arc::new(AtomicBool::new(false));
        let mut polls = 0;
        let polls = loom::future::block_on(std::future::poll_fn(|context| {
            if polls == 0 {
                let (gate, waker) = (gate.clone(), context.waker().clone());
                thread::spawn(move || {
                    gate.store(true, Ordering::Release);
                    waker.wake();
                });
            }
            polls += 1;
            match gate.load(Ordering::Acquire) {
                true => std::task::Poll::Ready(polls),
                false => std::task::Poll::Pending,
            }
        }));
        theirs.lock().unwrap().insert(polls);
    });
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn a_task_is_polled_for_no_reason_if_that_is_asked_for() {
    assert_eq!(polls(0), BTreeSet::from([1, 2]));
    assert_eq!(polls(1), BTreeSet::from([1, 2, 3]));
}

/// A cell that one thread reads by `with`, and the owner of the cell overwrites once it is woken.
/// The owner parks once, without a loop, which a spurious wake-up ends too early.
fn parks_without_a_loop() {
    struct Waiter(loom::cell::UnsafeCell<Option<thread::Thread>>);
    // SAFETY: one thread reads the cell, and the owner writes behind the token of that thread.
    unsafe impl Sync for Waiter {}
    // SAFETY: as above.
    unsafe impl Send for Waiter {}
    let waiter = Arc::new(Waiter(loom::cell::UnsafeCell::new(Some(thread::current()))));
    let theirs = waiter.clone();
    let other = thread::spawn(move || {
        // SAFETY: the owner writes behind the unpark.
        (theirs.0).with(|waiter| unsafe { (*waiter).as_ref().unwrap().unpark() });
    });
    thread::park();
    // SAFETY: the other thread has made the last use of the cell in front of its unpark.
    waiter.0.with_mut(|waiter| unsafe { *waiter = None });
    other.join().unwrap();
}

#[test]
fn what_loom_does_not_have_fails_no_test_unless_asked_for() {
    let report = Builder::new().explore(parks_without_a_loop).unwrap();
    assert!(report.complete && report.further.is_empty(), "{report}");
    let kinds: Vec<_> = report.assumptions.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [dpor::AssumptionKind::SpuriousWakeups]);
    let mut builder = Builder::new();
    builder.thorough = dpor::Thorough::Bounded;
    let failure = builder.explore(parks_without_a_loop).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
}

#[test]
fn what_is_said_to_be_unreachable_panics() {
    let reached = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: none is needed, for it panics.
        unsafe { loom::hint::unreachable_unchecked() }
    }));
    assert!(reached.is_err());
}

#[test]
fn a_thread_asks_for_words_of_stack() {
    let executions = passes(|| {
        const WORDS: usize = 1 << 16;
        let body = || std::hint::black_box(&mut [0_usize; WORDS]).len();
        let builder = thread::Builder::new().stack_size(3 * WORDS);
        assert_eq!(builder.spawn(body).unwrap().join().unwrap(), WORDS);
    });
    assert_eq!(executions, 1);
}
