//! Shows: a future that looks, registers its waker and does not look again, so that it may sleep for ever.
//! Prints: the report of the deadlock, then how many executions the version that looks again has.

use std::future::poll_fn;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Context, Poll};

use dpor::future::{AtomicWaker, block_on};
use dpor::sync::Arc;
use dpor::sync::atomic::AtomicBool;
use dpor::{Builder, thread};

#[derive(Default)]
struct Flag {
    raised: AtomicBool,
    waker: AtomicWaker,
}

impl Flag {
    fn raise(&self) {
        self.raised.store(true, Release);
        self.waker.wake();
    }

    fn look(&self) -> Poll<()> {
        match self.raised.load(Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn poll_broken(&self, context: &mut Context) -> Poll<()> {
        if self.look().is_ready() {
            return Poll::Ready(());
        }
        // If the flag is raised here, there is nobody to wake yet, and nobody wakes later.
        self.waker.register_by_ref(context.waker());
        Poll::Pending
    }

    fn poll_fixed(&self, context: &mut Context) -> Poll<()> {
        if self.look().is_ready() {
            return Poll::Ready(());
        }
        self.waker.register_by_ref(context.waker());
        self.look()
    }
}

fn wait_for_the_other(poll: fn(&Flag, &mut Context) -> Poll<()>) {
    let flag = Arc::new(Flag::default());
    let shared = flag.clone();
    let other = thread::spawn(move || shared.raise());
    block_on(poll_fn(|context| poll(&flag, context)));
    other.join().unwrap();
}

fn main() {
    let failure = Builder::new()
        .explore(|| wait_for_the_other(Flag::poll_broken))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| wait_for_the_other(Flag::poll_fixed))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert!(report.complete);
}
