//! What may come of an operation under C11?
//!
//! RC11 (Lahav et al., PLDI 2017) with the release sequences of C++20: a graph is an execution if
//! it is coherent, if each read-modify-write comes directly behind what it reads, if its `SeqCst`
//! events are in an order ([`psc`](super::psc)), and if no value comes out of thin air: events are
//! taken in an order of po and rf, so there is no cycle of the two. The first two are read off the
//! graph, from the floor of a thread. The third is asked only for an outcome that is not the
//! newest, of a `SeqCst` operation or of a thread that knows of a `SeqCst` fence: no other
//! closes a cycle.
//!
//! Other objects than atomics are as strong as under sequential consistency: an operation on one is
//! enabled, and comes out, by the state that the earlier operations on it have left. A `try_lock`
//! of a mutex that fails is a relaxed load of the mutex's word, which the operations that lock and
//! unlock the mutex write. It learns nothing, not even by an acquire fence behind it: that a word
//! tells its readers something is nothing that std documents.

use std::sync::atomic::Ordering;

use super::graph::{Graph, LOCKED};
use super::operation::{Fences, OpKind, Operation};
use super::psc::Psc;
use super::{Access, Decision, MemoryModel, Outcome};
use crate::rt::event::grant::Grant;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation;
use crate::rt::object::State;
use crate::rt::relation::independence::{Label, Nature};

/// Which of the axioms hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Axioms {
    Rc11,
    /// All but the one on `SeqCst`, which is then no more than `AcqRel`.
    #[cfg(test)]
    ReleaseAcquire,
}

