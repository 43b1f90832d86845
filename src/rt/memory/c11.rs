//! What may come of an operation under C11?
//!
//! RC11 (Lahav et al., PLDI 2017) with the release sequences of C++20: a graph is an execution if
//! it is coherent, if each read-modify-write comes directly behind what it reads, if its `SeqCst`
//! events are in an order ([`psc`](super::psc)), and if no value comes out of thin air: events are
//! taken in an order of po and rf, so there is no cycle of the two. The first two are read off the
//! graph, from the floor of a thread. The third is asked only for an outcome that is not the
//! newest, of a `SeqCst` operation or of a thread that knows of a `SeqCst` fence: no other
//! closes a cycle.

use std::sync::atomic::Ordering;

use super::graph::Graph;
use super::psc::Psc;
use super::{Access, Decision, MemoryModel, Outcome};
use crate::rt::event::id::ThreadId;
use crate::rt::memory::operation::{OpKind, Operation};

/// Which of the axioms hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Axioms {
    Rc11,
    /// All but the one on `SeqCst`, which is then no more than `AcqRel`.
    ReleaseAcquire,
}

#[derive(Clone, Debug)]
pub(crate) struct C11 {
    graph: Graph,
    axioms: Axioms,
    psc: Psc,
    /// How often the third axiom was asked.
    pub(crate) asked: u64,
}

impl C11 {
    pub(crate) fn new(graph: Graph, axioms: Axioms) -> C11 {
        C11 {
            graph,
            axioms,
            psc: Psc::default(),
            asked: 0,
        }
    }

    /// Whether the third axiom allows this outcome, which the others do.
    fn is_in_order(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) -> bool {
        if self.axioms == Axioms::ReleaseAcquire
            || self.graph.sequential().is_empty()
            || self.newest(access) == Some(outcome)
        {
            return true;
        }
        let is_spurious = matches!(outcome, Outcome::Spurious(_));
        let value = match outcome {
            Outcome::Reads(store) | Outcome::Spurious(store) => {
                let object = access.operation.object;
                self.graph.value_at(object, self.graph.place(object, store))
            }
            Outcome::Done | Outcome::Behind(_) => 0,
        };
        let (_, order) = self.graph.effect(access, value, is_spurious);
        if order != Ordering::SeqCst && !self.graph.knows_fence(thread) {
            return true;
        }
        self.asked += 1;
        self.graph.take(thread, access, outcome);
        let has_cycle = self.psc.last_closes_cycle(&self.graph);
        self.graph.undo();
        !has_cycle
    }
}

/// The outcomes of `access` that read the store at `place`, or go behind it, as far as atomicity
/// allows them.
fn at_place(graph: &Graph, access: &Access, place: usize) -> [Option<Outcome>; 2] {
    let Operation { object, kind } = access.operation;
    let store = graph.store_at(object, place);
    let is_free = !graph.is_modified(object, place);
    if let OpKind::Store { .. } = kind {
        return [is_free.then_some(Outcome::Behind(store)), None];
    }
    let value = graph.value_at(object, place);
    if access.until.is_some_and(|until| until != value) {
        return [None; 2];
    }
    let (written, _) = graph.effect(access, value, false);
    let reads = (is_free || written.is_none()).then_some(Outcome::Reads(store));
    let may_fail =
        matches!(kind, OpKind::CompareExchange { spurious, .. } if spurious && written.is_some());
    [reads, may_fail.then_some(Outcome::Spurious(store))]
}

/// The outcomes at the places from `floor` on and before `end` that coherence and atomicity allow,
/// the newest first.
pub(super) fn outcomes_between(
    graph: &Graph,
    access: &Access,
    floor: usize,
    end: usize,
    outcomes: &mut Vec<Outcome>,
) {
    for place in (floor..end).rev() {
        outcomes.extend(at_place(graph, access, place).into_iter().flatten());
    }
}

impl C11 {
    /// The outcomes of `access` at the places from its floor on and before `end`, the newest first.
    pub(super) fn outcomes_before(
        &mut self,
        thread: ThreadId,
        access: &Access,
        end: usize,
        outcomes: &mut Vec<Outcome>,
    ) {
        outcomes.clear();
        let floor = self.graph.floor(thread, access.operation.object);
        outcomes_between(&self.graph, access, floor, end, outcomes);
        outcomes.retain(|&outcome| self.is_in_order(thread, access, outcome));
    }
}

/// Whether coherence and atomicity allow the outcome.
fn is_coherent(graph: &Graph, thread: ThreadId, access: &Access, outcome: Outcome) -> bool {
    let object = access.operation.object;
    match outcome {
        Outcome::Done => true,
        Outcome::Reads(store) | Outcome::Spurious(store) | Outcome::Behind(store) => {
            let place = graph.place(object, store);
            place >= graph.floor(thread, object)
                && at_place(graph, access, place).contains(&Some(outcome))
        }
    }
}

impl MemoryModel for C11 {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn outcomes(&mut self, thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>) {
        if !access.is_to_atomic() {
            outcomes.clear();
            outcomes.push(Outcome::Done);
            return;
        }
        let end = self.graph.last_place(access.operation.object) + 1;
        self.outcomes_before(thread, access, end, outcomes);
    }

    /// Coherence takes nothing away from a thread that does nothing meanwhile. A read-modify-write
    /// can be taken away by another one that reads the same store, and the third axiom can take
    /// anything away.
    fn available(
        &mut self,
        thread: ThreadId,
        access: &Access,
        decision: &Decision,
    ) -> Option<Outcome> {
        let object = access.operation.object;
        match *decision {
            Decision::Done => Some(Outcome::Done),
            Decision::Reads(store) | Decision::Spurious(store) => {
                let outcome = match *decision {
                    Decision::Reads(_) => Outcome::Reads(store),
                    _ => Outcome::Spurious(store),
                };
                if !self.graph.has(store) {
                    return None;
                }
                let place = self.graph.place(object, store);
                debug_assert!(place >= self.graph.floor(thread, object));
                let is_there = at_place(&self.graph, access, place).contains(&Some(outcome));
                (is_there && self.is_in_order(thread, access, outcome)).then_some(outcome)
            }
            Decision::Within(interval) => {
                let first = self.graph.place(object, interval.after);
                let end = match interval.before {
                    Some(before) => self.graph.place(object, before),
                    None => self.graph.last_place(object) + 1,
                };
                (first..end).rev().find_map(|place| {
                    let [outcome, _] = at_place(&self.graph, access, place);
                    outcome.filter(|&outcome| self.is_in_order(thread, access, outcome))
                })
            }
        }
    }

    fn take(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) {
        debug_assert!(is_coherent(&self.graph, thread, access, outcome));
        self.graph.take(thread, access, outcome);
    }

    fn undo(&mut self) {
        self.graph.undo();
    }
}
