//! Is what is older than an execution put back only where it still is?
//!
//! Each test frees it in the model, and has another block in its place when the execution ends.

use std::sync::{Arc as StdArc, Mutex as StdMutex};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::SeqCst;
use dpor::sync::{Mutex, OnceLock};
use dpor::{Builder, thread};

/// What is put in the place of what is freed.
const NINE: u64 = 9;

/// Frees what it holds, and leaves a block of the same layout behind, which mostly is the same memory.
struct Replace<T>(Option<Box<T>>, StdArc<StdMutex<Vec<Box<[u64]>>>>);

impl<T> Drop for Replace<T> {
    fn drop(&mut self) {
        assert_eq!(align_of::<T>(), align_of::<u64>());
        self.0 = None;
        let block = vec![NINE; size_of::<T>() / size_of::<u64>()];
        self.1.lock().unwrap().push(block.into_boxed_slice());
    }
}

/// Has a model use and free what is older than it, and looks at what has come in its place.
fn nobody_writes_to_the_place_of<T: Send + 'static>(older: T, uses: fn(&T), then: fn()) {
    let slot = StdMutex::new(Some(Box::new(older)));
    let blocks = StdArc::new(StdMutex::new(Vec::new()));
    let theirs = StdArc::clone(&blocks);
    let explored = Builder::new().explore(move || {
        let Some(older) = slot.lock().unwrap().take() else {
            return;
        };
        uses(&older);
        let _replace = Replace(Some(older), theirs.clone());
        then();
    });
    drop(explored);
    let blocks = blocks.lock().unwrap();
    assert_eq!(blocks.len(), 1);
    for block in blocks.iter() {
        assert!(block.iter().all(|&word| word == NINE), "{block:?}");
    }
}

#[test]
fn a_lock_that_the_model_has_freed_is_not_put_back() {
    let lock = Mutex::new([7_u64; 40]);
    nobody_writes_to_the_place_of(lock, |lock| lock.lock().unwrap()[3] = 5, || ());
}

#[test]
fn an_initialisation_that_the_model_has_freed_is_not_undone() {
    let uses = |once: &OnceLock<[u64; 40]>| assert_eq!(once.get_or_init(|| [5; 40])[3], 5);
    nobody_writes_to_the_place_of(OnceLock::new(), uses, || ());
}

#[test]
fn an_atomic_that_was_freed_when_the_execution_was_torn_down_is_not_put_back() {
    let numbers = [const { AtomicUsize::new(7) }; 40];
    // It waits for ever, so nothing is an operation any more when the block is freed.
    nobody_writes_to_the_place_of(numbers, |all| all[3].store(5, SeqCst), thread::park);
}
