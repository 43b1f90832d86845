//! The rest of what loom offers, used as its users use it.
#![cfg(loom)]

use std::cell::RefCell;
use std::rc::Rc;

use loom::cell::{Cell, UnsafeCell};
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex, Notify, RwLock, mpsc};
use loom::{hint, thread};

#[test]
fn a_builder_has_its_limits() {
    let mut builder = Builder::new();
    builder.max_threads = 3;
    builder.max_branches = 1_000;
    builder.max_permutations = Some(100_usize);
    builder.max_duration = Some(std::time::Duration::from_secs(60));
    builder.preemption_bound = Some(2);
    builder.checkpoint_interval = 50;
    builder.location = true;
    builder.log = false;
    builder.check(|| {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = number.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, Ordering::AcqRel));
        number.fetch_add(1, Ordering::AcqRel);
        other.join().unwrap();
        assert_eq!(number.load(Ordering::Acquire), 2);
    })
}

#[test]
fn a_thread_is_given_what_is_not_send() {
    assert!(loom::MAX_THREADS > 1);
    loom::model(|| {
        let list = Rc::new(RefCell::new(vec![1]));
        let theirs = list.clone();
        let other = thread::spawn(move || theirs.borrow_mut().push(2));
        other.join().unwrap();
        assert_eq!(*list.borrow(), [1, 2]);
    });
}

#[test]
#[should_panic(expected = "outside of a model")]
fn a_thread_outside_of_a_model_is_refused() {
    thread::spawn(|| ());
}

/// A number that is handed over.
struct Shared {
    number: UnsafeCell<u32>,
    ready: AtomicBool,
}

// SAFETY: this is what the tests find out.
unsafe impl Sync for Shared {}

/// A thread hands a number to another.
fn hand_over(publish: Ordering) {
    loom::model(move || {
        let shared = Arc::new(Shared {
            number: UnsafeCell::new(0),
            ready: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        thread::spawn(move || {
            // SAFETY: nobody reads before the flag is set.
            theirs.number.with_mut(|number| unsafe { *number = 5 });
            theirs.ready.store(true, publish);
        });
        while !shared.ready.load(Ordering::Acquire) {
            hint::spin_loop();
        }
        // SAFETY: the flag is set.
        assert_eq!(shared.number.with(|number| unsafe { *number }), 5);
    });
}

#[test]
fn a_release_store_hands_plain_memory_over() {
    hand_over(Ordering::Release);
}

#[test]
#[should_panic(expected = "data race")]
fn a_relaxed_store_does_not() {
    hand_over(Ordering::Relaxed);
}

#[test]
fn guards_of_cells_last_as_long_as_their_values() {
    loom::model(|| {
        let cell = UnsafeCell::new([1, 2]);
        {
            let pointer = cell.get_mut();
            // SAFETY: nobody else uses the cell.
            unsafe { pointer.deref()[0] = 3 };
        }
        // SAFETY: as above.
        assert_eq!(cell.get().with(|value| unsafe { (*value)[0] }), 3);
        let small = Cell::new(1);
        small.set(small.get() + 1);
        assert_eq!(small.replace(7), 2);
    });
}

loom::lazy_static! {
    /// Made anew in each execution.
    static ref LIST: Mutex<Vec<usize>> = Mutex::new(vec![0]);
    pub(crate) static ref FLAG: AtomicBool = AtomicBool::new(false);
}

loom::thread_local! {
    static OWN: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

#[test]
fn statics_begin_anew_and_each_thread_has_its_own() {
    loom::model(|| {
        assert!(!FLAG.load(Ordering::Relaxed));
        let add = |number| {
            move || {
                OWN.with(|own| own.borrow_mut().push(number));
                LIST.lock().unwrap().push(number);
                FLAG.store(true, Ordering::Relaxed);
                OWN.with(|own| own.borrow().clone())
            }
        };
        let other = thread::spawn(add(1));
        assert_eq!(add(2)(), [2]);
        assert_eq!(other.join().unwrap(), [1]);
        assert!(matches!(LIST.lock().unwrap()[..], [0, 1, 2] | [0, 2, 1]));
    });
}

#[test]
fn a_notification_wakes_who_waits() {
    loom::model(|| {
        let shared = Arc::new((Notify::new(), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(true, Ordering::Release);
            theirs.0.notify();
        });
        shared.0.wait();
        assert!(shared.1.load(Ordering::Acquire));
        other.join().unwrap();
    });
}

#[test]
fn a_future_is_woken() {
    use loom::future::{AtomicWaker, block_on};
    use std::task::Poll;

    loom::model(|| {
        let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(true, Ordering::Release);
            theirs.0.wake();
        });
        block_on(std::future::poll_fn(|context| {
            shared.0.register_by_ref(context.waker());
            match shared.1.load(Ordering::Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
        other.join().unwrap();
    });
}

#[test]
fn a_tracked_value_is_dropped_or_taken() {
    use loom::alloc::{Layout, Track, alloc, dealloc};

    loom::model(|| {
        let mut track = Track::new(1);
        *track.get_mut() += 1;
        assert_eq!((*track.get_ref(), track.into_inner()), (2, 2));
        let layout = Layout::new::<u64>();
        // SAFETY: the layout has a size, and the block is freed with the layout it was made with.
        unsafe { dealloc(alloc(layout), layout) };
    });
}

#[test]
#[should_panic(expected = "was not dropped")]
fn a_tracked_value_that_is_forgotten_is_found() {
    loom::model(|| std::mem::forget(loom::alloc::Track::new(1)));
}

#[test]
#[should_panic(expected = "leak: a block of the model")]
fn an_arc_that_is_forgotten_is_found() {
    loom::model(|| std::mem::forget(Arc::new(1)));
}

#[test]
fn a_box_that_is_forgotten_is_not() {
    loom::model(|| {
        let flag = Box::leak(Box::new(AtomicBool::new(false)));
        flag.store(true, Ordering::Release);
    });
}

#[test]
fn what_is_not_explored_is_left_out() {
    loom::model(|| {
        loom::stop_exploring();
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = number.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, Ordering::Relaxed));
        loom::explore();
        number.fetch_add(1, Ordering::Relaxed);
        loom::skip_branch();
        other.join().unwrap();
    });
}

#[test]
fn locks_queues_and_tokens_are_there() {
    loom::model(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new(), RwLock::new(0)));
        let (sender, receiver) = mpsc::channel();
        let (theirs, main) = (shared.clone(), thread::current());
        let builder = thread::Builder::new().name("other".to_owned());
        let other = builder.spawn(move || {
            *theirs.0.lock().unwrap() = true;
            theirs.1.notify_one();
            *theirs.2.write().unwrap() += 1;
            sender.send(1).unwrap();
            main.unpark();
        });
        let mut ready = shared.0.lock().unwrap();
        while !*ready {
            ready = shared.1.wait(ready).unwrap();
        }
        drop(ready);
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(*shared.2.read().unwrap(), 1);
        thread::park();
        other.unwrap().join().unwrap();
        fence(Ordering::SeqCst);
        let mut pointer = AtomicPtr::new(std::ptr::null_mut::<u8>());
        // SAFETY: nobody else uses it.
        assert!(unsafe { pointer.unsync_load() }.is_null());
        assert!(pointer.with_mut(|pointer| pointer.is_null()));
    });
}
