//! How is a failure reported if the process ends before the report is shown?
//!
//! A failed execution is unwound before any execution is run again, and a destructor may end the
//! process there. Until then the runtime keeps how the execution has ended, so that the code that
//! writes the last words can hand it to the writer of reports. The report is written only then, and
//! not at once for each failure: most processes continue, and then a simpler execution is reported.
//!
//! At that point no execution can be run again. So the report has no simpler execution, no pair of
//! events that the failure depends on, and no place where a block was allocated.

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::{End, Panic};
use crate::rt::event::weakened::Weakened;
use crate::rt::object::machine::Machine;
use crate::rt::process::watchdog::KnownFailure;

/// How an execution that is being unwound has failed.
pub(super) struct AtEnd {
    pub(super) end: End,
    /// The objects at the time of the failure.
    pub(super) machine: Machine,
    pub(super) message: Option<Panic>,
    pub(super) earlier: Vec<Panic>,
}

/// A failure that a thread of the program reports while the process ends.
pub(crate) struct Unshown<'a> {
    pub(crate) end: &'a End,
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// Names that the program gave to threads.
    pub(crate) names: &'a [(ThreadId, String)],
    pub(crate) message: Option<&'a Panic>,
    pub(crate) earlier: &'a [Panic],
    /// The number of executions, this one included.
    pub(crate) executions: u64,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<&'a str>,
    /// The number of the model among those of the test.
    pub(crate) nth: u64,
    /// The orderings that are replaced.
    pub(crate) weakened: &'a Weakened,
}

/// A failure that is known and not shown yet. Another OS thread may have to report it.
pub(super) struct Known {
    pub(super) end: End,
    pub(super) trace: Trace,
    pub(super) machine: Machine,
    pub(super) names: Vec<(ThreadId, String)>,
    pub(super) message: Option<Panic>,
    pub(super) earlier: Vec<Panic>,
    pub(super) executions: u64,
    pub(super) test: Option<String>,
    pub(super) nth: u64,
    pub(super) weakened: Weakened,
    pub(super) report: fn(&Unshown<'_>) -> String,
}

impl KnownFailure for Known {
    fn report(&self) -> String {
        (self.report)(&Unshown {
            end: &self.end,
            trace: &self.trace,
            machine: &self.machine,
            names: &self.names,
            message: self.message.as_ref(),
            earlier: &self.earlier,
            executions: self.executions,
            test: self.test.as_deref(),
            nth: self.nth,
            weakened: &self.weakened,
        })
    }
}
