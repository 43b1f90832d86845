//! Is the use of a block by somebody who has no reference to it found, although the references to it are counted?

use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex, Weak};
use dpor::{FailureKind, thread};

use super::{each_finds_it, fails, passes, tells};

/// A pointer out of an `Arc`, for threads.
type Shared<T> = Arc<AtomicPtr<T>>;

/// One thread reads the pointer to a value and uses it, if it is there; another one takes it away and gives the only
/// reference up.
fn unprotected<T: 'static>(value: T, used: fn(*mut T)) {
    let pointer: Shared<T> = Arc::new(AtomicPtr::new(Arc::into_raw(Arc::new(value)).cast_mut()));
    let reader = thread::spawn({
        let pointer = pointer.clone();
        move || {
            let value = pointer.load(SeqCst);
            if !value.is_null() {
                used(value);
            }
        }
    });
    let value = pointer.swap(null_mut(), SeqCst);
    // SAFETY: it came from `into_raw`, and nobody else takes it.
    drop(unsafe { Arc::from_raw(value) });
    reader.join().unwrap();
}

fn of_an_atomic() {
    unprotected(AtomicUsize::new(1), |value| {
        // SAFETY: there is none, which is to be found before anything is used that is gone.
        unsafe { (*value).load(SeqCst) };
    });
}

#[test]
fn every_algorithm_finds_the_use_of_an_atomic_that_may_come_after_the_last_release() {
    each_finds_it(of_an_atomic);
}

#[test]
fn the_free_and_the_use_are_told() {
    let failure = fails(FailureKind::DataRace, of_an_atomic);
    let told = "main frees the block, and no reference keeps it until main.1's load value";
    tells(&failure, &[told]);
}

/// The second owner's drop is ordered behind the first one's here, and so behind the clone. But the drops may come in
/// the other order, and it would be wrong to say that nothing orders the two.
#[test]
fn a_clone_that_only_the_order_of_the_drops_keeps_from_coming_too_late_is_told_as_such() {
    let failure = fails(FailureKind::DataRace, || {
        let value = ManuallyDrop::new(Arc::new(1));
        let same = AtomicPtr::new(Arc::as_ptr(&value).cast_mut());
        let other = thread::spawn(move || {
            // SAFETY: there is none, since the only reference is the main thread's.
            drop(unsafe { Arc::from_raw(same.into_inner()) });
        });
        drop(Arc::clone(&value));
        other.join().unwrap();
    });
    let told = "main.1 frees the block, and no reference keeps it until main's clone arc value";
    tells(&failure, &[told]);
}

/// Where a function of std clones, the place is one of its callers, in the head of the report as in the table.
#[test]
fn a_clone_by_std_is_told_where_it_was_asked_for() {
    let failure = fails(FailureKind::DataRace, || {
        unprotected(1, |value| {
            // SAFETY: there is none, which is to be found.
            let value = Some(ManuallyDrop::new(unsafe { Arc::from_raw(value) }));
            let another: Option<Arc<i32>> = value.as_deref().cloned();
            drop(another);
        });
    });
    let text = failure.to_string();
    let head = text.lines().find(|line| line.starts_with("  main.1 "));
    let place = format!(" at {}:", file!());
    assert!(head.is_some_and(|head| head.contains(&place)), "{failure}");
}

/// Who takes the pointer out and drops what it makes of it, and what the main thread does too late, by a reference of its own.
fn counted_too_late(too_late: fn(&Arc<u32>), drops: fn(*const u32)) {
    let slot: Shared<u32> = Arc::new(AtomicPtr::new(null_mut()));
    let theirs = slot.clone();
    let take = move |slot: &AtomicPtr<u32>| {
        let taken = slot.swap(null_mut(), SeqCst);
        if !taken.is_null() {
            drops(taken);
        }
    };
    let other = thread::spawn(move || take(&theirs));
    let value = Arc::new(7);
    slot.store(Arc::as_ptr(&value).cast_mut(), SeqCst);
    too_late(&value);
    other.join().unwrap();
    take(&slot);
    assert_eq!(*value, 7);
}

/// The main thread is the only one left when it frees the block. But its reference was not its own any more when it was cloned.
#[test]
fn a_reference_that_is_counted_after_its_pointer_was_handed_out_is_told_although_the_last_one_is_dropped_at_the_end()
 {
    fn strong(value: *const u32) {
        // SAFETY: there is none where it is dropped before it is counted, which is to be found.
        drop(unsafe { Arc::from_raw(value) });
    }
    fn weak(value: *const u32) {
        // SAFETY: as above.
        drop(unsafe { Weak::from_raw(value) });
    }
    let clones = || counted_too_late(|value| std::mem::forget(value.clone()), strong);
    let downgrades = || counted_too_late(|value| std::mem::forget(Arc::downgrade(value)), weak);
    for (late, told) in [
        (clones as fn(), "until main's clone arc value"),
        (downgrades, "until main's clone a weak arc"),
    ] {
        each_finds_it(late);
        tells(&fails(FailureKind::DataRace, late), &[told]);
    }
    // In time.
    passes(|| {
        let slot: Shared<u32> = Arc::new(AtomicPtr::new(null_mut()));
        let theirs = slot.clone();
        let value = Arc::new(7);
        slot.store(Arc::into_raw(value.clone()).cast_mut(), SeqCst);
        let other = thread::spawn(move || strong(theirs.swap(null_mut(), SeqCst)));
        drop(value.clone());
        other.join().unwrap();
        assert_eq!(*value, 7);
    });
}

