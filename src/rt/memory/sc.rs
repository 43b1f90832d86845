//! What comes of an operation if memory is sequentially consistent?
//!
//! Each operation has its newest outcome; a weak compare-exchange may fail as well. Events are
//! taken in the order of an interleaving. Each interleaving is one; two of them are the same
//! execution if their graphs are.

use super::graph::Graph;
use super::lookout::newest_outcomes;
use super::{Access, Decision, MemoryModel, Outcome};
use crate::rt::event::grant::Grant;
use crate::rt::event::id::ThreadId;

/// The model alone. The engine of sequential consistency has no graphs.
#[derive(Clone, Debug)]
pub(crate) struct Sc {
    graph: Graph,
}

impl Sc {
    pub(crate) fn new(graph: Graph) -> Sc {
        Sc { graph }
    }
}

impl MemoryModel for Sc {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn outcomes(&mut self, _thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>) {
        newest_outcomes(&self.graph, access, outcomes);
    }

    fn newest(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        let mut outcomes = Vec::new();
        self.outcomes(thread, access, &mut outcomes);
        outcomes.first().copied()
    }

    /// Only what is still the newest outcome.
    fn available(
        &mut self,
        thread: ThreadId,
        access: &Access,
        decision: &Decision,
    ) -> Option<Outcome> {
        let mut outcomes = Vec::new();
        self.outcomes(thread, access, &mut outcomes);
        let is_it = |outcome: &Outcome| self.graph.decision(access, *outcome) == *decision;
        outcomes.into_iter().find(is_it)
    }

    fn take(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) {
        self.graph.take(thread, access, outcome, Grant::Nothing);
    }

    fn again(&mut self, position: u32, access: &Access) {
        self.graph.again(position, access);
    }

    fn undo(&mut self) {
        self.graph.undo();
    }
}
