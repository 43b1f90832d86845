//! What does a thread do besides its code?
//!
//! It drops its variables when the code has ended, one way or the other, and announces its end
//! where that is an event.

use crate::rt::coroutine::ThreadEnds;
use crate::rt::exec::announce::exit;
use crate::rt::exec::context::{drop_locals, here};

/// What is done behind the code of each thread. Where no runtime is, that is nothing.
pub(crate) static ENDS: ThreadEnds = ThreadEnds {
    returns,
    unwinds: drop_locals,
};

/// The code of the thread has returned.
fn returns() {
    drop_locals();
    exit(here());
}
