//! When may a reference be added to a raw pointer, and when is it too late?

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};
use pretty_assertions::assert_eq;

/// A pointer to a reference that is swapped while somebody may be about to take one of its own.
fn swapped<T: Send + Sync + 'static>(first: T, second: T) {
    use dpor::sync::atomic::AtomicPtr;

    let current = std::sync::Arc::new(AtomicPtr::new(Arc::into_raw(Arc::new(first)).cast_mut()));
    let theirs = current.clone();
    let reader = thread::spawn(move || {
        let found = theirs.load(SeqCst);
        // SAFETY: this is the mistake: the reference may be gone by now.
        unsafe {
            Arc::increment_strong_count(found);
            drop(Arc::from_raw(found));
        }
    });
    let old = current.swap(Arc::into_raw(Arc::new(second)).cast_mut(), SeqCst);
    // SAFETY: the reference that was there is this thread's now.
    drop(unsafe { Arc::from_raw(old) });
    reader.join().unwrap();
    // SAFETY: the reader has ended.
    drop(unsafe { Arc::from_raw(current.load(SeqCst)) });
}

#[test]
fn a_reference_that_is_added_to_a_pointer_may_come_too_late() {
    let number = Builder::new().explore(|| swapped(1_u32, 2));
    let text = Builder::new().explore(|| swapped("1".to_owned(), "2".to_owned()));
    for failure in [number, text] {
        let failure = failure.expect_err("the last reference may be dropped before");
        assert!(failure.to_string().contains("use after free"), "{failure}");
    }
}

#[test]
fn a_reference_that_is_added_to_a_pointer_while_there_is_one_is_one_more() {
    let report = Builder::new().check(|| {
        let shared = Arc::new(7);
        let pointer = Arc::as_ptr(&shared).addr();
        let keeps = shared.clone();
        let other = thread::spawn(move || {
            let pointer = Arc::as_ptr(&keeps);
            // SAFETY: `keeps` is a reference.
            unsafe { Arc::increment_strong_count(pointer) };
            // SAFETY: it has just been counted.
            assert_eq!(*unsafe { Arc::from_raw(pointer) }, 7);
        });
        assert_eq!(Arc::as_ptr(&shared).addr(), pointer);
        drop(shared);
        other.join().unwrap();
    });
    assert!(report.complete);
}

#[test]
fn a_reference_that_is_given_up_by_a_pointer_is_given_up_there() {
    let failure = Builder::new().explore(|| {
        let pointer = Arc::into_raw(Arc::new(1));
        let line = line!() + 2;
        // SAFETY: it is the only reference, and not used any more.
        unsafe { Arc::decrement_strong_count(pointer) };
        panic!("given up at {line}");
    });
    let failure = failure.expect_err("it panics");
    let text = failure.to_string();
    let line = text.split("given up at ").nth(1).expect("the message");
    let line = line.lines().next().expect("a number");
    let place = format!("tests/detected/arc/pointers.rs:{line}");
    let row = text.lines().find(|line| line.contains("the last one"));
    assert!(row.expect("a row").ends_with(&place), "{place}: {text}");
}

/// Somebody takes references by a pointer that has none of its own, while another thread drops the only one.
fn borrowed<T: Send + Sync + 'static>(value: T, take: fn(&Arc<T>)) {
    let pointer = Arc::into_raw(Arc::new(value)).addr();
    // SAFETY: the reference is this thread's.
    let drop_it = move || drop(unsafe { Arc::from_raw(pointer as *const T) });
    let other = thread::spawn(drop_it);
    // SAFETY: this is the mistake: the reference may be gone by now.
    take(&ManuallyDrop::new(unsafe {
        Arc::from_raw(pointer as *const T)
    }));
    other.join().unwrap();
}

/// What has something to be dropped, which is a step of its own, or a wait.
struct Dropped<const WAITS: bool>(AtomicUsize, Mutex<()>);

impl<const WAITS: bool> Dropped<WAITS> {
    fn new() -> Self {
        Dropped(AtomicUsize::new(0), Mutex::new(()))
    }
}

impl<const WAITS: bool> Drop for Dropped<WAITS> {
    fn drop(&mut self) {
        match WAITS {
            true => drop(self.1.lock()),
            false => self.0.store(1, SeqCst),
        }
    }
}

#[test]
fn a_reference_that_is_cloned_by_a_pointer_without_one_may_come_too_late_whatever_is_dropped() {
    fn is_found<T: Send + Sync + 'static>(new: fn() -> T) {
        let takes: [fn(&Arc<T>); 3] = [
            |shared: &Arc<T>| drop(shared.clone()),
            |shared: &Arc<T>| drop(Arc::downgrade(shared)),
            |shared: &Arc<T>| drop(Arc::downgrade(shared).upgrade()),
        ];
        for take in takes {
            let failure = Builder::new().explore(move || borrowed(new(), take));
            let failure = failure.expect_err("the reference may be dropped before");
            let text = failure.to_string();
            let told = ["use after free", "no reference keeps it until main's"];
            assert!(told.iter().any(|told| text.contains(told)), "{text}");
        }
    }
    is_found(|| 1);
    is_found(|| AtomicUsize::new(1));
    is_found(|| Box::new(1));
    is_found(Dropped::<false>::new);
}

#[test]
fn what_keeps_a_reference_is_cloned_in_time_whatever_is_dropped() {
    fn passes<T: Send + Sync + 'static>(new: fn() -> T) {
        let report = Builder::new().check(move || {
            let shared = Arc::new(new());
            let theirs = shared.clone();
            let other = thread::spawn(move || drop(theirs));
            let weak = Arc::downgrade(&shared.clone());
            drop(shared);
            drop(weak.upgrade());
            other.join().unwrap();
        });
        assert!(report.complete);
    }
    passes(|| 1);
    passes(|| Box::new(1));
    passes(Dropped::<false>::new);
    passes(Dropped::<true>::new);
}
