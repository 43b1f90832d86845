//! What is known of a failure if the process ends before it is shown?
//!
//! What a failed execution leaves is unwound before anything is run again, and a destructor may end the process there. Until then
//! it is kept how the execution has ended, so that whoever tells the last words can hand it to who writes reports. That is
//! done late and not for each failure at once, because most processes go on, and then a simpler execution is shown.
//!
//! Nothing can be run again by then, so neither a simpler execution is known, nor a pair that the failure hangs on, nor where
//! a block was allocated.

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::{End, Panic};
use crate::rt::object::machine::Machine;

use crate::rt::exec::context::{Inner, Runtime};

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
}

impl Runtime {
    /// The report of the failure whose execution is being unwound, of which nothing is explored any more. None if it is not, or if
    /// something is in use that the report would be made of.
    pub(super) fn report_unshown(&self) -> Option<String> {
        let mut inner = self.inner.try_borrow_mut().ok()?;
        let AtEnd {
            end,
            machine,
            message,
            earlier,
        } = *self.at_end.try_borrow_mut().ok()?.take()?;
        let (_, _, events) = self.failed.get()?;
        let Inner { driver, names, .. } = &mut *inner;
        // While the other threads run out there are more, and behind a panic there may be. They are not the failure.
        let later = std::mem::replace(&mut driver.machine, machine);
        driver.machine.keep_names_of(later);
        driver.hide_suffix(events);
        Some((self.report)(&Unshown {
            end: &end,
            trace: &driver.trace,
            machine: &driver.machine,
            names,
            message: message.as_ref(),
            earlier: &earlier,
            executions: driver.stats.numbered() + 1,
            test: self.os_thread.name(),
        }))
    }
}
