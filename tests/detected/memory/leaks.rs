//! Which blocks count as leaked, and which may stay?

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex, Once};
use dpor::{Builder, FailureKind, thread};

use super::{Node, Slot, beside, fails, free, node, passes, take_and_free, tells, value};

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
            "the block: ptr1, 16 bytes, allocated by main at tests/detected/memory/mod.rs:",
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
        &["the block: ptr1, 8 bytes, allocated by main at tests/detected/memory/leaks.rs:"],
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
    tells(&failure, &["the block: ptr2, 8 bytes, allocated by main"]);
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

/// A static that was left with the address of a block of an earlier execution, as what std knows of the program's functions
/// is left with addresses in its holes.
#[test]
fn what_a_static_leads_to_by_chance_is_leaked() {
    static LEFT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let lose = || {
        let lost = Box::into_raw(Box::new(AtomicUsize::new(0)));
        // Only in the first execution.
        let _ = LEFT.compare_exchange(0, lost.addr(), SeqCst, SeqCst);
        // SAFETY: nobody frees it.
        unsafe { &*lost }.store(1, Relaxed);
    };
    let failure = fails(FailureKind::Leak, lose);
    tells(&failure, &["leak: a block", "(execution 1,"]);
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

    // So is what hangs from a cell in one, as in the lazy cells that crates write for themselves.
    struct Lazy {
        once: Once,
        value: UnsafeCell<MaybeUninit<Arc<AtomicUsize>>>,
    }
    // SAFETY: the value is written once, and read after that.
    unsafe impl Sync for Lazy {}
    static LAZY: Lazy = Lazy {
        once: Once::new(),
        value: UnsafeCell::new(MaybeUninit::uninit()),
    };
    fn lazy() -> &'static Arc<AtomicUsize> {
        LAZY.once.call_once(|| {
            let value = Arc::new(AtomicUsize::new(0));
            // SAFETY: nobody else has begun this.
            LAZY.value.with_mut(|it| unsafe { (*it).write(value) });
        });
        // SAFETY: it has been written.
        LAZY.value.with(|it| unsafe { (*it).assume_init_ref() })
    }
    let executions = passes(|| {
        let other = thread::spawn(|| lazy().fetch_add(1, SeqCst));
        let before = lazy().fetch_add(1, SeqCst);
        assert_eq!(before + other.join().unwrap(), 1);
    });
    assert!(executions > 1);
    // A lost block is one all the same where the static leads elsewhere.
    fails(FailureKind::Leak, || {
        LAZY.once.call_once(|| {
            // SAFETY: nobody else has begun this, and nobody reads it.
            LAZY.value
                .with_mut(|it| unsafe { it.write(MaybeUninit::zeroed()) });
        });
        std::mem::forget(Arc::new(AtomicUsize::new(0)));
    });
}

/// A lazy cell of somebody who gets at its contents by `get`, as of spin and crossbeam-epoch: nobody hears of that.
#[cfg(target_os = "linux")]
struct Unheard {
    once: Once,
    value: UnsafeCell<MaybeUninit<Box<Arc<AtomicUsize>>>>,
}

// SAFETY: the value is written once in an execution, and read after that.
#[cfg(target_os = "linux")]
unsafe impl Sync for Unheard {}

#[cfg(target_os = "linux")]
impl Unheard {
    const fn new() -> Unheard {
        Unheard {
            once: Once::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn value(&self) -> &AtomicUsize {
        let value = UnsafeCell::raw_get(&self.value);
        let make = || Box::new(Arc::new(AtomicUsize::new(0)));
        // SAFETY: nobody else has begun this.
        self.once.call_once(|| unsafe {
            (*value).write(make());
        });
        // SAFETY: it has been written.
        unsafe { (*value).assume_init_ref() }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_hangs_from_a_static_of_which_nobody_hears_is_no_leak() {
    static LAZY: Unheard = Unheard::new();
    let adds = || {
        let other = thread::spawn(|| LAZY.value().fetch_add(1, SeqCst));
        let before = LAZY.value().fetch_add(1, SeqCst);
        assert_eq!(before + other.join().unwrap(), 1);
    };
    let executions = passes(adds);
    assert!(executions > 1);
    // The execution in which it was doubted is made twice, and is one of them.
    let outcomes = dpor::outcomes(adds);
    assert_eq!(Vec::from_iter(outcomes), [((), executions)]);
    // What does not hang from it is a leak all the same, and the only one.
    let failure = fails(FailureKind::Leak, move || {
        adds();
        std::mem::forget(Arc::new(AtomicUsize::new(0)));
    });
    tells(&failure, &["leak: a block of the model is still allocated"]);
    // It hangs from nothing if the cell is on the heap, and that is lost.
    fails(FailureKind::Leak, || {
        let lazy = Box::leak(Box::new(Unheard::new()));
        lazy.value().store(1, SeqCst);
    });
}

#[test]
fn memory_that_was_freed_last_of_all_keeps_no_block() {
    // Nobody of the model has allocated it, so it is like that of a static. It is larger than what a new thread frees.
    struct Elsewhere {
        slot: AtomicPtr<u64>,
        _rest: [u64; 500],
    }
    let hangs = |is_freed: bool| {
        move || {
            let made = std::thread::spawn(|| {
                Box::new(Elsewhere {
                    slot: AtomicPtr::new(null_mut()),
                    _rest: [0; 500],
                })
            });
            let elsewhere = made.join().unwrap();
            let block = Box::into_raw(Box::new(5));
            elsewhere.slot.store(block, Release);
            match is_freed {
                true => drop(elsewhere),
                false => std::mem::forget(elsewhere),
            }
        }
    };
    fails(FailureKind::Leak, hangs(true));
    assert_eq!(passes(hangs(false)), 1);
}
