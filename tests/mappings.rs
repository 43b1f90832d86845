//! Does a process with many models keep the mappings that the system has for it?
//!
//! Linux has some 65,000 for a process, and without any there are no more stacks. Each page that is locked is one, and parts its
//! neighbours. The tests count all of the process, so they take turns, and are in a file of their own.
// The feature has other signatures.
#![cfg(not(feature = "loom"))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::hint::black_box;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpor::sync::Arc;
use dpor::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Builder, thread};

/// By how many the mappings may grow behind the first models, whatever for: an allocator may ask for memory.
const FEW: usize = 30;

fn in_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the system tells");
    maps.lines().count()
}

/// By how many the mappings have grown between the tenth run of this and the last one.
fn growth(times: usize, run: impl Fn()) -> usize {
    (0..10).for_each(|_| run());
    let before = mappings();
    (10..times).for_each(|_| run());
    mappings().saturating_sub(before)
}

/// What two threads have together, and the last one frees.
struct Node<const SIZE: usize> {
    owners: AtomicUsize,
    _rest: [usize; SIZE],
}

struct Shared<const SIZE: usize>(*mut Node<SIZE>);

// SAFETY: each of two threads leaves once, and does nothing with it behind that.
unsafe impl<const SIZE: usize> Send for Shared<SIZE> {}

impl<const SIZE: usize> Shared<SIZE> {
    fn by_two() -> [Self; 2] {
        let node = Box::into_raw(Box::new(Node {
            owners: AtomicUsize::new(2),
            _rest: [0; SIZE],
        }));
        [Shared(node), Shared(node)]
    }

    fn leave(self) {
        // SAFETY: this thread has not left yet, and the last one frees.
        unsafe {
            if (*self.0).owners.fetch_sub(1, AcqRel) == 1 {
                drop(Box::from_raw(self.0));
            }
        }
    }
}

/// Two threads free nodes of two sizes. So there are executions in which all that is allocated has pages of its own.
fn frees_two_nodes() {
    let ([small, theirs], [large, theirs_too]) = (Shared::<1>::by_two(), Shared::<9>::by_two());
    let other = thread::spawn(move || {
        theirs.leave();
        theirs_too.leave();
    });
    small.leave();
    large.leave();
    other.join().unwrap();
}

/// A right model, of which a list of std's is told something in each execution. It is dropped behind the model.
fn is_right_and_collects() {
    let told = std::sync::Arc::new(Mutex::new(Vec::new()));
    let all = told.clone();
    dpor::model(move || {
        frees_two_nodes();
        let mut all = all.lock().unwrap();
        for nth in 0..20 {
            let text = format!("{nth} of {}", all.len());
            all.push(text);
        }
    });
    let told = std::sync::Arc::into_inner(told).expect("the model has no other one");
    let told = told.into_inner().expect("nobody has panicked");
    let number = |(nth, text): (usize, &String)| *text == format!("{} of {nth}", nth % 20);
    assert!(!told.is_empty() && told.iter().enumerate().all(number));
}

#[test]
fn what_is_freed_behind_its_model_takes_no_mappings() {
    let _turn = in_turn();
    let growth = growth(1000, is_right_and_collects);
    assert!(growth <= FEW, "{growth} more mappings");
}

#[test]
fn a_list_that_outlives_many_models_is_whole_and_takes_no_mappings() {
    let _turn = in_turn();
    let all = std::sync::Arc::new(Mutex::new(Vec::new()));
    let growth = growth(200, || {
        let all = all.clone();
        dpor::model(move || {
            frees_two_nodes();
            let mut all = all.lock().unwrap();
            let length = all.len();
            all.push(vec![length; 10]);
        });
    });
    let all = all.lock().unwrap();
    assert!(all.len() > 200);
    for (nth, list) in all.iter().enumerate() {
        assert_eq!(*list, [nth; 10]);
    }
    assert!(growth <= FEW, "{growth} more mappings");
}

fn fails(model: fn()) {
    assert!(Builder::new().explore(model).is_err());
}

fn reads_what_may_be_freed() {
    let block = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(5))));
    let theirs = block.clone();
    let other = thread::spawn(move || {
        let block: *mut u64 = theirs.load(Acquire);
        if !block.is_null() {
            // SAFETY: none, which is what is found.
            black_box(unsafe { block.read_volatile() });
        }
    });
    let block = block.swap(ptr::null_mut(), AcqRel);
    // SAFETY: nobody else frees it.
    drop(unsafe { Box::from_raw(block) });
    other.join().unwrap();
}

fn reads_what_is_not_there() {
    let word = Arc::new(AtomicUsize::new(0));
    let theirs = word.clone();
    let other = thread::spawn(move || {
        let nowhere = ptr::without_provenance::<u8>(16 + theirs.load(Relaxed));
        // SAFETY: none, which is what is found.
        black_box(unsafe { nowhere.read_volatile() });
    });
    other.join().unwrap();
}

fn comes_to_the_end_of_its_stack() {
    #[expect(unconditional_recursion, reason = "which is what is found")]
    fn deeper(depth: usize) -> usize {
        black_box([depth; 64]);
        black_box(deeper(depth + 1)) + 1
    }
    let other = thread::spawn(|| deeper(0));
    other.join().unwrap();
}

#[test]
fn stacks_that_are_given_up_take_few_mappings() {
    let _turn = in_turn();
    for model in [
        reads_what_may_be_freed,
        reads_what_is_not_there,
        comes_to_the_end_of_its_stack,
    ] {
        let growth = growth(100, || fails(model));
        assert!(growth <= FEW, "{growth} more mappings");
    }
}
