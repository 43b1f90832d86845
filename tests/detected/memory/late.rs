//! Is a block that is freed too early told, by every algorithm, and is no other one, where others use it, too?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex, Weak};
use dpor::{Builder, FailureKind, thread};

use super::{each_finds_it, passes};

/// A value that looks at itself when it is dropped.
struct Looks(AtomicUsize);

impl Looks {
    fn look(&self) {
        self.0.load(SeqCst);
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.look();
    }
}

/// A pointer that threads have, and nothing that keeps what it leads to.
struct Unowned<T>(*const T);

// SAFETY: it is not, which is what is to be found.
unsafe impl<T> Send for Unowned<T> {}

impl<T> Unowned<T> {
    fn get(&self) -> &T {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }
}

/// Two threads use what a third one gives up.
fn two_use(value: &AtomicUsize, owner: impl Send + 'static) {
    let [one, other] = [0, 1].map(|_| Unowned(value)).map(|value| {
        thread::spawn(move || {
            value.get().load(SeqCst);
        })
    });
    let owner = thread::spawn(move || drop(owner));
    one.join().unwrap();
    other.join().unwrap();
    owner.join().unwrap();
}

#[test]
fn the_free_is_compared_with_each_use_also_if_others_use_the_block_like_that() {
    each_finds_it(|| {
        let owned = Box::new(AtomicUsize::new(0));
        two_use(Unowned(&raw const *owned).get(), owned);
    });
    each_finds_it(|| {
        let owned = Arc::new(AtomicUsize::new(0));
        two_use(Unowned(&raw const *owned).get(), owned);
    });
    each_finds_it(|| {
        let owned = std::sync::Arc::new(AtomicUsize::new(0));
        two_use(Unowned(&raw const *owned).get(), owned);
    });
}

#[test]
fn what_the_destructor_does_hides_no_late_use() {
    fn beside_a_weak_reference(used: fn(&Looks)) {
        let value = Arc::new(Looks(AtomicUsize::new(0)));
        let weak = Arc::downgrade(&value);
        let pointer = Unowned(Arc::as_ptr(&value));
        let user = thread::spawn(move || used(pointer.get()));
        let weak = thread::spawn(move || drop(weak));
        drop(value);
        user.join().unwrap();
        weak.join().unwrap();
    }
    each_finds_it(|| {
        beside_a_weak_reference(|value| {
            value.0.load(SeqCst);
        });
    });
    // At the same place in the program.
    each_finds_it(|| beside_a_weak_reference(Looks::look));
}

