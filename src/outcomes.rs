//! What can a program come to?

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Builder;
use crate::rt;
use crate::rt::object::machine::Learnt;

/// Explores every trace of `f` and counts, for each value that it returns, the executions that return it.
///
/// Executions that [`assume`](crate::assume) gives up return nothing.
///
/// ```
/// use dpor::sync::Arc;
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// let outcomes = dpor::outcomes(|| {
///     let x = Arc::new(AtomicUsize::new(0));
///     let theirs = x.clone();
///     let other = dpor::thread::spawn(move || theirs.store(1, SeqCst));
///     let seen = x.load(SeqCst);
///     other.join().unwrap();
///     seen
/// });
/// assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
/// ```
///
/// # Panics
///
/// As for [`model`](crate::model()), and if the exploration is not [complete](crate::Report::complete), as where a
/// limit stopped it: there may be outcomes that were not found.
#[track_caller]
pub fn outcomes<T, F>(f: F) -> BTreeMap<T, u64>
where
    T: Ord + Send + 'static,
    F: Fn() -> T + Send + Sync + 'static,
{
    Builder::new().outcomes(f)
}

impl Builder {
    /// Explores `f` with these settings and counts, for each value that it returns, the executions that return it.
    ///
    /// As [`outcomes`](outcomes()), which says more.
    ///
    /// # Panics
    ///
    /// As for [`Builder::check`], and if the exploration is not [complete](crate::Report::complete).
    #[track_caller]
    pub fn outcomes<T, F>(&self, f: F) -> BTreeMap<T, u64>
    where
        T: Ord + Send + 'static,
        F: Fn() -> T + Send + Sync + 'static,
    {
        // With what the exploration knew of the program when these were found.
        type Found<T> = (Option<Learnt>, BTreeMap<T, u64>);
        let found: Arc<Mutex<Found<T>>> = Arc::default();
        let collect = found.clone();
        let report = self.checked(move || {
            let value = f();
            if rt::is_unexplored() {
                return;
            }
            let mut found = collect.lock().unwrap_or_else(PoisonError::into_inner);
            let learnt = rt::learnt();
            if found.0 != learnt {
                *found = (learnt, BTreeMap::new());
            }
            *found.1.entry(value).or_default() += 1;
        });
        let report = report.report();
        assert!(report.complete, "the outcomes are not all: {report}");
        std::mem::take(&mut found.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}
