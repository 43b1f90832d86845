//! Does a modelled `Arc` explore what can happen to a shared value, and nothing more?

mod conversions;
mod counts;
mod destructors;
mod outside;
mod pointers;
mod random;
mod sole_owner;
mod weak;

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::{Builder, thread};
use pretty_assertions::assert_eq;

/// Explores `f` completely; gives the number of executions and the set of its results.
fn explore<R: Ord + Send + 'static>(
    f: impl Fn() -> R + Send + Sync + 'static,
) -> (u64, BTreeSet<R>) {
    let results = std::sync::Arc::new(StdMutex::new(BTreeSet::new()));
    let all = results.clone();
    let report = Builder::new().check(move || {
        let result = f();
        all.lock().unwrap().insert(result);
    });
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    let results = std::mem::take(&mut *results.lock().unwrap());
    (report.executions, results)
}

/// Runs the bodies in threads of their own; gives their results.
fn run<R: Send + 'static>(bodies: Vec<Box<dyn FnOnce() -> R + Send>>) -> Vec<R> {
    let handles: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    handles
        .into_iter()
        .map(|handle| handle.join().expect("no thread panics"))
        .collect()
}

/// A value whose end the program sees: it is counted, outside of the model.
struct Seen(&'static StdUsize);

impl Drop for Seen {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}
