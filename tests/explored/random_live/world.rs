//! What do the threads of a program share, and what tells what became of it?

use std::cell::RefCell;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;

use dpor::future::AtomicWaker;
use dpor::sync::atomic::{AtomicBool, AtomicI8, AtomicUsize};
use dpor::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Notify, Once, OnceLock, RwLock};
use dpor::thread;

/// What was seen: a log for each thread, what became of the shared value, and whether the program came
/// to its end.
pub type Outcome = (Vec<Vec<usize>>, bool);

/// A value that tells who drops it, unless an execution is being torn down.
pub(super) struct Loud(pub(super) StdArc<StdMutex<Outcome>>);

impl Drop for Loud {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let me = thread::current();
            let me = me.name().and_then(|name| name.parse().ok()).unwrap_or(0);
            self.0.lock().unwrap().0[me].push(900);
        }
    }
}

/// Leaves a mark when its thread drops its locals.
pub(super) struct Mark {
    pub(super) me: usize,
    pub(super) kept: Arc<AtomicUsize>,
    pub(super) seen: StdArc<StdMutex<Outcome>>,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.kept.fetch_add(16, SeqCst);
        if !std::thread::panicking() {
            self.seen.lock().unwrap().0[self.me].push(902);
        }
    }
}

dpor::thread_local! {
    pub(super) static MARK: RefCell<Option<Mark>> = const { RefCell::new(None) };
}

/// What all threads share.
pub(super) struct World {
    pub(super) atomics: [AtomicUsize; 2],
    pub(super) locks: [Mutex<usize>; 2],
    pub(super) rwlock: RwLock<usize>,
    pub(super) condvar: Condvar,
    pub(super) once: Once,
    pub(super) cell: OnceLock<usize>,
    pub(super) lazy: LazyLock<usize, Box<dyn FnOnce() -> usize + Send>>,
    pub(super) small: AtomicI8,
    pub(super) flag: AtomicBool,
    pub(super) ready: AtomicBool,
    pub(super) waker: AtomicWaker,
    /// Outlives the closure, for what is dropped behind its end.
    pub(super) kept: Arc<AtomicUsize>,
    pub(super) notify: Notify,
    pub(super) barrier: Barrier,
    pub(super) seen: StdArc<StdMutex<Outcome>>,
}

/// Puts what was seen into `all` when the execution is over, whichever way.
pub struct Keep<F: FnMut(Outcome)> {
    pub(super) seen: StdArc<StdMutex<Outcome>>,
    pub(super) keep: F,
}

impl<F: FnMut(Outcome)> Drop for Keep<F> {
    fn drop(&mut self) {
        let seen = self.seen.lock().unwrap().clone();
        (self.keep)(seen);
    }
}

impl World {
    /// With a barrier for so many.
    pub(super) fn new(group: usize, seen: StdArc<StdMutex<Outcome>>) -> World {
        let kept = Arc::new(AtomicUsize::new(0));
        let looked_at = kept.clone();
        World {
            atomics: [AtomicUsize::new(0), AtomicUsize::new(0)],
            locks: [Mutex::new(0), Mutex::new(0)],
            rwlock: RwLock::new(0),
            condvar: Condvar::new(),
            once: Once::new(),
            cell: OnceLock::new(),
            lazy: LazyLock::new(Box::new(move || {
                let kept = looked_at.load(SeqCst);
                assert!(kept != 1, "as planned");
                kept + 5
            })),
            small: AtomicI8::new(0),
            flag: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            kept,
            notify: Notify::new(),
            barrier: Barrier::new(group),
            seen,
        }
    }
}
