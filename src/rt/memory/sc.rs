//! What comes of an operation if memory is sequentially consistent?
//!
//! Each operation has its newest outcome; a weak compare-exchange may fail as well. Events are
//! taken in the order of an interleaving. Each interleaving is one; two of them are the same
//! execution if their graphs are.

use super::c11::outcomes_between;
use super::graph::Graph;
use super::{Access, Outcome};
#[cfg(test)]
use super::{Decision, MemoryModel};
#[cfg(test)]
use crate::rt::event::grant::Grant;
#[cfg(test)]
use crate::rt::event::id::ThreadId;

/// The model alone, for tests: the engine of sequential consistency has no graphs.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) struct Sc {
    graph: Graph,
}

#[cfg(test)]
impl Sc {
    pub(crate) fn new(graph: Graph) -> Sc {
        Sc { graph }
    }
}

/// The outcomes of `access` that are not old.
pub(super) fn newest_outcomes(graph: &Graph, access: &Access, outcomes: &mut Vec<Outcome>) {
    outcomes.clear();
    if access.is_to_atomic() {
        let last = graph.last_place(access.operation.object);
        outcomes_between(graph, access, last, last + 1, outcomes);
    } else {
        outcomes.push(Outcome::Done);
    }
}

#[cfg(test)]
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
