//! Is memory that two threads use as atomics of two types one atomic?

use std::collections::BTreeMap;

use dpor::outcomes;
use dpor::sync::Arc;
use dpor::sync::atomic::Ordering::SeqCst;
use dpor::sync::atomic::{AtomicBool, AtomicI8, AtomicIsize, AtomicPtr, AtomicU8, AtomicUsize};
use dpor::thread;

/// The atomic behind `it`, as one of another type.
///
/// # Safety
///
/// An atomic of the one type may be used as one of the other: they have the same size, and what is stored is a value of both.
unsafe fn seen_as<A, B>(it: &A) -> &B {
    assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: the caller's promise.
    unsafe { &*(it as *const A).cast() }
}

#[test]
fn an_update_is_lost_whatever_the_types_are_called() {
    // Both add 1 with a load and a store; the result is 2, or 1 if an update was lost.
    macro_rules! lost {
        ($second:ty, $add:expr) => {
            let results = outcomes(|| {
                let counter = Arc::new(AtomicUsize::new(0));
                let mine = counter.clone();
                let other = thread::spawn(move || {
                    // SAFETY: both have the same size, and 1 and 2 are values of both.
                    let counter: &$second = unsafe { seen_as(&*mine) };
                    let value = counter.load(SeqCst);
                    counter.store($add(value), SeqCst);
                });
                let value = counter.load(SeqCst);
                counter.store(value + 1, SeqCst);
                other.join().unwrap();
                counter.load(SeqCst)
            });
            assert_eq!(results, BTreeMap::from([(1, 2), (2, 2)]));
        };
    }
    lost!(AtomicUsize, |value| value + 1);
    lost!(AtomicIsize, |value| value + 1);
    lost!(AtomicPtr<u8>, |value: *mut u8| value.wrapping_add(1));
}

#[test]
fn a_flag_that_is_set_as_a_byte_is_seen() {
    let results = outcomes(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let mine = flag.clone();
        let other = thread::spawn(move || {
            // SAFETY: both have the same size, and 1 is `true`.
            let byte: &AtomicU8 = unsafe { seen_as(&*mine) };
            byte.store(1, SeqCst);
        });
        let seen = flag.load(SeqCst);
        other.join().unwrap();
        (seen, flag.load(SeqCst))
    });
    assert_eq!(
        results,
        BTreeMap::from([((false, true), 1), ((true, true), 1)])
    );
}

/// What the method does depends on the type that it belongs to, not on the one that the atomic was first used as.
#[test]
fn a_maximum_compares_with_the_sign_of_its_own_type() {
    let results = outcomes(|| {
        let byte = Arc::new(AtomicU8::new(1));
        let mine = byte.clone();
        let other = thread::spawn(move || {
            // SAFETY: both have the same size and all values.
            let signed: &AtomicI8 = unsafe { seen_as(&*mine) };
            signed.fetch_max(-1, SeqCst);
        });
        byte.fetch_max(0x80, SeqCst);
        other.join().unwrap();
        byte.load(SeqCst)
    });
    // Signed, -1 is less than 1, but more than 0x80 is.
    assert_eq!(results, BTreeMap::from([(0x80, 1), (0xff, 1)]));
}
