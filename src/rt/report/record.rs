//! Which data of a failed execution is kept, so that other forms of the report can be made later?
//!
//! Everything that the report is made from, owned. JSON and pictures are made only on request,
//! because most failures are read as text.

use super::places::{Callers, Life};
use super::view::View;
use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::said::Said;
use crate::rt::event::verdict;
use crate::rt::event::verdict::{End, Pair, Reproduction};
use crate::rt::object::machine::Machine;

/// A failed execution.
pub(crate) struct Record {
    pub(crate) end: End,
    pub(crate) trace: Trace,
    pub(crate) machine: Machine,
    /// The names that the program gave to threads.
    pub(crate) given: Vec<(ThreadId, String)>,
    /// The panic's text.
    pub(crate) message: Option<String>,
    /// The panic's file, line and column, where they are known.
    pub(crate) raised: Option<(String, u32, u32)>,
    /// The panics before the failure.
    pub(crate) earlier: Vec<verdict::Panic>,
    /// The facts about the block that the failure is about.
    pub(crate) life: Life,
    /// The callers of operations with a site outside the program.
    pub(crate) callers: Callers,
    /// The pair of operations that the failure hangs on.
    pub(crate) pair: Option<Pair>,
    /// The result of running the schedule again.
    pub(crate) again: Reproduction,
    /// Whether this execution is a simpler one than the execution that was found.
    pub(crate) simplified: bool,
    /// The output of the program's log.
    pub(crate) log: Vec<Said>,
    /// The number of executions, this one included.
    pub(crate) executions: u64,
    pub(crate) schedule: String,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<String>,
    /// The command that replays the schedule.
    pub(crate) replay: String,
}

impl Record {
    /// The view that a report is made from.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            end: &self.end,
            trace: &self.trace,
            machine: &self.machine,
            given: &self.given,
            panic: self.message.as_ref().map(|text| {
                let raised = self.raised.as_ref();
                let raised = raised.map(|(file, line, column)| (file.as_str(), *line, *column));
                (text.as_str(), raised)
            }),
            earlier: &self.earlier,
            life: &self.life,
            callers: &self.callers,
            pair: self.pair.as_ref(),
            again: self.again,
            simplified: self.simplified,
            log: &self.log,
            executions: self.executions,
            schedule: &self.schedule,
            test: self.test.clone(),
            replay: &self.replay,
        }
    }
}