/// The objects that a wait looks at, each with the view of its thread.
#[derive(Clone, Debug)]
pub(crate) struct WaitList {
    /// The number of the set of these objects.
    pub(crate) set: u32,
    pub(crate) seen: Vec<(ObjectId, u64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct C11 {
    graph: Graph,
    axioms: Axioms,
    psc: Psc,
    /// The states of the objects that are no atomics.
    states: Vec<Option<State>>,
    /// The state of an object before an event, by the position of the event.
    states_before: Vec<(u32, ObjectId, State)>,
    pub(crate) waits: Vec<WaitList>,
    /// For each thread that has ended the number of its steps. A thread that can be joined has made
    /// so many.
    pub(crate) ends: Vec<Option<u32>>,
    /// The buffer of [`MemoryModel::newest`] and [`MemoryModel::available`].
    found: Vec<Outcome>,
    /// How often the third axiom was asked.
    pub(crate) asked: u64,
}

impl C11 {
    pub(crate) fn new(graph: Graph, axioms: Axioms) -> C11 {
        C11 {
            graph,
            axioms,
            psc: Psc::default(),
            states: Vec::new(),
            states_before: Vec::new(),
            waits: Vec::new(),
            ends: Vec::new(),
            found: Vec::new(),
            asked: 0,
        }
    }

    pub(crate) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The object is in this state before its first event. If the graph has an event on it, it was
    /// met before, and only the bits of an initial value may be others: addresses differ.
    pub(crate) fn meet(&mut self, object: ObjectId, state: &State) {
        if let State::Atomic { ty, value } = *state
            && ty.is_weak()
        {
            return self.graph.meet_atomic(object, ty, value);
        }
        if self.graph.has_event_on(object) {
            return;
        }
        self.graph.meet_other(object);
        if self.states.len() <= object.index() {
            self.states.resize_with(object.index() + 1, || None);
        }
        self.states[object.index()] = Some(state.clone());
    }

    /// The state of each object that was met before its first event, as far as it is known.
    pub(crate) fn initials(&self) -> Vec<Option<State>> {
        let count = self.states.len().max(self.graph.locations());
        let initial = |object: u32| {
            let object = ObjectId(object);
            let before = self.states_before.iter().find(|(_, of, _)| *of == object);
            (self.graph.initial(object))
                .or_else(|| Some(before?.2.clone()))
                .or_else(|| self.state(object).cloned())
        };
        (0..count as u32).map(initial).collect()
    }

    /// Another execution begins, with the events that the graph has.
    pub(crate) fn begin(&mut self) {
        self.ends.clear();
        self.forget_waits();
    }

    /// Forgets the lists of waits that are no events any more.
    pub(super) fn forget_waits(&mut self) {
        if self.waits.is_empty() {
            return;
        }
        let lists = self.graph.events().iter();
        let lists = lists.filter_map(|event| match event.access.operation.kind {
            OpKind::Wait { list } => Some(list as usize + 1),
            _ => None,
        });
        let kept = lists.max().unwrap_or(0);
        self.waits.truncate(kept);
    }

    /// Takes all events back, and forgets the waits and ends of threads.
    pub(crate) fn clear(&mut self) {
        self.graph.clear();
        self.states_before.clear();
        self.waits.clear();
        self.ends.clear();
    }

    /// The state of an object that is no atomic.
    pub(crate) fn state(&self, object: ObjectId) -> Option<&State> {
        self.states.get(object.index()).and_then(Option::as_ref)
    }

    /// Whether the third axiom allows this outcome, which the others do.
    fn is_in_order(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) -> bool {
        if self.axioms != Axioms::Rc11
            || self.graph.sequential().is_empty() && access.fences != Fences::SeqCst
            || self.is_newest(access, outcome)
        {
            return true;
        }
        let order = self.graph.order(access, outcome);
        let is_fenced = access.fences != Fences::Nothing || self.graph.knows_fence(thread);
        if order != Ordering::SeqCst && !is_fenced {
            return true;
        }
        self.asked += 1;
        self.graph.take(thread, access, outcome, Grant::Nothing);
        let has_cycle = self.psc.last_closes_cycle(&self.graph);
        self.graph.undo();
        !has_cycle
    }

    /// Whether the outcome reads the last store of the modification order, or goes behind it.
    fn is_newest(&self, access: &Access, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Done | Outcome::Other { .. } => true,
            Outcome::Reads(store) | Outcome::Modifies(store) | Outcome::Behind(store) => {
                let object = match access.operation.kind {
                    OpKind::Wait { .. } => self.graph.object_of(store),
                    _ => access.operation.object,
                };
                let last = self.graph.last_place(object);
                self.graph.store_at(object, last) == store
            }
        }
    }

    /// The label of an operation on another object, and what it then grants; `None` if it is not
    /// enabled or has no such alternative.
    fn other(
        &self,
        thread: ThreadId,
        access: &Access,
        alternative: u32,
    ) -> Option<(Label, Grant, Option<State>)> {
        let kind = match access.operation.kind {
            OpKind::Other(kind) => kind,
            OpKind::TryLock => operation::OpKind::TryLock,
            _ => return None,
        };
        let object = access.operation.object;
        if object == ObjectId::NONE {
            let is_there = match kind {
                operation::OpKind::Choose { options, .. } => alternative < options,
                operation::OpKind::GiveUp { .. } | operation::OpKind::Start => false,
                _ => alternative == 0,
            };
            let label = Label::new(object, &kind, operation::Outcome::Done, Nature::Plain);
            return is_there.then_some((label, Grant::Nothing, None));
        }
        let mut state = self.state(object)?.clone();
        if !state.enabled(thread, &kind) || alternative >= state.alternatives(&kind) {
            return None;
        }
        let outcome = state.apply(thread, &kind, alternative);
        if access.operation.kind == OpKind::TryLock && !outcome.succeeded() {
            // It reads the word.
            return None;
        }
        let operation = operation::Operation { object, kind };
        let label = state.label(&operation, outcome);
        Some((label, Grant::of(&kind, outcome, label.class()), Some(state)))
    }

    /// The number of alternatives that an operation on another object has at most.
    fn alternatives(&self, access: &Access) -> u32 {
        match access.operation.kind {
            OpKind::Other(operation::OpKind::Choose { options, .. }) => options,
            OpKind::Other(kind) => {
                let state = self.state(access.operation.object);
                state.map_or(1, |state| state.alternatives(&kind))
            }
            _ => 1,
        }
    }

    /// Whether the word of a mutex at this place says that it is locked. A mutex may be met locked.
    pub(crate) fn was_locked_at(&self, object: ObjectId, place: usize) -> bool {
        let graph = &self.graph;
        match (place, graph.last_place(object)) {
            (0, 0) => self.state(object).is_some_and(
                |state| matches!(state, State::Mutex(mutex) if mutex.holder.is_some()),
            ),
            (0, _) => graph.value_at(object, 1) != LOCKED,
            _ => graph.value_at(object, place) == LOCKED,
        }
    }

    /// The outcomes of a wait, of its thread's floors and later stores, the newest first.
    fn add_waits(&self, thread: ThreadId, list: u32, outcomes: &mut Vec<Outcome>) {
        let WaitList { set, seen } = &self.waits[list as usize];
        for (&(object, seen), at) in seen.iter().zip(0..) {
            if self.graph.is_other(object) {
                if self
                    .state(object)
                    .is_some_and(|state| state.has_changed(seen))
                {
                    outcomes.push(Outcome::Other {
                        alternative: at,
                        label: Label::waiting(*set),
                    });
                }
                continue;
            }
            let floor = self.graph.floor(thread, object);
            for place in (floor..=self.graph.last_place(object)).rev() {
                if self.graph.value_at(object, place) != seen {
                    outcomes.push(Outcome::Reads(self.graph.store_at(object, place)));
                }
            }
        }
    }
}

/// The outcomes of `access` that read the store at `place`, or go behind it, as far as atomicity
/// allows them.
fn at_place(graph: &Graph, access: &Access, place: usize) -> [Option<Outcome>; 2] {
    let Operation { object, kind } = access.operation;
    let is_free = || !graph.is_modified(object, place);
    match graph.outcome_at(access, place) {
        None => [None; 2],
        Some(outcome @ Outcome::Modifies(store)) => {
            let may_fail = matches!(kind, OpKind::CompareExchange { spurious: true, .. });
            [
                is_free().then_some(outcome),
                may_fail.then_some(Outcome::Reads(store)),
            ]
        }
        Some(outcome @ Outcome::Behind(_)) => [is_free().then_some(outcome), None],
        outcome => [outcome, None],
    }
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
    /// Those of a `try_lock` are failures, each of which reads a store that has locked the mutex.
    pub(super) fn outcomes_before(
        &mut self,
        thread: ThreadId,
        access: &Access,
        end: usize,
        outcomes: &mut Vec<Outcome>,
    ) {
        outcomes.clear();
        self.graph.lead(thread, access.fences);
        let object = access.operation.object;
        let floor = self.graph.floor(thread, object);
        match access.operation.kind {
            OpKind::TryLock => {
                let places = (floor..end).rev();
                let locked = places.filter(|&place| self.was_locked_at(object, place));
                let store = |place| Outcome::Reads(self.graph.store_at(object, place));
                outcomes.extend(locked.map(store));
            }
            _ => outcomes_between(&self.graph, access, floor, end, outcomes),
        }
        self.graph.unlead();
        outcomes.retain(|&outcome| self.is_in_order(thread, access, outcome));
    }

    /// What an operation on another object comes out as with this alternative, if it can.
    fn outcome_of_other(
        &mut self,
        thread: ThreadId,
        access: &Access,
        alternative: u32,
    ) -> Option<Outcome> {
        let (label, ..) = self.other(thread, access, alternative)?;
        Some(Outcome::Other { alternative, label })
    }
}

impl MemoryModel for C11 {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn outcomes(&mut self, thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>) {
        self.graph.admit(thread);
        match access.operation.kind {
            OpKind::Fence { .. } | OpKind::Spawn { .. } => {
                outcomes.clear();
                outcomes.push(Outcome::Done);
            }
            OpKind::Join { child } => {
                outcomes.clear();
                let has_ended = match self.ends.get(child.index()) {
                    // An abstract program joins no thread before its end.
                    None => self.ends.is_empty(),
                    Some(&end) => end == Some(self.graph.made(child)),
                };
                outcomes.extend(has_ended.then_some(Outcome::Done));
            }
            OpKind::Wait { list } => {
                outcomes.clear();
                self.graph.lead(thread, access.fences);
                self.add_waits(thread, list, outcomes);
                self.graph.unlead();
                outcomes.retain(|&outcome| self.is_in_order(thread, access, outcome));
            }
            OpKind::TryLock => {
                let end = self.graph.last_place(access.operation.object) + 1;
                self.outcomes_before(thread, access, end, outcomes);
                if let Some(success) = self.outcome_of_other(thread, access, 0) {
                    outcomes.insert(0, success);
                }
            }
            OpKind::Other(_) => {
                outcomes.clear();
                for alternative in 0..self.alternatives(access) {
                    outcomes.extend(self.outcome_of_other(thread, access, alternative));
                }
            }
            _ => {
                let end = self.graph.last_place(access.operation.object) + 1;
                self.outcomes_before(thread, access, end, outcomes);
            }
        }
    }

