//! Does a program have an execution under C11 that it does not have under sequential consistency?
//!
//! Each operation of an execution under sequential consistency is looked at when it is about to
//! happen. Its thread has two clocks: what the language grants it to know, and what comes before it
//! in the trace, where all conflicting accesses are ordered. The floor by the first is never above
//! the one by the second. A store between the two may be read under C11 and not under sequential
//! consistency, if atomicity and the order of `SeqCst` events allow it; the same holds for a place
//! where a store may go. If no operation of any execution has such an outcome, and no await that is
//! blocked at its end, then every graph is one of sequential consistency: the smallest graph that
//! is not is one of those and one event more.

use super::c11::{Axioms, C11};
use super::clocks::{NOTHING, Row, Rows};
use super::graph::Graph;
use super::sc::newest_outcomes;
use super::{Access, Decision, MemoryModel, Outcome};
use crate::rt::event::id::ThreadId;
use crate::rt::memory::operation::OpKind;

/// An execution under sequential consistency that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Lookout {
    model: C11,
    clocks: Rows,
    /// For each event what comes before it in the trace, with how much there was of the clocks
    /// before.
    rows: Vec<(Row, usize)>,
}

impl Lookout {
    /// Looks at executions that begin so, of so many threads.
    pub(crate) fn new(graph: Graph) -> Lookout {
        let threads = graph.threads().count();
        Lookout {
            model: C11::new(graph, Axioms::Rc11),
            clocks: Rows::new(threads),
            rows: Vec::new(),
        }
    }

    /// An outcome that `access`, as the next event of `thread`, has under C11 and not under
    /// sequential consistency: the newest one, if there are several.
    pub(crate) fn weak_outcome(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        if !access.is_to_atomic() {
            return None;
        }
        let object = access.operation.object;
        let graph = self.model.graph();
        let row = self.row_of(thread);
        let knows = |position: u32| {
            let event = graph.at(position);
            self.clocks.get(row, event.thread) > event.index
        };
        let end = graph.floor_of(object, knows);
        debug_assert!(graph.floor(thread, object) <= end);
        let mut outcomes = Vec::new();
        self.model
            .outcomes_before(thread, access, end, &mut outcomes);
        outcomes.first().copied()
    }

    fn row_of(&self, thread: ThreadId) -> Row {
        let last = self.model.graph().last_of(thread);
        last.map_or(NOTHING, |last| self.rows[last as usize].0)
    }
}

impl MemoryModel for Lookout {
    fn graph(&self) -> &Graph {
        self.model.graph()
    }

    fn outcomes(&mut self, _thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>) {
        newest_outcomes(self.model.graph(), access, outcomes);
    }

    fn newest(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        self.model.newest(thread, access)
    }

    fn available(
        &mut self,
        thread: ThreadId,
        access: &Access,
        decision: &Decision,
    ) -> Option<Outcome> {
        self.model.available(thread, access, decision)
    }

    fn take(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) {
        let mark = self.clocks.mark();
        let row = self.row_of(thread);
        self.model.take(thread, access, outcome);
        let graph = self.model.graph();
        let event = graph.at(graph.len() as u32 - 1);
        let row = self.clocks.with(row, thread, event.index + 1);
        if let OpKind::Join { child } = access.operation.kind {
            self.clocks.add(row, self.row_of(child));
        }
        if event.is_access() {
            // A read comes behind the store that it reads. A store comes behind the one before it,
            // and behind its readers.
            let object = event.object();
            let writes = usize::from(event.written.is_some());
            let place = graph.last_place(object) - writes;
            if let Some(before) = graph.position(graph.store_at(object, place)) {
                self.clocks.add(row, self.rows[before as usize].0);
            }
            if writes > 0 {
                for reader in graph.readers(object, place) {
                    if let Some(&(before, _)) = self.rows.get(reader as usize) {
                        self.clocks.add(row, before);
                    }
                }
            }
        }
        self.rows.push((row, mark));
    }

    fn undo(&mut self) {
        self.model.undo();
        let (_, mark) = self.rows.pop().expect("there is an event");
        self.clocks.truncate(mark);
    }
}
