//! How does an execution of the engine become a graph of C11?
//!
//! A [`WeakMemory`] follows an execution event by event. The alternative of a step on an atomic,
//! and of a `try_lock` that fails, is a place in its modification order, counted from the end
//! ([`Place`]), so 0 is the newest outcome; trees and sleep sets name stores instead, because a
//! place means another store when other threads have gone on. A wait of a loop for an atomic reads
//! a store, too: its alternative is the number of the location in the set of the wait, from 1, and
//! 256 times the number of newer stores.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Outcome, Step};
use crate::rt::event::{Event, Trace};
use crate::rt::memory::c11::{Axioms, C11, WaitList};
use crate::rt::memory::graph::Graph;
use crate::rt::memory::operation::{self as graph, Fences};
use crate::rt::memory::search::saved::SavedGraphs;
use crate::rt::memory::search::{Free, Search};
use crate::rt::memory::{self, Access, MemoryModel, Until};
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::object::orders::Place;
use crate::rt::relation::independence::{Class, Label};

/// The number of locations in the set of a wait that an alternative can name.
const LOCATIONS: u32 = 256;

/// The accesses of an execution, as a graph has them.
#[derive(Default)]
pub(super) struct Accesses {
    /// Whether an object has an event in this execution.
    pub(super) met: Vec<bool>,
}

/// What a test does with a graph.
#[cfg(test)]
type AtEnd = Box<dyn FnMut(&Graph)>;

/// The graph of the current execution, and the search over graphs.
pub(crate) struct WeakMemory {
    pub(crate) search: Search<C11>,
    /// The number of steps that the graph has.
    taken: usize,
    /// Whether the execution goes on without exploration. The search may have learnt from the
    /// execution by then, and has no graph.
    is_aside: bool,
    accesses: Accesses,
    outcomes: Vec<memory::Outcome>,
    /// What a test does with the graph of each execution that has ended.
    #[cfg(test)]
    pub(crate) at_end: Option<AtEnd>,
}

/// A step that a thread can make.
pub(crate) struct Possible {
    pub(crate) step: Step,
    /// Whether it reads an old value, or is a store that goes behind a newer one.
    pub(crate) is_old: bool,
    /// The key of the graph behind it.
    pub(crate) graph: u128,
}

impl Accesses {
    /// Notes that the object has an event in this execution. Returns whether it had one before.
    pub(super) fn has_met(&mut self, object: ObjectId) -> bool {
        if object == ObjectId::NONE {
            return true;
        }
        if self.met.len() <= object.index() {
            self.met.resize(object.index() + 1, false);
        }
        std::mem::replace(&mut self.met[object.index()], true)
    }

    /// The object has an event now.
    fn meet(&mut self, model: &mut C11, machine: &Machine, object: ObjectId) {
        if !self.has_met(object) {
            model.meet(object, &machine.initial(object));
        }
    }

    /// The access of this announced operation of `thread`, which has made so many events.
    pub(super) fn access(
        &mut self,
        model: &mut C11,
        (machine, trace): (&Machine, &Trace),
        (thread, events): (ThreadId, u32),
        operation: &Operation,
    ) -> Access {
        let Operation { object, kind } = *operation;
        let is_strong = kind.is_atomic()
            && !matches!(machine.state(object), State::Atomic { ty, .. } if ty.is_weak());
        // The model has no state of a thread.
        let is_of_a_life = matches!(kind, OpKind::Spawn { .. } | OpKind::Join { .. });
        let fences = fences_of(trace, thread, events);
        let mut ended = Fences::Nothing;
        let kind = match kind {
            kind if is_strong => graph::OpKind::Other(kind),
            kind if kind.is_atomic() => graph::OpKind::on_atomic(kind),
            kind if reads_word(machine, operation) => {
                debug_assert_eq!(kind, OpKind::TryLock);
                graph::OpKind::TryLock
            }
            OpKind::Spawn { child } => graph::OpKind::Spawn { child },
            OpKind::Join { child } => {
                ended = fences_of(trace, child, machine.events_of(child));
                graph::OpKind::Join { child }
            }
            OpKind::Wait { set, seen, .. } => {
                let seen: Vec<(ObjectId, u64)> = machine.looked_at(set, seen).collect();
                for &(object, _) in &seen {
                    self.meet(model, machine, object);
                }
                let sets = &mut model.graph_mut().sets;
                if sets.len() < machine.sets.len() {
                    *sets = machine.sets.clone();
                }
                model.waits.push(WaitList { set, seen });
                graph::OpKind::Wait {
                    list: model.waits.len() as u32 - 1,
                }
            }
            other => graph::OpKind::Other(other),
        };
        if !is_of_a_life {
            self.meet(model, machine, object);
        }
        let waits = machine.waits_behind(thread, events) && kind.is_atomic();
        let until = waits.then(|| Until::Newer(model.graph().met_last(thread, object)));
        Access {
            operation: graph::Operation { object, kind },
            fences,
            ended,
            until,
        }
    }
}

