//! Counts the outcomes of a test: the values that its closure returns or that it records.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::config::{Builder, Thorough};
use crate::exploration::progress::above_captured;
use crate::rt::Work;
use crate::rt::exec::current;
use crate::rt::exec::recorded_outcome::RecordedOutcome;

/// Explores every trace of `f` and counts, for each value that `f` returns, the executions that
/// return it.
///
/// Executions that [`assume`](crate::assume) prunes return nothing.
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
/// [complete](crate::Report::complete), for example because a limit stopped it: there may be
/// outcomes that were not found.
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
/// [`Report::outcomes`](crate::Report::outcomes) contains for each outcome the number of executions
/// that had it. An execution may have several outcomes; a repeated outcome counts once. The
/// outcomes of an execution that is pruned later, for example by [`assume`](crate::assume), do not
/// count. Outside a model this does nothing.
///
/// Any thread can call this, at any place in the test. If the closure can return the value,
/// [`outcomes`](outcomes()) is cheaper and needs no text.
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
    // The text is made outside the runtime, because the program's `Debug` may perform any
    // operation.
    current::record_outcome(&format!("{value:?}"));
}

/// The outcomes of the complete executions so far, each with the number of executions that had it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    said: BTreeMap<String, u64>,
    /// For each number of a value, the number of executions in this process that returned that
    /// value.
    returned: Vec<u64>,
}

impl Outcomes {
    /// Counts a complete execution with these outcomes.
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

    /// Adds the outcomes of other executions.
    pub(crate) fn add_all(&mut self, other: &Outcomes) {
        for (outcome, executions) in &other.said {
            *self.said.entry(outcome.clone()).or_default() += executions;
        }
        let known = self.returned.len().max(other.returned.len());
        self.returned.resize(known, 0);
        for (known, more) in self.returned.iter_mut().zip(&other.returned) {
            *known += more;
        }
    }

    /// Sets the number of executions that had this outcome.
    pub(crate) fn put(&mut self, outcome: String, executions: u64) {
        self.said.insert(outcome, executions);
    }

    /// Returns the recorded outcomes as texts.
    pub(crate) fn said(&self) -> &BTreeMap<String, u64> {
        &self.said
    }
}

impl Builder {
    /// Explores `f` with these settings and counts, for each value that `f` returns, the executions
    /// that return it.
    ///
    /// Otherwise as [`outcomes`](outcomes()). The exploration uses no
    /// [checkpoint](Builder::checkpoint_file), because a checkpoint cannot contain the values that
    /// a closure returns. It can contain the outcomes that a test records with
    /// [`outcome`](outcome()). With [`Algorithm::FinalStates`](crate::Algorithm::FinalStates) the
    /// values are all there are, and the numbers are of the executions that were explored.
    ///
    /// # Panics
    ///
    /// As for [`Builder::check`], and if the exploration is not
    /// [complete](crate::Report::complete), unless it has reached every final state.
    #[track_caller]
    pub fn outcomes<T, F>(&self, f: F) -> BTreeMap<T, u64>
    where
        T: Ord + Send + 'static,
        F: Fn() -> T + Send + Sync + 'static,
    {
        let mut settings = Builder {
            // Only the first pass explores what the settings ask for.
            thorough: Thorough::Off,
            ..self.clone()
        };
        if let Some(file) = settings.checkpoint_file.take() {
            above_captured(&format!(
                "dpor: the checkpoint {} (DPOR_CHECKPOINT_FILE) cannot keep what a closure returns, so the outcomes of the model at \
                 {} are explored without it; those that a test says by `dpor::outcome` are kept\n",
                file.display(),
                Location::caller()
            ));
        }
        // Only at the end of an execution it is known whether the execution counts. So each value
        // gets a number, and the end of a complete execution counts the number.
        let known: Mutex<BTreeMap<T, u64>> = Mutex::default();
        let returned = settings.returned(&|| {
            let value = f();
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let next = known.len() as u64;
            current::record_returned(*known.entry(value).or_insert(next) as usize);
        });
        let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        // `collect` sorts first, and would compile a sort for each type of value.
        let mut found = BTreeMap::new();
        for (value, number) in known {
            let times = returned.get(number as usize).copied().unwrap_or_default();
            if times > 0 {
                found.insert(value, times);
            }
        }
        found
    }

    /// Returns for each number that `f` records the number of executions that returned its value.
    #[track_caller]
    fn returned(&self, f: &dyn Work) -> Vec<u64> {
        let passed = self.checked(f);
        let report = passed.report();
        assert!(
            report.has_every_outcome(),
            "the outcomes are not all: {report}"
        );
        let returned = passed.outcomes.map_or_else(Vec::new, |all| all.returned);
        debug_assert_eq!(returned.iter().sum::<u64>(), report.executions);
        returned
    }
}
