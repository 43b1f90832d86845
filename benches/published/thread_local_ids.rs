//! Is the id of a thread in use until all its destructors have run (thread_local-rs, issue 75)?
//!
//! Copied by `run` into the tests of thread_local 1.1.10. It has the statics, the mutex and the
//! atomics of `dpor`.

use std::cell::RefCell;
use std::sync::Arc;

use dpor::cell::UnsafeCell;
use thread_local::ThreadLocal;

/// A number that only the thread that it belongs to changes.
#[derive(Default)]
struct Number(UnsafeCell<u32>);

// SAFETY: whether one thread at a time has it is what the test asks.
unsafe impl Send for Number {}

impl Number {
    fn change(&self) {
        // SAFETY: as above.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }
}

/// Changes the number of the thread that drops this.
struct Last {
    own: *const Number,
    /// Where that is.
    _numbers: Arc<ThreadLocal<Number>>,
}

impl Drop for Last {
    fn drop(&mut self) {
        // SAFETY: all numbers are still there.
        unsafe { &*self.own }.change();
    }
}

dpor::thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[test]
fn thread_local_ids() {
    dpor::model(|| {
        let numbers = Arc::new(ThreadLocal::<Number>::new());
        let theirs = numbers.clone();
        let first = dpor::thread::spawn(move || {
            // This variable is there before the one that gives the id back, and so it is dropped
            // after that one.
            LAST.with_borrow_mut(|last| {
                let own: *const Number = theirs.get_or_default();
                *last = Some(Last {
                    own,
                    _numbers: theirs.clone(),
                });
            });
        });
        let second = dpor::thread::spawn(move || numbers.get_or_default().change());
        first.join().unwrap();
        second.join().unwrap();
    });
}