/// Two threads give the same reference up. Nothing follows the free, which is made at the end of the closure.
#[test]
fn so_is_one_that_is_added_by_an_owner_whose_reference_another_thread_may_have_given_up() {
    let twice = || {
        let value = Arc::new(1_u32);
        let address = Arc::into_raw(value.clone()) as usize;
        // SAFETY: one of the two has no right to, which is to be found.
        let give_up = move || drop(unsafe { Arc::from_raw(address as *const u32) });
        let both = [thread::spawn(give_up), thread::spawn(give_up)];
        let another = value.clone();
        for it in both {
            it.join().unwrap();
        }
        drop(value);
        std::mem::forget(another);
    };
    let failure = fails(FailureKind::DataRace, twice);
    tells(
        &failure,
        &["no reference keeps it until main's clone arc value"],
    );
}

#[test]
fn so_is_the_use_of_a_lock_of_plain_memory_and_of_the_count_itself() {
    struct Plain(UnsafeCell<u32>);
    let locks = || {
        unprotected(Mutex::new(1), |value| {
            // SAFETY: as above.
            unsafe { *(*value).lock().unwrap() += 1 };
        });
    };
    let reads = || {
        unprotected(Plain(UnsafeCell::new(1)), |value| {
            // SAFETY: as above.
            unsafe { (*value).0.with(|it| *it) };
        });
    };
    let clones = || {
        unprotected(7, |value| {
            // SAFETY: as above.
            let lent = ManuallyDrop::new(unsafe { Arc::from_raw(value) });
            drop(Arc::clone(&lent));
        });
    };
    for used in [locks, reads, clones] {
        fails(FailureKind::DataRace, used);
    }
}

#[test]
fn a_count_of_std_hides_no_use_that_comes_after_the_free() {
    fails(FailureKind::DataRace, || {
        let owned = std::sync::Arc::new(AtomicUsize::new(1));
        let pointer = AtomicPtr::new(std::sync::Arc::into_raw(owned).cast_mut());
        let pointer = Arc::new(pointer);
        let reader = thread::spawn({
            let pointer = pointer.clone();
            move || {
                let value = pointer.load(SeqCst);
                if !value.is_null() {
                    // SAFETY: as above.
                    unsafe { (*value).load(SeqCst) };
                }
            }
        });
        let value = pointer.swap(null_mut(), SeqCst);
        // SAFETY: it came from `into_raw`, and nobody else takes it.
        drop(unsafe { std::sync::Arc::from_raw(value) });
        reader.join().unwrap();
    });
}

#[test]
fn a_use_with_a_reference_is_none_whoever_drops_the_last_one() {
    // The main thread may be the first or the last.
    passes(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let threads = [0, 1].map(|_| {
            let value = value.clone();
            thread::spawn(move || {
                let another = value.clone();
                another.fetch_add(1, SeqCst);
                drop(another);
                value.load(SeqCst);
            })
        });
        value.fetch_add(1, SeqCst);
        drop(value);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn nor_is_one_with_a_reference_that_was_upgraded_handed_over_or_made_under_a_lock() {
    passes(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let weak = Arc::downgrade(&value);
        let upgrades = thread::spawn(move || {
            if let Some(value) = Weak::upgrade(&weak) {
                value.load(SeqCst);
            }
        });
        drop(value);
        upgrades.join().unwrap();
    });
    passes(|| {
        let slot = Arc::new(Mutex::new(Some(Arc::new(AtomicUsize::new(0)))));
        let clones = thread::spawn({
            let slot = slot.clone();
            move || {
                let value = slot.lock().unwrap().clone();
                if let Some(value) = value {
                    value.load(SeqCst);
                }
            }
        });
        drop(slot.lock().unwrap().take());
        clones.join().unwrap();
    });
    passes(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let pointer: Shared<AtomicUsize> = Arc::new(AtomicPtr::new(null_mut()));
        let taker = thread::spawn({
            let pointer = pointer.clone();
            move || {
                let value = pointer.swap(null_mut(), SeqCst);
                if !value.is_null() {
                    // SAFETY: the reference was handed over.
                    unsafe { Arc::from_raw(value) }.fetch_add(1, SeqCst);
                }
            }
        });
        pointer.store(Arc::into_raw(value.clone()).cast_mut(), SeqCst);
        value.fetch_add(1, SeqCst);
        drop(value);
        taker.join().unwrap();
        let left = pointer.load(SeqCst);
        if !left.is_null() {
            // SAFETY: nobody has taken it.
            drop(unsafe { Arc::from_raw(left) });
        }
    });
}
