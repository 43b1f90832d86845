//! What do atomics say when they are asked for what does not exist?

use super::once::message;
use super::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use super::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, fence};
use super::thread;

/// What the panic says of a thread that does this.
fn panics(body: fn(Ordering), order: Ordering) -> String {
    message(thread::spawn(move || body(order)).join())
}

pub fn orderings_that_do_not_exist_are_refused() -> Vec<String> {
    let loads: fn(Ordering) = |order| _ = AtomicBool::new(true).load(order);
    let stores: fn(Ordering) = |order| AtomicU8::new(1).store(1, order);
    let fails: fn(Ordering) = |order| {
        let pointer = AtomicPtr::new(std::ptr::null_mut::<u8>());
        let null = std::ptr::null_mut();
        _ = pointer.compare_exchange(null, null, SeqCst, order);
    };
    let updates: fn(Ordering) = |order| _ = AtomicU8::new(1).fetch_update(SeqCst, order, Some);
    vec![
        panics(loads, Release),
        panics(loads, AcqRel),
        panics(stores, Acquire),
        panics(stores, AcqRel),
        panics(fails, Release),
        panics(fails, AcqRel),
        panics(updates, Release),
        panics(fence, Relaxed),
    ]
}
