//! When may a reference be added to a raw pointer, and when is it too late?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
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
    let place = format!("tests/arc/pointers.rs:{line}");
    let row = text.lines().find(|line| line.contains("the last one"));
    assert!(row.expect("a row").ends_with(&place), "{place}: {text}");
}
