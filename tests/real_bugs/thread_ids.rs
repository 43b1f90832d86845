//! Does `dpor` find a number of a thread that another one uses before the first has ended (thread_local 1.1.10, issue 75)?
//!
//! Each thread has an id, by which it finds its own value, and which the next thread gets when it ends. A destructor
//! of a thread-local variable gives it back. But a variable that was there before that one is dropped after it, and
//! its destructor may still use the value. The fix gives the id back behind all of them.
//!
//! In the crate as published, `benches/published/run bugs` finds it (`ThreadGuard::drop` in `thread_id.rs`), in
//! execution 1, where a thread that ends changes its value in such a destructor: `v2 main*2 main.1*10 main.2*4`.

use dpor::cell::UnsafeCell;
use dpor::sync::Mutex;
use dpor::{FailureKind, thread};

use super::{finds, passes};

#[derive(Default)]
struct Values {
    used: Mutex<[bool; 2]>,
    values: [UnsafeCell<u32>; 2],
}

// SAFETY: whether one thread at a time has an id is what the tests ask.
unsafe impl Sync for Values {}

impl Values {
    /// The id of a thread that begins: the lowest that is not used.
    fn begin(&self) -> usize {
        let mut used = self.used.lock().unwrap();
        let id = used.iter().position(|used| !used).expect("one is free");
        used[id] = true;
        id
    }

    fn give_back(&self, id: usize) {
        self.used.lock().unwrap()[id] = false;
    }

    fn change(&self, id: usize) {
        // SAFETY: as above.
        self.values[id].with_mut(|value| unsafe { *value += 1 });
    }

    /// A thread that changes its value in its last destructor.
    fn live_buggy(&self) {
        let id = self.begin();
        self.give_back(id);
        self.change(id);
    }

    fn live_fixed(&self) {
        let id = self.begin();
        self.change(id);
        self.give_back(id);
    }
}

fn two_threads(live: fn(&Values)) {
    let values = Values::default();
    thread::scope(|scope| {
        scope.spawn(|| live(&values));
        live(&values);
    });
}

pub fn buggy() {
    two_threads(Values::live_buggy);
}

#[test]
fn an_id_that_is_given_back_before_its_last_use_is_that_of_two_threads() {
    finds(buggy, FailureKind::DataRace, "nothing orders the two");
}

/// The lock is taken twice by each thread, in any order.
#[test]
fn an_id_that_is_given_back_after_its_last_use_is_that_of_one_thread() {
    passes(|| two_threads(Values::live_fixed), 6);
}
