//! Is it told if a thread that nobody schedules uses what belongs to a model?

use std::alloc::{Layout, dealloc};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex, OnceLock};
use dpor::{Builder, FailureKind, thread};

/// The model is told to be used from outside, and what of it.
fn told(what: &str, f: impl Fn() + Send + Sync + 'static) {
    let failure = Builder::new().explore(f).expect_err(what);
    assert_eq!(failure.kind(), FailureKind::Outside, "{failure}");
    let text = failure.to_string();
    let first = text.lines().next().unwrap_or_default();
    let expected = format!(
        "outside of the model: a thread that is not scheduled has used {what} at tests/detected/outsiders.rs:"
    );
    assert!(first.starts_with(&expected), "{text}");
    assert!(
        text.contains("`std::thread` instead of `dpor::thread`"),
        "{text}"
    );
    assert!(
        failure.json().contains("\"kind\":\"outside\""),
        "{}",
        failure.json()
    );
}

#[test]
fn a_thread_of_std_that_uses_the_models_memory_is_told() {
    told("number", || {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = number.clone();
        let other = std::thread::spawn(move || theirs.fetch_add(1, SeqCst));
        number.fetch_add(1, SeqCst);
        other.join().unwrap();
    });
    told("local", || {
        let local = AtomicUsize::new(0);
        local.load(SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| local.fetch_add(1, SeqCst));
        });
    });
    told("lock", || {
        let lock = Arc::new(Mutex::new(0));
        drop(lock.lock());
        let theirs = lock.clone();
        let other = std::thread::spawn(move || *theirs.lock().unwrap() += 1);
        other.join().unwrap();
    });
    told("memory of the model", || {
        let cell = UnsafeCell::new(0);
        std::thread::scope(|scope| {
            let cell = Shared(&cell);
            // SAFETY: the other thread only waits for this one.
            scope.spawn(move || cell.get().with_mut(|it| unsafe { *it = 1 }));
        });
    });
}

/// A reference that may be used on any thread.
struct Shared<'a>(&'a UnsafeCell<usize>);
// SAFETY: who has made it says so.
unsafe impl Send for Shared<'_> {}

impl Shared<'_> {
    fn get(&self) -> &UnsafeCell<usize> {
        self.0
    }
}

/// A real thread that does something when it is asked to.
struct Neighbour {
    ask: Sender<()>,
    done: Receiver<()>,
}

impl Neighbour {
    fn new(mut work: impl FnMut() + Send + 'static) -> Neighbour {
        let (ask, asked) = channel();
        let (tell, done) = channel();
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                work();
                if tell.send(()).is_err() {
                    return;
                }
            }
        });
        Neighbour { ask, done }
    }

    /// Comes back when it has done so.
    fn busy(this: &StdMutex<Neighbour>) {
        let this: MutexGuard<'_, _> = this.lock().unwrap_or_else(PoisonError::into_inner);
        this.ask.send(()).expect("it waits");
        this.done.recv().expect("it answers");
    }
}

#[test]
fn who_uses_shims_of_its_own_meanwhile_is_left_alone() {
    let neighbour = StdMutex::new(Neighbour::new(|| {
        let local = AtomicUsize::new(0);
        local.fetch_add(1, SeqCst);
        let block = Box::new(AtomicUsize::new(0));
        block.fetch_add(1, SeqCst);
        drop(std::hint::black_box(block));
    }));
    let report = Builder::new().check(move || {
        Neighbour::busy(&neighbour);
        let number = Arc::new(AtomicUsize::new(0));
        let boxed = Box::new(AtomicUsize::new(0));
        let theirs = number.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        Neighbour::busy(&neighbour);
        number.fetch_add(1, SeqCst);
        boxed.fetch_add(1, SeqCst);
        other.join().unwrap();
        Neighbour::busy(&neighbour);
    });
    assert!(report.complete);
    assert_eq!(report.executions, 2);
}

#[test]
fn what_was_on_a_stack_while_another_model_had_it_is_not_this_models() {
    let neighbour = StdMutex::new(Neighbour::new(|| {
        let told = Builder::new().explore(|| {
            let local = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| local.fetch_add(1, SeqCst));
            });
        });
        assert!(told.is_err());
    }));
    let report = Builder::new().check(move || {
        Neighbour::busy(&neighbour);
        // On the stack that the other model does not need any more.
        thread::spawn(|| {}).join().unwrap();
    });
    assert!(report.complete);
}

#[test]
fn a_value_is_not_set_by_a_thread_of_the_model_and_one_of_std_at_once() {
    told("once", || {
        let once = Arc::new(OnceLock::new());
        let theirs = once.clone();
        let set = once.get_or_init(|| {
            let other = std::thread::spawn(move || *theirs.get_or_init(|| 1));
            assert!(other.join().is_err(), "the model is at it");
            2
        });
        assert_eq!(*set, 2);
    });
}

/// What the payload of a panic is to the test above, whatever else std allocates on the way: the other thread frees a
/// block of the model, and most allocators make its memory into the larger block that it gives to the model.
#[test]
fn memory_that_a_thread_of_std_has_freed_is_not_called_freed_wrongly() {
    told("number", || {
        let number = Arc::new(AtomicUsize::new(0));
        number.load(SeqCst);
        let (theirs, block) = (number.clone(), Box::new(1_u64));
        let other = std::thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
            drop(std::hint::black_box(block));
            std::hint::black_box(Box::new([2_u64; 2]))
        });
        drop(other.join().unwrap());
    });
}

/// Frees this address with the layout of a value.
fn free<T>(address: *mut u64) {
    // SAFETY: it is none. The model keeps the free from the allocator, and tells it.
    unsafe { dealloc(address.cast(), Layout::new::<T>()) };
}

#[test]
fn a_wrong_free_is_told_as_such_only_if_nobody_uses_the_model_from_outside() {
    let frees: [fn(*mut u64); 3] = [
        |block| {
            free::<[u64; 4]>(block);
            free::<[u64; 4]>(block);
        },
        free::<[u64; 2]>,
        |block| free::<u64>(block.wrapping_add(1)),
    ];
    for wrongly in frees {
        let model = move |used_by: fn(&AtomicUsize)| {
            let number = AtomicUsize::new(0);
            number.load(SeqCst);
            used_by(&number);
            wrongly(Box::into_raw(Box::new([0_u64; 4])).cast());
        };
        told("number", move || {
            model(|number| {
                std::thread::scope(|scope| {
                    scope.spawn(|| number.fetch_add(1, SeqCst));
                });
            })
        });
        let failure = Builder::new().explore(move || model(|_| {})).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::WrongFree, "{failure}");
    }
}
