//! Does every blocking type show exactly the outcomes it can have?

mod barrier;
mod clock;
mod condvar;
mod mixed;
mod mpsc;
mod once;
mod park;
mod rwlock;
mod said;
mod seen_as;
mod spurious;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc as StdArc;

use dpor::Builder;

/// Explores `f`; gives its outcomes, each with the number of executions, and that number in all.
fn outcomes<T: Ord + Debug + Send + 'static>(
    f: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeMap<T, u64>, u64) {
    let f = StdArc::new(f);
    let body = f.clone();
    let report = Builder::new().check(move || drop(body()));
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    (dpor::outcomes(move || f()), report.executions)
}

/// The outcomes alone.
fn set<T: Ord + Debug + Send + 'static>(f: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    outcomes(f).0.into_keys().collect()
}

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    outcomes(f).1
}
