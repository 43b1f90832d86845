//! Does every blocking type show exactly the outcomes it can have?

mod barrier;
mod condvar;
mod mpsc;
mod once;
mod park;
mod rwlock;
mod spurious;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc as StdArc, Mutex as StdMutex};

use dpor::Builder;

/// Explores `f`; gives its outcomes, each with the number of executions, and that number in all.
fn outcomes<T: Ord + Debug + Send + 'static>(
    f: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeMap<T, u64>, u64) {
    let seen = StdArc::new(StdMutex::new(BTreeMap::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let outcome = f();
        *all.lock().unwrap().entry(outcome).or_default() += 1;
    });
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    let all = std::mem::take(&mut *seen.lock().unwrap());
    (all, report.executions)
}

/// The outcomes alone.
fn set<T: Ord + Debug + Send + 'static>(f: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    outcomes(f).0.into_keys().collect()
}

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    outcomes(f).1
}