impl WeakMemory {
    pub(crate) fn new(free: Free) -> WeakMemory {
        let model = C11::new(Graph::new(1), Axioms::Rc11);
        WeakMemory {
            search: Search::new(model, free),
            taken: 0,
            is_aside: false,
            accesses: Accesses::default(),
            outcomes: Vec::new(),
            #[cfg(test)]
            at_end: None,
        }
    }

    /// Another execution begins, which has its first steps in common with the last one. Without a
    /// number the execution has nothing to do with the last one.
    pub(crate) fn begin(&mut self, kept: Option<usize>) {
        self.accesses.met.clear();
        self.taken = 0;
        match kept {
            Some(kept) => {
                debug_assert!(kept <= self.search.depth());
                self.search.cut(kept);
                self.search.model.begin();
            }
            None => {
                self.search.model.clear();
                self.search.forget();
            }
        }
    }

    /// The search between two executions, with the objects that it has met.
    pub(crate) fn save(&self) -> SavedGraphs {
        let model = &self.search.model;
        SavedGraphs {
            levels: self.search.save(),
            takes_any: self.search.takes_any(),
            threads: model.graph().threads().count() as u32,
            objects: model.initials(),
        }
    }

    /// Goes on with a search of another process, before the first execution. False if that is none.
    pub(crate) fn restore(&mut self, saved: &SavedGraphs) -> bool {
        let model = &mut self.search.model;
        if let Some(last) = saved.threads.checked_sub(1) {
            model.graph_mut().admit(ThreadId(last));
        }
        for (object, state) in (0..).zip(&saved.objects) {
            if let Some(state) = state {
                model.meet(ObjectId(object), state);
            }
        }
        let known = (saved.threads as usize, saved.objects.len());
        self.search.restore(saved, known)
    }

    /// From now on the execution is followed no more, because it goes on without exploration; or
    /// that is over, and no step of it counts.
    pub(crate) fn put_aside(&mut self, is_aside: bool) {
        self.is_aside = is_aside;
    }

    /// The access of this announced operation of `thread`, which has made so many events.
    pub(crate) fn access(
        &mut self,
        machine: &Machine,
        trace: &Trace,
        of: (ThreadId, u32),
        operation: &Operation,
    ) -> Access {
        let model = &mut self.search.model;
        (self.accesses).access(model, (machine, trace), of, operation)
    }

    /// The announced operation of `thread` as an access; `None` if there is none.
    pub(crate) fn pending(
        &mut self,
        machine: &Machine,
        trace: &Trace,
        thread: ThreadId,
    ) -> Option<Access> {
        let operation = machine.pending(thread)?.operation;
        let of = (thread, machine.events_of(thread));
        (operation.kind != OpKind::Start).then(|| self.access(machine, trace, of, &operation))
    }

    /// The outcome that a step with this alternative has.
    fn outcome(&mut self, thread: ThreadId, access: &Access, step: u32) -> Option<memory::Outcome> {
        let object = access.operation.object;
        let made = self.search.model.graph();
        match access.operation.kind {
            graph::OpKind::Fence { .. }
            | graph::OpKind::Spawn { .. }
            | graph::OpKind::Join { .. } => Some(memory::Outcome::Done),
            graph::OpKind::TryLock if step == 0 => self.search.model.newest(thread, access),
            graph::OpKind::TryLock => {
                let newer = Place::of(step).newer as usize;
                let place = made.last_place(object).checked_sub(newer)?;
                let was_locked = self.search.model.was_locked_at(object, place);
                was_locked.then(|| memory::Outcome::Reads(made.store_at(object, place)))
            }
            graph::OpKind::Wait { .. } if step == 0 => {
                Some((self.search.model.newest(thread, access)).unwrap_or(released(0)))
            }
            graph::OpKind::Wait { list } => {
                let WaitList { set, seen } = &self.search.model.waits[list as usize];
                let at = (step % LOCATIONS).checked_sub(1)?;
                let &(object, _) = seen.get(at as usize)?;
                if made.is_other(object) {
                    return Some(memory::Outcome::Other {
                        alternative: at,
                        label: Label::waiting(*set),
                    });
                }
                let place = (made.last_place(object)).checked_sub((step / LOCATIONS) as usize)?;
                Some(memory::Outcome::Reads(made.store_at(object, place)))
            }
            graph::OpKind::Other(_) => {
                let mut outcomes = std::mem::take(&mut self.outcomes);
                self.search.model.outcomes(thread, access, &mut outcomes);
                let found = outcomes.iter().copied().find(|outcome| match outcome {
                    memory::Outcome::Other { alternative, .. } => *alternative == step,
                    _ => false,
                });
                self.outcomes = outcomes;
                found
            }
            _ => {
                let Place { newer, fails } = Place::of(step);
                let place = made.last_place(object).checked_sub(newer as usize)?;
                let outcome = made.outcome_at(access, place)?;
                Some(match outcome {
                    memory::Outcome::Modifies(store) if fails => memory::Outcome::Reads(store),
                    outcome => outcome,
                })
            }
        }
    }