#[test]
fn of_two_blocks_that_are_freed_at_once_each_is_looked_at() {
    struct Two {
        number: AtomicUsize,
        _looks: Weak<Looks>,
    }
    each_finds_it(|| {
        let looks = Arc::new(Looks(AtomicUsize::new(0)));
        let two = Arc::new(Two {
            number: AtomicUsize::new(0),
            _looks: Arc::downgrade(&looks),
        });
        let pointer = Arc::new(AtomicPtr::new(Arc::as_ptr(&two).cast_mut()));
        let after = Arc::new(AtomicUsize::new(0));
        let drops = thread::spawn(move || drop(looks));
        let uses = thread::spawn({
            let pointer = pointer.clone();
            move || {
                let two = pointer.load(SeqCst);
                if !two.is_null() {
                    Unowned(two.cast_const()).get().number.load(SeqCst);
                }
            }
        });
        let frees = thread::spawn({
            let after = after.clone();
            move || {
                pointer.store(null_mut(), SeqCst);
                drop(two);
                after.load(SeqCst);
            }
        });
        for thread in [drops, uses, frees] {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_use_that_a_later_release_keeps_before_the_free_in_one_trace_hides_none_in_another() {
    // Where the load comes before the addition, it comes before that owner's release, too.
    each_finds_it(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let mut pointer = AtomicPtr::new(null_mut());
        // Plain memory is watched from here on.
        *pointer.get_mut() = Arc::as_ptr(&value).cast_mut();
        let pointer = Arc::new(pointer);
        let user = thread::spawn({
            let pointer = pointer.clone();
            move || {
                let value = pointer.load(SeqCst);
                if !value.is_null() {
                    Unowned(value.cast_const()).get().load(SeqCst);
                }
            }
        });
        let weak = Arc::downgrade(&value);
        let adds = thread::spawn({
            let (value, weak) = (value.clone(), weak.clone());
            move || {
                value.fetch_add(1, SeqCst);
                drop(value);
                drop(weak);
            }
        });
        let drops = thread::spawn(move || {
            pointer.swap(null_mut(), SeqCst);
            drop(value);
            drop(weak);
        });
        for thread in [user, adds, drops] {
            thread.join().unwrap();
        }
    });
}

/// A pointer out of an `Arc` is handed back by an atomic with this ordering, before the `Arc` is dropped.
fn handed_back(order: std::sync::atomic::Ordering) {
    let value = Arc::new(AtomicUsize::new(0));
    let pointer = Unowned(Arc::as_ptr(&value));
    let done = Arc::new(AtomicUsize::new(0));
    let user = thread::spawn({
        let done = done.clone();
        move || {
            pointer.get().load(SeqCst);
            done.store(1, order);
        }
    });
    if done.load(order) == 1 {
        drop(value);
    } else {
        std::mem::forget(value);
    }
    user.join().unwrap();
}

#[test]
fn a_use_that_only_relaxed_operations_order_before_the_free_is_told() {
    let mut builder = Builder::new();
    builder.check_leaks = false;
    let failure = builder.explore(|| handed_back(Relaxed));
    assert_eq!(failure.unwrap_err().kind(), FailureKind::DataRace);
    let report = builder.explore(|| handed_back(SeqCst));
    assert!(report.unwrap().complete);
}

#[test]
fn a_destructor_that_joins_its_worker_comes_after_what_that_has_done() {
    struct Owner {
        count: AtomicUsize,
        worker: Mutex<Option<thread::JoinHandle<()>>>,
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.count.load(Relaxed);
            let worker = self.worker.lock().unwrap().take();
            worker.unwrap().join().unwrap();
        }
    }
    passes(|| {
        let owner = Arc::new(Owner {
            count: AtomicUsize::new(0),
            worker: Mutex::new(None),
        });
        let pointer = Unowned(Arc::as_ptr(&owner));
        let worker = thread::spawn(move || {
            pointer.get().count.fetch_add(1, Relaxed);
        });
        *owner.worker.lock().unwrap() = Some(worker);
        let other = owner.clone();
        let other = thread::spawn(move || drop(other));
        drop(owner);
        other.join().unwrap();
    });
}

struct Plain(UnsafeCell<u32>);

// SAFETY: only its owner uses it.
unsafe impl Sync for Plain {}

impl Plain {
    fn write(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = 1 });
    }
}

impl Clone for Plain {
    fn clone(&self) -> Plain {
        Plain(UnsafeCell::new(0))
    }
}

/// A thread gives a value up that it has written, and another one the weak reference that may be the last.
fn the_weak_one_frees<T: Send + Sync + 'static>(value: T, gives_up: fn(Arc<T>)) {
    let value = Arc::new(value);
    let weak = Arc::downgrade(&value);
    let flag = Arc::new(AtomicUsize::new(0));
    let after = Arc::new(AtomicUsize::new(0));
    let owner = thread::spawn({
        let flag = flag.clone();
        move || {
            gives_up(value);
            flag.fetch_add(1, Relaxed);
        }
    });
    let frees = thread::spawn({
        let after = after.clone();
        move || {
            flag.load(Relaxed);
            drop(weak);
            after.load(SeqCst);
        }
    });
    let third = thread::spawn(move || {
        after.load(SeqCst);
    });
    for thread in [owner, frees, third] {
        thread.join().unwrap();
    }
}

#[test]
fn the_last_weak_reference_is_dropped_after_all_that_was_done_to_the_value() {
    struct Writes(Plain);
    impl Drop for Writes {
        fn drop(&mut self) {
            self.0.write();
        }
    }
    passes(|| {
        the_weak_one_frees(Plain(UnsafeCell::new(0)), |value| {
            value.write();
            assert!(Arc::try_unwrap(value).is_ok());
        });
    });
    passes(|| {
        the_weak_one_frees(Plain(UnsafeCell::new(0)), |mut value| {
            value.write();
            Arc::make_mut(&mut value);
        });
    });
    passes(|| the_weak_one_frees(Writes(Plain(UnsafeCell::new(0))), drop));
    // The first of them that is plain memory is found out only here.
    passes(|| {
        the_weak_one_frees(Looks(AtomicUsize::new(0)), |value| {
            drop(value);
            Plain(UnsafeCell::new(0)).write();
        });
    });
}
