//! What is known of a failure if the process ends before it is shown?
//!
//! What a failed execution leaves is unwound before anything is run again, and a destructor may end
//! the process there. Until then it is kept how the execution has ended, so that whoever tells the
//! last words can hand it to who writes reports. That is done late and not for each failure at
//! once, because most processes go on, and then a simpler execution is shown.
//!
//! Nothing can be run again by then, so neither a simpler execution is known, nor a pair that the
//! failure hangs on, nor where a block was allocated.

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::{End, Panic};
use crate::rt::object::machine::Machine;
use crate::rt::process::watchdog::KnownFailure;

/// How an execution has failed that is being unwound.
pub(super) struct AtEnd {
    pub(super) end: End,
    /// The objects as they were then.
    pub(super) machine: Machine,
    pub(super) message: Option<Panic>,
    pub(super) earlier: Vec<Panic>,
}

/// A failure, to be told by a thread of the program that fails while the process ends.
pub(crate) struct Unshown<'a> {
    pub(crate) end: &'a End,
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// Names that the program gave to threads.
    pub(crate) names: &'a [(ThreadId, String)],
    pub(crate) message: Option<&'a Panic>,
    pub(crate) earlier: &'a [Panic],
    /// How many executions there were, this one included.
    pub(crate) executions: u64,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<&'a str>,
    /// The number of the model among those of the test.
    pub(crate) nth: u64,
}

/// A failure that is known and not shown yet, which another OS thread may have to tell.
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
        })
    }
}
