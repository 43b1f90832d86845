//! Is the id of a thread in use until all its destructors have run (thread_local-rs, issue 75)?
//!
//! Copied by `run` into the tests of thread_local 1.1.10. It has the statics, the mutex and the
//! atomics of `dpor`.

use std::cell::RefCell;
use std::sync::Arc;

use dpor::cell::UnsafeCell;
use thread_local::ThreadLocal;

/// A number that only its own thread changes.
#[derive(Default)]
struct Number(UnsafeCell<u32>);

// SAFETY: the test checks that one thread at a time has the number.
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
    /// The map that contains the number.
    _numbers: Arc<ThreadLocal<Number>>,
}

impl Drop for Last {
    fn drop(&mut self) {
        // SAFETY: `_numbers` keeps all numbers alive.
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
            // This thread-local variable exists before the one that returns the id, so its
            // destructor runs after the destructor of that variable.
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
