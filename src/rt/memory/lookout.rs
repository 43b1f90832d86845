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

use super::c11::{Axioms, C11, outcomes_between};
use super::clocks::{NOTHING, Row, Rows};
use super::graph::Graph;
use super::{Access, Decision, MemoryModel, Outcome, StoreRef};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::memory::operation::OpKind;

/// An execution under sequential consistency that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Lookout {
    model: C11,
    clocks: Rows,
    /// For each event what comes before it in the trace.
    rows: Vec<Row>,
    /// For each step how much there was of the clocks before it.
    marks: Vec<usize>,
    outcomes: Vec<Outcome>,
}

impl Lookout {
    /// Looks at executions that begin so, of so many threads.
    pub(crate) fn new(graph: Graph) -> Lookout {
        let threads = graph.threads().count();
        Lookout {
            model: C11::new(graph, Axioms::Rc11),
            clocks: Rows::new(threads),
            rows: Vec::new(),
            marks: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// The model, to which a caller introduces objects.
    pub(crate) fn model(&mut self) -> &mut C11 {
        &mut self.model
    }

    /// Takes events back until so many steps are left.
    pub(crate) fn shorten(&mut self, steps: usize) {
        while self.marks.len() > steps {
            self.undo();
        }
    }

    /// Forgets the lists of waits that are no steps any more.
    pub(crate) fn forget_waits(&mut self) {
        self.model.forget_waits();
    }

    /// The last store of an atomic.
    pub(crate) fn last_store(&self, object: ObjectId) -> StoreRef {
        let graph = self.model.graph();
        graph.store_at(object, graph.last_place(object))
    }

    /// An outcome that `access`, as the next event of `thread`, has under C11 and not under
    /// sequential consistency: the newest one, if there are several.
    pub(crate) fn weak_outcome(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        if access.waits() && !access.is_to_atomic() {
            return self.weak_wait(thread, access);
        }
        let is_try = access.operation.kind == OpKind::TryLock;
        if !access.is_to_atomic() && !is_try {
            return None;
        }
        let object = access.operation.object;
        let end = self.sequential_floor(thread, object);
        debug_assert!(self.model.graph().floor(thread, object) <= end);
        if end == 0 {
            return None;
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        (self.model).outcomes_before(thread, access, end, &mut outcomes);
        let first = outcomes.first().copied();
        self.outcomes = outcomes;
        first
    }

    /// [`Lookout::weak_outcome`] of a wait for one of several objects.
    fn weak_wait(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.model.outcomes(thread, access, &mut outcomes);
        let is_weak = |outcome: &Outcome| {
            let Outcome::Reads(store) = *outcome else {
                return false;
            };
            let graph = self.model.graph();
            let object = graph.object_of(store);
            graph.place(object, store) < self.sequential_floor(thread, object)
        };
        let found = outcomes.iter().copied().find(is_weak);
        self.outcomes = outcomes;
        found
    }

    /// The place of the newest store that comes before the thread's next event in the trace, itself
    /// or through an event that reads it.
    fn sequential_floor(&self, thread: ThreadId, object: ObjectId) -> usize {
        let graph = self.model.graph();
        let row = self.row_of(thread);
        graph.floor_of(object, |position: u32| {
            let event = graph.at(position);
            self.clocks.get(row, event.thread) > event.index
        })
    }

    fn row_of(&self, thread: ThreadId) -> Row {
        let last = self.model.graph().last_of(thread);
        last.map_or(NOTHING, |last| self.rows[last as usize])
    }
}

impl MemoryModel for Lookout {
    fn graph(&self) -> &Graph {
        self.model.graph()
    }

    fn outcomes(&mut self, thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>) {
        if let OpKind::TryLock | OpKind::Other(_) = access.operation.kind {
            outcomes.clear();
            outcomes.extend(self.model.newest(thread, access));
            return;
        }
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
        self.marks.push(self.clocks.mark());
        let row = self.row_of(thread);
        let joined = match access.operation.kind {
            OpKind::Join { child } => self.row_of(child),
            _ => NOTHING,
        };
        self.model.take(thread, access, outcome);
        let graph = self.model.graph();
        let threads = graph.threads().count();
        if threads > self.clocks.width() {
            self.clocks.widen(threads);
        }
        let last = graph.len() as u32 - 1;
        let event = graph.at(last);
        let row = self.clocks.joined((row, NOTHING), thread, event.index + 1);
        self.clocks.add(row, joined);
        if event.is_access() {
            // A read comes behind the store that it reads. A store comes behind the one before it,
            // and behind its readers.
            let object = event.object();
            let writes = usize::from(event.written.is_some());
            let place = graph.last_place(object) - writes;
            if let Some(before) = graph.position(graph.store_at(object, place)) {
                self.clocks.add(row, self.rows[before as usize]);
            }
            if writes > 0 {
                for reader in graph
                    .readers(object, place)
                    .filter(|&reader| reader != last)
                {
                    self.clocks.add(row, self.rows[reader as usize]);
                }
            }
        }
        if graph.at(last).label().is_some() {
            // What an operation on another object depends on comes before it.
            for (thread, &known) in graph.threads().zip(graph.past(last)) {
                let mine = graph.positions_of(thread);
                let before = known.checked_sub(1).map(|before| mine[before as usize]);
                if let Some(before) = before.filter(|&before| (before as usize) < self.rows.len()) {
                    self.clocks.add(row, self.rows[before as usize]);
                }
            }
        }
        // The fences of the step come before it, and no event of another thread between them.
        self.rows.resize(graph.len(), row);
    }

    fn again(&mut self, position: u32, access: &Access) {
        self.model.again(position, access);
    }

    fn undo(&mut self) {
        self.model.undo();
        self.rows.truncate(self.model.graph().len());
        let mark = self.marks.pop().expect("there is a step");
        self.clocks.truncate(mark);
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