    fn newest(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome> {
        let object = access.operation.object;
        match access.operation.kind {
            OpKind::Wait { .. } | OpKind::Other(_) | OpKind::Join { .. } => {
                let mut found = std::mem::take(&mut self.found);
                self.outcomes(thread, access, &mut found);
                let newest = found
                    .iter()
                    .copied()
                    .find(|&outcome| self.is_newest(access, outcome));
                self.found = found;
                newest
            }
            OpKind::Fence { .. } | OpKind::Spawn { .. } => Some(Outcome::Done),
            OpKind::TryLock => (self.outcome_of_other(thread, access, 0)).or_else(|| {
                let last = self.graph.last_place(object);
                Some(Outcome::Reads(self.graph.store_at(object, last)))
            }),
            _ => (self.graph).outcome_at(access, self.graph.last_place(object)),
        }
    }

    /// Coherence takes nothing away from a thread that does nothing meanwhile. A read-modify-write
    /// can be taken away by another one that reads the same store, and the third axiom can take
    /// anything away. The events that an operation on another object depends on are not asked for
    /// here: its caller compares labels.
    fn available(
        &mut self,
        thread: ThreadId,
        access: &Access,
        decision: &Decision,
    ) -> Option<Outcome> {
        let object = access.operation.object;
        match *decision {
            Decision::Done => Some(Outcome::Done),
            Decision::Other { alternative, label } => match access.operation.kind {
                OpKind::Wait { .. } => Some(Outcome::Other { alternative, label }),
                _ => self.outcome_of_other(thread, access, alternative),
            },
            Decision::Reads(store) => {
                let outcome = Outcome::Reads(store);
                let is_there = self.graph.has(store);
                (is_there && self.is_in_order(thread, access, outcome)).then_some(outcome)
            }
            Decision::Modifies(store) => {
                let outcome = Outcome::Modifies(store);
                let is_free = self.graph.has(store)
                    && !(self.graph).is_modified(object, self.graph.place(object, store));
                (is_free && self.is_in_order(thread, access, outcome)).then_some(outcome)
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
        let Outcome::Other { alternative, .. } = outcome else {
            return self.graph.take(thread, access, outcome, Grant::Nothing);
        };
        match self.other(thread, access, alternative) {
            Some((label, grant, after)) => {
                let outcome = Outcome::Other { alternative, label };
                self.graph.take(thread, access, outcome, grant);
                let object = access.operation.object;
                if let Some(after) = after
                    && let Some(state) = &mut self.states[object.index()]
                {
                    let position = self.graph.len() as u32 - 1;
                    let before = std::mem::replace(state, after);
                    self.states_before.push((position, object, before));
                }
            }
            // A wait has no state, and neither has an operation on an object that was not met.
            None => self.graph.take(thread, access, outcome, Grant::Nothing),
        }
    }

    fn again(&mut self, position: u32, access: &Access) {
        self.graph.again(position, access);
    }

    fn undo(&mut self) {
        let position = self.graph.len() as u32 - 1;
        self.graph.undo();
        if let Some((_, object, state)) = (self.states_before).pop_if(|(at, ..)| *at == position) {
            self.states[object.index()] = Some(state);
        }
    }
}
