//! What can a program come to?

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::config::Builder;
use crate::exploration::progress::above_captured;
use crate::rt::Work;
use crate::rt::exec::current;
use crate::rt::exec::recorded_outcome::RecordedOutcome;

/// Explores every trace of `f` and counts, for each value that it returns, the executions that
/// return it.
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
/// As for [`model`](crate::model()), and if the exploration is not
/// [complete](crate::Report::complete), as where a limit stopped it: there may be outcomes that
/// were not found.
#[track_caller]
pub fn outcomes<T, F>(f: F) -> BTreeMap<T, u64>
where
    T: Ord + Send + 'static,
    F: Fn() -> T + Send + Sync + 'static,
{
    Builder::new().outcomes(f)
}

/// Adds `value`, as [`Debug`] writes it, to the outcomes of this execution.
///
/// [`Report::outcomes`](crate::Report::outcomes) says how many executions had each. An execution
/// may have several, and has none twice. What an execution says that is given up later, as by
/// [`assume`](crate::assume), does not count. Outside a model this does nothing.
///
/// Any thread can call this, wherever it is in the test. Where the closure can return the value,
/// [`outcomes`](outcomes()) takes less and needs no text.
///
/// ```
/// use dpor::sync::Arc;
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// let report = dpor::Builder::new().check(|| {
///     let x = Arc::new(AtomicUsize::new(0));
///     let theirs = x.clone();
///     dpor::thread::spawn(move || dpor::outcome(theirs.load(SeqCst)));
///     x.store(1, SeqCst);
/// });
/// assert!(report.outcomes.keys().eq(["0", "1"]));
/// ```
pub fn outcome<T: Debug>(value: T) {
    // The text is the program's, whose `Debug` may do anything.
    current::record_outcome(&format!("{value:?}"));
}

/// In how many executions the test has said what they came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    said: BTreeMap<String, u64>,
    /// By number of a value how many closures have returned it, of those that were run in this
    /// process.
    returned: Vec<u64>,
}

impl Outcomes {
    /// Another execution has come to its end, and to this.
    pub(crate) fn add(&mut self, recorded_outcome: &RecordedOutcome) {
        for outcome in &recorded_outcome.said {
            match self.said.get_mut(outcome) {
                Some(executions) => *executions += 1,
                None => self.put(outcome.clone(), 1),
            }
        }
        if let Some(number) = recorded_outcome.returned {
            let known = self.returned.len().max(number + 1);
            self.returned.resize(known, 0);
            self.returned[number] += 1;
        }
    }

    /// So many executions have come to this, in words.
    pub(crate) fn put(&mut self, outcome: String, executions: u64) {
        self.said.insert(outcome, executions);
    }

    /// What executions have come to, in words.
    pub(crate) fn said(&self) -> &BTreeMap<String, u64> {
        &self.said
    }
}

impl Builder {
    /// Explores `f` with these settings and counts, for each value that it returns, the executions
    /// that return it.
    ///
    /// As [`outcomes`](outcomes()), which says more. There is no
    /// [checkpoint](Builder::checkpoint_file), which could not keep what a closure returns; it
    /// keeps what the test says by [`outcome`](outcome()).
    ///
    /// # Panics
    ///
    /// As for [`Builder::check`], and if the exploration is not
    /// [complete](crate::Report::complete).
    #[track_caller]
    pub fn outcomes<T, F>(&self, f: F) -> BTreeMap<T, u64>
    where
        T: Ord + Send + 'static,
        F: Fn() -> T + Send + Sync + 'static,
    {
        let mut settings = self.clone();
        if let Some(file) = settings.checkpoint_file.take() {
            above_captured(&format!(
                "dpor: the checkpoint {} (DPOR_CHECKPOINT_FILE) cannot keep what a closure returns, so the outcomes of the model at \
                 {} are explored without it; those that a test says by `dpor::outcome` are kept\n",
                file.display(),
                Location::caller()
            ));
        }
        // Whether an execution counts is known only when it is over, so each value has a number, by
        // which it is counted then.
        let known: Mutex<BTreeMap<T, u64>> = Mutex::default();
        let returned = settings.returned(&|| {
            let value = f();
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let next = known.len() as u64;
            current::record_returned(*known.entry(value).or_insert(next) as usize);
        });
        let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Not collected, which sorts: all of that would be compiled for each type of value.
        let mut found = BTreeMap::new();
        for (value, number) in known {
            let times = returned.get(number as usize).copied().unwrap_or_default();
            if times > 0 {
                found.insert(value, times);
            }
        }
        found
    }

    /// How many executions have returned the value of each number that `f` says.
    #[track_caller]
    fn returned(&self, f: &dyn Work) -> Vec<u64> {
        let passed = self.checked(f);
        let report = passed.report();
        assert!(report.complete, "the outcomes are not all: {report}");
        let returned = passed.outcomes.map_or_else(Vec::new, |all| all.returned);
        debug_assert_eq!(returned.iter().sum::<u64>(), report.executions);
        returned
    }
}
