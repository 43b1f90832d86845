//! Which failing programs do several of these tests share?

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::thread;

pub fn lost_update() {
    let x = Arc::new(AtomicUsize::new(0));
    let shared = x.clone();
    let other = thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || shared.store(shared.load(SeqCst) + 1, SeqCst))
        .expect("it spawns");
    x.store(x.load(SeqCst) + 1, SeqCst);
    other.join().unwrap();
    assert_eq!(x.load(SeqCst), 2, "an update was lost");
}

pub struct Slot {
    pub data: UnsafeCell<u32>,
    pub ready: AtomicBool,
}

// SAFETY: the model finds that this is a lie: `ready` does not order the accesses to `data`.
unsafe impl Sync for Slot {}

pub fn unordered_flag() {
    let slot = Arc::new(Slot {
        data: UnsafeCell::new(0),
        ready: AtomicBool::new(false),
    });
    let theirs = slot.clone();
    let other = thread::spawn(move || {
        // SAFETY: the model stops before an access that is not ordered with another one.
        theirs.data.with_mut(|data| unsafe { *data = 1 });
        theirs.ready.store(true, Relaxed);
    });
    if slot.ready.load(Relaxed) {
        // SAFETY: as above.
        slot.data.with(|data| unsafe { *data });
    }
    other.join().unwrap();
}

/// Waits for what nothing does.
pub fn spins_for_ever() {
    let flag = AtomicBool::new(false);
    while !flag.load(SeqCst) {
        dpor::hint::spin_loop();
    }
}

/// An atomic behind a pointer that its owner has given back.
pub fn used_after_free() {
    let pointer = Box::into_raw(Box::new(AtomicUsize::new(7)));
    let address = pointer as usize;
    let other = thread::spawn(move || {
        // SAFETY: the model stops before an access to memory that has been freed.
        unsafe { &*(address as *const AtomicUsize) }.load(SeqCst)
    });
    // SAFETY: it comes from `Box::into_raw`; the model stops if another thread uses it afterwards.
    drop(unsafe { Box::from_raw(pointer) });
    other.join().unwrap();
}

pub fn held_for_ever() {
    let lock = Arc::new(Mutex::new(()));
    let kept = lock.lock().unwrap();
    let shared = lock.clone();
    let other = thread::spawn(move || drop(shared.lock()));
    other.join().unwrap();
    drop(kept);
}
