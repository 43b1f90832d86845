//! What does a thread do besides its code?
//!
//! The thread drops its thread-local variables when the code has returned or unwound, and announces
//! its end where that is an event.

use crate::rt::coroutine::ThreadEnds;
use crate::rt::exec::announce::exit;
use crate::rt::exec::context::{drop_locals, here};

/// The actions behind the code of each thread. Without a runtime there are none.
pub(crate) static ENDS: ThreadEnds = ThreadEnds {
    returns,
    unwinds: drop_locals,
};

/// The code of the thread has returned.
fn returns() {
    drop_locals();
    exit(here());
}
