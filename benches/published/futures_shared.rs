//! If a task is woken and drops its `Shared` instead of polling it, is another task woken that
//! waits for a clone of it (futures-rs, issue 2706)?
//!
//! Copied by `run` into the tests of futures-util 0.3.34. Its `Shared` has the atomic and the mutex
//! of `dpor`.

use std::task::Poll;

use futures_util::FutureExt;

#[test]
fn futures_shared() {
    dpor::model(|| {
        let mut polled = false;
        let yields = std::future::poll_fn(move |context| {
            if polled {
                return Poll::Ready(());
            }
            polled = true;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let first = yields.shared();
        let second = first.clone();
        let other = dpor::thread::spawn(move || dpor::future::block_on(second));
        let _ = first.now_or_never();
        other.join().unwrap();
    });
}