    /// The alternative of a step that has this outcome.
    pub(crate) fn alternative(
        &mut self,
        thread: ThreadId,
        access: &Access,
        outcome: memory::Outcome,
    ) -> u32 {
        if is_released(outcome) {
            return 0;
        }
        let model = &mut self.search.model;
        match (access.operation.kind, outcome) {
            (graph::OpKind::Wait { list }, outcome) => {
                if model.newest(thread, access) == Some(outcome) {
                    return 0;
                }
                let graph = model.graph();
                match outcome {
                    memory::Outcome::Reads(store) => {
                        let object = graph.object_of(store);
                        let seen = &model.waits[list as usize].seen;
                        let at = seen.iter().position(|&(of, _)| of == object);
                        let newer = graph.last_place(object) - graph.place(object, store);
                        newer as u32 * LOCATIONS + at.map_or(0, |at| at as u32 + 1)
                    }
                    memory::Outcome::Other { alternative, .. } => alternative + 1,
                    _ => 0,
                }
            }
            (_, memory::Outcome::Done) => 0,
            (_, memory::Outcome::Other { alternative, .. }) => alternative,
            (
                _,
                memory::Outcome::Reads(store)
                | memory::Outcome::Modifies(store)
                | memory::Outcome::Behind(store),
            ) => {
                let graph = model.graph();
                let object = access.operation.object;
                let place = graph.place(object, store);
                let fails = access.is_to_atomic() && {
                    let ordinary = graph.outcome_at(access, place);
                    ordinary.is_some_and(|ordinary| ordinary != outcome)
                };
                Place {
                    newer: (graph.last_place(object) - place) as u32,
                    fails,
                }
                .alternative()
            }
        }
    }

    /// Whether the thread can make this step now, by the memory model.
    pub(crate) fn is_possible(&mut self, machine: &Machine, trace: &Trace, step: Step) -> bool {
        let Some(access) = self.pending(machine, trace, step.thread) else {
            return false;
        };
        let Some(outcome) = self.outcome(step.thread, &access, step.alternative) else {
            return false;
        };
        let mut outcomes = std::mem::take(&mut self.outcomes);
        (self.search.model).outcomes(step.thread, &access, &mut outcomes);
        let is_there =
            outcomes.contains(&outcome) || is_released(outcome) && machine.enabled(step.thread);
        self.outcomes = outcomes;
        is_there
    }

    /// Every alternative that the announced operation of `thread` has by the memory model, the
    /// newest outcome first.
    pub(crate) fn alternatives(
        &mut self,
        machine: &Machine,
        trace: &Trace,
        thread: ThreadId,
    ) -> Vec<u32> {
        let Some(access) = self.pending(machine, trace, thread) else {
            return Vec::new();
        };
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.search.model.outcomes(thread, &access, &mut outcomes);
        let alternatives = outcomes
            .iter()
            .map(|&outcome| self.alternative(thread, &access, outcome));
        let alternatives = alternatives.collect();
        self.outcomes = outcomes;
        alternatives
    }

    /// Every step that `thread` can make now.
    pub(crate) fn possible_steps(
        &mut self,
        machine: &Machine,
        trace: &Trace,
        thread: ThreadId,
        is_whole: bool,
    ) -> Vec<Possible> {
        let Some(access) = self.pending(machine, trace, thread) else {
            return Vec::new();
        };
        let mut outcomes = Vec::new();
        self.search.model.outcomes(thread, &access, &mut outcomes);
        if outcomes.is_empty() {
            outcomes.extend(machine.was_let_go_at(thread).map(released));
        }
        let possible = outcomes.into_iter().map(|outcome| {
            let alternative = self.alternative(thread, &access, outcome);
            let is_old = match access.operation.kind {
                graph::OpKind::Wait { .. } => alternative >= LOCATIONS,
                kind => {
                    (kind.is_atomic() || kind == graph::OpKind::TryLock)
                        && Place::of(alternative).newer > 0
                }
            };
            self.search.model.take(thread, &access, outcome);
            let graph = self.search.model.graph().key(is_whole);
            self.search.model.undo();
            Possible {
                step: Step {
                    thread,
                    alternative,
                },
                is_old,
                graph,
            }
        });
        possible.collect()
    }

