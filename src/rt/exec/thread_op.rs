//! What does a thread do besides its code?
//!
//! It drops its variables when the code has ended, one way or the other, and announces its end where that is an event.
//!
//! [`run_thread`] is inlined into the code that each stack runs, so that the code of a thread returns there and nowhere else: a
//! processor foretells where a function returns to from the calls it has seen, which after a switch are those of another stack.
//! But an idle stack goes to another OS thread, and the compiler may look up once in a function where the thread-locals of
//! its OS thread are. So nothing that is inlined there may have to do with any, and what does is a call.

use std::mem;

use crate::rt::ThreadMain;

use crate::rt::exec::announce::exit;
use crate::rt::exec::context::{drop_locals, here};

/// Runs the code of a thread. Where no runtime is, that is all.
#[inline(always)]
pub(crate) fn run_thread(body: ThreadMain) {
    /// Drops the thread's variables if its body unwinds.
    struct Unwinds;
    impl Drop for Unwinds {
        #[cold]
        #[inline(never)]
        fn drop(&mut self) {
            drop_locals();
        }
    }
    let unwinds = Unwinds;
    body.run();
    mem::forget(unwinds);
    end();
}

/// The code of the thread has returned.
#[inline(never)]
fn end() {
    drop_locals();
    exit(here());
}
