//! Which events of a sequence are needed?
//!
//! Those that make the reversed event possible, and those that wake the steps which will be asleep
//! behind the branch that the sequence goes on from. Everything else is explored behind them
//! anyway: at the end of the sequence no step is asleep.

use super::super::graph::Graph;
use super::super::{Access, Decision, MemoryModel, Outcome};
use super::plan::decided_among;
use super::trap::Trap;
use super::{Search, Step, survives};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::relation::independence::Label;

/// A step that is asleep from so many events on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asleep {
    pub(super) from: usize,
    pub(super) step: Step,
}

/// The decision of the event at `position`, among those that are there.
pub(super) fn decision(graph: &Graph, position: u32, is_there: impl Fn(u32) -> bool) -> Decision {
    let event = graph.at(position);
    match event.outcome {
        Outcome::Behind(_) => decided_among(graph, position, is_there),
        outcome => graph.decision(&event.access, outcome),
    }
}

/// Whether an await of the graph reads a store that is not the last one.
fn has_old_await(graph: &Graph, first: usize) -> bool {
    graph.events()[first..].iter().any(|event| {
        let object = event.object();
        let waits = event.access.waits() && event.is_access();
        waits && event.reads() != Some(graph.store_at(object, graph.last_place(object)))
    })
}

impl<M: MemoryModel> Search<M> {
    /// The events of `rest` that are needed behind the events of `path`. The graph has all of them,
    /// and begins with events up to `first`. The event at `last` is the reversed one.
    pub(super) fn needed(
        &mut self,
        first: usize,
        path: &[u32],
        rest: &[u32],
        last: u32,
        asleep: &[Asleep],
    ) -> Vec<u32> {
        let start = self.levels[first].start;
        let graph = self.model.graph();
        // An await that reads an old store may be possible only together with others.
        if !graph.sequential().is_empty() && has_old_await(graph, start) {
            return rest.to_vec();
        }
        if rest.len() == 1 {
            return rest.to_vec();
        }
        let is_lasting = asleep.iter().all(|asleep| self.is_lasting(&asleep.step));
        let mut whole: Vec<(ThreadId, Access, Outcome)> = Vec::new();
        if !is_lasting {
            let events = (start as u32..graph.len() as u32).filter(|&at| graph.is_step(at));
            whole.extend(events.map(|position| {
                let event = graph.at(position);
                (event.thread, event.access, event.outcome)
            }));
        }
        let wakers = |search: &mut Self, order: &[u32]| match is_lasting {
            true => search.plain_wakers(order, asleep),
            false => search.wakers(first, order, asleep, &whole),
        };
        let mut order: Vec<u32> = path.iter().chain(rest).copied().collect();
        let mut woken = wakers(self, &order);
        if self.lacks(Trap::Wakers) {
            woken.clear();
        }
        let graph = self.model.graph();
        let mut needed: Vec<u32> = Vec::with_capacity(rest.len());
        // A count depends on every event on its object.
        let mut counted: Vec<ObjectId> = Vec::new();
        for &position in rest.iter().rev() {
            let label = graph.at(position).label();
            let is_wanted = position == last
                || woken.contains(&Some(position))
                || needed.iter().any(|&later| graph.is_past(position, later))
                || label.is_some_and(|label| counted.contains(&label.object()));
            if is_wanted {
                let label = label.filter(|label| label.has_count());
                counted.extend(label.map(Label::object));
                needed.push(position);
            }
        }
        needed.reverse();
        if needed.len() == rest.len() || self.lacks(Trap::Wakers) {
            return needed;
        }
        // The axiom on `SeqCst` may need several events to take an outcome away.
        order.truncate(path.len());
        order.extend_from_slice(&needed);
        let woken = wakers(self, &order);
        if woken.iter().all(Option::is_some) {
            needed
        } else {
            rest.to_vec()
        }
    }

    /// [`Search::wakers`] of steps that only an event of their own thread wakes, or a
    /// read-modify-write that takes their store.
    fn plain_wakers(&self, order: &[u32], asleep: &[Asleep]) -> Vec<Option<u32>> {
        let graph = self.model.graph();
        let wakes = |position: u32, step: &Step| {
            let event = graph.at(position);
            event.thread == step.thread
                || match step.decision {
                    Decision::Modifies(store) => event.modifies() && event.reads() == Some(store),
                    _ => false,
                }
        };
        let asleep = asleep.iter();
        let woken = asleep.map(|Asleep { from, step }| {
            let mut order = order[*from..].iter().copied();
            order.find(|&position| wakes(position, step))
        });
        woken.collect()
    }

    /// For each step that is asleep the event that wakes it, if these events of the graph happen
    /// behind those before `first`. `whole` are the steps of the graph from there on, which are
    /// there again afterwards.
    fn wakers(
        &mut self,
        first: usize,
        order: &[u32],
        asleep: &[Asleep],
        whole: &[(ThreadId, Access, Outcome)],
    ) -> Vec<Option<u32>> {
        let mut woken = vec![None; asleep.len()];
        let start = self.levels[first].start as u32;
        let graph = self.model.graph();
        let steps: Vec<(u32, ThreadId, Access, Decision)> = (order.iter().enumerate())
            .map(|(at, &position)| {
                let before = &order[..at];
                let is_there = |store: u32| store < start || before.contains(&store);
                let event = graph.at(position);
                let decision = decision(graph, position, is_there);
                (position, event.thread, event.access, decision)
            })
            .collect();
        self.shorten(first);
        for (at, (position, thread, access, decision)) in steps.into_iter().enumerate() {
            let outcome = self.model.available(thread, &access, &decision);
            let outcome = outcome.expect("a part of a graph is possible");
            self.model.take(thread, &access, outcome);
            let last = self.model.graph().len() as u32 - 1;
            for (sleeper, woken) in asleep.iter().zip(&mut woken) {
                if at >= sleeper.from
                    && woken.is_none()
                    && (sleeper.step.thread == thread
                        || !survives(&mut self.model, &sleeper.step, last))
                {
                    *woken = Some(position);
                }
            }
            if woken.iter().all(Option::is_some) {
                break;
            }
        }
        self.shorten(first);
        for (thread, access, outcome) in whole {
            self.model.take(*thread, access, *outcome);
        }
        woken
    }
}