    /// Notes which threads have ended.
    pub(crate) fn note_ends(&mut self, machine: &Machine) {
        let model = &mut self.search.model;
        let graph = model.graph();
        let ends = graph.threads().map(|thread| {
            let has_ended = !machine.live().contains(&thread);
            has_ended.then(|| graph.made(thread))
        });
        model.ends = ends.collect();
    }

    /// Takes the events of the execution so far, which has so many.
    pub(crate) fn catch_up(&mut self, machine: &Machine, trace: &Trace, length: usize) {
        if self.is_aside {
            return;
        }
        let held = self.search.held().min(length);
        if self.taken < held {
            for position in self.taken..held {
                self.repeat(machine, position, &trace.at(position as u32).operation);
            }
            self.search.go_by(trace.at(held as u32 - 1).thread);
            self.taken = held;
        }
        while self.taken < length {
            self.follow(machine, trace, self.taken);
        }
    }

    /// Takes the next event.
    fn follow(&mut self, machine: &Machine, trace: &Trace, position: usize) {
        let Event {
            thread,
            index,
            operation,
            outcome,
            alternative,
            ..
        } = *trace.at(position as u32);
        self.taken += 1;
        let access = self.access(machine, trace, (thread, index), &operation);
        let came_out = match outcome {
            Outcome::Released { quiescent_at } => released(quiescent_at as u32),
            _ => {
                let outcome = self.outcome(thread, &access, alternative);
                outcome.expect("dpor bug: a step has an outcome that C11 does not allow")
            }
        };
        if self.taken <= self.search.depth() {
            self.search.repeat(position, thread, &access);
        } else {
            self.search.step(thread, &access, came_out);
        }
    }

    /// Repeats an event that the graph still has. Only operands and initial values may be others:
    /// addresses differ.
    #[inline]
    fn repeat(&mut self, machine: &Machine, position: usize, operation: &Operation) {
        let model = &mut self.search.model;
        let operands = match operation.kind {
            OpKind::Wait { set, seen, .. } => {
                let seen: Vec<(ObjectId, u64)> = machine.looked_at(set, seen).collect();
                for &(object, _) in &seen {
                    self.accesses.meet(model, machine, object);
                }
                let (access, _) = self.search.made(position);
                if let graph::OpKind::Wait { list } = access.operation.kind {
                    self.search.model.waits[list as usize].seen = seen;
                }
                return;
            }
            OpKind::Load { .. } => false,
            kind => kind.is_atomic(),
        };
        if !matches!(operation.kind, OpKind::Spawn { .. } | OpKind::Join { .. }) {
            self.accesses.meet(model, machine, operation.object);
        }
        if operands {
            let (access, _) = self.search.made(position);
            if access.operation.kind.is_atomic() {
                let kind = graph::OpKind::on_atomic(operation.kind);
                self.search.renew(position, kind);
            }
        }
    }
}

/// The outcome of a wait that was released because no thread could go on behind so many steps.
pub(super) fn released(quiescent_at: u32) -> memory::Outcome {
    memory::Outcome::Other {
        alternative: quiescent_at,
        label: Label::of(ObjectId::NONE, Class::Released),
    }
}

/// Whether it is the outcome of a wait that was released because no thread could go on.
pub(crate) fn is_released(outcome: memory::Outcome) -> bool {
    matches!(outcome, memory::Outcome::Other { label, .. } if label.class() == Class::Released)
}

/// Whether the operation, if it fails, is a relaxed load of the word of a mutex.
pub(super) fn reads_word(machine: &Machine, operation: &Operation) -> bool {
    machine.limits.stale_try_lock
        && operation.kind == OpKind::TryLock
        && matches!(machine.state(operation.object), State::Mutex(_))
}

/// The fences of `thread` behind so many of its events.
fn fences_of(trace: &Trace, thread: ThreadId, events: u32) -> Fences {
    let of = trace.fences().iter();
    let of = of.filter(|fence| fence.thread == thread && fence.after == events);
    of.fold(Fences::Nothing, |fences, fence| fences.and(fence.order))
}
