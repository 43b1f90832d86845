//! Shows: a value that is initialised once by hand, and said to be there before it is.
//! Prints: the report of the data race, then how many executions the version with `OnceLock` has.

use std::sync::atomic::Ordering::AcqRel;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicBool;
use dpor::sync::{Arc, OnceLock};
use dpor::{Builder, thread};

trait Limit: Default + Send + Sync + 'static {
    fn get(&self) -> u32;
}

#[derive(Default)]
struct ByHand {
    initialised: AtomicBool,
    value: UnsafeCell<u32>,
}

// SAFETY: whoever finds `initialised` false writes, and everybody else only reads. That a reader may
// come before the write has ended is the bug of this example.
unsafe impl Sync for ByHand {}

impl Limit for ByHand {
    fn get(&self) -> u32 {
        // The swap lets only one thread initialise, but it tells the others too early.
        if !self.initialised.swap(true, AcqRel) {
            // SAFETY: this happens in one thread; see above for the readers.
            self.value.with_mut(|value| unsafe { *value = 42 });
        }
        // SAFETY: see above.
        self.value.with(|value| unsafe { *value })
    }
}

#[derive(Default)]
struct WithOnceLock(OnceLock<u32>);

impl Limit for WithOnceLock {
    fn get(&self) -> u32 {
        *self.0.get_or_init(|| 42)
    }
}

fn two_users<L: Limit>() {
    let limit = Arc::new(L::default());
    let shared = limit.clone();
    let other = thread::spawn(move || shared.get());
    assert_eq!(limit.get(), 42);
    assert_eq!(other.join().unwrap(), 42);
}

fn main() {
    let failure = Builder::new()
        .explore(two_users::<ByHand>)
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(two_users::<WithOnceLock>)
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert!(report.complete);
}
